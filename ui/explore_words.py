"""What Auto Explore says in sentences: counts, why configs do not fit, how far the answer moves, each knob.

Owns: plain text around the core's numbers. Names from outside are in it as they came: escape it where shown.
Refuses: numbers of its own, and markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from planner_core.auto_explore import Config, ConfigScore, ExploreResult, ParallelismSensitivityRow
from planner_core.hardware import Machine
from ui import text
from ui.explore_core import WouldFit


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {text.count(n)}" for name, n in counts.items() if n)


def count_facts(result: ExploreResult) -> list[tuple[str, str, str]]:
    """Return the big numbers of a sweep."""
    pruned = result.n_grid - result.n_enumerated
    share = result.n_feasible / result.n_enumerated if result.n_enumerated else 0.0
    return [
        ("Grid", text.count(result.n_grid), "all combinations of the nine axes"),
        ("Enumerated", text.count(result.n_enumerated), f"{text.count(pruned)} pruned"),
        ("Feasible", text.count(result.n_feasible), f"{text.percent(share)} of those enumerated"),
        ("On the front", text.count(len(result.pareto)), "latency, PEs, efficiency"),
        ("Time taken", text.seconds(result.elapsed_s), "on the server, when first asked"),
    ]


def why_not(result: ExploreResult) -> str:
    """Return what was pruned and what the rest lacks, in one or two sentences."""
    parts = []
    lacking = _counted(result.infeasible)
    parts.append(f"Did not fit, for lack of: {lacking}." if lacking else "Every enumerated config fits.")
    pruned = _counted(result.pruned)
    if pruned:
        parts.append(f"Pruned: {pruned}.")
    return " ".join(parts)


def how_far_it_moves(found: Mapping[str, ConfigScore | None], *, chosen: str, machine_own: str) -> str:
    """Return the lowest latency under each collective model, that in force first, in one sentence."""
    here = found.get(chosen)
    if here is None:
        return ""
    parts = []
    for name in (chosen, *(other for other in found if other != chosen)):
        own = " (the machine's own)" if name == machine_own else ""
        score = found[name]
        if score is None:
            parts.append(f"{name}{own} lets nothing fit")
            continue
        change = score.latency_s / here.latency_s - 1.0
        moved = "" if name == chosen else f", {_signed(change)}" if abs(change) >= 5e-4 else ", no change"
        config = "" if name != chosen and score.config == here.config else f" with {score.label()}"
        parts.append(f"{name}{own} {text.seconds(score.latency_s)}{config}{moved}")
    return f"Lowest latency by collective model: {'; '.join(parts)}."


def _signed(change: float) -> str:
    return f"{'+' if change > 0 else '−'}{text.percent(abs(change))}"


def baseline_line(baseline: ConfigScore, *, row: int | None) -> str:
    """Return the baseline's numbers in one short line; its name stands beside it, in figure and table."""
    fits = "" if baseline.fits else f"; does not fit, lacks {baseline.lacks}"
    where = "; not on the front" if row is None else ""
    return (
        f"{text.seconds(baseline.latency_s)}, {text.count(baseline.pes_used)} PEs, "
        f"{text.percent(baseline.efficiency)} efficient, "
        f"{text.tokens_per_s(baseline.throughput_tokens_per_s)}, "
        f"{text.percent(baseline.hbm_frac)} of HBM{fits}{where}"
    )


def nothing_fits(result: ExploreResult, *, machine: Machine, pe_limit: float) -> str:
    """Return which config comes closest, and what it lacks."""
    closest = result.closest
    if closest is None:
        return f"Every config asks for more than the {pe_limit:,.0f} PEs allowed."
    short = closest.memory_bytes_per_pe - machine.budget_bytes
    return (
        f"The closest is {closest.label()} on {text.count(closest.pes_used)} PEs: it needs "
        f"{text.n_bytes(closest.memory_bytes_per_pe)} a PE of {text.n_bytes(machine.budget_bytes)}, "
        f"short of {text.n_bytes(short)} ({closest.lacks})."
    )


def what_to_change(found: WouldFit) -> str:
    """Return what would fit, each changed alone."""
    parts = []
    if found.context_tokens is not None:
        parts.append(f"a context of {text.context(found.context_tokens)} tokens")
    if found.batch is not None:
        parts.append(f"a batch of {text.count(found.batch)}")
    if found.without_budget:
        parts.append("no PE budget")
    if parts:
        return f"What fits, each alone: {'; '.join(parts)}."
    return (
        "Neither a shorter context nor a smaller batch is enough: allow more PEs, search higher degrees, "
        "take fewer bytes a weight or a cached element, or a machine with more memory."
    )


def knob_sentences(
    rows: Sequence[ParallelismSensitivityRow], *, baseline: Config, baseline_latency_s: float
) -> dict[str, str]:
    """Return one or two sentences a knob: the fastest that fits, where it steps, what stops fitting."""
    return {
        knob: _knob_sentence(list(members), getattr(baseline, knob), baseline_latency_s)
        for knob, members in groupby(rows, key=lambda row: row.knob)
    }


def _knob_sentence(rows: Sequence[ParallelismSensitivityRow], own: int, baseline_latency_s: float) -> str:
    knob = rows[0].knob.upper()
    fitting = [row for row in rows if row.fits]
    parts = []
    if not fitting:
        parts.append(f"No value of {knob} fits.")
    else:
        best = min(fitting, key=lambda row: (row.latency_s, row.value))
        if best.value == own:
            parts.append(f"{knob} {own}, the baseline, is the fastest that fits.")
        else:
            change = best.latency_s / baseline_latency_s - 1.0
            parts.append(
                f"Fastest that fits: {knob} {best.value}, {text.seconds(best.latency_s)} ({_signed(change)})."
            )
    parts += [f"Steps at {row.value}: {row.step_note}." for row in _first_steps(rows)]
    unfit = [
        f"{_ranges(row.value for row in rows if row.reason == reason)} ({_reason(reason)})"
        for reason in dict.fromkeys(row.reason for row in rows if not row.fits)
    ]
    if unfit:
        parts.append(f"Does not fit: {'; '.join(_shortened(unfit))}.")
    return " ".join(parts)


def _reason(reason: str) -> str:
    return f"lacks {reason}" if reason in ("weights", "KV", "activations", "PEs") else reason


def _first_steps(rows: Sequence[ParallelismSensitivityRow]) -> list[ParallelismSensitivityRow]:
    """Two steps at most: the rest is on the chart and in the table."""
    return [row for row in rows if row.fits and row.step_note][:2]


def _shortened(parts: list[str]) -> list[str]:
    return parts if len(parts) <= 3 else [*parts[:3], "more in the table"]


def _ranges(values: Iterable[int]) -> str:
    """Return sorted values of a sweep (1 and the evens) as ranges.

    Examples
    --------
    >>> _ranges([1, 2, 4, 6, 20, 22])
    '1 to 6, 20 to 22'
    """
    runs: list[list[int]] = []
    for value in values:
        if runs and value - runs[-1][-1] <= 2:
            runs[-1].append(value)
        else:
            runs.append([value])
    shown = [f"{run[0]} to {run[-1]}" if len(run) > 1 else str(run[0]) for run in runs]
    return ", ".join(shown if len(shown) <= 4 else [*shown[:4], "and more"])
