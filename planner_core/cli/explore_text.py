"""A sweep and its sensitivity as text: the tables of `planner explore` and `planner sensitivity`.

Owns: words, columns and their digits.
Refuses: numbers of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import ArrayLike

from planner_core.auto_explore import Config, ConfigScore, ExploreResult, ParallelismSensitivityRow
from planner_core.cli.terminal import table
from planner_core.hardware import Machine
from planner_core.reports import CONFIG_KEYS
from planner_core.run_spec import RunSpec
from planner_core.units import GB, MB, MS
from planner_core.workload import Workload

_FRONT_HEADER = (
    "row", "TP", "CP", "PP", "DP", "KV", "FFN cut over", "TP at", "CP at", "ring", "PEs", "latency ms",
    "efficiency", "tok/s", "GB/PE", "HBM", "binding", "tied",
)  # fmt: skip
_FRONT_LEFT = ("KV", "FFN cut over", "TP at", "CP at", "ring", "binding")
_KNOB_HEADER = ("value", "latency ms", "GB/PE", "PEs", "fits", "binding", "note")
_KNOB_LEFT = ("fits", "binding", "note")


def _whole(value: ArrayLike) -> int:
    return int(np.asarray(value))


def setting_line(spec: RunSpec, workload: Workload) -> str:
    """Return what a sweep was about."""
    machine = spec.machine
    context, batch = _whole(workload.context_tokens), _whole(workload.batch)
    return (
        f"{spec.model_label} on {spec.hardware_name}{' (illustrative)' if machine.illustrative else ''}, "
        f"{workload.phase}, context {context:,} tokens, batch {batch:,}, "
        f"collectives {machine.collective_model}"
    )


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


def _front_cells(at: int, score: ConfigScore) -> tuple[str, ...]:
    return (
        str(at),
        str(score.tp),
        str(score.cp),
        str(score.pp),
        str(score.dp),
        score.kv_shard_mode,
        score.ffn_shard_scope,
        score.tp_placement,
        score.cp_placement,
        score.cp_ring_variant if score.cp > 1 else "-",
        f"{score.pes_used:,}",
        f"{score.latency_s / MS:.3f}",
        f"{score.efficiency:.3f}",
        f"{score.throughput_tokens_per_s:.1f}",
        f"{score.memory_bytes_per_pe / GB:.2f}",
        f"{100.0 * score.hbm_frac:.0f}%",
        score.binding,
        f"+{score.n_tied:,}" if score.n_tied else "",
    )


def config_text(config: Config) -> str:
    """Return a config the way `--config` takes it."""
    default = Config()
    shown = [
        f"{name}={getattr(config, name)}"
        for name in CONFIG_KEYS
        if name in ("cp", "tp", "pp", "dp") or getattr(config, name) != getattr(default, name)
    ]
    return ",".join(shown)


def explore_lines(spec: RunSpec, workload: Workload, result: ExploreResult) -> list[str]:
    """Return a sweep as text: the counts, why not, the front, how to go on.

    Parameters
    ----------
    spec : RunSpec
        What was swept.
    workload : Workload
        Phase, context and batch.
    result : ExploreResult
        The sweep.

    Returns
    -------
    list of str
    """
    lines = [
        setting_line(spec, workload),
        f"{result.n_grid:,} cells in the grid, {result.n_enumerated:,} configs enumerated, "
        f"{result.n_feasible:,} fit, {len(result.pareto)} on the front, {result.elapsed_s / MS:.1f} ms",
        f"pruned: {_counts(result.pruned)}",
        f"do not fit, for lack of: {_counts(result.infeasible)}",
        "",
    ]
    if not result.pareto:
        return lines + _nothing_fits(spec.machine, result)
    rows = [_front_cells(at, score) for at, score in enumerate(result.pareto)]
    lines += ["Pareto front (latency down, PEs down, efficiency up):"]
    lines += table(rows, header=_FRONT_HEADER, left=_FRONT_LEFT)
    context = f"--context {_whole(workload.context_tokens)}"
    lines += [
        "",
        "No config that fits beats a row in all of latency, PEs and efficiency. tied: others with the very",
        "same three; the simplest is shown. efficiency: the least PE-seconds for the work over those spent.",
        f"`planner sensitivity SPEC {context} --row N` shows what each knob does around a row.",
    ]
    return lines


def _nothing_fits(machine: Machine, result: ExploreResult) -> list[str]:
    closest = result.closest
    if closest is None:
        return ["Nothing fits: every config asks for more PEs than are allowed."]
    short = closest.memory_bytes_per_pe - machine.budget_bytes
    needed, budget = closest.memory_bytes_per_pe / MB, machine.budget_bytes / MB
    return [
        f"Nothing fits. The closest is {closest.label()} on {closest.pes_used:,} PEs: it needs "
        f"{needed:,.1f} MB a PE of {budget:,.1f}, short of {short / MB:,.1f} MB ({closest.lacks}).",
        "What would help: more PEs, a shorter context, a smaller batch, fewer bytes a weight or a cached "
        "element.",
    ]


def _shown(row: ParallelismSensitivityRow, before: ParallelismSensitivityRow | None) -> bool:
    """Keep powers of two, the baseline, steps, and values where fitting starts or ends."""
    power = row.value & (row.value - 1) == 0
    turned = before is not None and (before.fits, before.reason) != (row.fits, row.reason)
    return power or row.is_baseline or bool(row.step_note) or turned


def sensitivity_lines(
    spec: RunSpec,
    workload: Workload,
    baseline: ConfigScore,
    rows: Sequence[ParallelismSensitivityRow],
) -> list[str]:
    """Return a sensitivity sweep as text: a table a knob.

    Parameters
    ----------
    spec : RunSpec
        What was swept.
    workload : Workload
        Phase, context and batch.
    baseline : ConfigScore
        What is varied.
    rows : sequence of ParallelismSensitivityRow
        By knob, then by value.

    Returns
    -------
    list of str
    """
    fits = "fits" if baseline.fits else f"does not fit ({baseline.lacks})"
    lines = [
        setting_line(spec, workload),
        f"baseline {baseline.label()}: {baseline.latency_s / MS:.3f} ms, {baseline.pes_used:,} PEs, "
        f"{baseline.memory_bytes_per_pe / GB:.2f} GB a PE, {fits}, binding {baseline.binding}",
        f"as --config: {config_text(baseline)}",
    ]
    for knob, group in groupby(rows, key=lambda row: row.knob):
        of_knob = list(group)
        befores = [None, *of_knob[:-1]]
        kept = [row for row, before in zip(of_knob, befores, strict=True) if _shown(row, before)]
        cells = [
            (
                f"{'*' if row.is_baseline else ''}{row.value}",
                f"{row.latency_s / MS:.3f}",
                f"{row.memory_bytes_per_pe / GB:.2f}",
                f"{row.pes_used:,}",
                "yes" if row.fits else f"no: {row.reason}",
                row.binding,
                row.step_note,
            )
            for row in kept
        ]
        lines += ["", f"{knob.upper()}, the others held ({len(kept)} of {len(of_knob)} values):"]
        lines += ["  " + line for line in table(cells, header=_KNOB_HEADER, left=_KNOB_LEFT)]
    lines += [
        "",
        "* the baseline. A value that does not fit is shown at the latency it would have. Shown are powers",
        "of two, steps and turns; --csv and --json hold every value.",
    ]
    return lines
