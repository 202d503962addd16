"""The files that a serving plan leaves behind, as text by name.

Owns: what `sweep_results.json`, `target_config.json`, `pareto_frontier.json` and `entitlement.json` say.
Refuses: writing them (see `artifacts`) and figures (see `figures`).
"""

from __future__ import annotations

from typing import Any

from planner_core import __version__
from planner_core.memory_layout import compute_memory
from planner_core.parallelism import make_parallelism
from planner_core.reports import bucket_document, stage_document, step_documents
from planner_core.run_spec import RunSpec
from planner_core.serving_plan import (
    BucketPlan,
    ServingPlan,
    interactivity_curves,
    operating_point,
    serving_grid,
    spec_workload,
    upper_frontier,
)
from planner_core.stage_latencies import step_latency
from planner_core.strict_json import dumps
from planner_core.units import as_float
from planner_core.workload import PHASES, Phase

Document = dict[str, Any]


def _head(spec: RunSpec) -> Document:
    return {
        "planner_version": __version__,
        "model": spec.model_label,
        "hardware": spec.hardware_name,
        "targets": {
            "decode_itl_ceiling_s": spec.decode_itl_ceiling_s,
            "prefill_tokens_per_s_floor": spec.prefill_tokens_per_s_floor,
            "objective": spec.objective,
        },
    }


def _bucket_cells(spec: RunSpec, bucket: BucketPlan, phase: Phase) -> list[Document]:
    """Every config of a bucket in one phase: decode at its largest batch, prefill of one prompt."""
    fitting = [row for row in bucket.rows if row.fits or phase == "prefill"]
    if not fitting:
        return []
    batches = [row.batch if phase == "decode" else 1 for row in fitting]
    parallelism = make_parallelism(
        tp=[row.tp for row in fitting], kv_split=as_float([row.cp for row in fitting])
    )
    workload = spec_workload(spec, phase=phase, context_tokens=bucket.context_tokens, batch=batches)
    model, machine = spec.model, spec.machine
    documents = step_documents(
        step=step_latency(model=model, machine=machine, parallelism=parallelism, workload=workload),
        memory=compute_memory(model=model, machine=machine, parallelism=parallelism, workload=workload),
        phase=phase,
        shape=(len(fitting),),
    )
    return [
        {"context_tokens": bucket.context_tokens, "tp": row.tp, "cp": row.cp, "batch": batch} | document
        for row, batch, document in zip(fitting, batches, documents, strict=True)
    ]


def sweep_results(spec: RunSpec, plan: ServingPlan) -> Document:
    """Return every decode and prefill cell of a plan.

    Parameters
    ----------
    spec : RunSpec
        What was asked for.
    plan : ServingPlan
        Its plan.

    Returns
    -------
    dict
    """
    return {
        **_head(spec),
        "grid_size": plan.grid_size,
        "cells": [
            cell for bucket in plan.buckets for phase in PHASES for cell in _bucket_cells(spec, bucket, phase)
        ],
    }


def target_config(spec: RunSpec, plan: ServingPlan) -> Document:
    """Return the selected config of each bucket, and whether it meets the targets."""
    buckets = [bucket_document(bucket) for bucket in plan.buckets]
    kept = ("context_tokens", "selected", "sla_met", "why", "advice", "itl_ceiling_s", "ttft_ceiling_s")
    return {**_head(spec), "buckets": [{key: bucket[key] for key in kept} for bucket in buckets]}


def pareto_frontier(spec: RunSpec, plan: ServingPlan) -> Document:
    """Return, for each bucket, the points that no other config and batch beats in ITL and tokens/s a node."""
    lengths = [bucket.context_tokens for bucket in plan.buckets]
    configs = serving_grid(model=spec.model, machine=spec.machine)
    keys = ("tp", "cp", "batch", "itl_s", "tokens_per_s_per_node")
    return {
        **_head(spec),
        "buckets": [
            {
                "context_tokens": tokens,
                "frontier": [{key: getattr(point, key) for key in keys} for point in upper_frontier(curves)],
            }
            for tokens, curves in zip(
                lengths, interactivity_curves(spec, configs=configs, buckets=lengths), strict=True
            )
        ],
    }


def entitlement(spec: RunSpec, plan: ServingPlan) -> Document:
    """Return the floor of each operator, decode and prefill, of the selected config of each bucket."""
    operators = []
    for bucket in plan.buckets:
        row = bucket.selected
        if row is None:
            continue
        for phase in PHASES:
            point = operating_point(
                spec,
                tp=row.tp,
                cp=row.cp,
                batch=row.batch if phase == "decode" else 1,
                context_tokens=bucket.context_tokens,
                phase=phase,
            )
            operators.append(
                {
                    "context_tokens": bucket.context_tokens,
                    "phase": phase,
                    "tp": row.tp,
                    "cp": row.cp,
                    "batch": point.batch,
                    "step_s": float(point.step.latency_s),
                    "operators": [stage_document(stage, machine=spec.machine) for stage in point.step.stages],
                }
            )
    return {**_head(spec), "selected": operators}


def plan_files(spec: RunSpec, plan: ServingPlan, *, emit: bool) -> dict[str, str]:
    """Return the files of a plan by name.

    Parameters
    ----------
    spec : RunSpec
        What was asked for.
    plan : ServingPlan
        Its plan.
    emit : bool
        False: the sweep alone. True: the targets, the frontier and the floors too.

    Returns
    -------
    dict of str to str
        Strict JSON, each ending in a line feed.
    """
    documents = {"sweep_results.json": sweep_results(spec, plan)}
    if emit:
        documents |= {
            "target_config.json": target_config(spec, plan),
            "pareto_frontier.json": pareto_frontier(spec, plan),
            "entitlement.json": entitlement(spec, plan),
        }
    return {name: dumps(document) + "\n" for name, document in documents.items()}
