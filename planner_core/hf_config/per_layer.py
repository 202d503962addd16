"""Models that give every layer a shape of its own: Nemotron-NAS block configs, OpenELM lists.

Owns: `read_block_lists`.
Refuses: blocks that are neither attention, FFN nor left out.
"""

from __future__ import annotations

from typing import Final

from planner_core.errors import UnsupportedModel
from planner_core.hf_config.families import Family
from planner_core.hf_config.fields import MAX_HEADS, MAX_INTERMEDIATE, Fields
from planner_core.hf_config.sizes import Sizes, Traits, check_kv_heads
from planner_core.model_arch import AttentionGroup, FfnGroup

Blocks = tuple[list[AttentionGroup | None], list[FfnGroup | None]]
_FFN_MULTIPLE: Final = 256


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def _objects(fields: Fields, name: str, n_layers: int) -> list[Fields]:
    """Return one nested object a layer; faults for entries of another type."""
    found = []
    for at, value in enumerate(fields.per_layer(name, n_layers=n_layers) or []):
        if isinstance(value, dict):
            found.append(Fields(value, fields.log, fields.path(f"{name}[{at}]")))
        else:
            fields.log.fault(
                fields.path(f"{name}[{at}]"),
                value,
                allowed="an object",
                fix="describe each block as an object",
            )
    return found


def _nas_attention(block: Fields, sizes: Sizes) -> AttentionGroup | None:
    part = block.child("attention")
    if part is None or part.optional_flag("no_op"):
        return None
    group_size = part.optional_count("n_heads_in_group", high=MAX_HEADS)
    n_kv_heads = part.optional_count("num_key_value_heads", high=MAX_HEADS)
    if n_kv_heads is None:
        if group_size is None:
            group_size = part.count("n_heads_in_group", high=MAX_HEADS)
        check_kv_heads(part, n_heads=sizes.n_heads, n_kv_heads=group_size)
        n_kv_heads = max(sizes.n_heads // group_size, 1)
    check_kv_heads(part, n_heads=sizes.n_heads, n_kv_heads=n_kv_heads)
    return AttentionGroup(
        kind="global",
        n_layers=1,
        n_q_heads=sizes.n_heads,
        n_kv_heads=n_kv_heads,
        head_dim_k=sizes.head_dim,
        head_dim_v=sizes.head_dim,
    )


def _nas_ffn(block: Fields, sizes: Sizes, traits: Traits) -> FfnGroup | None:
    part = block.child("ffn")
    if part is None or part.optional_flag("no_op"):
        return None
    width = part.optional_count("intermediate_size", high=MAX_INTERMEDIATE)
    if width is None:
        multiple = part.number("ffn_mult", part.get("ffn_mult"), low=1e-3, high=64.0)
        # Two thirds of the ungated width, rounded up to 256, as the class does.
        width = max(_round_up(int(2 * multiple * sizes.hidden / 3), _FFN_MULTIPLE), 1)
    return FfnGroup(kind="dense", n_layers=1, intermediate_size=width, gated=traits.gated)


def _nas_blocks(fields: Fields, sizes: Sizes, traits: Traits) -> Blocks:
    blocks = _objects(fields, "block_configs", sizes.n_layers)
    replaced = sum(_is_linear(block.source.get(part)) for block in blocks for part in ("attention", "ffn"))
    if replaced:
        raise UnsupportedModel(
            f"{replaced} blocks have a linear layer in place of attention or FFN, which is not modelled",
            field=fields.path("block_configs"),
        )
    return [_nas_attention(block, sizes) for block in blocks], [
        _nas_ffn(block, sizes, traits) for block in blocks
    ]


def _is_linear(part: object) -> bool:
    return isinstance(part, dict) and part.get("replace_with_linear") is True


def _openelm_blocks(fields: Fields, sizes: Sizes, traits: Traits) -> Blocks:
    n_layers = sizes.n_layers
    lists = {
        name: fields.per_layer(name, n_layers=n_layers)
        for name in ("num_query_heads", "num_kv_heads", "ffn_multipliers")
    }
    for name, values in lists.items():
        if values is None:
            fields.log.fault(
                fields.path(name),
                fields.source.get(name),
                allowed=f"a list of {n_layers:,} numbers, one a layer",
                fix=f"add {name}",
            )
    divisor = fields.optional_count("ffn_dim_divisor", high=MAX_INTERMEDIATE) or _FFN_MULTIPLE
    attention: list[AttentionGroup | None] = []
    ffn: list[FfnGroup | None] = []
    rows = zip(*(values or [] for values in lists.values()), strict=False)
    for at, (queries, keys, multiple) in enumerate(rows):
        n_heads = fields.checked_count(f"num_query_heads[{at}]", queries, low=1, high=MAX_HEADS)
        n_kv_heads = fields.checked_count(f"num_kv_heads[{at}]", keys, low=1, high=MAX_HEADS)
        check_kv_heads(fields, n_heads=n_heads, n_kv_heads=n_kv_heads)
        factor = fields.number(f"ffn_multipliers[{at}]", multiple, low=1e-3, high=64.0)
        attention.append(
            AttentionGroup(
                kind="global",
                n_layers=1,
                n_q_heads=n_heads,
                n_kv_heads=n_kv_heads,
                head_dim_k=sizes.head_dim,
                head_dim_v=sizes.head_dim,
            )
        )
        width = _make_divisible(factor * sizes.hidden, divisor)
        ffn.append(FfnGroup(kind="dense", n_layers=1, intermediate_size=width, gated=traits.gated))
    return attention, ffn


def _make_divisible(value: float, divisor: int) -> int:
    """Round to the nearest multiple, never below it, never down by more than a tenth, as the class does."""
    rounded = max(divisor, int(value + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * value else rounded


def read_block_lists(fields: Fields, family: Family, sizes: Sizes, traits: Traits) -> Blocks | None:
    """Return each layer's attention and FFN where lists give them, None for other models."""
    if fields.has("block_configs"):
        return _nas_blocks(fields, sizes, traits)
    if family.stem == "OpenELM":
        return _openelm_blocks(fields, sizes, traits)
    return None
