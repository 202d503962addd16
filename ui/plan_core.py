"""What Serving plan asks of the core, answered once for equal questions.

Owns: the run-spec as the page's settings change it (targets, FP8), and its cached plans and curves.
Refuses: drawing, words, the state of a session, and formulas.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from planner_core.run_spec import RunSpec
from planner_core.serving_plan import (
    BucketPlan,
    FrontierPoint,
    InteractivityCurve,
    PlanRow,
    ServingPlan,
    context_buckets,
    interactivity_curves,
    plan_serving,
    serving_grid,
    upper_frontier,
)
from ui import loaded
from ui.app_state import AppState, ParallelConfig, PlanSettings

FP8_BYTES: Final = 1
OVERLAYS: Final = {
    "fp8_weights": "FP8 weights",
    "fp8_kv": "FP8 KV cache",
    "fp8_weights_kv": "FP8 weights and KV cache",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One plan: the run-spec as canonical JSON, and the targets in force where the page sets them."""

    document: str
    itl_ceiling_ms: float | None
    prefill_itps_floor: float | None

    @property
    def spec(self) -> RunSpec:
        """The run-spec, with the targets in force."""
        return _spec(self)

    @property
    def fingerprint(self) -> str:
        """A short text that differs for different run-specs, whatever the targets."""
        return hashlib.sha256(self.document.encode("utf-8", "surrogatepass")).hexdigest()[:12]

    def fields(self) -> dict[str, Any]:
        """Return the run-spec's document with the targets in force."""
        document: dict[str, Any] = json.loads(self.document)
        for name, value in (
            ("decode_itl_ceiling_ms", self.itl_ceiling_ms),
            ("prefill_itps_floor", self.prefill_itps_floor),
        ):
            if value is not None and "objective" not in document:
                document[name] = value
        return document


def in_force(now: AppState) -> Question:
    """Return what a state asks: its run-spec, with the targets as they were moved."""
    return Question(
        document=loaded.canonical(now.spec),
        itl_ceiling_ms=now.plan.itl_ceiling_ms,
        prefill_itps_floor=now.plan.prefill_itps_floor,
    )


@lru_cache(maxsize=512)
def _spec(asked: Question) -> RunSpec:
    spec = loaded.run_spec(json.loads(asked.document))
    if spec.objective is not None:
        return spec
    ceiling_ms, floor = asked.itl_ceiling_ms, asked.prefill_itps_floor
    return replace(
        spec,
        decode_itl_ceiling_s=spec.decode_itl_ceiling_s if ceiling_ms is None else ceiling_ms / 1e3,
        prefill_tokens_per_s_floor=spec.prefill_tokens_per_s_floor if floor is None else float(floor),
    )


def overlays(spec: RunSpec) -> dict[str, str]:
    """Return the FP8 variants that a run-spec does not have yet, by name."""
    weights = spec.widths.ffn > FP8_BYTES
    cache = spec.kv_dtype_bytes > FP8_BYTES
    possible = {"fp8_weights": weights, "fp8_kv": cache, "fp8_weights_kv": weights and cache}
    return {name: label for name, label in OVERLAYS.items() if possible[name]}


def overlaid(document: Mapping[str, Any], overlay: str) -> dict[str, Any]:
    """Return a run-spec's document with FP8 weights (computed in FP8 where the machine can) or FP8 KV."""
    changed = dict(document)
    if overlay in ("fp8_weights", "fp8_weights_kv"):
        changed["weight_dtype_bytes"] = FP8_BYTES
        if "fp8" in loaded.run_spec(document).machine.peak_flops_per_s:
            changed["compute_precision"] = "fp8"
    if overlay in ("fp8_kv", "fp8_weights_kv"):
        changed["kv_dtype_bytes"] = FP8_BYTES
    return changed


def buckets_of(spec: RunSpec) -> tuple[int, ...]:
    """Return the context lengths of a plan [tokens]."""
    return context_buckets(max_position_tokens=spec.model.max_position_tokens)


def bucket_in_force(spec: RunSpec, settings: PlanSettings) -> int:
    """Return the chosen context length; a length that is none of the plan's takes the nearest."""
    lengths = buckets_of(spec)
    wanted = settings.bucket_tokens or lengths[0]
    return min(lengths, key=lambda tokens: abs(tokens - wanted))


@lru_cache(maxsize=512)
def bucket_plan(asked: Question, tokens: int) -> BucketPlan:
    """Return the plan at one context length, with advice."""
    return plan_serving(asked.spec, buckets=[tokens]).buckets[0]


@lru_cache(maxsize=256)
def overview(asked: Question) -> ServingPlan:
    """Return the plan at every context length, without advice."""
    return plan_serving(asked.spec, with_advice=False)


@lru_cache(maxsize=64)
def whole_plan(asked: Question) -> ServingPlan:
    """Return the plan at every context length, as the command line prints it."""
    return plan_serving(asked.spec)


def curves(asked: Question, tokens: int) -> tuple[list[InteractivityCurve], tuple[FrontierPoint, ...]]:
    """Return every config's curve at a context length, and the frontier over them; targets don't matter."""
    return _curves(asked.document, tokens)


@lru_cache(maxsize=128)
def _curves(document: str, tokens: int) -> tuple[list[InteractivityCurve], tuple[FrontierPoint, ...]]:
    spec = loaded.run_spec(json.loads(document))
    configs = serving_grid(model=spec.model, machine=spec.machine)
    if not configs:
        return [], ()
    (found,) = interactivity_curves(spec, configs=configs, buckets=[tokens])
    return found, upper_frontier(found)


def distinct(rows: Sequence[PlanRow]) -> list[PlanRow]:
    """Return the rows without those whose larger CP changes nothing."""
    kept: dict[tuple[int, int, float | None, float], PlanRow] = {}
    for row in sorted(rows, key=lambda row: (row.tp, row.cp)):
        kept.setdefault((row.tp, row.batch, row.itl_s, row.ttft_s), row)
    return list(kept.values())


def config_of(row: PlanRow) -> ParallelConfig:
    """Return a row's config as the state holds it."""
    return ParallelConfig(tp=row.tp, kv_split=row.cp)


def row_in_force(bucket: BucketPlan, chosen: ParallelConfig | None) -> PlanRow | None:
    """Return the row that was picked, or else the selected one."""
    if chosen is not None:
        for row in bucket.rows:
            if config_of(row) == chosen:
                return row
    return bucket.selected
