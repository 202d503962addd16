"""Which config to serve with, and why.

Owns: the choice at each context length, the sentence that explains it, and what each other config misses.
Refuses: formulas, and the search for what would help (see `advice`).

Source: serving planner, section "Sweep and selection".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner_core.run_spec import RunSpec
from planner_core.serving_plan.advice import (
    advice_to_fit,
    advice_to_meet,
    advice_within,
    ms_text,
    rate_text,
    s_text,
)
from planner_core.serving_plan.buckets import context_buckets, serving_grid
from planner_core.serving_plan.rows import PlanRow, by_throughput, by_ttft, plan_rows, ttft_ceiling_s

PREFILL_TOO_BIG = (
    " A whole prefill does not fit in memory beside that batch: prefill in chunks, or keep sequences back."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketPlan:
    """The plan at one context length.

    Parameters
    ----------
    context_tokens : int
        The bucket [tokens].
    rows : tuple of PlanRow
        Every config, TP then CP ascending.
    selected : PlanRow or None
        The choice; None where nothing fits.
    sla_met : bool
        Whether the choice meets every target.
    itl_ceiling_s, ttft_ceiling_s : float or None
        The targets at this length [s].
    why : str
        One paragraph of plain text.
    misses : tuple of str
        For each row what it misses and by how much; empty where it meets all.
    advice : tuple of str
        What would meet the targets, or fit; where the choice meets them, a smaller batch of another config
        that gives more within them.
    """

    context_tokens: int
    rows: tuple[PlanRow, ...]
    selected: PlanRow | None
    sla_met: bool
    itl_ceiling_s: float | None
    ttft_ceiling_s: float | None
    why: str
    misses: tuple[str, ...]
    advice: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingPlan:
    """The plan of a run-spec over its context lengths.

    Parameters
    ----------
    model, hardware : str
        What to show; text from outside.
    grid_size : int
        Configs tried at each length.
    buckets : tuple of BucketPlan
        By context length.
    warnings : tuple of str
        What is odd and yet answered.
    """

    model: str
    hardware: str
    grid_size: int
    buckets: tuple[BucketPlan, ...]
    warnings: tuple[str, ...]


def plan_serving(
    spec: RunSpec, *, buckets: Sequence[int] | None = None, with_advice: bool = True
) -> ServingPlan:
    """Plan a run-spec: sweep the grid at every context length and choose.

    Parameters
    ----------
    spec : RunSpec
        Model, machine, targets and byte widths.
    buckets : sequence of int, optional
        Context lengths [tokens]; six from 8k to the model's longest by default.
    with_advice : bool
        Whether to look for what would meet the targets, or fit; that takes longer than the plan itself.

    Returns
    -------
    ServingPlan

    Notes
    -----
    Of the configs that meet both targets the one with the most tokens/s a node; a tie goes to the smaller
    CP. If none meets them the lowest TTFT, a tie to the smaller CP.
    """
    lengths = (
        context_buckets(max_position_tokens=spec.model.max_position_tokens)
        if buckets is None
        else tuple(buckets)
    )
    configs = serving_grid(model=spec.model, machine=spec.machine)
    grid = plan_rows(spec, configs=configs, buckets=lengths) if configs else [[] for _ in lengths]
    return ServingPlan(
        model=spec.model_label,
        hardware=spec.hardware_name,
        grid_size=len(configs),
        buckets=tuple(
            _plan_bucket(spec, configs, tokens, rows, with_advice=with_advice)
            for tokens, rows in zip(lengths, grid, strict=True)
        ),
        warnings=spec.warnings,
    )


def _plan_bucket(
    spec: RunSpec,
    configs: Sequence[tuple[int, int]],
    tokens: int,
    rows: list[PlanRow],
    *,
    with_advice: bool,
) -> BucketPlan:
    itl_limit_s = spec.decode_itl_ceiling_s
    ceiling = ttft_ceiling_s(spec, context_tokens=tokens)
    ttft_limit_s = None if ceiling is None else float(ceiling)
    fitting = [row for row in rows if row.fits]
    meeting = [row for row in fitting if row.meets_both]
    misses = tuple(_misses(row, itl_limit_s, ttft_limit_s) for row in rows)
    selected: PlanRow | None = None
    if spec.objective == "lowest_ttft" and fitting:
        selected = min(fitting, key=by_ttft)
    elif meeting:
        selected = min(meeting, key=by_throughput)
    elif fitting:
        selected = min(fitting, key=by_ttft)
    sla_met = selected is not None and selected.meets_both
    advice: tuple[str, ...] = ()
    if not with_advice:
        advice = ()
    elif selected is None:
        advice = advice_to_fit(spec, rows)
    elif not sla_met:
        advice = advice_to_meet(spec, configs, tokens, rows, itl_limit_s, ttft_limit_s)
    elif spec.objective is None:
        advice = advice_within(spec, configs, tokens, rows, selected, itl_limit_s)
    return BucketPlan(
        context_tokens=tokens,
        rows=tuple(rows),
        selected=selected,
        sla_met=sla_met,
        itl_ceiling_s=itl_limit_s,
        ttft_ceiling_s=ttft_limit_s,
        why=_why(spec, selected, rows, meeting, misses, itl_limit_s, ttft_limit_s),
        misses=misses,
        advice=advice,
    )


def _over(name: str, value_s: float, limit_s: float, text: str, limit_text: str) -> str:
    return f"{name} {text} is over {limit_text} by {100.0 * (value_s / limit_s - 1.0):.3g}%"


def _misses(row: PlanRow, itl_limit_s: float | None, ttft_limit_s: float | None) -> str:
    """Say what a row misses, and by how much."""
    if row.itl_s is None:
        short = row.binding.split(":")[1]
        longest = (
            f"the longest context that fits is {row.longest_context_tokens:,} tokens"
            if row.longest_context_tokens
            else "no context fits"
        )
        return f"does not fit ({short}): {longest}"
    parts = []
    if itl_limit_s is not None and not row.meets_itl:
        parts.append(_over("ITL", row.itl_s, itl_limit_s, ms_text(row.itl_s), ms_text(itl_limit_s)))
    if ttft_limit_s is not None and not row.meets_ttft:
        parts.append(_over("TTFT", row.ttft_s, ttft_limit_s, s_text(row.ttft_s), s_text(ttft_limit_s)))
    return "; ".join(parts)


def _targets_text(itl_limit_s: float | None, ttft_limit_s: float | None) -> str:
    parts = []
    if itl_limit_s is not None:
        parts.append(f"ITL <= {ms_text(itl_limit_s)}")
    if ttft_limit_s is not None:
        parts.append(f"TTFT <= {s_text(ttft_limit_s)}")
    return " and ".join(parts)


def _why(
    spec: RunSpec,
    selected: PlanRow | None,
    rows: Sequence[PlanRow],
    meeting: Sequence[PlanRow],
    misses: Sequence[str],
    itl_limit_s: float | None,
    ttft_limit_s: float | None,
) -> str:
    """Explain the choice in plain text."""
    if not rows:
        grid = ", ".join(map(str, spec.machine.tp_grid))
        return (
            f"There is no config to try: no TP of the machine's grid ({grid}) is within the "
            f"{spec.machine.node_pes} PEs of its node and 4 ranks a head of the model."
        )
    if selected is None or selected.itl_s is None:
        return "No config of the grid fits in memory at this context length, not even at the smallest batch."
    bound = f"{selected.binding} binds its decode step"
    beside = "" if selected.prefill_fits else PREFILL_TOO_BIG
    targets = _targets_text(itl_limit_s, ttft_limit_s)
    if not selected.meets_both:
        missed = misses[rows.index(selected)]
        return (
            f"No config meets {targets} at its largest batch. {selected.label()} has the lowest TTFT of "
            f"those that fit ({s_text(selected.ttft_s)}) and is the nearest: its {missed}; {bound}.{beside}"
        )
    if spec.objective == "lowest_ttft":
        return (
            f"{selected.label()} has the lowest TTFT, {s_text(selected.ttft_s)}, of the {len(meeting)} "
            f"configs that fit; {bound}.{beside}"
        )
    pool = f"meet {targets}" if targets else "fit"
    runner = _runner_up(selected, meeting)
    only = "the only config" if len(meeting) == 1 else f"the most of the {len(meeting)} configs"
    verb = f"{pool}s" if len(meeting) == 1 and not targets else pool
    if len(meeting) == 1 and targets:
        verb = f"meets {targets}"
    return (
        f"{selected.label()} gives {rate_text(selected.tokens_per_s_per_node)} a node, {only} that {verb}; "
        f"{bound}.{runner}{beside}"
    )


def _runner_up(selected: PlanRow, meeting: Sequence[PlanRow]) -> str:
    """Name the next best config; one whose larger CP changes nothing is no other config."""
    same = (selected.tp, selected.itl_s, selected.batch)
    others = [row for row in meeting if (row.tp, row.itl_s, row.batch) != same]
    if not others:
        return ""
    runner = min(others, key=by_throughput)
    gap = 1.0 - runner.tokens_per_s_per_node / selected.tokens_per_s_per_node
    return (
        f" The runner-up, {runner.label()}, gives {runner.tokens_per_s_per_node:,.0f} "
        f"({100.0 * gap:.3g}% less)."
    )
