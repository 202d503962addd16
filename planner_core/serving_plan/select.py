"""Which config to serve with, and why.

Owns: the choice at each context length, the sentence that explains it, what each other config misses, and
what would meet the targets where nothing does.
Refuses: formulas.

Source: serving planner, section "Sweep and selection".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from planner_core.hardware import Machine
from planner_core.model_arch import WeightWidths
from planner_core.run_spec import RunSpec
from planner_core.serving_plan.buckets import context_buckets, serving_grid
from planner_core.serving_plan.frontier import interactivity_curves, largest_batch_within
from planner_core.serving_plan.rows import PlanRow, plan_rows, ttft_ceiling_s

FP8_BYTES = 1.0


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
        What would meet the targets, or fit; empty where the choice meets them.
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


def _by_throughput(row: PlanRow) -> tuple[float, int, int]:
    return (-row.tokens_per_s_per_node, row.cp, row.tp)


def _by_ttft(row: PlanRow) -> tuple[float, int, int]:
    return (row.ttft_s, row.cp, row.tp)


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
        selected = min(fitting, key=_by_ttft)
    elif meeting:
        selected = min(meeting, key=_by_throughput)
    elif fitting:
        selected = min(fitting, key=_by_ttft)
    sla_met = selected is not None and selected.meets_both
    advice: tuple[str, ...] = ()
    if not with_advice:
        advice = ()
    elif selected is None:
        advice = _advice_to_fit(spec, rows)
    elif not sla_met:
        advice = _advice_to_meet(spec, configs, tokens, rows, itl_limit_s, ttft_limit_s)
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


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms"


def _s(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 0.01 else _ms(seconds)


def _over(name: str, value_s: float, limit_s: float, text: str, limit_text: str) -> str:
    return f"{name} {text} is over {limit_text} by {100.0 * (value_s / limit_s - 1.0):.3g}%"


def _misses(row: PlanRow, itl_limit_s: float | None, ttft_limit_s: float | None) -> str:
    """Say what a row misses, and by how much."""
    if row.itl_s is None:
        short = row.binding.split(":")[1]
        longest = (
            f"the longest context that fits is {row.longest_context_tokens} tokens"
            if row.longest_context_tokens
            else "no context fits"
        )
        return f"does not fit ({short}): {longest}"
    parts = []
    if itl_limit_s is not None and not row.meets_itl:
        parts.append(_over("ITL", row.itl_s, itl_limit_s, _ms(row.itl_s), _ms(itl_limit_s)))
    if ttft_limit_s is not None and not row.meets_ttft:
        parts.append(_over("TTFT", row.ttft_s, ttft_limit_s, _s(row.ttft_s), _s(ttft_limit_s)))
    return "; ".join(parts)


def _targets_text(itl_limit_s: float | None, ttft_limit_s: float | None) -> str:
    parts = []
    if itl_limit_s is not None:
        parts.append(f"ITL <= {_ms(itl_limit_s)}")
    if ttft_limit_s is not None:
        parts.append(f"TTFT <= {_s(ttft_limit_s)}")
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
    targets = _targets_text(itl_limit_s, ttft_limit_s)
    if not selected.meets_both:
        missed = misses[rows.index(selected)]
        return (
            f"No config meets {targets} at its largest batch. {selected.label()} has the lowest TTFT of "
            f"those that fit ({_s(selected.ttft_s)}) and is the nearest: its {missed}; {bound}."
        )
    if spec.objective == "lowest_ttft":
        return (
            f"{selected.label()} has the lowest TTFT, {_s(selected.ttft_s)}, of the {len(meeting)} configs "
            f"that fit; {bound}."
        )
    pool = f"meet {targets}" if targets else "fit"
    runner = _runner_up(selected, meeting)
    only = "the only config" if len(meeting) == 1 else f"the most of the {len(meeting)} configs"
    verb = f"{pool}s" if len(meeting) == 1 and not targets else pool
    if len(meeting) == 1 and targets:
        verb = f"meets {targets}"
    return (
        f"{selected.label()} gives {selected.tokens_per_s_per_node:.0f} tok/s a node, {only} that {verb}; "
        f"{bound}.{runner}"
    )


def _runner_up(selected: PlanRow, meeting: Sequence[PlanRow]) -> str:
    """Name the next best config; one whose larger CP changes nothing is no other config."""
    same = (selected.tp, selected.itl_s, selected.batch)
    others = [row for row in meeting if (row.tp, row.itl_s, row.batch) != same]
    if not others:
        return ""
    runner = min(others, key=_by_throughput)
    gap = 1.0 - runner.tokens_per_s_per_node / selected.tokens_per_s_per_node
    return (
        f" The runner-up, {runner.label()}, gives {runner.tokens_per_s_per_node:.0f} "
        f"({100.0 * gap:.3g}% less)."
    )


def _advice_to_fit(spec: RunSpec, rows: Sequence[PlanRow]) -> tuple[str, ...]:
    """Say what would fit where nothing does."""
    if not rows:
        return ("A smaller TP in the machine's tp_grid, or a machine with more PEs a node.",)
    best = max(rows, key=lambda row: (row.longest_context_tokens, row.tp), default=None)
    advice = []
    if best is not None and best.longest_context_tokens:
        advice.append(f"A shorter context: {best.label()} fits up to {best.longest_context_tokens} tokens.")
    for name, trial in _fp8_trials(spec):
        fitting = [row for row in _replan(trial, rows) if row.fits]
        if fitting:
            row = min(fitting, key=_by_throughput)
            advice.append(f"{name}: {row.label()} then fits, batch {row.batch}.")
            break
    if not advice:
        advice.append("A machine with more memory per PE or more PEs a node.")
    return tuple(advice)


def _advice_to_meet(
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
    for name, trial in _fp8_trials(spec):
        meeting = [row for row in _replan(trial, rows) if row.meets_both]
        if meeting:
            row = min(meeting, key=_by_throughput)
            advice.append(
                f"{name}: {row.label()} then meets both at batch {row.batch}, "
                f"{row.tokens_per_s_per_node:.0f} tok/s a node."
            )
            break
    if not advice:
        advice.append("Looser targets, a shorter context, or a faster machine.")
    return tuple(advice)


def _smaller_batch(
    spec: RunSpec,
    configs: Sequence[tuple[int, int]],
    tokens: int,
    rows: Sequence[PlanRow],
    itl_limit_s: float,
) -> str:
    """Name the config and batch with the most throughput within the ITL ceiling."""
    allowed = [pair for pair in configs if any((row.tp, row.cp) == pair for row in rows)]
    (curves,) = interactivity_curves(spec, configs=allowed, buckets=[tokens])
    best = None
    for curve in curves:
        batch = largest_batch_within(curve, itl_ceiling_s=itl_limit_s)
        if not batch:
            continue
        at = int(curve.batch.searchsorted(batch))
        candidate = (-float(curve.tokens_per_s_per_node[at]), curve.cp, curve.tp, batch, curve)
        if best is None or candidate[:3] < best[:3]:
            best = candidate
    if best is None:
        return f"A smaller batch does not help: even batch 1 is over {_ms(itl_limit_s)}."
    rate, _, _, batch, curve = best
    text = (
        f"A smaller batch: {curve.label()} at batch {batch} meets {_ms(itl_limit_s)} and gives "
        f"{-rate:.0f} tok/s a node"
    )
    nearest = min(rows, key=_by_ttft)
    own = next(c for c in curves if (c.tp, c.cp) == (nearest.tp, nearest.cp))
    own_batch = largest_batch_within(own, itl_ceiling_s=itl_limit_s)
    if own is curve or not own_batch:
        return f"{text}."
    return f"{text}; {own.label()} itself meets it at batch {own_batch}."


def _wider(spec: RunSpec, tokens: int, ttft_limit_s: float) -> list[str]:
    """Name a TP past the grid that meets the TTFT ceiling, if the node has one."""
    tried = max(spec.machine.tp_grid)
    for tp in _wider_degrees(spec.machine, tried):
        if tp > 4 * spec.model.n_q_heads:
            break
        ((row,),) = plan_rows(spec, configs=[(tp, 1)], buckets=[tokens])
        if row.fits and row.ttft_s <= ttft_limit_s:
            return [f"A wider config: TP{tp} has TTFT {_s(row.ttft_s)}."]
    return ["A wider config does not help within the node."]


def _wider_degrees(machine: Machine, tried: int) -> list[int]:
    degrees = []
    tp = 2 * tried
    while tp <= machine.node_pes:
        degrees.append(tp)
        tp *= 2
    return degrees


def _fp8_trials(spec: RunSpec) -> list[tuple[str, RunSpec]]:
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
