"""What would help a serving plan: to meet its targets, to fit, or to give more within them.

Owns: the search for a smaller batch, a wider config, or FP8, and the sentences about them.
Refuses: formulas, and the choice itself (see `select`).

Source: serving planner, section "Sweep and selection".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner_core.hardware import Machine
from planner_core.legal_degrees import max_tp
from planner_core.model_arch import WeightWidths
from planner_core.run_spec import RunSpec
from planner_core.serving_plan.frontier import (
    InteractivityCurve,
    interactivity_curves,
    largest_batch_within,
)
from planner_core.serving_plan.rows import PlanRow, by_throughput, by_ttft, plan_rows

FP8_BYTES = 1.0


def ms_text(seconds: float) -> str:
    """Return a time as "25.6 ms"."""
    return f"{seconds * 1e3:.1f} ms"


def s_text(seconds: float) -> str:
    """Return a time as "1.02 s", a short one in ms."""
    return f"{seconds:.2f} s" if seconds >= 0.01 else ms_text(seconds)


def rate_text(tokens_per_s: float) -> str:
    """Return a throughput in whole tokens: "6,288 tok/s"."""
    return f"{tokens_per_s:,.0f} tok/s"


def advice_to_fit(spec: RunSpec, rows: Sequence[PlanRow]) -> tuple[str, ...]:
    """Say what would fit where nothing does."""
    if not rows:
        return ("A smaller TP in the machine's tp_grid, or a machine with more PEs a node.",)
    best = max(rows, key=lambda row: (row.longest_context_tokens or 0, row.tp), default=None)
    advice = []
    if best is not None and best.longest_context_tokens:
        advice.append(f"A shorter context: {best.label()} fits up to {best.longest_context_tokens:,} tokens.")
    for name, trial in fp8_trials(spec):
        fitting = [row for row in _replan(trial, rows) if row.fits]
        if fitting:
            row = min(fitting, key=by_throughput)
            advice.append(f"{name}: {row.label()} then fits, batch {row.batch}.")
            break
    if not advice:
        advice.append("A machine with more memory per PE or more PEs a node.")
    return tuple(advice)


def advice_to_meet(
    spec: RunSpec,
    configs: Sequence[tuple[int, int]],
    tokens: int,
    rows: Sequence[PlanRow],
    itl_limit_s: float | None,
    ttft_limit_s: float | None,
) -> tuple[str, ...]:
    """Say what would meet the targets: a smaller batch, a wider config, FP8."""
    advice = []
    fast_enough = [row for row in rows if row.fits and row.meets_ttft]
    if itl_limit_s is not None and fast_enough:
        advice.append(_smaller_batch(spec, configs, tokens, fast_enough, itl_limit_s))
    if ttft_limit_s is not None and not fast_enough:
        advice += _wider(spec, tokens, ttft_limit_s)
    for name, trial in fp8_trials(spec):
        meeting = [row for row in _replan(trial, rows) if row.meets_both]
        if meeting:
            row = min(meeting, key=by_throughput)
            advice.append(
                f"{name}: {row.label()} then meets both at batch {row.batch}, "
                f"{rate_text(row.tokens_per_s_per_node)} a node."
            )
            break
    if not advice:
        advice.append("Looser targets, a shorter context, or a faster machine.")
    return tuple(advice)


def advice_within(
    spec: RunSpec,
    configs: Sequence[tuple[int, int]],
    tokens: int,
    rows: Sequence[PlanRow],
    selected: PlanRow,
    itl_limit_s: float | None,
) -> tuple[str, ...]:
    """Say where a config that is over the ITL ceiling only at its largest batch beats the selected one.

    Parameters
    ----------
    spec, configs, tokens, rows
        As `select` planned them.
    selected : PlanRow
        The choice, which meets the targets.
    itl_limit_s : float or None
        The ITL ceiling [s].

    Returns
    -------
    tuple of str
        One sentence, or none.
    """
    over = [
        row
        for row in rows
        if row.fits
        and row.meets_ttft
        and not row.meets_itl
        and row.tokens_per_s_per_node > selected.tokens_per_s_per_node
    ]
    best = None if itl_limit_s is None else _best_within(spec, configs, tokens, over, itl_limit_s)[0]
    if best is None or itl_limit_s is None:
        return ()
    curve, batch, rate = best
    gain = rate / selected.tokens_per_s_per_node - 1.0
    if gain <= 0.0:
        return ()
    return (
        f"A smaller batch of another config: {curve.label()} at batch {batch} meets {ms_text(itl_limit_s)} "
        f"and gives {rate_text(rate)} a node, {100.0 * gain:.3g}% more than {selected.label()}.",
    )


_Best = tuple[InteractivityCurve, int, float]


def _best_within(
    spec: RunSpec,
    configs: Sequence[tuple[int, int]],
    tokens: int,
    rows: Sequence[PlanRow],
    itl_limit_s: float,
) -> tuple[_Best | None, list[InteractivityCurve]]:
    """Return the config, batch and tokens/s a node with the most within the ITL ceiling, and all curves."""
    allowed = [pair for pair in configs if any((row.tp, row.cp) == pair for row in rows)]
    if not allowed:
        return None, []
    (curves,) = interactivity_curves(spec, configs=allowed, buckets=[tokens])
    found: list[_Best] = []
    for curve in curves:
        batch = largest_batch_within(curve, itl_ceiling_s=itl_limit_s)
        if batch:
            at = int(curve.batch.searchsorted(batch))
            found.append((curve, batch, float(curve.tokens_per_s_per_node[at])))
    best = min(found, key=lambda one: (-one[2], one[0].cp, one[0].tp), default=None)
    return best, curves


def _smaller_batch(
    spec: RunSpec,
    configs: Sequence[tuple[int, int]],
    tokens: int,
    rows: Sequence[PlanRow],
    itl_limit_s: float,
) -> str:
    """Name the config and batch with the most throughput within the ITL ceiling."""
    best, curves = _best_within(spec, configs, tokens, rows, itl_limit_s)
    if best is None:
        return f"A smaller batch does not help: even batch 1 is over {ms_text(itl_limit_s)}."
    curve, batch, rate = best
    text = (
        f"A smaller batch: {curve.label()} at batch {batch} meets {ms_text(itl_limit_s)} and gives "
        f"{rate_text(rate)} a node"
    )
    nearest = min(rows, key=by_ttft)
    own = next(c for c in curves if (c.tp, c.cp) == (nearest.tp, nearest.cp))
    own_batch = largest_batch_within(own, itl_ceiling_s=itl_limit_s)
    if own is curve or not own_batch:
        return f"{text}."
    return f"{text}; {own.label()} itself meets it at batch {own_batch}."


def _wider(spec: RunSpec, tokens: int, ttft_limit_s: float) -> list[str]:
    """Name a TP past the grid that meets the TTFT ceiling, if the node has one."""
    tried = max(spec.machine.tp_grid)
    for tp in _wider_degrees(spec.machine, tried):
        if tp > max_tp(spec.model):
            break
        ((row,),) = plan_rows(spec, configs=[(tp, 1)], buckets=[tokens])
        if row.fits and row.ttft_s <= ttft_limit_s:
            return [f"A wider config: TP{tp} has TTFT {s_text(row.ttft_s)}."]
    return ["A wider config does not help within the node."]


def _wider_degrees(machine: Machine, tried: int) -> list[int]:
    degrees = []
    tp = 2 * tried
    while tp <= machine.node_pes:
        degrees.append(tp)
        tp *= 2
    return degrees


def fp8_trials(spec: RunSpec) -> list[tuple[str, RunSpec]]:
    """Return the run-spec with fp8 weights, KV, or both, as far as that is less than it has."""
    weights = replace(
        spec,
        widths=WeightWidths.uniform(FP8_BYTES),
        precision="fp8" if "fp8" in spec.machine.peak_flops_per_s else spec.precision,
    )
    trials = []
    if spec.widths.ffn > FP8_BYTES:
        trials.append(("FP8 weights", weights))
    if spec.kv_dtype_bytes > FP8_BYTES:
        trials.append(("FP8 KV cache", replace(spec, kv_dtype_bytes=FP8_BYTES)))
    if len(trials) == 2:  # both were possible, so both at once is a third
        trials.append(("FP8 weights and KV cache", replace(weights, kv_dtype_bytes=FP8_BYTES)))
    return trials


def _replan(spec: RunSpec, rows: Sequence[PlanRow]) -> list[PlanRow]:
    """Evaluate the same configs at the same length under another run-spec."""
    (again,) = plan_rows(spec, configs=[(row.tp, row.cp) for row in rows], buckets=[rows[0].context_tokens])
    return again
