"""How far an operating point can be pushed before memory is full.

Owns: `fit_limits` and `fit_limits_of`: the largest batch at its context, the longest context at its batch.
Refuses: formulas (see `memory_layout`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from planner_core.memory_layout import compute_memory, largest_batch
from planner_core.parallelism import Parallelism, make_parallelism
from planner_core.serving_plan import spec_workload

if TYPE_CHECKING:
    from planner_core.run_spec import RunSpec
    from planner_core.serving_plan import OperatingPoint
    from planner_core.workload import Phase

LONGEST_TOKENS: Final = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class FitLimits:
    """The edges of memory around one operating point.

    Parameters
    ----------
    largest_batch : int
        Sequences that fit at its context; 0 if none.
    longest_context_tokens : int
        Tokens that fit at its batch, at most 2**30; 0 if none.
    """

    largest_batch: int
    longest_context_tokens: int


def fit_limits(spec: RunSpec, point: OperatingPoint) -> FitLimits:
    """Return how far a point's batch and its context could grow, each alone.

    Parameters
    ----------
    spec : RunSpec
        Model, machine and byte widths.
    point : OperatingPoint
        The point.

    Returns
    -------
    FitLimits
    """
    return fit_limits_of(
        spec,
        parallelism=make_parallelism(tp=point.tp, pp=point.pp, kv_split=point.cp),
        phase=point.phase,
        context_tokens=point.context_tokens,
        batch=point.batch,
    )


def fit_limits_of(
    spec: RunSpec, *, parallelism: Parallelism, phase: Phase, context_tokens: int, batch: int
) -> FitLimits:
    """Return how far the batch and the context of any config could grow, each alone.

    Parameters
    ----------
    spec : RunSpec
        Model, machine and byte widths.
    parallelism : Parallelism
        One config: scalars.
    phase : {"decode", "prefill"}
        The phase.
    context_tokens, batch : int
        `S` [tokens] and `n`.

    Returns
    -------
    FitLimits

    Notes
    -----
    Memory never falls with the context, so the longest is found by halving.
    """

    def fits(tokens: int) -> bool:
        memory = compute_memory(
            model=spec.model,
            machine=spec.machine,
            parallelism=parallelism,
            workload=spec_workload(spec, phase=phase, context_tokens=tokens, batch=batch),
        )
        return bool(memory.fits)

    low, high = 0, LONGEST_TOKENS + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    largest = largest_batch(
        model=spec.model,
        machine=spec.machine,
        parallelism=parallelism,
        workload=spec_workload(spec, phase=phase, context_tokens=context_tokens, batch=1),
    )
    return FitLimits(largest_batch=int(largest), longest_context_tokens=low)
