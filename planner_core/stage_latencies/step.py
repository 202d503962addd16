"""A model step: every stage, their sum by component, the latency and what binds it.

Owns: `all_stages`, `step_latency`, `work_floor_s`.
Refuses: memory budgets (see `memory_layout`), sweeps and choices.

Every function takes numbers or arrays that broadcast, and the scalar call runs the same arithmetic as a
cell of a grid. Source: physics contract, sections 2, 3 and 6.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner_core.collectives import neighbour_exchange_s
from planner_core.hardware import Machine
from planner_core.model_arch import ModelArch
from planner_core.parallelism import Axis, Parallelism, make_parallelism
from planner_core.shards import new_tokens_on_rank, shard_attention, shard_ffn, vocabulary_columns
from planner_core.stage_latencies.attention import (
    attention_all_reduce_stage,
    attention_compute,
    cp_ring_stage,
    kv_merge_stage,
)
from planner_core.stage_latencies.component import BIND_KINDS, Component, sum_component
from planner_core.stage_latencies.ffn import all_ffn_stages, ffn_compute
from planner_core.stage_latencies.stage import (
    COMMUNICATION,
    Stage,
    compute_stage,
    floor_s,
    sum_arrays,
)
from planner_core.units import FloatArray, as_float
from planner_core.workload import Workload

_ZERO = as_float(0.0)


@dataclass(frozen=True, kw_only=True)
class StepLatency:
    """A model step, one config or a grid of them.

    Parameters
    ----------
    components : tuple of Component
        Compute, in the order attention, FFN, lm_head.
    stages : tuple of Stage
        Every operator, compute and communication.
    latency_s : ndarray
        The step [s]: component times and communication summed.
    """

    components: tuple[Component, ...]
    stages: tuple[Stage, ...]
    latency_s: FloatArray

    @property
    def communication_s(self) -> FloatArray:
        """Communication of the step [s]."""
        total = _ZERO
        for stage in self.stages:
            if stage.component == COMMUNICATION:
                total = total + stage.time_s
        return total

    def binding_labels(self) -> tuple[str, ...]:
        """Return the labels that `binding_index` points into."""
        labels = [f"{c.family}:{bind}" for c in self.components for bind in BIND_KINDS]
        return (*labels, COMMUNICATION)

    def binding_index(self) -> NDArray[np.intp]:
        """Return what binds the step, as an index into `binding_labels`.

        The slowest component's family and bind, or `communication` where that is more than any component.
        """
        best_s = self.components[0].time_s
        index = self.components[0].bind_index()
        for position, component in enumerate(self.components[1:], start=1):
            slower = component.time_s > best_s
            index = np.where(slower, position * len(BIND_KINDS) + component.bind_index(), index)
            best_s = np.maximum(best_s, component.time_s)
        slower = self.communication_s > best_s
        return np.where(slower, len(self.components) * len(BIND_KINDS), index)

    @property
    def binding(self) -> str:
        """What binds one scalar step: "attention:kv_load", "communication"."""
        return self.binding_labels()[int(self.binding_index())]


def _lm_head_stage(model: ModelArch, machine: Machine, parallelism: Parallelism, workload: Workload) -> Stage:
    """Build the projection to the vocabulary, on each sequence's last token only."""
    batch = as_float(workload.batch)
    columns = vocabulary_columns(model=model, parallelism=parallelism)
    elements = float(model.hidden_size) * columns
    return compute_stage(
        name="lm_head",
        component="lm_head",
        n_layers=1,
        machine=machine,
        workload=workload,
        weight_bytes=workload.widths.lm_head * elements,
        activation_bytes=workload.activation_dtype_bytes * batch * (model.hidden_size + columns),
        flops=2.0 * batch * elements,
    )


def _pipeline_hop_stage(
    model: ModelArch,
    machine: Machine,
    parallelism: Parallelism,
    workload: Workload,
    n_pes: FloatArray,
) -> Stage:
    """PP-1 hops of a*T*d bytes at the tier that holds all PEs in use."""
    tokens = new_tokens_on_rank(workload=workload, parallelism=parallelism)
    message_bytes = workload.activation_dtype_bytes * tokens * float(model.hidden_size)
    axes = (Axis(n_pes, as_float(1.0)),)
    hop_s = neighbour_exchange_s(axes=axes, message_bytes=message_bytes, machine=machine)
    hops = parallelism.pp - 1.0
    return Stage(
        name="pipeline_hop",
        component=COMMUNICATION,
        n_layers=1,
        link_bytes=hops * message_bytes,
        time_s=hops * hop_s,
        charged_axes=axes,
    )


def _pes_with_added(model: ModelArch, parallelism: Parallelism, workload: Workload) -> FloatArray:
    """PEs in use, with those that EP would have to add where it does not fit."""
    if not model.ffn:
        return parallelism.pes_used
    return shard_ffn(group=model.ffn[0], parallelism=parallelism, workload=workload).n_pes


def all_stages(
    *, model: ModelArch, machine: Machine, parallelism: Parallelism, workload: Workload
) -> tuple[Stage, ...]:
    """Return every stage of a step in order: attention, FFN (`all_ffn_stages`), lm_head, pipeline hop.

    Parameters
    ----------
    model : ModelArch
        The model.
    machine : Machine
        The machine.
    parallelism : Parallelism
        The cut; fields broadcast.
    workload : Workload
        Phase, context [tokens], batch, byte widths.

    Returns
    -------
    tuple of Stage
        Totals over layers per PE; each array broadcasts only over the axes that the stage depends on.

    Notes
    -----
    Attention: w*(d*heads*Dk + d*kv*(Dk+Dv) + heads*Dv*d) bytes of weights and a cache of
    c*n*S*kv*(Dk+Dv)/split; 2n FLOP per weight and 2n*pairs*heads*(Dk+Dv). Physics contract, sections 2,
    3 and 6.
    """
    n_pes = _pes_with_added(model, parallelism, workload)
    stages: list[Stage] = []
    for group in model.attention:
        shard = shard_attention(group=group, model=model, parallelism=parallelism, workload=workload)
        compute = attention_compute(group, shard, model, machine, parallelism, workload)
        stages += compute
        stages.append(kv_merge_stage(group, shard, machine, parallelism, workload))
        stages.append(cp_ring_stage(group, shard, compute, machine, parallelism, workload))
        stages.append(attention_all_reduce_stage(group, model, machine, parallelism, workload, n_pes))
    stages += all_ffn_stages(model=model, machine=machine, parallelism=parallelism, workload=workload)
    stages.append(_lm_head_stage(model, machine, parallelism, workload))
    stages.append(_pipeline_hop_stage(model, machine, parallelism, workload, n_pes))
    return tuple(stages)


def step_latency(
    *, model: ModelArch, machine: Machine, parallelism: Parallelism, workload: Workload
) -> StepLatency:
    """Return a model step: its components, communication, latency and binding.

    Parameters
    ----------
    model, machine, parallelism, workload
        As in `all_stages`.

    Returns
    -------
    StepLatency
        Arrays broadcast over the inputs; 0-d for scalars.

    Notes
    -----
    The sum of the component times plus the communication time. PP does not shorten a step: it passes
    through every layer in turn. Physics contract, sections 2 and 6.

    Examples
    --------
    >>> from planner_core.preset_files import presets_dir
    >>> from planner_core.run_spec import load_run_spec
    >>> spec = load_run_spec(presets_dir() / "run_specs" / "granite-4.1-8b-trn2.json")
    >>> step = step_latency(model=spec.model, machine=spec.machine, parallelism=make_parallelism(tp=8),
    ...                     workload=Workload(phase="decode", context_tokens=8192, batch=16))
    >>> round(float(step.latency_s) * 1e3, 3), step.binding
    (8.569, 'attention:kv_load')
    """
    stages = all_stages(model=model, machine=machine, parallelism=parallelism, workload=workload)
    by_component: dict[str, list[Stage]] = {}
    communication: dict[str, list[FloatArray]] = {}
    for stage in stages:
        if stage.component == COMMUNICATION:
            communication.setdefault(stage.name, []).append(stage.time_s)
        else:
            by_component.setdefault(stage.component, []).append(stage)
    components = tuple(
        sum_component(name, members, machine, workload) for name, members in by_component.items()
    )
    times = {
        family: [c.time_s for c in components if c.family == family]
        for family in ("attention", "ffn", "lm_head")
    }
    waits = {name: sum_arrays(values) for name, values in communication.items()}
    # The order of the sums keeps each partial sum on as few axes as it can: what hangs on the KV mode,
    # the ring and the placements first, then what hangs on PP, DP and the FFN scope. A scalar adds in
    # the same order, so it equals its cell of the grid to the bit.
    attention_s = sum_arrays([*times["lm_head"], *times["attention"]])
    for name in ("kv_merge", "cp_ring"):
        attention_s = attention_s + waits.get(name, _ZERO)
    rest_s = waits["pipeline_hop"] + waits.get("attention_all_reduce", _ZERO)
    rest_s = sum_arrays([rest_s, *times["ffn"]])
    for name in ("ffn_all_reduce", "expert_all_to_all"):
        rest_s = rest_s + waits.get(name, _ZERO)
    return StepLatency(components=components, stages=stages, latency_s=attention_s + rest_s)


def work_floor_s(
    *, model: ModelArch, machine: Machine, workload: Workload, n_replicas: FloatArray
) -> FloatArray:
    """Least time that one PE would need for the work of all replicas [PE-seconds].

    Parameters
    ----------
    model : ModelArch
        The model.
    machine : Machine
        The machine.
    workload : Workload
        One replica's.
    n_replicas : ndarray
        DP.

    Returns
    -------
    ndarray
        Seconds on one PE; over latency * PEs used it is the efficiency, in (0, 1].

    Notes
    -----
    max((weights once + KV of all DP*n sequences)/hbm, FLOP/peak), uncut. Physics contract, section 6.

    Examples
    --------
    >>> from planner_core.preset_files import presets_dir
    >>> from planner_core.run_spec import load_run_spec
    >>> spec = load_run_spec(presets_dir() / "run_specs" / "granite-4.1-8b-trn2.json")
    >>> floor_s = work_floor_s(model=spec.model, machine=spec.machine, n_replicas=as_float(2.0),
    ...                        workload=Workload(phase="decode", context_tokens=8192, batch=16))
    >>> weights_bytes, cache_bytes = 16.760438784e9, 2 * 16 * 8192 * 40 * 8 * 256 * 2
    >>> abs(float(floor_s) - (weights_bytes + cache_bytes) / 716e9) < 1e-12
    True
    """
    every = Workload(
        phase=workload.phase,
        context_tokens=workload.context_tokens,
        batch=as_float(workload.batch) * n_replicas,
        widths=workload.widths,
        kv_dtype_bytes=workload.kv_dtype_bytes,
        activation_dtype_bytes=workload.activation_dtype_bytes,
        precision=workload.precision,
    )
    uncut = make_parallelism(tp=1.0, kv_split=1.0)
    stages: list[Stage] = [_lm_head_stage(model, machine, uncut, every)]
    for attention in model.attention:
        attention_shard = shard_attention(group=attention, model=model, parallelism=uncut, workload=every)
        stages += attention_compute(attention, attention_shard, model, machine, uncut, every)
    for ffn in model.ffn:
        ffn_shard = shard_ffn(group=ffn, parallelism=uncut, workload=every)
        stages += ffn_compute(ffn, ffn_shard, model, machine, uncut, every)
    load_bytes = sum_arrays([stage.weight_bytes + stage.kv_bytes for stage in stages])
    return floor_s(
        load_bytes=load_bytes,
        flops=sum_arrays([stage.flops for stage in stages]),
        machine=machine,
        precision=workload.precision,
    )
