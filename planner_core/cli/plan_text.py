"""A serving plan and a cell as text: the tables of `planner plan` and `planner cell`.

Owns: words, columns and their digits.
Refuses: numbers of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from textwrap import wrap

import numpy as np
from numpy.typing import ArrayLike

from planner_core.cli.arguments import short_tokens
from planner_core.cli.terminal import table
from planner_core.fit_limits import FitLimits
from planner_core.measurements import measured_line
from planner_core.memory_layout import MemoryLayout
from planner_core.run_spec import RunSpec
from planner_core.serving_plan import BucketPlan, OperatingPoint, PlanRow, ServingPlan
from planner_core.units import GB, MB, MS

_ROW_HEADER = (
    "config", "PEs", "batch", "ITL ms", "TTFT s", "tput/node", "GB/PE", "prefill", "binding", "meets",
)  # fmt: skip
_CELL_HEADER = (
    "component", "layers", "W MB", "KV MB", "Act MB", "GFLOP", "load ms", "flop ms", "time ms", "bind",
)  # fmt: skip


def _targets(spec: RunSpec) -> str:
    parts = []
    if spec.objective is not None:
        parts.append(f"objective {spec.objective}")
    if spec.decode_itl_ceiling_s is not None:
        parts.append(f"ITL <= {spec.decode_itl_ceiling_s / MS:g} ms")
    if spec.prefill_tokens_per_s_floor is not None:
        parts.append(f"TTFT <= context / {spec.prefill_tokens_per_s_floor:g} tok/s")
    return ", ".join(parts)


def _row_cells(row: PlanRow, *, misses: str, selected: bool, twin: PlanRow | None) -> tuple[str, ...]:
    if twin is not None:
        return (row.label(), str(row.n_pes), *[""] * (len(_ROW_HEADER) - 3), f"same as {twin.label()}")
    meets = misses or "yes"
    return (
        row.label(),
        str(row.n_pes),
        str(row.batch) if row.fits else "-",
        "-" if row.itl_s is None else f"{row.itl_s / MS:.1f}",
        f"{row.ttft_s:.2f}",
        f"{row.tokens_per_s_per_node:.0f}" if row.fits else "-",
        f"{row.memory_bytes_per_pe / GB:.1f}",
        ("fits" if row.prefill_fits else "too big") if row.fits else "-",
        row.binding,
        f"{meets}   <- selected" if selected else meets,
    )


def _twin(row: PlanRow, rows: Sequence[PlanRow]) -> PlanRow | None:
    """Return the first row with the same numbers at a smaller CP: the larger one splits nothing more."""
    twins = (other for other in rows if other.cp < row.cp and replace(other, cp=row.cp) == row)
    return next(twins, None)


def _bucket_lines(bucket: BucketPlan) -> list[str]:
    ceilings = []
    if bucket.itl_ceiling_s is not None:
        ceilings.append(f"ITL <= {bucket.itl_ceiling_s / MS:g} ms")
    if bucket.ttft_ceiling_s is not None:
        ceilings.append(f"TTFT <= {bucket.ttft_ceiling_s:.2f} s")
    title = f"{short_tokens(bucket.context_tokens)} context ({bucket.context_tokens:,} tokens)"
    rows = [
        _row_cells(
            row,
            misses=misses,
            selected=row is bucket.selected,
            twin=None if row is bucket.selected else _twin(row, bucket.rows),
        )
        for row, misses in zip(bucket.rows, bucket.misses, strict=True)
    ]
    lines = ["", f"{title}: {', '.join(ceilings)}" if ceilings else title]
    lines += [
        "  " + line
        for line in table(rows, header=_ROW_HEADER, left=("config", "prefill", "binding", "meets"))
    ]
    chosen = bucket.selected
    verdict = "nothing fits" if chosen is None else _pick(chosen, sla_met=bucket.sla_met)
    lines.append(f"  pick: {verdict}")
    lines.append(f"  why: {bucket.why}")
    lines += [f"  would help: {advice}" for advice in bucket.advice]
    return lines


def _pick(row: PlanRow, *, sla_met: bool) -> str:
    replicas = f"{row.replicas_per_node} replica{'s' if row.replicas_per_node > 1 else ''}"
    return (
        f"{row.label()}, {replicas} a node, batch {row.batch} each, TTFT {row.ttft_s:.2f} s, "
        f"{row.tokens_per_s_per_node:,.0f} tok/s a node, sla_met={sla_met}"
    )


def plan_lines(spec: RunSpec, plan: ServingPlan) -> list[str]:
    """Return a plan as text: a table a bucket, the pick and why, and how to read it.

    Parameters
    ----------
    spec : RunSpec
        What was asked for.
    plan : ServingPlan
        Its plan.

    Returns
    -------
    list of str
    """
    lines = [
        f"{plan.model} on {plan.hardware}, {plan.grid_size} configs at each of {len(plan.buckets)} context "
        "lengths",
        f"targets: {_targets(spec)}",
    ]
    for bucket in plan.buckets:
        lines += _bucket_lines(bucket)
    lines += [
        "",
        "How to read it. A row is one way to cut the model: TP ranks (PEs) a replica, CP of them sharing the",
        "sequence of a KV head. batch: the largest whose decode step fits in a PE's memory, of which",
        f"{spec.machine.budget_bytes / GB:.1f} GB may be filled. ITL: one decode step at that batch.",
        "TTFT: the prefill of one prompt; prefill: whether it fits beside that batch.",
        f"tput/node: replicas that fill the {spec.machine.node_pes} PEs of a node x batch / ITL.",
        "binding: what takes longest in the decode step. same as: a larger CP that splits nothing more.",
        "Of the rows that meet the targets the one with the most tput/node is selected (a tie: the smaller",
        "CP); if none does, the one with the lowest TTFT. To open one:",
        f"  planner cell SPEC --tp {_first_tp(plan)} --cp 1 --bs 16 --ctx {plan.buckets[0].context_tokens}",
        "",
        *wrap(f"{measured_line(spec.machine)} To see each with its source: planner accuracy.", width=105),
    ]
    return lines


def _first_tp(plan: ServingPlan) -> int:
    for bucket in plan.buckets:
        if bucket.selected is not None:
            return bucket.selected.tp
    return next((row.tp for row in plan.buckets[0].rows), 1)


def cell_lines(spec: RunSpec, point: OperatingPoint, limits: FitLimits) -> list[str]:
    """Return one cell as text: the step, its components, the memory on a PE.

    Parameters
    ----------
    spec : RunSpec
        What was asked for.
    point : OperatingPoint
        The cell.
    limits : FitLimits
        Its edges of memory.

    Returns
    -------
    list of str
    """
    step = point.step
    shape = f"TP{point.tp}, CP{point.cp}, " + (f"PP{point.pp}, " if point.pp > 1 else "")
    rows = [
        (
            component.name,
            str(component.n_layers),
            f"{float(component.weight_bytes) / MB:.2f}",
            f"{float(component.kv_bytes) / MB:.1f}",
            f"{float(component.activation_bytes) / MB:.1f}",
            f"{float(component.flops) / 1e9:.3f}",
            f"{float(component.load_s) / MS:.3f}",
            f"{float(component.flop_s) / MS:.3f}",
            f"{float(component.time_s) / MS:.3f}",
            component.bind,
        )
        for component in step.components
    ]
    parts = step.components
    rows.append(
        (
            "model total",
            "",
            f"{sum(float(part.weight_bytes) for part in parts) / MB:.2f}",
            f"{sum(float(part.kv_bytes) for part in parts) / MB:.1f}",
            f"{sum(float(part.activation_bytes) for part in parts) / MB:.1f}",
            f"{sum(float(part.flops) for part in parts) / 1e9:.3f}",
            "",
            "",
            f"{sum(float(part.time_s) for part in parts) / MS:.3f}",
            "",
        )
    )
    waits = [
        f"{stage.name} {float(stage.time_s) / MS:.3f} ms"
        for stage in step.stages
        if stage.component == "communication" and float(stage.time_s) > 0.0
    ]
    return [
        f"{spec.model_label} on {spec.hardware_name}",
        f"{shape}batch {point.batch}, context {point.context_tokens}, {point.phase}",
        "",
        *([] if _free_bytes(point.memory) >= 0.0 else [f"{_verdict(point.memory)} on a PE. If it did fit:"]),
        f"step {float(step.latency_s) / MS:.3f} ms, communication {float(step.communication_s) / MS:.3f} ms, "
        f"binding {step.binding}, {point.tokens_per_s_per_replica:.0f} tok/s a replica, "
        f"{point.tokens_per_s_per_node:.0f} a node (x{point.replicas_per_node})",
        "",
        *table(rows, header=_CELL_HEADER, left=("component", "bind")),
        "",
        "communication: " + (", ".join(waits) or "none"),
        *_memory_lines(point.memory),
        f"at this context the largest batch that fits is {limits.largest_batch:,}; at this batch the longest "
        f"context that fits is {limits.longest_context_tokens:,} tokens",
    ]


def _free_bytes(memory: MemoryLayout) -> float:
    return memory.budget_bytes - float(memory.total_bytes)


def _verdict(memory: MemoryLayout) -> str:
    free = _free_bytes(memory)
    return f"fits, {free / MB:.1f} MB free" if free >= 0.0 else f"does NOT fit, short of {-free / MB:.1f} MB"


def _memory_lines(memory: MemoryLayout) -> list[str]:
    parts: list[tuple[str, ArrayLike]] = [
        ("weights", memory.weight_bytes),
        ("embedding", memory.embedding_bytes),
        ("KV", memory.kv_bytes),
        ("activations", memory.activation_bytes),
        ("ring buffer", memory.ring_buffer_bytes),
        ("reserved", memory.reserved_bytes),
    ]
    shown = " + ".join(f"{name} {float(np.asarray(size)) / MB:.1f}" for name, size in parts if np.any(size))
    total = float(memory.total_bytes)
    return [
        f"memory on a PE (MB): {shown} = {total / MB:.1f} of {memory.budget_bytes / MB:.1f}: "
        f"{_verdict(memory)}",
    ]
