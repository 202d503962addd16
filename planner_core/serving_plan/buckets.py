"""Which context lengths and which configs a serving plan looks at.

Owns: `context_buckets` and `serving_grid`.
Refuses: times and choices.

Source: serving planner, section "Sweep and selection".
"""

from __future__ import annotations

from typing import Final

import numpy as np

from planner_core.hardware import Machine
from planner_core.legal_degrees import max_tp
from planner_core.model_arch import ModelArch

N_BUCKETS: Final = 6
SHORTEST_TOKENS: Final = 8192
BUCKET_MULTIPLE_TOKENS: Final = 4096


def context_buckets(*, max_position_tokens: int) -> tuple[int, ...]:
    """Return six context lengths spaced geometrically from 8k to the model's longest.

    Parameters
    ----------
    max_position_tokens : int
        Longest context that the model is made for [tokens].

    Returns
    -------
    tuple of int
        Ascending and distinct, each rounded up to a multiple of 4k and never past the longest; a model
        made for 8k or less has its longest alone.

    Examples
    --------
    >>> [tokens // 1024 for tokens in context_buckets(max_position_tokens=131072)]
    [8, 16, 28, 44, 76, 128]
    """
    if max_position_tokens <= SHORTEST_TOKENS:
        return (max_position_tokens,)
    lengths = np.geomspace(SHORTEST_TOKENS, max_position_tokens, N_BUCKETS)
    # A length a rounding error above a multiple belongs to that multiple.
    whole = np.ceil(lengths / BUCKET_MULTIPLE_TOKENS - 1e-9) * BUCKET_MULTIPLE_TOKENS
    capped = np.minimum(whole, max_position_tokens)
    return tuple(sorted({int(tokens) for tokens in capped}))


def serving_grid(*, model: ModelArch, machine: Machine) -> tuple[tuple[int, int], ...]:
    """Return the (TP, CP) pairs that a plan tries: the machine's grid with CP <= TP <= the node's PEs.

    Parameters
    ----------
    model : ModelArch
        Its heads bound TP: past 4 ranks a head the split is too fine.
    machine : Machine
        The grid and the node.

    Returns
    -------
    tuple of (int, int)
        TP, then CP, ascending.
    """
    return tuple(
        (tp, cp)
        for tp in sorted(machine.tp_grid)
        if tp <= machine.node_pes and tp <= max_tp(model)
        for cp in sorted(machine.cp_grid)
        if cp <= tp
    )
