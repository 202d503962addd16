"""Which FFN each layer has: dense or MoE, and their widths under each of their names.

Owns: the layouts that decide which layers are MoE; one `FfnGroup` a layer.
Refuses: lists of block configs (see `per_layer`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from planner_core.hf_config.families import Family, MoeRule
from planner_core.hf_config.fields import (
    MAX_EXPERTS,
    MAX_INTERMEDIATE,
    MAX_LAYERS,
    Fields,
)
from planner_core.hf_config.sizes import INTERMEDIATE, Sizes, Traits, read_intermediate
from planner_core.model_arch import FfnGroup

EXPERTS: Final = (
    "num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts", "num_routed_experts",
)  # fmt: skip
EXPERTS_PER_TOKEN: Final = (
    "num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_topk", "moe_top_k",
    "top_k_experts", "moe_k", "num_selected_experts",
)  # fmt: skip
EXPERT_WIDTH: Final = (
    "moe_intermediate_size", "expert_intermediate_size", "moe_ffn_hidden_size", "ffn_hidden_size",
)  # fmt: skip
SHARED_EXPERTS: Final = (
    "n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert",
)  # fmt: skip
SHARED_WIDTH: Final = (
    "shared_expert_intermediate_size", "shared_intermediate_size", "share_expert_dim",
    "moe_shared_expert_intermediate_size",
)  # fmt: skip


def _default(family: Family, names: tuple[str, ...]) -> tuple[str, object]:
    """Return the first name that the class has a default for, and that default."""
    for name in names:
        if name in family.defaults:
            return name, family.defaults[name]
    return names[0], None


def _count(fields: Fields, family: Family, names: tuple[str, ...], *, low: int = 1, high: int) -> int:
    name, default = _default(family, names)
    ordered = (name, *(other for other in names if other != name))
    return fields.count(*ordered, default=default, low=low, high=high)


def n_experts(fields: Fields) -> int:
    """Return the experts a layer that the config gives, 0 where it gives none."""
    nested = fields.source.get("ffn_config")
    if isinstance(nested, dict) and "moe_num_experts" in nested:
        return 1
    return max((fields.optional_count(name, low=0, high=MAX_EXPERTS) or 0) for name in EXPERTS)


def _moe_shape(fields: Fields, family: Family, rule: MoeRule, sizes: Sizes, traits: Traits) -> FfnGroup:
    """Return the shape of one MoE layer."""
    source = fields
    if family.stem == "Dbrx":
        source = fields.child("ffn_config") or fields
    experts = _count(source, family, EXPERTS, high=MAX_EXPERTS)
    per_token = _count(source, family, EXPERTS_PER_TOKEN, high=MAX_EXPERTS)
    if per_token > experts:
        source.log.fault(
            source.path(EXPERTS_PER_TOKEN[0]),
            per_token,
            allowed=f"at most the number of experts, {experts:,}",
            fix="correct the experts per token or the number of experts",
        )
    names = INTERMEDIATE if rule.width == "intermediate_size" else EXPERT_WIDTH
    width = _count(source, family, names, high=MAX_INTERMEDIATE)
    gates = 1 if rule.shared_gate else 0
    shared = 0
    if rule.shared == "experts":
        n_shared = _count(fields, family, SHARED_EXPERTS, low=0, high=MAX_EXPERTS)
        shared = n_shared * width
    elif rule.shared == "width":
        shared = _shared_width(fields, family)
    elif rule.shared == "expert_width":
        shared = width
    elif rule.shared == "dense":
        shared = read_intermediate(fields, family, sizes.hidden)
    return FfnGroup(
        kind="moe",
        n_layers=1,
        intermediate_size=width,
        gated=traits.gated,
        n_experts=experts,
        n_experts_per_token=per_token,
        shared_intermediate_size=shared,
        replicated_weight_elements=(experts + gates) * sizes.hidden,
    )


def _shared_width(fields: Fields, family: Family) -> int:
    given = fields.optional_count(*SHARED_WIDTH, low=0, high=MAX_INTERMEDIATE)
    if given is not None:
        return given
    name, default = _default(family, SHARED_WIDTH)
    width = default if isinstance(default, int) else 0
    fields.log.assume(f"{fields.path(name)} = {width} (class default)")
    return width


def _listed(fields: Fields, n_layers: int) -> list[bool] | None:
    """Return which layers are MoE where a list says so, layer by layer."""
    kinds = fields.per_layer("mlp_layer_types", n_layers=n_layers)
    if kinds is not None:
        for kind in kinds:
            if kind not in ("dense", "sparse", "moe"):
                fields.log.fault(
                    fields.path("mlp_layer_types"),
                    kind,
                    allowed="'dense' or 'sparse'",
                    fix="name each layer's FFN 'dense' or 'sparse'",
                )
                return None
        return [kind != "dense" for kind in kinds]
    if isinstance(fields.source.get("moe_layer_freq"), list):
        flags = fields.per_layer("moe_layer_freq", n_layers=n_layers)
        return None if flags is None else [bool(flag) for flag in flags]
    for name in ("moe_layers_enum", "moe_layers"):
        text = fields.source.get(name)
        if isinstance(text, str) and len(text) <= 8 * MAX_LAYERS:
            fields.get(name)
            chosen = {part.strip() for part in text.split(",")}
            return [str(layer) in chosen for layer in range(n_layers)]
        layers = fields.layer_indices(name, n_layers=n_layers) if name in fields.source else None
        if layers is not None:
            return [layer in layers for layer in range(n_layers)]
    return None


def _qwen_layout(fields: Fields, family: Family, n_layers: int) -> list[bool]:
    default = family.defaults.get("decoder_sparse_step", 1)
    step = fields.count("decoder_sparse_step", default=default, high=MAX_LAYERS)
    dense = fields.layer_indices("mlp_only_layers", n_layers=n_layers) or frozenset()
    return [layer not in dense and (layer + 1) % step == 0 for layer in range(n_layers)]


def _deepseek_layout(fields: Fields, family: Family, n_layers: int) -> list[bool]:
    default = family.defaults.get("first_k_dense_replace", 0)
    first = fields.count("first_k_dense_replace", default=default, low=0, high=MAX_LAYERS)
    step = fields.optional_count("moe_layer_freq", high=MAX_LAYERS) or 1
    return [layer >= first and layer % step == 0 for layer in range(n_layers)]


def _llama4_layout(fields: Fields, family: Family, n_layers: int) -> list[bool]:
    default = family.defaults.get("interleave_moe_layer_step", 1)
    step = fields.count("interleave_moe_layer_step", default=default, high=MAX_LAYERS)
    return [(layer + 1) % step == 0 for layer in range(n_layers)]


def _ernie_layout(fields: Fields, family: Family, n_layers: int) -> list[bool]:
    defaults = family.defaults
    start = fields.count(
        "moe_layer_start_index", default=defaults.get("moe_layer_start_index"), low=0, high=MAX_LAYERS
    )
    last = fields.count(
        "moe_layer_end_index", default=defaults.get("moe_layer_end_index"), low=-1, high=MAX_LAYERS
    )
    step = fields.count("moe_layer_interval", default=defaults.get("moe_layer_interval"), high=MAX_LAYERS)
    end = n_layers - 1 if last == -1 else last
    return [(layer + 1) % step == 0 and start <= layer <= end for layer in range(n_layers)]


_LAYOUTS: Final[dict[str, Callable[[Fields, Family, int], list[bool]]]] = {
    "qwen": _qwen_layout,
    "deepseek": _deepseek_layout,
    "llama4": _llama4_layout,
    "ernie": _ernie_layout,
}


def moe_layers(fields: Fields, family: Family, rule: MoeRule, n_layers: int) -> list[bool]:
    """Return for each layer whether it is MoE."""
    listed = _listed(fields, n_layers)
    if listed is not None:
        return listed
    layout = _LAYOUTS.get(rule.layout)
    return [True] * n_layers if layout is None else layout(fields, family, n_layers)


def moe_rule(fields: Fields, family: Family) -> MoeRule | None:
    """Return the family's MoE rule, a plain one where only the config has experts, None for a dense model."""
    given = n_experts(fields)
    rule = family.moe
    if family.stem == "Gemma4":
        return rule if fields.optional_flag("enable_moe_block") else None
    if rule is not None and family.stem == "GraniteMoeHybrid" and given == 0:
        return None  # Granite 4.0's dense members: the shared FFN alone
    if rule is not None:
        return rule
    if given <= 1:
        return None
    shared = "experts" if any(fields.has(name) for name in SHARED_EXPERTS) else ""
    if any(fields.has(name) for name in SHARED_WIDTH):
        shared = "width"
    own_width = any(fields.has(name) for name in EXPERT_WIDTH)
    first_dense = "deepseek" if fields.has("first_k_dense_replace") else "all"
    fields.log.assume(
        f"{given} experts a layer in a class that has none of its own: "
        f"{'first_k_dense_replace' if first_dense == 'deepseek' else 'every layer'} decides which layers "
        f"are MoE, {EXPERT_WIDTH[0] if own_width else INTERMEDIATE[0]} is one expert's width"
    )
    width = EXPERT_WIDTH[0] if own_width else "intermediate_size"
    return MoeRule(layout=first_dense, width=width, shared=shared)


def read_ffn(
    fields: Fields, family: Family, rule: MoeRule | None, sizes: Sizes, traits: Traits
) -> list[FfnGroup]:
    """Return one `FfnGroup` of one layer for each layer, in order."""
    n_layers = sizes.n_layers
    is_moe = [False] * n_layers if rule is None else moe_layers(fields, family, rule, n_layers)
    dense = FfnGroup(kind="dense", n_layers=1, intermediate_size=1, gated=traits.gated)
    moe = dense
    if not all(is_moe) or (rule is not None and rule.width == "intermediate_size"):
        dense = replace(dense, intermediate_size=_dense_width(fields, family, sizes))
    elif any(name in fields.source for name in INTERMEDIATE):
        for name in INTERMEDIATE:
            fields.get(name)  # a dense width that no layer uses
    if rule is not None and any(is_moe):
        moe = _moe_shape(fields, family, rule, sizes, traits)
    layers = [moe if flag else dense for flag in is_moe]
    if family.stem == "Gemma4" and fields.optional_flag("use_double_wide_mlp"):
        n_shared = fields.optional_count("num_kv_shared_layers", low=0, high=MAX_LAYERS) or 0
        first = n_layers - n_shared
        wide = replace(dense, intermediate_size=2 * dense.intermediate_size)
        layers = [wide if at >= first and layer is dense else layer for at, layer in enumerate(layers)]
    return layers


def _dense_width(fields: Fields, family: Family, sizes: Sizes) -> int:
    """Return the dense layers' width; some classes keep it apart from the experts' width."""
    if family.stem == "Llama4":
        default = family.defaults["intermediate_size_mlp"]
        return fields.count("intermediate_size_mlp", default=default, high=MAX_INTERMEDIATE)
    if family.stem == "GraniteMoeHybrid":
        given = fields.optional_count("shared_intermediate_size", high=MAX_INTERMEDIATE)
        if given is not None:
            return given
    if family.stem == "Gemma3n" and isinstance(fields.source.get("intermediate_size"), list):
        widths = fields.per_layer("intermediate_size", n_layers=sizes.n_layers) or [1]
        checked = {
            fields.checked_count(f"intermediate_size[{at}]", width, low=1, high=MAX_INTERMEDIATE)
            for at, width in enumerate(widths)
        }
        if len(checked) > 1:
            fields.log.fault(
                fields.path("intermediate_size"),
                sorted(checked),
                allowed="the same width for every layer",
                fix="give one width",
            )
        return checked.pop()
    return read_intermediate(fields, family, sizes.hidden)
