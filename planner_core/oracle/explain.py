"""Why the executed model and the planner differ, in FLOP and bytes computed from shapes alone.

Owns: every explanation, in whole numbers by its own formulas (the planner's are not called, so that a
fault there is not explained away).
Refuses: fitting: an explanation never looks at the difference it explains.
"""

from __future__ import annotations

from collections.abc import Mapping

from planner_core.model_arch import AttentionGroup, FfnGroup, ModelArch
from planner_core.oracle.measurement import Execution
from planner_core.oracle.report import Explanation


def explanations_by_segment(
    *,
    model: ModelArch,
    phase: str,
    context_tokens: int,
    batch: int,
    bytes_per_element: int,
    execution: Execution,
) -> Mapping[str, tuple[Explanation, ...]]:
    """Return what is known to differ, by segment.

    Parameters
    ----------
    model : ModelArch
        The parsed shapes.
    phase : str
        "decode" or "prefill".
    context_tokens, batch : int
        `S` [tokens] and `n`.
    bytes_per_element : int
        Width of a weight on both sides [B].
    execution : Execution
        How the oracle ran the model.

    Returns
    -------
    mapping of str to tuple of Explanation
        Only differences that are not zero.
    """
    found: dict[str, list[Explanation]] = {}
    tokens = batch * (context_tokens if phase == "prefill" else 1)
    for attention in model.attention:
        rows = found.setdefault(f"attention/{attention.kind}", [])
        if phase == "prefill":
            rows.append(_whole_rectangle(attention, context_tokens, batch))
        elif attention.kind == "mla" and execution.latent_expanded:
            rows += _expanded_latent(attention, context_tokens, batch)
        elif attention.window_tokens is not None and execution.windows_padded:
            rows.append(_padded_window(attention, context_tokens, batch))
    for ffn in model.ffn:
        if ffn.kind != "moe":
            continue
        rows = found.setdefault("ffn/moe", [])
        if execution.all_experts_ran:
            rows.append(_all_experts_computed(ffn, model.hidden_size, tokens))
        rows.append(_experts_not_read(ffn, model.hidden_size, tokens, bytes_per_element))
    if phase == "prefill" and execution.lm_head_on_all_tokens:
        found.setdefault("lm_head", []).append(
            Explanation(
                text="the oracle computes logits for every token of the prompt, the planner for "
                f"each sequence's last: {context_tokens - 1:,} more a sequence",
                flops=2 * batch * (context_tokens - 1) * model.hidden_size * model.vocab_size,
            )
        )
    if execution.n_altup_streams:
        _add_altup(found, model, tokens, execution.n_altup_streams, bytes_per_element)
    return {
        name: tuple(row for row in rows if row.flops or abs(row.weight_bytes) > 1e-6)
        for name, rows in found.items()
    }


def causal_pairs(*, group: AttentionGroup, context_tokens: int) -> int:
    """Return the query-key pairs that a prefill's mask keeps, a sequence and head.

    Parameters
    ----------
    group : AttentionGroup
        Kind and window.
    context_tokens : int
        `S` [tokens].

    Returns
    -------
    int
        Pairs, summed query by query in closed form: query i (from 0) sees i+1 keys; in a sliding window
        of W no more than W; in a chunk of C the (i mod C) + 1 of its own chunk.

    Examples
    --------
    >>> group = AttentionGroup(kind="sliding", n_layers=1, n_q_heads=1, n_kv_heads=1, head_dim_k=1,
    ...                        head_dim_v=1, window_tokens=3)
    >>> causal_pairs(group=group, context_tokens=5)
    12
    """
    window = group.window_tokens
    if window is None or window >= context_tokens:
        return context_tokens * (context_tokens + 1) // 2
    if group.kind == "chunked":
        whole, rest = divmod(context_tokens, window)
        return whole * window * (window + 1) // 2 + rest * (rest + 1) // 2
    return window * (window + 1) // 2 + (context_tokens - window) * window


def _whole_rectangle(group: AttentionGroup, context: int, batch: int) -> Explanation:
    """Prefill: the oracle multiplies the whole S x S rectangle; the planner counts what the mask keeps."""
    masked = context * context - causal_pairs(group=group, context_tokens=context)
    kept = {
        "sliding": f"the causal pairs inside the window of {group.window_tokens} tokens",
        "chunked": f"the causal pairs inside each chunk of {group.window_tokens} tokens",
    }.get(group.kind, "its causal half")
    width = group.head_dim_k + group.head_dim_v
    return Explanation(
        text=f"the oracle computes the whole {context} x {context} score rectangle and masks it, the planner "
        f"{kept}: {masked:,} pairs a head more, {group.n_q_heads} heads of {width} elements in "
        f"{group.n_layers} layers",
        flops=2 * batch * masked * group.n_q_heads * width * group.n_layers,
    )


def _padded_window(group: AttentionGroup, context: int, batch: int) -> Explanation:
    """Decode under a window that the oracle's cache does not honour: it scores all keys and masks most."""
    outside = context - min(context, group.window_tokens or context)
    width = group.head_dim_k + group.head_dim_v
    return Explanation(
        text=f"the oracle's cache keeps all {context} tokens of a layer with a window of "
        f"{group.window_tokens} and masks {outside:,} of them, the planner counts the window",
        flops=2 * batch * outside * group.n_q_heads * width * group.n_layers,
    )


def _expanded_latent(group: AttentionGroup, context: int, batch: int) -> tuple[Explanation, ...]:
    """Decode of MLA: the oracle expands the cached latent again, the planner absorbs the expansion."""
    rank, rope = group.kv_lora_rank, group.qk_rope_head_dim
    nope, value = group.qk_nope_head_dim, group.head_dim_v
    up_projection = rank * group.n_q_heads * (nope + value)
    expanded, latent = nope + rope + value, (rank + rope) + rank
    return (
        Explanation(
            text=f"the oracle expands the latents of the {context - 1:,} cached tokens again at every step "
            "(kv_b over the whole cache), the planner absorbs that projection into the query and the output",
            flops=2 * batch * (context - 1) * up_projection * group.n_layers,
        ),
        Explanation(
            text=f"so the oracle's scores and values are {expanded} elements a head and token (expanded), "
            f"the planner's {latent} (latent)",
            flops=2 * batch * context * group.n_q_heads * (expanded - latent) * group.n_layers,
        ),
    )


def _all_experts_computed(group: FfnGroup, hidden_size: int, tokens: int) -> Explanation:
    """MoE run densely: every expert on every token."""
    idle = group.n_experts - group.n_experts_per_token
    one_expert = group.n_matrices * hidden_size * group.intermediate_size
    return Explanation(
        text=f"the class runs all {group.n_experts} experts on every token and weighs most by zero, the "
        f"planner counts the {group.n_experts_per_token} that a token is routed to",
        flops=2 * tokens * idle * one_expert * group.n_layers,
    )


def _experts_not_read(group: FfnGroup, hidden_size: int, tokens: int, bytes_per_element: int) -> Explanation:
    """MoE: the oracle lists the weights of all experts, the planner reads those that tokens are routed to."""
    idle_share = 1.0 - group.n_experts_per_token / group.n_experts
    unread = group.n_experts * idle_share**tokens
    one_expert = group.n_matrices * hidden_size * group.intermediate_size
    return Explanation(
        text=f"the oracle lists all {group.n_experts} experts, the planner reads the "
        f"{group.n_experts - unread:.2f} a layer that {tokens:,} tokens are expected to reach",
        weight_bytes=unread * one_expert * bytes_per_element * group.n_layers,
    )


def _add_altup(
    found: dict[str, list[Explanation]],
    model: ModelArch,
    tokens: int,
    n_streams: int,
    bytes_per_element: int,
) -> None:
    """Gemma 3n: what its streams compute beyond the weights that the planner charges once a layer."""
    hidden = model.hidden_size
    for attention in model.attention:
        found.setdefault(f"attention/{attention.kind}", []).append(
            Explanation(
                text="AltUp runs its router twice a layer, to predict and to correct, the planner once "
                f"({n_streams} x {hidden} elements in {attention.n_layers} layers)",
                flops=2 * tokens * n_streams * hidden * attention.n_layers,
            )
        )
    for ffn in model.ffn:
        found.setdefault(f"ffn/{ffn.kind}", []).append(
            Explanation(
                text=f"AltUp mixes its {n_streams} streams by a product without weights in {ffn.n_layers} "
                "layers, which the planner does not charge",
                flops=2 * tokens * hidden * n_streams * n_streams * ffn.n_layers,
            )
        )
    projections = 2 * (n_streams - 1) * hidden * hidden
    found.setdefault("other", []).append(
        Explanation(
            text=f"AltUp's {2 * (n_streams - 1)} projections into and out of its streams take memory "
            "in the planner and no time",
            flops=2 * tokens * projections,
            weight_bytes=float(projections * bytes_per_element),
        )
    )
