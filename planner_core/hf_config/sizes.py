"""The sizes that every decoder has, and the traits that its family or its flags decide.

Owns: the names under which configs keep each size, `Sizes`, `Traits`.
Refuses: anything that differs from layer to layer (see `attention`, `ffn`, `per_layer`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from planner_core.hf_config.families import Family, Trait
from planner_core.hf_config.fields import (
    MAX_HEAD_DIM,
    MAX_HEADS,
    MAX_HIDDEN,
    MAX_INTERMEDIATE,
    MAX_LAYERS,
    MAX_TOKENS,
    MAX_VOCAB,
    Fields,
)

HIDDEN: Final = ("hidden_size", "n_embd", "d_model", "n_embed", "model_dim")
LAYERS: Final = (
    "num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_transformer_layers",
)  # fmt: skip
HEADS: Final = ("num_attention_heads", "n_head", "n_heads", "num_heads")
KV_HEADS: Final = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "num_attention_groups")
INTERMEDIATE: Final = ("intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size")
VOCAB: Final = ("vocab_size", "padded_vocab_size")
POSITIONS: Final = (
    "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length",
    "max_sequence_length", "max_context_length", "n_ctx",
)  # fmt: skip
_NORM_WEIGHTS: Final = {"rms": 1, "layer": 2, "layer_no_bias": 1, "none": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Sizes of the whole model, and those that layers share unless a list says otherwise."""

    hidden: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    vocab: int
    max_positions: int
    tied: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """Which biases and norms the layers have; all of it small in bytes, all of it in the count.

    Parameters
    ----------
    norm_weights : int
        Weights of a norm over its width: 2 with a bias, 1 without, 0 for none.
    block_norms : int
        Norms of the hidden size in a layer.
    qk_norm : {"", "head", "heads"}
        See `Family`.
    qk_norm_weights : int
        Weights of that norm over its width.
    layer_scalars : int
        Further single weights a layer.
    """

    norm_weights: int
    block_norms: int
    final_norm: bool
    embedding_norm: bool
    qk_norm: str
    qk_norm_weights: int
    qkv_bias: bool
    o_bias: bool
    ffn_bias: bool
    lm_head_bias: bool
    gated: bool
    sinks: bool
    layer_scalars: int


def read_n_layers(fields: Fields, family: Family) -> int:
    """Return the number of layers; 1 beside a fault."""
    default = family.defaults.get("num_hidden_layers")
    return fields.count(*LAYERS, default=default, high=MAX_LAYERS)


def _kv_heads(fields: Fields, family: Family, n_heads: int) -> int:
    if family.stem in ("Falcon", "GPTBigCode", "ChatGLM"):
        return _kv_heads_by_flag(fields, family, n_heads)
    names = KV_HEADS
    given = fields.optional_count(*names, high=MAX_HEADS)
    if given is None and fields.has("attn_config"):
        nested = fields.child("attn_config")
        given = None if nested is None else nested.optional_count("kv_n_heads", high=MAX_HEADS)
    if given is None:
        missing = not any(name in fields.source for name in names)
        default = family.defaults.get("num_key_value_heads") if missing else None
        given = n_heads if default is None else int(default)
        fields.log.assume(f"{fields.path(names[0])} = {given} (class default)")
    return given


def _kv_heads_by_flag(fields: Fields, family: Family, n_heads: int) -> int:
    """Return the KV heads of families where a flag chooses between one and many."""
    if family.stem == "ChatGLM":
        if not fields.flag("multi_query_attention", default=False):
            return n_heads
        return fields.count("multi_query_group_num", default=1, high=MAX_HEADS)
    if family.stem == "Falcon" and fields.flag("new_decoder_architecture", default=False):
        return fields.optional_count("num_kv_heads", "n_head_kv", high=MAX_HEADS) or n_heads
    return 1 if fields.flag("multi_query", default=True) else n_heads


def _head_dim(fields: Fields, family: Family, hidden: int, n_heads: int) -> int:
    given = fields.optional_count("head_dim", "kv_channels", high=MAX_HEAD_DIM)
    if given is not None:
        return given
    default = family.defaults.get("head_dim")
    if default is not None and "head_dim" not in fields.source:
        fields.log.assume(f"{fields.path('head_dim')} = {default} (class default)")
        return int(default)
    if hidden % n_heads and not _any_fault(fields, HIDDEN):
        fields.log.fault(
            fields.path(HEADS[0]),
            n_heads,
            allowed=f"a divisor of the hidden size, {hidden:,}, where no head_dim is given",
            fix="correct the number of heads or add head_dim",
        )
    return max(hidden // n_heads, 1)


def _any_fault(fields: Fields, names: Sequence[str]) -> bool:
    return any(fields.log.has_fault(fields.path(name)) for name in names)


def check_kv_heads(fields: Fields, *, n_heads: int, n_kv_heads: int) -> None:
    """Add a fault where query heads can't share KV heads evenly."""
    if n_heads % n_kv_heads and not _any_fault(fields, HEADS):
        fields.log.fault(
            fields.path(KV_HEADS[0]),
            n_kv_heads,
            allowed=f"a divisor of the number of query heads, {n_heads:,}",
            fix="correct num_key_value_heads or num_attention_heads",
        )


def read_max_positions(fields: Fields, family: Family) -> int:
    """Return the longest context that the model is made for [tokens]."""
    given = fields.optional_count(*POSITIONS, high=MAX_TOKENS)
    if given is not None:
        return given
    default = int(family.defaults.get("max_position_embeddings", 2048))
    fields.log.assume(f"{fields.path(POSITIONS[0])} = {default} (class default)")
    return default


def read_tied(outer: Fields, fields: Fields, family: Family) -> bool:
    """Return whether the lm_head is the embedding table; the outermost config that says so decides."""
    name = "tie_word_embeddings"
    inside = fields.optional_flag(name)
    outside = outer.optional_flag(name)
    if inside is not None and outside is not None and inside != outside:
        outer.log.note(
            f"{outer.path(name)} = {str(outside).lower()} but {fields.path(name)} = {str(inside).lower()}; "
            "the outer one is used"
        )
    if outside is not None:
        return outside
    return inside if inside is not None else fields.flag(name, default=_default_tied(family))


def _default_tied(family: Family) -> bool:
    return bool(family.defaults.get("tie_word_embeddings", False))


def read_sizes(outer: Fields, fields: Fields, family: Family, *, n_layers: int) -> Sizes:
    """Read the sizes; faults go to the log."""
    defaults = family.defaults
    hidden = fields.count(*HIDDEN, default=defaults.get("hidden_size"), high=MAX_HIDDEN)
    if family.stem == "OpenELM":
        n_heads, n_kv_heads = 1, 1
        head_dim = fields.count("head_dim", high=MAX_HEAD_DIM)
    else:
        n_heads = fields.count(*HEADS, default=defaults.get("num_attention_heads"), high=MAX_HEADS)
        n_kv_heads = _kv_heads(fields, family, n_heads) if not family.mla else n_heads
        head_dim = _head_dim(fields, family, hidden, n_heads) if not family.mla else 1
        check_kv_heads(fields, n_heads=n_heads, n_kv_heads=n_kv_heads)
    if family.stem == "QWen":  # its intermediate_size counts gate and up together
        fields.log.note("intermediate_size counts gate and up together in this class: half of it is used")
    return Sizes(
        hidden=hidden,
        n_layers=n_layers,
        n_heads=n_heads,
        n_kv_heads=n_kv_heads,
        head_dim=head_dim,
        vocab=fields.count(*VOCAB, default=defaults.get("vocab_size"), high=MAX_VOCAB),
        max_positions=read_max_positions(fields, family),
        tied=read_tied(outer, fields, family),
    )


def read_intermediate(fields: Fields, family: Family, hidden: int) -> int:
    """Return the FFN's width."""
    if family.intermediate_multiple:
        given = fields.optional_count(*INTERMEDIATE, high=MAX_INTERMEDIATE)
        if given is None and fields.source.get("expansion_ratio") is not None:
            ratio = fields.count("expansion_ratio", high=64)
            return ratio * hidden
        if given is None:
            fields.log.assume(
                f"{fields.path(INTERMEDIATE[0])} = {family.intermediate_multiple} * hidden size "
                "(class default)"
            )
            return family.intermediate_multiple * hidden
        return given
    default = family.defaults.get("intermediate_size")
    width = fields.count(*INTERMEDIATE, default=default, high=MAX_INTERMEDIATE)
    return width // 2 if family.stem == "QWen" else width


def _trait(fields: Fields, family: Family, trait: Trait) -> bool:
    if isinstance(trait, bool):
        return trait
    name = trait.removeprefix("!")
    value = fields.flag(name, default=bool(family.defaults.get(name, False)))
    return value != trait.startswith("!")


def read_traits(fields: Fields, family: Family) -> Traits:
    """Read the flags that the family leaves to the config."""
    block_norms = family.block_norms
    qk_norm = family.qk_norm
    if family.qk_norm_field and not _trait(fields, family, family.qk_norm_field):
        qk_norm = ""
    if family.stem == "Falcon":
        one = fields.flag("parallel_attn", default=True) and not fields.flag(
            "new_decoder_architecture", default=False
        )
        block_norms = 1 if one or fields.optional_count("num_ln_in_parallel_attn", high=2) == 1 else 2
    if family.stem == "StableLm" and fields.flag("use_parallel_residual", default=False):
        block_norms = 1
    if family.stem == "OpenELM" and not fields.flag("normalize_qk_projections", default=False):
        qk_norm = ""
    gated = family.gated
    if family.stem == "OpenELM":
        gated = fields.flag("ffn_with_glu", default=True)
    final_norm = family.final_norm
    if family.stem == "OPT":
        before = fields.flag("do_layer_norm_before", default=True)
        removed = fields.optional_flag("_remove_final_layer_norm") or False
        final_norm = before and not removed
    return Traits(
        norm_weights=_NORM_WEIGHTS[family.norm],
        block_norms=block_norms,
        final_norm=final_norm,
        embedding_norm=family.embedding_norm,
        qk_norm=qk_norm,
        qk_norm_weights=2 if family.qk_norm_bias else 1,
        qkv_bias=_trait(fields, family, family.qkv_bias),
        o_bias=_trait(fields, family, family.o_bias),
        ffn_bias=_trait(fields, family, family.ffn_bias),
        lm_head_bias=_trait(fields, family, family.lm_head_bias),
        gated=gated,
        sinks=family.sinks,
        layer_scalars=family.layer_scalars,
    )
