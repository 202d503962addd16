"""What Auto Explore asks of the core, answered once for equal questions.

Owns: `Question` (everything that a sweep depends on, by value), and its cached answers.
Refuses: drawing, the state of a session, and formulas.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Final

from planner_core.auto_explore import (
    Config,
    ConfigScore,
    ExploreAxes,
    ExploreResult,
    ParallelismSensitivityRow,
    cloud_scores,
    compute_parallelism_sensitivity,
    dense_axes,
    explore,
    score_configs,
)
from planner_core.hardware import Machine
from planner_core.run_spec import RunSpec
from planner_core.serving_plan import spec_workload
from planner_core.workload import Workload
from ui import loaded
from ui.app_state import AppState, ParallelConfig, Phase

COLLECTIVE_MODELS: Final = ("hierarchical", "flat", "flat-all-pes")
DEFAULT_CONTEXT_TOKENS: Final = 131072
CLOUD_POINTS: Final = 600
_MAX_CLOUDS: Final = 64
_clouds: OrderedDict[tuple[Question, int], tuple[ConfigScore, ...]] = OrderedDict()
_clouds_lock = threading.Lock()
_DEGREES: Final = ("cp", "tp", "pp", "dp")
_MODES: Final = ("kv_shard_mode", "ffn_shard_scope", "tp_placement", "cp_placement", "cp_ring_variant")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One sweep: the run-spec as canonical JSON, the workload, the budget, the grid, the collective model."""

    document: str
    phase: Phase
    context_tokens: int
    batch: int
    max_pes: int | None
    collective_model: str | None
    axes: ExploreAxes

    @property
    def spec(self) -> RunSpec:
        """The run-spec."""
        return loaded.run_spec(json.loads(self.document))

    @property
    def machine(self) -> Machine:
        """The machine, under the collective model that was asked for."""
        return _machine(self.document, self.collective_model)

    @property
    def workload(self) -> Workload:
        """Phase, context, batch and the run-spec's byte widths."""
        return spec_workload(
            self.spec, phase=self.phase, context_tokens=self.context_tokens, batch=self.batch
        )

    @property
    def pe_limit(self) -> float:
        """PEs that a config may use: the budget, or all that the machine has."""
        limit = self.machine.max_pes
        return limit if self.max_pes is None else min(limit, self.max_pes)


@lru_cache(maxsize=64)
def _machine(document: str, collective_model: str | None) -> Machine:
    machine = loaded.run_spec(json.loads(document)).machine
    return machine if collective_model is None else replace(machine, collective_model=collective_model)


def default_context(spec: RunSpec) -> int:
    """Return the context that a first visit opens: the model's longest, 128k at most."""
    return min(spec.model.max_position_tokens or DEFAULT_CONTEXT_TOKENS, DEFAULT_CONTEXT_TOKENS)


def question(now: AppState) -> Question:
    """Return what a state asks."""
    settings = now.explore
    spec = loaded.run_spec(now.spec)
    chosen = {name: getattr(settings.axes, name) for name in (*_DEGREES, *_MODES)}
    if settings.dense:
        dense = dense_axes()
        chosen.update({name: getattr(dense, name) for name in _DEGREES})
    return Question(
        document=loaded.canonical(now.spec),
        phase=settings.phase,
        context_tokens=settings.context_tokens or default_context(spec),
        batch=settings.batch,
        max_pes=settings.max_pes,
        collective_model=None if settings.collective_model == "own" else settings.collective_model,
        axes=ExploreAxes(**chosen),
    )


@lru_cache(maxsize=128)
def sweep(asked: Question) -> ExploreResult:
    """Return the sweep of a grid that is small enough to wait for (see `explore_job` for the others)."""
    return explore(
        model=asked.spec.model,
        machine=asked.machine,
        workload=asked.workload,
        axes=asked.axes,
        max_pes=asked.max_pes,
    )


def cloud(asked: Question, result: ExploreResult) -> tuple[ConfigScore, ...]:
    """Return a sample of the feasible configs to draw behind the front: the same one for the same sweep."""
    key = asked, result.n_enumerated  # tells a sweep that was stopped from the whole one
    found = _clouds.get(key)
    if found is None:
        found = cloud_scores(
            result=result,
            model=asked.spec.model,
            machine=asked.machine,
            workload=asked.workload,
            n_points=CLOUD_POINTS,
        )
        with _clouds_lock:
            _clouds[key] = found
            while len(_clouds) > _MAX_CLOUDS:
                _clouds.popitem(last=False)
    return found


@lru_cache(maxsize=256)
def score(asked: Question, config: Config) -> ConfigScore:
    """Return one config's numbers, on the front or not."""
    (scored,) = score_configs(
        configs=[config],
        model=asked.spec.model,
        machine=asked.machine,
        workload=asked.workload,
        max_pes=asked.max_pes,
    )
    return scored


@lru_cache(maxsize=128)
def sensitivity(asked: Question, config: Config) -> tuple[ParallelismSensitivityRow, ...]:
    """Return what each knob does around a config."""
    return compute_parallelism_sensitivity(
        config,
        model=asked.spec.model,
        machine=asked.machine,
        workload=asked.workload,
        max_pes=asked.max_pes,
    )


def fastest_by_model(asked: Question) -> dict[str, ConfigScore | None]:
    """Return the lowest latency that fits under each collective model; None where nothing fits."""
    found: dict[str, ConfigScore | None] = {}
    for name in COLLECTIVE_MODELS:
        is_asked = name == asked.machine.collective_model
        front = sweep(asked if is_asked else replace(asked, collective_model=name)).pareto
        found[name] = front[0] if front else None
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class WouldFit:
    """What would fit where nothing does, each changed alone; None where that alone is not enough."""

    context_tokens: int | None
    batch: int | None
    without_budget: bool


@lru_cache(maxsize=64)
def would_fit(asked: Question) -> WouldFit:
    """Return the largest power of two for the context, and for the batch, at which something fits."""
    free = replace(asked, max_pes=None)
    return WouldFit(
        context_tokens=_largest_that_fits(asked, "context_tokens"),
        batch=_largest_that_fits(asked, "batch"),
        without_budget=asked.max_pes is not None and sweep(free).n_feasible > 0,
    )


def _largest_that_fits(asked: Question, name: str) -> int | None:
    """Halve from the power of two below: memory never falls with either."""
    low, high = -1, int(getattr(asked, name) - 1).bit_length() if getattr(asked, name) > 1 else 0
    while high - low > 1:
        middle = (low + high) // 2
        fits = sweep(replace(asked, **{name: 1 << middle})).n_feasible > 0  # type: ignore[arg-type]
        low, high = (middle, high) if fits else (low, middle)
    return None if low < 0 else 1 << low


def config_of(chosen: ParallelConfig) -> Config:
    """Return a chosen config as the core takes it."""
    return Config(**{item.name: getattr(chosen, item.name) for item in fields(Config)})


def chosen_of(config: Config) -> ParallelConfig:
    """Return a config as the state holds it."""
    return ParallelConfig(**{item.name: getattr(config, item.name) for item in fields(Config)})


def row_on_front(front: tuple[ConfigScore, ...], config: Config) -> int | None:
    """Return the row of the front that is this config, or None; without a CP ring its variant is moot."""

    def axes(of: Config) -> Config:
        return of if of.cp > 1 else replace(of, cp_ring_variant="qoml")

    wanted = axes(config)
    return next((at for at, row in enumerate(front) if axes(row.config) == wanted), None)
