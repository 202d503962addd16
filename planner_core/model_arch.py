"""What a model is: counts and widths, no formula of time.

Owns: the frozen description that the parser fills and every formula reads (`ModelArch`), the byte
widths of its weights by kind of module (`WeightWidths`), and counts derived from shapes alone (KV bytes
a token, layers of a pipeline stage).
Refuses: reading files (see `hf_config`), and anything that needs a machine.

Source: physics contract, section 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from planner_core.units import FloatArray, as_float


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionGroup:
    """Layers that share one attention shape.

    Parameters
    ----------
    kind : {"global", "sliding", "chunked", "mla"}
        `sliding` looks back over `window_tokens`; `chunked` sees only its own chunk of `window_tokens`
        (Llama 4); `mla` caches a latent that is the same for every head.
    n_layers : int
        How many layers.
    n_q_heads, n_kv_heads : int
        Query and KV heads. For `mla` `n_kv_heads` is 1: there is one latent.
    head_dim_k, head_dim_v : int
        Elements of a key and of a value, per head. For `mla` these are the expanded ones, used in prefill
        (nope + rope, and v).
    window_tokens : int or None
        The window or chunk [tokens]; None for global.
    has_k_proj, has_v_proj : bool
        False where a projection has no weight of its own (a value that reuses the key, a layer that reuses
        an earlier layer's cache).
    owns_cache : bool
        False where the layer reads an earlier layer's cache and stores none of its own.
    q_lora_rank, kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim : int
        MLA ranks; 0 elsewhere. `q_lora_rank` 0 in MLA: the query is projected straight from hidden.
    replicated_weight_elements : int
        Further matmul weights a layer that every TP rank holds whole (an attention gate).
    """

    kind: str
    n_layers: int
    n_q_heads: int
    n_kv_heads: int
    head_dim_k: int
    head_dim_v: int
    window_tokens: int | None = None
    has_k_proj: bool = True
    has_v_proj: bool = True
    owns_cache: bool = True
    q_lora_rank: int = 0
    kv_lora_rank: int = 0
    qk_nope_head_dim: int = 0
    qk_rope_head_dim: int = 0
    replicated_weight_elements: int = 0

    @property
    def cached_elements_per_token(self) -> int:
        """Cached elements per token per layer, over all KV heads; what a read of the cache costs too."""
        if self.kind == "mla":
            return self.kv_lora_rank + self.qk_rope_head_dim
        return self.n_kv_heads * (self.head_dim_k + self.head_dim_v)


@dataclass(frozen=True, slots=True, kw_only=True)
class FfnGroup:
    """Layers that share one FFN shape.

    Parameters
    ----------
    kind : {"dense", "moe"}
        The kind.
    n_layers : int
        How many layers.
    intermediate_size : int
        Width of the FFN (`I`), or of one expert (`Ie`).
    gated : bool
        True where gate, up and down are three matrices; False for two.
    n_experts, n_experts_per_token : int
        MoE only: experts a layer (`E`), experts routed to per token (`k`).
    shared_intermediate_size : int
        Width of the always-active shared expert or dense branch beside the experts; 0 if none.
    replicated_weight_elements : int
        Further matmul weights a layer that every rank holds whole: the router, a shared expert's gate.
    """

    kind: str
    n_layers: int
    intermediate_size: int
    gated: bool = True
    n_experts: int = 0
    n_experts_per_token: int = 0
    shared_intermediate_size: int = 0
    replicated_weight_elements: int = 0

    @property
    def n_matrices(self) -> int:
        """Matrices of one FFN: 3 gated, 2 not."""
        return 3 if self.gated else 2


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightWidths:
    """Bytes per weight element by kind of module, quantization scales included.

    A width is a float, since scales add a fraction: block fp8 is 1 + 4/(128*128).
    """

    attention: float = 2.0
    ffn: float = 2.0
    experts: float = 2.0
    shared_experts: float = 2.0
    router: float = 2.0
    lm_head: float = 2.0
    embedding: float = 2.0

    @classmethod
    def uniform(cls, n_bytes: float) -> WeightWidths:
        """Return the same width for every kind of module."""
        return cls(
            attention=n_bytes,
            ffn=n_bytes,
            experts=n_bytes,
            shared_experts=n_bytes,
            router=n_bytes,
            lm_head=n_bytes,
            embedding=n_bytes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelArch:
    """A decoder-only language model, as far as the planner needs it.

    Parameters
    ----------
    name : str
        What to show; text from outside, never markup.
    architecture : str
        The Hugging Face class ("LlamaForCausalLM").
    hidden_size, n_layers, vocab_size : int
        `d`, `L`, `V`.
    tied_embeddings : bool
        True where the lm_head is the embedding table.
    max_position_tokens : int
        Longest context that the model is made for.
    attention, ffn : tuple
        The groups.
    layer_pattern : tuple of (int or None, int or None)
        For each layer in order, the index of its attention group and of its FFN group; None where the
        layer has no such block.
    n_params : int
        Exact parameters of the language model, norms, biases and router included.
    extra_embedding_elements : int
        Further tables that take memory and no time (learned positions, per-layer embeddings).
    widths : WeightWidths
        Bytes per weight as the checkpoint stores them.
    kv_dtype_bytes : float
        Bytes per cached element that the checkpoint asks for; 2 where it says nothing.
    weight_bytes : int
        Bytes of the whole checkpoint as stored, norms and biases included.
    assumed, ignored, notes : tuple of str
        Class defaults that were applied; keys that were read past; contradictions and what is not counted.
    """

    name: str
    architecture: str
    hidden_size: int
    n_layers: int
    vocab_size: int
    tied_embeddings: bool
    max_position_tokens: int
    attention: tuple[AttentionGroup, ...]
    ffn: tuple[FfnGroup, ...]
    layer_pattern: tuple[tuple[int | None, int | None], ...]
    n_params: int
    extra_embedding_elements: int = 0
    widths: WeightWidths = field(default_factory=WeightWidths)
    kv_dtype_bytes: float = 2.0
    weight_bytes: int = 0
    assumed: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def n_q_heads(self) -> int:
        """Most query heads that any layer has: what bounds a legal TP."""
        return max((group.n_q_heads for group in self.attention), default=1)

    @property
    def n_kv_heads(self) -> int:
        """Fewest KV heads that any layer has: past this TP degree copies of a head exist."""
        return min((group.n_kv_heads for group in self.attention), default=1)

    @property
    def is_moe(self) -> bool:
        """True where any layer routes to experts."""
        return any(group.kind == "moe" for group in self.ffn)

    @property
    def n_experts(self) -> int:
        """Most experts that any layer has; 0 for a dense model."""
        return max((group.n_experts for group in self.ffn), default=0)


def kv_bytes_per_token(model: ModelArch, *, kv_dtype_bytes: float | None = None, windowed: bool) -> int:
    """Return the cache that one more token takes over all layers, whole model.

    Parameters
    ----------
    model : ModelArch
        The model.
    kv_dtype_bytes : float, optional
        Bytes per cached element; the model's own by default.
    windowed : bool
        False: the layers without a window. True: the layers with one, below their window.

    Returns
    -------
    int
        Bytes per token.

    Notes
    -----
    c * sum over layers of hkv*(Dk+Dv); MLA kv_lora_rank + qk_rope_head_dim. Physics contract, section 1.
    """
    width = model.kv_dtype_bytes if kv_dtype_bytes is None else kv_dtype_bytes
    elements = sum(
        group.n_layers * group.cached_elements_per_token
        for group in model.attention
        if group.owns_cache and (group.window_tokens is not None) == windowed
    )
    return round(elements * width)


@lru_cache(maxsize=1024)
def _heaviest_stage_candidates(
    pattern: tuple[tuple[int | None, int | None], ...], n_attention: int, n_ffn: int, pp: int
) -> tuple[tuple[float, ...], ...]:
    """Layers of each group in the stages of ceil(L/pp) layers that no other such stage contains."""
    n_layers = len(pattern)
    size = -(-n_layers // pp)
    stages = []
    for start in range(0, n_layers, size):
        counts = [0.0] * (n_attention + n_ffn)
        for attention, ffn in pattern[start : start + size]:
            if attention is not None:
                counts[attention] += 1.0
            if ffn is not None:
                counts[n_attention + ffn] += 1.0
        stages.append(tuple(counts))
    distinct = np.array(sorted(set(stages)))
    kept = [
        tuple(float(count) for count in row)
        for row in distinct
        if not np.any(np.all(distinct >= row, axis=1) & np.any(distinct > row, axis=1))
    ]
    return tuple(kept)


def stage_layer_counts(model: ModelArch, *, pp: ArrayLike) -> Iterator[tuple[FloatArray, ...]]:
    """Yield how many layers of each group the candidate heaviest pipeline stages hold.

    A stage has ceil(L/pp) consecutive layers. Where all layers are alike there is one candidate; where
    they differ, the stages that no other stage contains are yielded, since which weighs most depends on
    how each group is cut.

    Parameters
    ----------
    model : ModelArch
        The model.
    pp : array_like
        Pipeline stages, 1 or more; past L a stage still holds one layer.

    Yields
    ------
    tuple of ndarray
        The layers of each attention group and then of each FFN group, each shaped like `pp`.

    Notes
    -----
    Physics contract, section 4.
    """
    stages = np.clip(as_float(pp), 1.0, float(model.n_layers))
    distinct, position = np.unique(stages, return_inverse=True)
    per_pp = [
        _heaviest_stage_candidates(model.layer_pattern, len(model.attention), len(model.ffn), int(value))
        for value in distinct
    ]
    for rank in range(max(len(candidates) for candidates in per_pp)):
        rows = np.array([candidates[min(rank, len(candidates) - 1)] for candidates in per_pp])
        yield tuple(rows[position, column].reshape(stages.shape) for column in range(rows.shape[1]))
