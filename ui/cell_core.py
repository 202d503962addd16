"""One operating point: its step, its memory, and why it is refused.

Owns: `Cell`, made of a run-spec and a `CellPoint`, whether a serving config or one of all nine axes.
Refuses: drawing, the state of a session, and formulas.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

from planner_core.auto_explore import Config, score_configs
from planner_core.auto_explore.config import stack_configs
from planner_core.errors import Fault
from planner_core.fit_limits import FitLimits, fit_limits_of
from planner_core.hardware_file import hardware_to_json
from planner_core.legal_degrees import degree_faults, legal_tp_degrees
from planner_core.memory_layout import SHORTAGES, MemoryLayout, compute_memory
from planner_core.parallelism import Parallelism, make_parallelism
from planner_core.run_spec import RunSpec
from planner_core.serving_plan import operating_point, spec_workload
from planner_core.stage_latencies import StepLatency, step_latency
from ui import loaded, text
from ui.app_state import CellPoint, ParallelConfig
from ui.explore_core import config_of

_PLACES = {"tp": "TP", "cp": "CP", "pp": "PP"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What is known of one operating point.

    Parameters
    ----------
    spec : RunSpec
        With the collective model in force.
    point : CellPoint
        The point.
    label : str
        The config: "TP8", "TP16 CP8 FFN TP+CP".
    faults : tuple of Fault
        Why it has no numbers; then the fields below are None or 0.
    warnings : tuple of str
        What is odd and yet answered.
    step, memory : StepLatency or None, MemoryLayout or None
        Scalars.
    n_pes, n_copies : int
        PEs of the config; replicas that fill a node (serving), or its data-parallel replicas.
    tokens_per_s, tokens_per_s_in_all : float
        Of one replica; of all copies [tokens/s].
    limits : FitLimits or None
        The edges of memory.
    lacks : str
        What it lacks to run; empty where it fits.
    """

    spec: RunSpec
    point: CellPoint
    label: str
    faults: tuple[Fault, ...] = ()
    warnings: tuple[str, ...] = ()
    step: StepLatency | None = None
    memory: MemoryLayout | None = None
    n_pes: int = 0
    n_copies: int = 0
    tokens_per_s: float = 0.0
    tokens_per_s_in_all: float = 0.0
    limits: FitLimits | None = None
    lacks: str = ""

    @property
    def is_serving(self) -> bool:
        """True for a config of `planner cell`, False for one of `planner explore`."""
        return is_serving(self.point.config)

    @property
    def fits(self) -> bool:
        """True where it can run."""
        return self.step is not None and not self.lacks

    @property
    def copies(self) -> str:
        """What `n_copies` counts."""
        return "node" if self.is_serving else "all replicas"


def is_serving(config: ParallelConfig) -> bool:
    """Return True for a serving config: TP, PP, and a KV split inside TP."""
    return config.kv_split is not None


def config_label(config: ParallelConfig) -> str:
    """Return the short name of a config."""
    if not is_serving(config):
        return config_of(config).label()
    degrees = (("TP", config.tp), ("CP", config.kv_split or 1), ("PP", config.pp))
    return " ".join(f"{name}{degree}" for name, degree in degrees if degree > 1 or name == "TP")


def legal_tps(spec: RunSpec) -> tuple[int, ...]:
    """Return the TP degrees that a serving config may have."""
    return legal_tp_degrees(spec.model, spec.machine)


def cell(document: Mapping[str, Any], point: CellPoint) -> Cell:
    """Return the operating point of a run-spec's document; equal ones are computed once."""
    return _cell(loaded.canonical(document), point)


def document_in_force(document: Mapping[str, Any], point: CellPoint) -> dict[str, Any]:
    """Return the run-spec's document, with the machine written out where another collective model holds."""
    found = _spec(loaded.canonical(document), point.collective_model)
    own = loaded.run_spec(document)
    if found.machine.collective_model == own.machine.collective_model:
        return dict(document)
    return {**document, "hardware": hardware_to_json(found.machine)}


@lru_cache(maxsize=128)
def _spec(document: str, collective_model: str | None) -> RunSpec:
    spec = loaded.run_spec(json.loads(document))
    if collective_model is None:
        return spec
    return replace(spec, machine=replace(spec.machine, collective_model=collective_model))


@lru_cache(maxsize=512)
def _cell(document: str, point: CellPoint) -> Cell:
    spec = _spec(document, point.collective_model)
    make = _serving_cell if is_serving(point.config) else _explored_cell
    return replace(make(spec, point), warnings=_warnings(spec, point))


def _warnings(spec: RunSpec, point: CellPoint) -> tuple[str, ...]:
    said = []
    longest = spec.model.max_position_tokens
    if longest and point.context_tokens > longest:
        said.append(
            f"The context is longer than the {longest:,} tokens that the model is made for: the answer holds "
            "only if its positions are extended."
        )
    if point.batch % spec.machine.batch_multiple:
        said.append(
            f"Batch {point.batch:,} is not a multiple of {spec.machine.batch_multiple}, which this machine "
            "asks for."
        )
    return tuple(said)


def _serving_faults(spec: RunSpec, config: ParallelConfig) -> tuple[Fault, ...]:
    faults = degree_faults(
        model=spec.model,
        machine=spec.machine,
        tp=config.tp,
        cp=config.kv_split or 1,
        pp=config.pp,
        places=_PLACES,
    )
    for name in ("cp", "dp", "ep"):
        degree = getattr(config, name)
        if degree != 1:
            faults.append(
                Fault(
                    where=name.upper() + " of PEs",
                    given=f"{degree:,}",
                    allowed="1 in a serving config, whose replicas fill the node by themselves",
                    fix="choose All nine axes",
                )
            )
    return tuple(faults)


def _serving_cell(spec: RunSpec, point: CellPoint) -> Cell:
    config = point.config
    label = config_label(config)
    faults = _serving_faults(spec, config)
    if faults:
        return Cell(spec=spec, point=point, label=label, faults=faults)
    split = config.kv_split or 1
    found = operating_point(
        spec,
        tp=config.tp,
        cp=split,
        pp=config.pp,
        batch=point.batch,
        context_tokens=point.context_tokens,
        phase=point.phase,
    )
    limits = _limits(spec, point, make_parallelism(tp=config.tp, pp=config.pp, kv_split=split))
    return Cell(
        spec=spec,
        point=point,
        label=label,
        step=found.step,
        memory=found.memory,
        n_pes=config.tp * config.pp,
        n_copies=found.replicas_per_node,
        tokens_per_s=found.tokens_per_s_per_replica,
        tokens_per_s_in_all=found.tokens_per_s_per_node,
        limits=limits,
        lacks=SHORTAGES[int(found.memory.shortage_index())],
    )


def _limits(spec: RunSpec, point: CellPoint, parallelism: Parallelism) -> FitLimits:
    return fit_limits_of(
        spec,
        parallelism=parallelism,
        phase=point.phase,
        context_tokens=point.context_tokens,
        batch=point.batch,
    )


def _explored_cell(spec: RunSpec, point: CellPoint) -> Cell:
    config = config_of(point.config)
    workload = spec_workload(spec, phase=point.phase, context_tokens=point.context_tokens, batch=point.batch)
    (score,) = score_configs(configs=[config], model=spec.model, machine=spec.machine, workload=workload)
    if score.lacks in ("not enough ranks", "more stages than layers", "head split too fine", "PEs"):
        return Cell(
            spec=spec, point=point, label=config.label(), faults=(_cannot_run(spec, score.lacks, config),)
        )
    parallelism = _scalars(stack_configs([config]))
    step = step_latency(model=spec.model, machine=spec.machine, parallelism=parallelism, workload=workload)
    memory = compute_memory(
        model=spec.model, machine=spec.machine, parallelism=parallelism, workload=workload
    )
    return Cell(
        spec=spec,
        point=point,
        label=config.label(),
        step=step,
        memory=memory,
        n_pes=int(score.pes_used),
        n_copies=config.dp,
        tokens_per_s=score.throughput_tokens_per_s / config.dp,
        tokens_per_s_in_all=score.throughput_tokens_per_s,
        limits=_limits(spec, point, parallelism),
        lacks=score.lacks,
    )


def _scalars(one: Parallelism) -> Parallelism:
    """Return one config's arrays of one element as scalars."""
    return Parallelism(**{item.name: getattr(one, item.name)[0] for item in fields(Parallelism)})


def _cannot_run(spec: RunSpec, lacks: str, config: Config) -> Fault:
    """Return why a config of the nine axes cannot run at all."""
    model, machine = spec.model, spec.machine
    pes = config.cp * config.tp * config.pp * config.dp
    where, given, allowed, fix = {
        "PEs": (
            "CP*TP*PP*DP",
            f"{pes:,} PEs",
            f"at most the {machine.max_pes:,.0f} PEs of the machine",
            "lower a degree",
        ),
        "more stages than layers": (
            "PP",
            f"{config.pp:,}",
            f"at most the model's {model.n_layers} layers",
            "lower it",
        ),
        "head split too fine": (
            "TP",
            f"{config.tp:,}",
            f"at most {4 * model.n_q_heads:,}, 4 ranks a query head",
            "lower it",
        ),
        "not enough ranks": (
            "EP",
            f"{config.ep:,}",
            f"EP times the ranks that the FFN is cut over, at most CP*TP*DP, which is {pes // config.pp:,}",
            "lower EP, or cut the FFN over fewer ranks",
        ),
    }[lacks]
    return Fault(where=where, given=given, allowed=allowed, fix=fix)


def described(found: Cell) -> str:
    """Return phase, context and batch in words."""
    point = found.point
    return f"{point.phase}, context {text.context(point.context_tokens)}, batch {point.batch:,}"
