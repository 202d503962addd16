"""Which tensor-parallel degrees cut a model's heads evenly.

Owns: `max_tp`, past which heads are split too fine; `legal_tp_degrees`, the list that a refusal names; and
`degree_faults`, the refusal of a serving config.
Refuses: whether a degree fits memory or is worth it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from planner_core.errors import Fault, shorten
from planner_core.hardware import Machine
from planner_core.model_arch import ModelArch

MAX_TP_PER_HEAD: Final = 4


def _divisors(number: int) -> list[int]:
    small = [low for low in range(1, math.isqrt(number) + 1) if number % low == 0]
    return sorted({*small, *(number // low for low in small)})


def max_tp(model: ModelArch) -> int:
    """Return the largest TP degree that any sweep looks at: 4 ranks a query head.

    Parameters
    ----------
    model : ModelArch
        The model.

    Returns
    -------
    int
        4 hq. Physics contract, section 6.
    """
    return MAX_TP_PER_HEAD * model.n_q_heads


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


def degree_faults(
    *, model: ModelArch | None, machine: Machine, tp: int, cp: int, pp: int, places: Mapping[str, str]
) -> list[Fault]:
    """Return why a serving config is refused: degrees that no runtime takes, or that one node does not have.

    Parameters
    ----------
    model : ModelArch or None
        What is served; None where its own file is faulty.
    machine : Machine
        On what.
    tp, cp, pp : int
        Tensor parallel ranks, KV split inside them, pipeline stages.
    places : mapping of str to str
        What a fault calls "tp", "cp" and "pp".

    Returns
    -------
    list of Fault
        Empty where the config can be served.
    """
    faults: list[Fault] = []

    def add(name: str, given: int, *, allowed: str, fix: str) -> None:
        faults.append(Fault(where=places[name], given=shorten(given), allowed=allowed, fix=fix))

    node = f"the {machine.node_pes} PEs of a node"
    legal = legal_tp_degrees(model, machine) if model else ()
    if model and tp not in legal:
        add(
            "tp",
            tp,
            allowed=f"a degree that cuts {model.n_q_heads} query heads and {model.n_kv_heads} KV heads "
            f"evenly on {node}: {', '.join(map(str, legal))}",
            fix="pick one of these",
        )
    elif tp > machine.node_pes:
        add("tp", tp, allowed=f"at most {node}", fix="lower it")
    elif tp * pp > machine.node_pes:
        add(
            "pp",
            pp,
            allowed=f"TP*PP up to {node}",
            fix=f"with TP {tp} use at most PP {machine.node_pes // tp}",
        )
    if model and pp > model.n_layers:
        add("pp", pp, allowed=f"at most the model's {model.n_layers} layers", fix="lower it")
    if cp > tp:
        allowed = f"at most TP, which is {tp}: it cuts a KV head over TP ranks"
        add("cp", cp, allowed=allowed, fix="lower it")
    return faults
