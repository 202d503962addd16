"""Every weight of a model as matrices with a kind, a module name and a size: the exact count.

Owns: `Weight`, the weights of a layer of each shape, and of what is outside the layers.
Refuses: bytes (see `quantization`).
"""

from __future__ import annotations

from dataclasses import dataclass

from planner_core.hf_config.families import Family, MoeRule
from planner_core.hf_config.sizes import Sizes, Traits
from planner_core.model_arch import AttentionGroup, FfnGroup

KINDS = (
    "attention", "ffn", "experts", "shared_experts", "router", "lm_head", "embedding", "other",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Weight:
    """Matrices of one shape under one module name.

    Parameters
    ----------
    kind : str
        One of `KINDS`; "other" is norms, biases and whatever no matrix unit multiplies.
    module : str
        Name inside the layer ("self_attn.q_proj") or of the model ("lm_head").
    n_out, n_in : int
        Rows and columns.
    copies : int
        How many such matrices (experts).
    """

    kind: str
    module: str
    n_out: int
    n_in: int
    copies: int = 1

    @property
    def n_elements(self) -> int:
        """Weights in all copies."""
        return self.n_out * self.n_in * self.copies


def _other(module: str, n: int, copies: int = 1) -> Weight:
    return Weight("other", module, n, 1, copies)


def _mla_weights(shape: AttentionGroup, traits: Traits, hidden: int) -> list[Weight]:
    q_width = shape.n_q_heads * shape.head_dim_k
    latent = shape.kv_lora_rank + shape.qk_rope_head_dim
    expanded = shape.n_q_heads * (shape.qk_nope_head_dim + shape.head_dim_v)
    weights = [
        Weight("attention", "self_attn.kv_a_proj_with_mqa", latent, hidden),
        Weight("attention", "self_attn.kv_b_proj", expanded, shape.kv_lora_rank),
        Weight("attention", "self_attn.o_proj", hidden, shape.n_q_heads * shape.head_dim_v),
        _other("self_attn.kv_a_layernorm", shape.kv_lora_rank),
    ]
    if shape.q_lora_rank:
        weights += [
            Weight("attention", "self_attn.q_a_proj", shape.q_lora_rank, hidden),
            Weight("attention", "self_attn.q_b_proj", q_width, shape.q_lora_rank),
            _other("self_attn.q_a_layernorm", shape.q_lora_rank),
        ]
    else:
        weights.append(Weight("attention", "self_attn.q_proj", q_width, hidden))
    if traits.qkv_bias:
        q_bias = shape.q_lora_rank or 0
        weights.append(_other("self_attn.bias", q_bias + latent + hidden))
    return weights


def attention_weights(shape: AttentionGroup, traits: Traits, hidden: int) -> list[Weight]:
    """Return the weights of one layer's attention, biases and query and key norms included."""
    if shape.kind == "mla":
        return _mla_weights(shape, traits, hidden)
    q_width = shape.n_q_heads * shape.head_dim_k
    k_width = shape.n_kv_heads * shape.head_dim_k if shape.has_k_proj else 0
    v_width = shape.n_kv_heads * shape.head_dim_v if shape.has_v_proj else 0
    weights = [
        Weight("attention", "self_attn.q_proj", q_width, hidden),
        Weight("attention", "self_attn.o_proj", hidden, shape.n_q_heads * shape.head_dim_v),
    ]
    if shape.has_k_proj:
        weights.append(Weight("attention", "self_attn.k_proj", k_width, hidden))
    if shape.has_v_proj:
        weights.append(Weight("attention", "self_attn.v_proj", v_width, hidden))
    if shape.replicated_weight_elements:
        n_out = shape.replicated_weight_elements // hidden
        weights.append(Weight("attention", "self_attn.g_proj", n_out, hidden))
    if traits.qkv_bias:
        weights.append(_other("self_attn.qkv_bias", q_width + k_width + v_width))
    if traits.o_bias:
        weights.append(_other("self_attn.o_bias", hidden))
    if traits.qk_norm == "head":
        n_norms = 2 if shape.has_k_proj else 1
        weights.append(_other("self_attn.qk_norm", n_norms * shape.head_dim_k * traits.qk_norm_weights))
    elif traits.qk_norm == "heads":
        weights.append(_other("self_attn.qk_norm", (q_width + k_width) * traits.qk_norm_weights))
    if traits.sinks:
        weights.append(_other("self_attn.sinks", shape.n_q_heads))
    return weights


def _mlp(kind: str, module: str, width: int, gated: bool, hidden: int, copies: int = 1) -> list[Weight]:
    names = ("gate_proj", "up_proj") if gated else ("up_proj",)
    matrices = [Weight(kind, f"{module}.{name}", width, hidden, copies) for name in names]
    return [*matrices, Weight(kind, f"{module}.down_proj", hidden, width, copies)]


def _mlp_bias(module: str, width: int, gated: bool, hidden: int, copies: int = 1) -> Weight:
    return _other(f"{module}.bias", (2 if gated else 1) * width + hidden, copies)


def ffn_weights(shape: FfnGroup, traits: Traits, rule: MoeRule | None, hidden: int) -> list[Weight]:
    """Return the weights of one layer's FFN, router and biases included."""
    gated = shape.gated
    if shape.kind == "dense" or rule is None:
        weights = _mlp("ffn", "mlp", shape.intermediate_size, gated, hidden)
        if traits.ffn_bias:
            weights.append(_mlp_bias("mlp", shape.intermediate_size, gated, hidden))
        return weights
    n_experts = shape.n_experts
    # Where a dense FFN stands beside the experts (Gemma 4), "mlp" is that FFN and the experts stand alone.
    beside = rule.shared == "dense"
    module, router = ("experts.0", "router.proj") if beside else ("mlp.experts.0", "mlp.gate")
    weights = _mlp("experts", module, shape.intermediate_size, gated, hidden, n_experts)
    weights.append(Weight("router", router, n_experts, hidden))
    if rule.expert_bias or traits.ffn_bias:
        weights.append(_mlp_bias(module, shape.intermediate_size, gated, hidden, n_experts))
    if rule.router_bias:
        weights.append(_other(f"{router}.bias", n_experts))
    if rule.score_correction:
        weights.append(_other(f"{router}.e_score_correction_bias", n_experts))
    if shape.shared_intermediate_size:
        module = "mlp" if beside else "mlp.shared_experts"
        weights += _mlp("shared_experts", module, shape.shared_intermediate_size, gated, hidden)
        if traits.ffn_bias:
            weights.append(_mlp_bias(module, shape.shared_intermediate_size, gated, hidden))
    if rule.shared_gate:
        weights.append(Weight("router", "mlp.shared_expert_gate", 1, hidden))
    return weights


def norm_weights(traits: Traits, hidden: int) -> Weight:
    """Return the norms of one layer, those of queries and keys aside, and its single weights."""
    return _other("layernorm", traits.block_norms * traits.norm_weights * hidden + traits.layer_scalars)


def model_weights(sizes: Sizes, traits: Traits, family: Family, *, embedding_width: int) -> list[Weight]:
    """Return what is outside the layers: embedding, positions, last norm, lm_head.

    `embedding_width` is the hidden size but for OPT 350M, which projects in and out of a narrower one.
    """
    hidden = sizes.hidden
    weights = [Weight("embedding", "embed_tokens", sizes.vocab, embedding_width)]
    if family.learned_positions >= 0:
        rows = sizes.max_positions + family.learned_positions
        weights.append(Weight("embedding", "embed_positions", rows, hidden))
    if embedding_width != hidden:
        weights.append(_other("project_in", embedding_width * hidden))
        weights.append(_other("project_out", embedding_width * hidden))
    if traits.embedding_norm:
        weights.append(_other("embed_layernorm", traits.norm_weights * hidden))
    if traits.final_norm:
        weights.append(_other("norm", traits.norm_weights * hidden))
    if not sizes.tied:
        weights.append(Weight("lm_head", "lm_head", sizes.vocab, embedding_width))
    if traits.lm_head_bias:
        weights.append(_other("lm_head.bias", sizes.vocab))
    return weights
