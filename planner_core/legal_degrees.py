"""Which tensor-parallel degrees cut a model's heads evenly.

Owns: `legal_tp_degrees`, the list that a refusal names.
Refuses: whether a degree fits memory or is worth it.
"""

from __future__ import annotations

import math
from typing import Final

from planner_core.hardware import Machine
from planner_core.model_arch import ModelArch

MAX_TP_PER_HEAD: Final = 4


def _divisors(number: int) -> list[int]:
    small = [low for low in range(1, math.isqrt(number) + 1) if number % low == 0]
    return sorted({*small, *(number // low for low in small)})


def legal_tp_degrees(model: ModelArch, machine: Machine) -> tuple[int, ...]:
    """Return the TP degrees that cut every layer's heads evenly on one node.

    Parameters
    ----------
    model : ModelArch
        The model.
    machine : Machine
        The machine.

    Returns
    -------
    tuple of int
        Ascending, 1 first.

    Notes
    -----
    Up to hq a degree divides the query heads, and divides the KV heads or is a multiple of them; past hq it
    is a multiple of hq, up to 4 hq, since ranks then repeat a head. The formulas round up, so other degrees
    have a time too; runtimes refuse them.
    """
    most = model.n_q_heads
    multiples = [most * times for times in range(2, MAX_TP_PER_HEAD + 1)]
    return tuple(
        tp
        for tp in (*_divisors(most), *multiples)
        if tp <= machine.node_pes
        and all(
            (group.n_q_heads % tp == 0 or tp % group.n_q_heads == 0)
            and (group.n_kv_heads % tp == 0 or tp % group.n_kv_heads == 0)
            for group in model.attention
        )
    )
