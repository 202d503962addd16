"""The interactivity frontier: what throughput each ITL buys, batch by batch.

Owns: `interactivity_curves` (every config, every batch, one array call), the upper frontier over them, and
the largest batch that meets an ITL ceiling.
Refuses: choices and drawing.

Source: serving planner, section "Interactivity frontier".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from planner_core.memory_layout import largest_batch
from planner_core.parallelism import make_parallelism
from planner_core.run_spec import RunSpec
from planner_core.serving_plan.rows import spec_workload
from planner_core.stage_latencies import step_latency
from planner_core.units import FloatArray, as_float

MAX_BATCHES: Final = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class InteractivityCurve:
    """One config at one context length, over the batch.

    Parameters
    ----------
    context_tokens, tp, cp, n_pes, replicas_per_node : int
        The config.
    batch, itl_s, tokens_per_s_per_node : ndarray
        [n_batches], batch ascending; empty where nothing fits.
    """

    context_tokens: int
    tp: int
    cp: int
    n_pes: int
    replicas_per_node: int
    batch: FloatArray
    itl_s: FloatArray
    tokens_per_s_per_node: FloatArray

    def label(self) -> str:
        """Return "TP8" or "TP16 CP2"."""
        return f"TP{self.tp}" if self.cp == 1 else f"TP{self.tp} CP{self.cp}"

    @property
    def tokens_per_s_per_replica(self) -> FloatArray:
        """Of one replica [tokens/s]."""
        return self.batch / self.itl_s


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierPoint:
    """A point that no other config and batch beats in both ITL and throughput."""

    tp: int
    cp: int
    batch: int
    itl_s: float
    tokens_per_s_per_node: float


def swept_batches(*, largest: float, multiple: int) -> FloatArray:
    """Return 1 and the multiples up to `largest`; a long range is thinned geometrically, its ends kept.

    Examples
    --------
    >>> swept_batches(largest=6, multiple=2).tolist()
    [1.0, 2.0, 4.0, 6.0]
    """
    n_multiples = int(largest // multiple)
    if n_multiples <= MAX_BATCHES:
        steps = np.arange(1, n_multiples + 1, dtype=np.float64)
    else:
        steps = np.unique(np.rint(np.geomspace(1.0, n_multiples, MAX_BATCHES)))
    return np.unique(np.concatenate([[1.0], steps * multiple])) if largest >= 1.0 else as_float([])


def interactivity_curves(
    spec: RunSpec, *, configs: Sequence[tuple[int, int]], buckets: Sequence[int]
) -> list[list[InteractivityCurve]]:
    """Sweep the batch of every config at every bucket in one array call.

    Parameters
    ----------
    spec : RunSpec
        Model, machine and byte widths.
    configs : sequence of (int, int)
        (TP, CP).
    buckets : sequence of int
        Context lengths [tokens].

    Returns
    -------
    list of list of InteractivityCurve
        By bucket, then by config.
    """
    model, machine = spec.model, spec.machine
    tp = as_float([pair[0] for pair in configs])
    context = as_float(buckets)[:, np.newaxis]
    shape = (len(buckets), len(configs))
    split = as_float([pair[1] for pair in configs])
    largest = np.broadcast_to(
        largest_batch(
            model=model,
            machine=machine,
            parallelism=make_parallelism(tp=tp, kv_split=split),
            workload=spec_workload(spec, phase="decode", context_tokens=context, batch=1.0),
        ),
        shape,
    )
    batches = swept_batches(largest=float(np.max(largest)), multiple=machine.batch_multiple)
    itl_s = np.broadcast_to(
        step_latency(
            model=model,
            machine=machine,
            parallelism=make_parallelism(tp=tp[:, np.newaxis], kv_split=split[:, np.newaxis]),
            workload=spec_workload(
                spec, phase="decode", context_tokens=context[..., np.newaxis], batch=batches
            ),
        ).latency_s,
        (*shape, len(batches)),
    )
    replicas = np.floor(machine.node_pes / tp)
    rate = replicas[:, np.newaxis] * batches / itl_s
    n_kept = np.searchsorted(batches, largest, side="right")
    return [
        [
            InteractivityCurve(
                context_tokens=int(tokens),
                tp=pair[0],
                cp=pair[1],
                n_pes=pair[0],
                replicas_per_node=int(replicas[j]),
                batch=batches[: n_kept[i, j]],
                itl_s=itl_s[i, j, : n_kept[i, j]],
                tokens_per_s_per_node=rate[i, j, : n_kept[i, j]],
            )
            for j, pair in enumerate(configs)
        ]
        for i, tokens in enumerate(buckets)
    ]


def upper_frontier(curves: Sequence[InteractivityCurve]) -> tuple[FrontierPoint, ...]:
    """Return the points that no other beats in both ITL and tokens/s a node, by ITL.

    Parameters
    ----------
    curves : sequence of InteractivityCurve
        One bucket's.

    Returns
    -------
    tuple of FrontierPoint
        Of equal points the one with the smaller CP.
    """
    import moocore  # costs start-up, and a plan without a frontier needs none

    if not any(len(curve.batch) for curve in curves):
        return ()
    ordered = sorted(curves, key=lambda curve: (curve.cp, curve.tp))
    points = np.concatenate(
        [np.stack([curve.itl_s, -curve.tokens_per_s_per_node], axis=1) for curve in ordered]
    )
    owner = np.concatenate([np.full(len(c.batch), at) for at, c in enumerate(ordered)])
    batch = np.concatenate([curve.batch for curve in ordered])
    kept = np.flatnonzero(moocore.is_nondominated(points))
    kept = kept[np.argsort(points[kept, 0], kind="stable")]
    return tuple(
        FrontierPoint(
            tp=ordered[owner[at]].tp,
            cp=ordered[owner[at]].cp,
            batch=int(batch[at]),
            itl_s=float(points[at, 0]),
            tokens_per_s_per_node=float(-points[at, 1]),
        )
        for at in kept
    )


def largest_batch_within(curve: InteractivityCurve, *, itl_ceiling_s: float) -> int:
    """Return the largest batch of a curve whose ITL is within the ceiling; 0 if none."""
    within = np.flatnonzero(curve.itl_s <= itl_ceiling_s)
    return int(curve.batch[within[-1]]) if len(within) else 0
