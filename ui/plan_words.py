"""Serving plan in words and tables.

Owns: the recommendation's sentence, the four numbers, what the others miss, the tables.
Refuses: numbers of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from planner_core.run_spec import RunSpec
from planner_core.serving_plan import BucketPlan, PlanRow, ServingPlan
from planner_core.units import GB, MS
from ui import loaded, plan_core, text
from ui.differences import change

Facts = list[tuple[str, str, str]]

_RUNNERS_UP = 4


def per_node(rate: float) -> str:
    """Return a node's throughput, in the digits that the reason and the command line give it."""
    return f"{rate:,.0f}{text.NBSP}tok/s"


def replicas(row: PlanRow) -> str:
    """Return "TP8, 8 replicas"."""
    return f"{row.label()}, {row.replicas_per_node} replica{'s' if row.replicas_per_node != 1 else ''}"


def _replicas_of(row: PlanRow) -> str:
    return f"{row.replicas_per_node} replica{'s' if row.replicas_per_node != 1 else ''} of {row.label()}"


def _target_names(bucket: BucketPlan) -> str:
    both = bucket.itl_ceiling_s is not None and bucket.ttft_ceiling_s is not None
    if both:
        return "both targets are met"
    if bucket.itl_ceiling_s is None and bucket.ttft_ceiling_s is None:
        return "no latency target is set"
    return "the target is met"


def recommendation(bucket: BucketPlan) -> str:
    """Return the recommendation in one plain sentence."""
    length = text.context(bucket.context_tokens)
    row = bucket.selected
    if row is None or row.itl_s is None:
        return f"Nothing fits at a context of {length}."
    gives = (
        f"{_replicas_of(row)} at batch {row.batch:,} each: "
        f"{per_node(row.tokens_per_s_per_node)} a node, {text.seconds(row.itl_s)} a token, first token after "
        f"{text.seconds(row.ttft_s)}"
    )
    if bucket.sla_met:
        return f"At {length}, serve {gives}; {_target_names(bucket)}."
    return f"At {length} no config meets the targets; the nearest is {gives}."


def _against(value_s: float | None, limit_s: float | None) -> str:
    if value_s is None or limit_s is None:
        return "no target"
    verdict = "meets" if value_s <= limit_s else "misses"
    return f"{verdict} {text.seconds(limit_s)}, {change(value_s, limit_s)}"


def facts(bucket: BucketPlan, row: PlanRow) -> Facts:
    """Return the four numbers of a row."""
    return [
        ("Config", replicas(row), f"batch {row.batch:,} each, {row.n_pes} PEs a replica"),
        (
            "Inter-token latency",
            "n/a" if row.itl_s is None else text.seconds(row.itl_s),
            _against(row.itl_s, bucket.itl_ceiling_s),
        ),
        ("Time to first token", text.seconds(row.ttft_s), _against(row.ttft_s, bucket.ttft_ceiling_s)),
        (
            "Throughput of a node",
            per_node(row.tokens_per_s_per_node),
            f"binds: {text.binding(row.binding)}",
        ),
    ]


def overlay_facts(bucket: BucketPlan, baseline: BucketPlan) -> Facts:
    """Return the four numbers of the FP8 variant, each with its difference from the baseline's."""
    row, base = bucket.selected, baseline.selected
    if row is None or row.itl_s is None:
        return []
    verdict = "meets the targets" if bucket.sla_met else "misses a target"
    if base is None or base.itl_s is None:
        return [
            (label, value, "the baseline does not fit" if at else f"{verdict}, batch {row.batch:,} each")
            for at, (label, value, _) in enumerate(facts(bucket, row))
        ]
    pairs = (
        (f"{verdict}, batch {row.batch:,} (was {base.batch:,})", ""),
        (change(row.itl_s, base.itl_s), text.seconds(base.itl_s)),
        (change(row.ttft_s, base.ttft_s), text.seconds(base.ttft_s)),
        (
            change(row.tokens_per_s_per_node, base.tokens_per_s_per_node),
            per_node(base.tokens_per_s_per_node),
        ),
    )
    return [
        (label, value, difference if not was else f"{difference} against {was}")
        for (label, value, _), (difference, was) in zip(facts(bucket, row), pairs, strict=True)
    ]


def verdict(bucket: BucketPlan, row: PlanRow) -> str:
    """Return whether a row is selected, meets the targets, or what it misses and by how much."""
    misses = bucket.misses[bucket.rows.index(row)]
    said = misses or ("meets the targets" if row.fits else "")
    return f"selected: {said}" if row is bucket.selected else said


def runners_up(bucket: BucketPlan) -> list[str]:
    """Return the configs that come next in throughput, with what each misses."""
    chosen = bucket.selected
    others = [row for row in plan_core.distinct(bucket.rows) if row.fits and not _same(row, chosen)]
    others.sort(key=lambda row: -row.tokens_per_s_per_node)
    said = []
    for row in others[:_RUNNERS_UP]:
        gap = (
            "" if chosen is None else f" ({change(row.tokens_per_s_per_node, chosen.tokens_per_s_per_node)})"
        )
        misses = bucket.misses[bucket.rows.index(row)] or "meets the targets"
        said.append(f"{row.label()}: {per_node(row.tokens_per_s_per_node)} a node{gap}; {misses}")
    return said


def _same(row: PlanRow, chosen: PlanRow | None) -> bool:
    return chosen is not None and (row.tp, row.batch, row.itl_s) == (chosen.tp, chosen.batch, chosen.itl_s)


def bucket_table(bucket: BucketPlan) -> pd.DataFrame:
    """Return every config at one context length."""
    return pd.DataFrame([_cells(bucket, row) for row in bucket.rows])


def plan_table(plan: ServingPlan) -> pd.DataFrame:
    """Return every config at every context length."""
    rows = [
        {"Context [tokens]": bucket.context_tokens, **_cells(bucket, row)}
        for bucket in plan.buckets
        for row in bucket.rows
    ]
    return pd.DataFrame(rows)


def selection_table(buckets: Sequence[BucketPlan]) -> pd.DataFrame:
    """Return the selected config of every context length."""
    return pd.DataFrame(
        [
            {"Context [tokens]": bucket.context_tokens, **_cells(bucket, bucket.selected)}
            for bucket in buckets
            if bucket.selected is not None
        ]
    )


def _cells(bucket: BucketPlan, row: PlanRow) -> dict[str, object]:
    return {
        "Config": row.label(),
        "PEs": row.n_pes,
        "Replicas": row.replicas_per_node,
        "Batch": row.batch,
        "ITL [ms]": None if row.itl_s is None else row.itl_s / MS,
        "TTFT [s]": row.ttft_s,
        "Node [tok/s]": row.tokens_per_s_per_node if row.fits else None,
        "Memory [GB/PE]": row.memory_bytes_per_pe / GB,
        "Binds": text.binding(row.binding),
        "Prefill beside": "" if not row.fits else ("fits" if row.prefill_fits else "does not fit"),
        "Verdict": verdict(bucket, row),
    }


def targets(spec: RunSpec, tokens: int) -> str:
    """Return the targets in force at a context length, in words."""
    parts = []
    if spec.decode_itl_ceiling_s is not None:
        parts.append(f"ITL at most {text.seconds(spec.decode_itl_ceiling_s)}")
    if spec.prefill_tokens_per_s_floor is not None:
        limit = text.seconds(tokens / spec.prefill_tokens_per_s_floor)
        parts.append(f"TTFT at most {limit} at {text.context(tokens)}")
    if spec.objective is not None:
        return loaded.targets_line(spec)
    return ", ".join(parts) or "none"
