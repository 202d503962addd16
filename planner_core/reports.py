"""Results as plain documents: what `--json` prints, what files hold, what the app exports.

Owns: the keys of each document, in base SI units.
Refuses: text for people (see `cli`), and files (see `artifacts`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from planner_core.collectives import tier_spanned
from planner_core.errors import InvalidSpec, PlannerError, UnsupportedModel
from planner_core.hardware import Machine
from planner_core.memory_layout import MemoryLayout
from planner_core.model_arch import ModelArch, kv_bytes_per_token
from planner_core.stage_latencies import BIND_KINDS, Stage, StepLatency
from planner_core.units import BF16_BYTES
from planner_core.workload import Workload

if (
    TYPE_CHECKING
):  # imported for their names alone: auto_explore takes 40 ms to load, which a plan need not pay
    from planner_core.auto_explore import ConfigScore, ExploreResult, ParallelismSensitivityRow
    from planner_core.measurements import Accuracy, Comparison
    from planner_core.serving_plan import BucketPlan, OperatingPoint, PlanRow, ServingPlan

Document = dict[str, Any]

CONFIG_KEYS: Final = (
    "cp",
    "tp",
    "pp",
    "dp",
    "ep",
    "kv_shard_mode",
    "ffn_shard_scope",
    "tp_placement",
    "cp_placement",
    "cp_ring_variant",
)
SCORE_KEYS: Final = (
    *CONFIG_KEYS,
    "latency_s",
    "pes_used",
    "efficiency",
    "throughput_tokens_per_s",
    "memory_bytes_per_pe",
    "hbm_frac",
    "fits",
    "lacks",
    "binding",
    "n_tied",
)
SENSITIVITY_KEYS: Final = (
    "knob",
    "value",
    "latency_s",
    "memory_bytes_per_pe",
    "fits",
    "reason",
    "is_baseline",
    "pes_used",
    "ffn_weight_s",
    "binding",
    "step_note",
)
ROW_KEYS: Final = (
    "tp",
    "cp",
    "n_pes",
    "batch",
    "itl_s",
    "ttft_s",
    "tokens_per_s_per_node",
    "replicas_per_node",
    "binding",
    "meets_itl",
    "meets_ttft",
    "memory_bytes_per_pe",
    "prefill_fits",
    "longest_context_tokens",
)
MEASUREMENT_KEYS: Final = (
    "tp",
    "batch",
    "input_tokens",
    "output_tokens",
    "precision",
    "kv_dtype_bytes",
    "published",
    "unit",
    "source_title",
    "url",
    "read",
    "note",
)
_COMPONENT_ARRAYS: Final = (
    "weight_bytes",
    "kv_bytes",
    "activation_bytes",
    "flops",
    "load_s",
    "flop_s",
    "time_s",
)
_STAGE_ARRAYS: Final = ("weight_bytes", "kv_bytes", "activation_bytes", "flops", "link_bytes", "time_s")


def _pick(source: object, names: Sequence[str]) -> Document:
    return {name: getattr(source, name) for name in names}


def error_document(error: PlannerError) -> Document:
    """Return what `--json` prints for a fault.

    Parameters
    ----------
    error : PlannerError
        What was raised.

    Returns
    -------
    dict
        {"error": {"kind", ...}}: `faults` of an invalid input, `message` and `field` of a refused model,
        `message` of anything else.
    """
    body: Document = {"kind": error.kind}
    if isinstance(error, InvalidSpec):
        body["faults"] = [
            {"where": fault.where, "given": fault.given, "allowed": fault.allowed, "fix": fault.fix}
            for fault in error.faults
        ]
    elif isinstance(error, UnsupportedModel):
        body |= {"message": error.message, "field": error.field}
    else:
        body["message"] = str(error)
    return {"error": body}


def model_document(model: ModelArch) -> Document:
    """Return what `planner parse` prints: shapes, exact parameters, cache a token, what was assumed.

    Parameters
    ----------
    model : ModelArch
        The model.

    Returns
    -------
    dict
        `kv_bytes_per_token` is in bf16, so that models compare; `kv_bytes_per_token_as_stored` is at the
        `kv_dtype_bytes` that the checkpoint asks for.

    Examples
    --------
    >>> from planner_core.hf_config import parse_config
    >>> model_document(parse_config({"model_type": "llama"}))["kv_bytes_per_token"]
    {'full': 524288, 'windowed': 0}
    """

    def cache(width: float) -> Document:
        return {
            "full": kv_bytes_per_token(model, kv_dtype_bytes=width, windowed=False),
            "windowed": kv_bytes_per_token(model, kv_dtype_bytes=width, windowed=True),
        }

    return {
        "name": model.name,
        "architecture": model.architecture,
        "n_params": model.n_params,
        "n_layers": model.n_layers,
        "hidden_size": model.hidden_size,
        "vocab_size": model.vocab_size,
        "tied_embeddings": model.tied_embeddings,
        "max_position_tokens": model.max_position_tokens,
        "attention": [_fields_of(group) for group in model.attention],
        "ffn": [_fields_of(group) for group in model.ffn],
        "kv_bytes_per_token": cache(BF16_BYTES),
        "kv_bytes_per_token_as_stored": cache(model.kv_dtype_bytes),
        "kv_dtype_bytes": model.kv_dtype_bytes,
        "weight_bytes": model.weight_bytes,
        "weight_dtype_bytes": _fields_of(model.widths),
        "assumed": list(model.assumed),
        "ignored": list(model.ignored),
        "notes": list(model.notes),
    }


def _fields_of(record: Any) -> Document:
    return {item.name: getattr(record, item.name) for item in fields(record)}


def _values(array: object, shape: tuple[int, ...]) -> list[float]:
    values: list[float] = np.broadcast_to(np.asarray(array, dtype=np.float64), shape).ravel().tolist()
    return values


def _labels(index: NDArray[np.intp], labels: Sequence[str], shape: tuple[int, ...]) -> list[str]:
    return [labels[at] for at in np.broadcast_to(index, shape).ravel().tolist()]


def step_documents(
    *, step: StepLatency, memory: MemoryLayout, phase: str, shape: tuple[int, ...] = ()
) -> list[Document]:
    """Return the document of each cell of a step: components, communication, memory.

    Parameters
    ----------
    step : StepLatency
        One cell or a grid.
    memory : MemoryLayout
        Of the same cells.
    phase : str
        "decode" or "prefill".
    shape : tuple of int
        What the arrays broadcast to; () for one cell.

    Returns
    -------
    list of dict
        In C order.
    """
    columns: list[Mapping[str, list[Any]]] = [
        {name: _values(getattr(component, name), shape) for name in _COMPONENT_ARRAYS}
        | {"bind": _labels(component.bind_index(), BIND_KINDS, shape)}
        for component in step.components
    ]
    layout = {
        name: _values(getattr(memory, name), shape)
        for name in ("weight_bytes", "kv_bytes", "activation_bytes", "embedding_bytes", "ring_buffer_bytes")
    }
    total = _values(memory.total_bytes, shape)
    binding = _labels(step.binding_index(), step.binding_labels(), shape)
    latency = _values(step.latency_s, shape)
    communication = _values(step.communication_s, shape)
    return [
        {
            "phase": phase,
            "step_s": latency[at],
            "communication_s": communication[at],
            "binding": binding[at],
            "components": [
                {"name": component.name, "n_layers": component.n_layers}
                | {name: values[at] for name, values in column.items()}
                for component, column in zip(step.components, columns, strict=True)
            ],
            "memory": {name: values[at] for name, values in layout.items()}
            | {
                "reserved_bytes": memory.reserved_bytes,
                "total_bytes": total[at],
                "budget_bytes": memory.budget_bytes,
                "fits": total[at] <= memory.budget_bytes,
            },
        }
        for at in range(len(latency))
    ]


def stage_document(stage: Stage, *, machine: Machine) -> Document:
    """Return one operator of a scalar step: its bytes, FLOP, floor and, for a collective, its tier."""
    return {
        "name": stage.name,
        "component": stage.component,
        "n_layers": stage.n_layers,
        **{name: float(getattr(stage, name)) for name in _STAGE_ARRAYS},
        "tier": machine.tiers[int(tier_spanned(axes=stage.charged_axes, machine=machine))].name
        if stage.charged_axes
        else None,
    }


def cell_document(point: OperatingPoint, *, machine: Machine) -> Document:
    """Return what `planner cell` prints.

    Parameters
    ----------
    point : OperatingPoint
        The cell.
    machine : Machine
        Its machine, for the names of tiers.

    Returns
    -------
    dict
    """
    (document,) = step_documents(step=point.step, memory=point.memory, phase=point.phase)
    return {
        **_pick(point, ("tp", "cp", "pp", "batch", "context_tokens", "replicas_per_node")),
        "n_pes": point.tp * point.pp,
        **_pick(point, ("tokens_per_s_per_replica", "tokens_per_s_per_node")),
        **document,
        "stages": [stage_document(stage, machine=machine) for stage in point.step.stages],
    }


def row_document(row: PlanRow, *, misses: str = "") -> Document:
    """Return one row of a plan; `misses` says which target it fails and by how much."""
    return _pick(row, ROW_KEYS) | {"misses": misses}


def bucket_document(bucket: BucketPlan) -> Document:
    """Return the plan at one context length."""
    rows = [row_document(row, misses=text) for row, text in zip(bucket.rows, bucket.misses, strict=True)]
    selected = None if bucket.selected is None else rows[bucket.rows.index(bucket.selected)]
    return {
        "context_tokens": bucket.context_tokens,
        "itl_ceiling_s": bucket.itl_ceiling_s,
        "ttft_ceiling_s": bucket.ttft_ceiling_s,
        "selected": selected,
        "sla_met": bucket.sla_met,
        "why": bucket.why,
        "advice": list(bucket.advice),
        "rows": rows,
    }


def plan_document(plan: ServingPlan) -> Document:
    """Return what `planner plan` prints.

    Parameters
    ----------
    plan : ServingPlan
        The plan.

    Returns
    -------
    dict
    """
    return {
        "model": plan.model,
        "hardware": plan.hardware,
        "grid_size": plan.grid_size,
        "buckets": [bucket_document(bucket) for bucket in plan.buckets],
        "warnings": list(plan.warnings),
    }


def score_document(score: ConfigScore) -> Document:
    """Return a scored config."""
    return _pick(score, SCORE_KEYS)


def explore_document(
    result: ExploreResult,
    *,
    model: str,
    machine: Machine,
    workload: Workload,
    max_pes: int | None = None,
    warnings: Iterable[str] = (),
) -> Document:
    """Return what `planner explore` prints.

    Parameters
    ----------
    result : ExploreResult
        The sweep.
    model : str
        What to show.
    machine, workload
        What was swept.
    max_pes : int, optional
        PE budget.
    warnings : iterable of str
        What is odd and yet answered.

    Returns
    -------
    dict
    """
    return {
        **_setting_document(model=model, machine=machine, workload=workload, max_pes=max_pes),
        "n_grid": result.n_grid,
        "n_enumerated": result.n_enumerated,
        "n_feasible": result.n_feasible,
        "pruned": dict(result.pruned),
        "infeasible": dict(result.infeasible),
        "elapsed_s": result.elapsed_s,
        "stopped": result.stopped,
        "axes": {item.name: list(getattr(result.axes, item.name)) for item in fields(result.axes)},
        "pareto": [score_document(score) for score in result.pareto],
        "closest": None
        if result.closest is None
        else score_document(result.closest)
        | {"shortfall_bytes": result.closest.memory_bytes_per_pe - machine.budget_bytes},
        "warnings": list(warnings),
    }


def sensitivity_document(
    rows: Sequence[ParallelismSensitivityRow],
    *,
    baseline: ConfigScore,
    model: str,
    machine: Machine,
    workload: Workload,
    max_pes: int | None = None,
    warnings: Iterable[str] = (),
) -> Document:
    """Return what `planner sensitivity` prints.

    Parameters
    ----------
    rows : sequence of ParallelismSensitivityRow
        By knob, then by value.
    baseline : ConfigScore
        What they vary.
    model, machine, workload, max_pes, warnings
        As in `explore_document`.

    Returns
    -------
    dict
    """
    return {
        **_setting_document(model=model, machine=machine, workload=workload, max_pes=max_pes),
        "baseline": score_document(baseline),
        "rows": [_pick(row, SENSITIVITY_KEYS) | {"tiers": dict(row.tiers)} for row in rows],
        "warnings": list(warnings),
    }


def accuracy_document(comparisons: Iterable[Comparison], summary: Iterable[Accuracy]) -> Document:
    """Return published measurements beside the planner's times, with the ratios by machine and metric."""
    return {
        "measurements": [
            {
                "hardware": item.measurement.machine.name,
                "model": item.measurement.model_title,
                "metric": item.measurement.metric,
                **_pick(item.measurement, MEASUREMENT_KEYS),
                **_pick(item, ("measured_s", "predicted_s", "communication_s", "ratio", "compute_ratio")),
            }
            for item in comparisons
        ],
        "summary": [_fields_of(item) for item in summary],
    }


def _setting_document(*, model: str, machine: Machine, workload: Workload, max_pes: int | None) -> Document:
    return {
        "model": model,
        "hardware": machine.name,
        "collective_model": machine.collective_model,
        "phase": workload.phase,
        "context_tokens": int(np.asarray(workload.context_tokens)),
        "batch": int(np.asarray(workload.batch)),
        "max_pes": max_pes,
    }
