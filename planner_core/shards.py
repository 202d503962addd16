"""What one rank holds and sees once the model is cut: heads, weights, cache, tokens.

Owns: every division of heads, widths, experts and vocabulary over ranks, counted in elements on the most
loaded PE (so each rounds up), and the payload of a context-parallel ring hop.
Refuses: bytes of weights (a width is needed), times and budgets; `stage_latencies` and `memory_layout`
both read from here, so that neither holds a copy.

Source: physics contract, sections 1, 2 and 6.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from planner_core.model_arch import AttentionGroup, FfnGroup, ModelArch
from planner_core.parallelism import Axis, Parallelism
from planner_core.units import FloatArray, as_float
from planner_core.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionShard:
    """One layer's attention on one PE.

    Parameters
    ----------
    heads, kv_heads : ndarray
        Query and KV heads.
    split : ndarray
        Copies of a KV head that its sequence is cut over; 1 = none.
    qkv_elements, output_elements : ndarray
        Weight elements of the projections into, and out of, attention.
    score_dim, value_dim : float
        Elements of a key and a value as the scores read them: for MLA in decode the latent ones
        (absorbed), in prefill the expanded ones.
    cached_elements : ndarray
        Cache elements per sequence on the PE, after CP, window and split.
    pairs : ndarray
        Query-key pairs per sequence and head on the PE.
    """

    heads: FloatArray
    kv_heads: FloatArray
    split: FloatArray
    qkv_elements: FloatArray
    output_elements: FloatArray
    score_dim: float
    value_dim: float
    cached_elements: FloatArray
    pairs: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class FfnShard:
    """One layer's FFN on one PE.

    Parameters
    ----------
    width, shared_width : ndarray
        Columns of the FFN, or of one expert, and of the shared expert.
    experts_held : ndarray
        Experts whose weights lie on the PE; 1 for a dense FFN.
    tokens : ndarray
        Tokens the FFN works on, after any gather.
    pool_tokens : ndarray
        Tokens routed over the expert-parallel group (MoE); `tokens` for a dense FFN.
    reduce_axes, expert_axes : tuple of Axis
        The group that all-reduces, and the one that dispatches and combines (MoE).
    n_pes : ndarray
        PEs in use, with any that EP would have to add.
    """

    width: FloatArray
    shared_width: FloatArray
    experts_held: FloatArray
    tokens: FloatArray
    pool_tokens: FloatArray
    reduce_axes: tuple[Axis, ...]
    expert_axes: tuple[Axis, ...]
    n_pes: FloatArray


def new_tokens_per_sequence(*, workload: Workload, parallelism: Parallelism) -> FloatArray:
    """Return the new tokens of a sequence on one rank: 1 in decode, S/CP in prefill [tokens].

    Parameters
    ----------
    workload : Workload
        Phase and context.
    parallelism : Parallelism
        The cut.

    Returns
    -------
    ndarray
        Tokens.
    """
    if workload.phase == "decode":
        return as_float(1.0)
    return as_float(workload.context_tokens) / parallelism.cp


def new_tokens_on_rank(*, workload: Workload, parallelism: Parallelism) -> FloatArray:
    """Return the new tokens of the whole batch on one rank before any gather: n, or n*S/CP [tokens].

    Parameters
    ----------
    workload : Workload
        Phase, context and batch.
    parallelism : Parallelism
        The cut.

    Returns
    -------
    ndarray
        `T`, tokens.
    """
    return as_float(workload.batch) * new_tokens_per_sequence(workload=workload, parallelism=parallelism)


def kv_copies(*, n_kv_heads: ArrayLike, tp: ArrayLike) -> FloatArray:
    """Neighbouring TP ranks that store the same KV head: max(floor(tp/hkv), 1).

    Parameters
    ----------
    n_kv_heads, tp : array_like
        KV heads and TP degree.

    Returns
    -------
    ndarray
        `r`.

    Examples
    --------
    >>> float(kv_copies(n_kv_heads=8, tp=32))
    4.0
    """
    return np.maximum(np.floor(as_float(tp) / as_float(n_kv_heads)), 1.0)


def vocabulary_columns(*, model: ModelArch, parallelism: Parallelism) -> FloatArray:
    """Return the columns of the lm_head, or rows of the embedding table, on one rank: ceil(V/tp).

    Parameters
    ----------
    model : ModelArch
        Its vocabulary.
    parallelism : Parallelism
        The cut.

    Returns
    -------
    ndarray
        Columns.

    Examples
    --------
    >>> from planner_core.hf_config import parse_config
    >>> from planner_core.parallelism import make_parallelism
    >>> llama = parse_config({"model_type": "llama", "vocab_size": 32001})
    >>> float(vocabulary_columns(model=llama, parallelism=make_parallelism(tp=8)))
    4001.0
    """
    return np.ceil(model.vocab_size / parallelism.tp)


def _visible_tokens(group: AttentionGroup, context_tokens: FloatArray) -> FloatArray:
    """Tokens that a layer caches: min(S, window)."""
    if group.window_tokens is None:
        return context_tokens
    return np.minimum(context_tokens, float(group.window_tokens))


def _causal_pairs(group: AttentionGroup, context_tokens: FloatArray) -> FloatArray:
    """Query-key pairs of a prefill of S tokens under the layer's mask.

    Global S(S+1)/2. Sliding, with m = min(S, window): m(m+1)/2 + (S-m)*m. Chunked: whole chunks and the
    rest, each causal.
    """
    visible = _visible_tokens(group, context_tokens)
    if group.kind == "chunked" and group.window_tokens is not None:
        chunk = float(group.window_tokens)
        n_whole = np.floor(context_tokens / chunk)
        rest = context_tokens - n_whole * chunk
        return n_whole * (chunk * (chunk + 1.0) / 2.0) + rest * (rest + 1.0) / 2.0
    return visible * (visible + 1.0) / 2.0 + (context_tokens - visible) * visible


def shard_attention(
    *, group: AttentionGroup, model: ModelArch, parallelism: Parallelism, workload: Workload
) -> AttentionShard:
    """Cut one attention layer.

    Parameters
    ----------
    group : AttentionGroup
        The layer's shape.
    model : ModelArch
        The model.
    parallelism : Parallelism
        The cut.
    workload : Workload
        Phase and context.

    Returns
    -------
    AttentionShard

    Notes
    -----
    heads = ceil(hq/tp), kv = ceil(hkv/tp): past tp = hq ranks repeat a head. split is at most the copies
    that exist. MLA: the projections into the latent are on every TP rank, the latent too (one KV head).
    Physics contract, sections 2 and 6.
    """
    hidden = float(model.hidden_size)
    context = as_float(workload.context_tokens)
    decode = workload.phase == "decode"
    heads = np.ceil(group.n_q_heads / parallelism.tp)
    kv_heads = np.ceil(group.n_kv_heads / parallelism.tp)
    copies = kv_copies(n_kv_heads=group.n_kv_heads, tp=parallelism.tp)
    split = np.minimum(np.maximum(parallelism.kv_split, 1.0), copies)
    replicated = float(group.replicated_weight_elements)
    if group.kind == "mla":
        latent = float(group.kv_lora_rank)
        rope = float(group.qk_rope_head_dim)
        query_in = float(group.q_lora_rank) if group.q_lora_rank else hidden
        qkv = (
            replicated
            + hidden * float(group.q_lora_rank)
            + hidden * (latent + rope)
            + heads * (query_in * group.head_dim_k)
            + heads * (latent * (group.qk_nope_head_dim + group.head_dim_v))
        )
        score_dim = latent + rope if decode else float(group.head_dim_k)
        value_dim = latent if decode else float(group.head_dim_v)
        cached_per_token = as_float(float(group.cached_elements_per_token))
    else:
        kv_columns = group.has_k_proj * group.head_dim_k + group.has_v_proj * group.head_dim_v
        qkv = hidden * heads * float(group.head_dim_k) + hidden * kv_heads * float(kv_columns) + replicated
        score_dim = float(group.head_dim_k)
        value_dim = float(group.head_dim_v)
        cached_per_token = kv_heads * float(group.head_dim_k + group.head_dim_v)
    visible = _visible_tokens(group, context)
    pairs = visible if decode else _causal_pairs(group, context)
    return AttentionShard(
        heads=heads,
        kv_heads=kv_heads,
        split=split,
        qkv_elements=qkv,
        output_elements=heads * float(group.head_dim_v) * hidden,
        score_dim=score_dim,
        value_dim=value_dim,
        cached_elements=visible / parallelism.cp * cached_per_token / split,
        pairs=pairs / parallelism.cp,
    )


def ring_hop_bytes(*, shard: AttentionShard, parallelism: Parallelism, workload: Workload) -> FloatArray:
    """Bytes that one hop of the context-parallel ring carries [B].

    Parameters
    ----------
    shard : AttentionShard
        The layer on one PE.
    parallelism : Parallelism
        The cut.
    workload : Workload
        Batch and byte widths.

    Returns
    -------
    ndarray
        Bytes; 0 where CP = 1.

    Notes
    -----
    `kv`: the rank's own cache of the layer. `qoml`: n*q*heads*(a*(Dk+Dv) + 8), the query, the partial
    output, and the running maximum and sum (fp32 each). Physics contract, section 6.
    """
    tokens = new_tokens_on_rank(workload=workload, parallelism=parallelism)
    cache = workload.kv_dtype_bytes * as_float(workload.batch) * shard.cached_elements
    per_head = workload.activation_dtype_bytes * (shard.score_dim + shard.value_dim) + 8.0
    query = tokens * shard.heads * per_head
    return np.where(parallelism.cp > 1.0, np.where(parallelism.ring_qoml, query, cache), 0.0)


def shard_ffn(*, group: FfnGroup, parallelism: Parallelism, workload: Workload) -> FfnShard:
    """Cut one FFN layer.

    Parameters
    ----------
    group : FfnGroup
        The layer's shape.
    parallelism : Parallelism
        The cut, with the FFN scope and EP.
    workload : Workload
        Phase and batch.

    Returns
    -------
    FfnShard

    Notes
    -----
    The FFN is cut over TP and the axes of its scope. EP takes ranks that would hold copies: those of CP
    first, then of DP; what is left over would have to be added. A dense FFN is cut over EP as well. An
    axis whose ranks hold different tokens (DP; CP in prefill) gathers them. Physics contract, section 6.
    """
    prefill = workload.phase == "prefill"
    moe = group.kind == "moe"
    one = as_float(1.0)
    scope_cp = np.where(parallelism.ffn_over_cp, parallelism.cp, one)
    scope_dp = np.where(parallelism.ffn_over_dp, parallelism.dp, one)
    ep_cp = np.minimum(parallelism.ep, parallelism.cp / scope_cp)
    ep_dp = np.minimum(parallelism.ep / ep_cp, parallelism.dp / scope_dp)
    ep_added = parallelism.ep / (ep_cp * ep_dp)
    n_pes = parallelism.pes_used * np.ceil(ep_added)
    added_axis = Axis(ep_added, parallelism.pes_used)
    cp_stride = parallelism.cp_axis.stride
    dp_stride = parallelism.dp_axis.stride

    tokens = new_tokens_on_rank(workload=workload, parallelism=parallelism)
    tokens = tokens * scope_dp * (scope_cp if prefill else one)
    ep_tokens = tokens * np.ceil(ep_dp) * (ep_cp if prefill else one)
    scope_axes = (parallelism.tp_axis, Axis(scope_cp, cp_stride), Axis(scope_dp, dp_stride))
    scope_ranks = parallelism.tp * scope_cp * scope_dp
    if moe:
        return FfnShard(
            width=np.ceil(group.intermediate_size / scope_ranks),
            shared_width=np.ceil(group.shared_intermediate_size / scope_ranks),
            experts_held=np.ceil(group.n_experts / parallelism.ep),
            tokens=tokens,
            pool_tokens=ep_tokens,
            reduce_axes=scope_axes,
            expert_axes=(Axis(ep_cp, cp_stride), Axis(ep_dp, dp_stride), added_axis),
            n_pes=n_pes,
        )
    return FfnShard(
        width=np.ceil(group.intermediate_size / (scope_ranks * parallelism.ep)),
        shared_width=one * 0.0,
        experts_held=one,
        tokens=ep_tokens,
        pool_tokens=ep_tokens,
        reduce_axes=(
            parallelism.tp_axis,
            Axis(scope_cp * ep_cp, cp_stride),
            Axis(scope_dp * ep_dp, dp_stride),
            added_axis,
        ),
        expert_axes=(),
        n_pes=n_pes,
    )


def ep_fits(*, parallelism: Parallelism) -> np.ndarray:
    """Whether there are ranks enough for EP: EP * (FFN group) <= CP*TP*DP.

    Parameters
    ----------
    parallelism : Parallelism
        The cut.

    Returns
    -------
    ndarray of bool
        True where EP reuses ranks that exist.

    Notes
    -----
    Physics contract, section 6.

    Examples
    --------
    >>> from planner_core.parallelism import make_parallelism
    >>> ep_fits(parallelism=make_parallelism(tp=16, cp=8, ep=[8, 10])).tolist()
    [True, False]
    """
    scope_cp = np.where(parallelism.ffn_over_cp, parallelism.cp, 1.0)
    scope_dp = np.where(parallelism.ffn_over_dp, parallelism.dp, 1.0)
    group = parallelism.tp * scope_cp * scope_dp
    return np.asarray(parallelism.ep * group <= parallelism.ranks)
