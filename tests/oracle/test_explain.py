"""Explanations against a count pair by pair, on small shapes."""

from __future__ import annotations

import pytest

from planner_core.model_arch import AttentionGroup
from planner_core.oracle.explain import causal_pairs


def _sees(kind: str, window: int | None, query: int, key: int) -> bool:
    if key > query:
        return False
    if kind == "sliding" and window is not None:
        return query - key < window
    if kind == "chunked" and window is not None:
        return query // window == key // window
    return True


@pytest.mark.parametrize("kind", ["global", "sliding", "chunked"])
@pytest.mark.parametrize("window", [1, 3, 7, 11, 20])
@pytest.mark.parametrize("context", [1, 2, 7, 11, 12])
def test_causal_pairs_are_those_that_the_mask_keeps(kind: str, window: int, context: int) -> None:
    limit = None if kind == "global" else window
    group = AttentionGroup(
        kind=kind, n_layers=1, n_q_heads=1, n_kv_heads=1, head_dim_k=1, head_dim_v=1, window_tokens=limit
    )
    kept = sum(_sees(kind, limit, query, key) for query in range(context) for key in range(context))
    assert causal_pairs(group=group, context_tokens=context) == kept
