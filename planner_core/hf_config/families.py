"""What a decoder family is: the choices its Hugging Face class makes.

Owns: `Family` and `MoeRule`.
Refuses: the families themselves (see `family_table`), reading a config (see `sizes`, `attention`, `ffn`).

A trait is either fixed (True, False) or the name of the field that decides it; "!name" is its inverse.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Trait = bool | str
Defaults = Mapping[str, int | bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class MoeRule:
    """How a family's layers become MoE and where it keeps the sizes.

    Parameters
    ----------
    layout : {"all", "qwen", "deepseek", "llama4", "ernie"}
        Which layers are MoE.
    width : str
        The field with one expert's width.
    shared : {"", "experts", "width", "expert_width", "dense"}
        The always-active part: none; so many experts' widths; a width of its own; one more expert;
        a dense FFN of `intermediate_size` beside the experts.
    shared_gate : bool
        A gate of one output on the shared expert.
    router_bias, expert_bias : bool
        Biases of the router and of the experts.
    score_correction : bool
        One stored correction a routed expert.
    """

    layout: str = "all"
    width: str = "moe_intermediate_size"
    shared: str = ""
    shared_gate: bool = False
    router_bias: bool = False
    expert_bias: bool = False
    score_correction: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One family of decoders.

    Parameters
    ----------
    stem : str
        The class name without "ForCausalLM" and the like.
    model_types : tuple of str
        The `model_type`s that it answers to.
    defaults : mapping
        Class defaults of the fields that the planner reads.
    norm : {"rms", "layer", "layer_no_bias", "none"}
        Weights of a norm: d, 2d, d, 0.
    block_norms : int
        Norms of width d a layer.
    final_norm, embedding_norm : bool
        A norm after the last layer; one after the embedding.
    qk_norm : {"", "head", "heads"}
        No query and key norm; weights of one head; weights of all heads.
    qk_norm_field : str
        The flag that turns it on; "" where it is always there.
    qkv_bias, o_bias, ffn_bias, lm_head_bias : bool or str
        Biases of the projections.
    gated : bool
        Gate, up and down, or up and down only.
    intermediate_multiple : int
        The FFN's width over the hidden size where the config gives none; 0 where it must be given.
    learned_positions : int
        Rows of the position table beyond the longest context; -1 where there is no table.
    window : {"", "all", "qwen", "period", "llama4", "gpt_neo"}
        Which layers have a window where `layer_types` doesn't say.
    period : int
        For "period": the last layer of each such run is global.
    moe : MoeRule or None
        None: a dense family.
    mla : bool
        Multi-head latent attention.
    sinks : bool
        One learned sink a query head.
    head_gate : bool
        A projection from the hidden state to one gate a query head.
    layer_scalars : int
        Further single weights a layer (a learned activation).
    """

    stem: str
    model_types: tuple[str, ...]
    defaults: Defaults = field(default_factory=dict)
    norm: str = "rms"
    block_norms: int = 2
    final_norm: bool = True
    embedding_norm: bool = False
    qk_norm: str = ""
    qk_norm_field: str = ""
    qk_norm_bias: bool = False
    qkv_bias: Trait = False
    o_bias: Trait = False
    ffn_bias: Trait = False
    lm_head_bias: Trait = False
    gated: bool = True
    intermediate_multiple: int = 0
    learned_positions: int = -1
    window: str = ""
    period: int = 0
    moe: MoeRule | None = None
    mla: bool = False
    sinks: bool = False
    head_gate: bool = False
    layer_scalars: int = 0
