"""Every formula of time: what a model step costs on a machine, stage by stage.

Owns: the stages of a step (`all_stages`, `all_ffn_stages`), their sum by component, the step's latency and
what binds it (`step_latency`), and the least work a step needs anywhere (`work_floor_s`).
Refuses: memory budgets (see `memory_layout`), sweeps and choices.

Every function takes numbers or arrays that broadcast, and the scalar call runs the same arithmetic as a
cell of a grid. Source: physics contract, sections 2, 3 and 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner_core.collectives import (
    all_reduce_s,
    all_to_all_s,
    charged_axes,
    neighbour_exchange_s,
)
from planner_core.hardware import Machine
from planner_core.model_arch import AttentionGroup, FfnGroup, ModelArch
from planner_core.parallelism import Axis, Parallelism, make_parallelism
from planner_core.shards import (
    AttentionShard,
    FfnShard,
    new_tokens_per_sequence,
    ring_hop_bytes,
    shard_attention,
    shard_ffn,
)
from planner_core.units import FloatArray, as_float
from planner_core.workload import Workload

COMMUNICATION = "communication"
LOAD_KINDS = ("weight_load", "kv_load", "act_load")

_ZERO: FloatArray = np.float64(0.0)  # type: ignore[assignment]  # immutable, so a default may be it


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One operator over all its layers, on the most loaded PE.

    Parameters
    ----------
    name : str
        "qkv_projection", "scores_and_values", "attention_all_reduce".
    component : str
        "attention/global", "ffn/dense", "lm_head", or "communication".
    n_layers : int
        Layers that have it.
    weight_bytes, kv_bytes, activation_bytes : ndarray
        Loads [B].
    flops : ndarray
        FLOP, a count.
    link_bytes : ndarray
        What one collective or all hops of a layer carry [B]; 0 for a compute stage.
    time_s : ndarray
        The stage's own floor, or its communication time [s].
    charged_axes : tuple of Axis
        The ranks whose span says at which tier a communication stage is charged; see
        `collectives.tier_spanned`. Empty for a compute stage.
    """

    name: str
    component: str
    n_layers: int
    weight_bytes: FloatArray = _ZERO
    kv_bytes: FloatArray = _ZERO
    activation_bytes: FloatArray = _ZERO
    flops: FloatArray = _ZERO
    link_bytes: FloatArray = _ZERO
    time_s: FloatArray = _ZERO
    charged_axes: tuple[Axis, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """The stages of one kind summed: loads and FLOP overlap inside it.

    Parameters
    ----------
    name : str
        "attention/global", "attention/sliding", "attention/chunked", "attention/mla", "ffn/dense",
        "ffn/moe", "lm_head".
    n_layers : int
        Layers.
    weight_bytes, kv_bytes, activation_bytes, flops : ndarray
        Totals per PE.
    load_s, flop_s, time_s : ndarray
        Floors [s]; `time_s` is the larger.
    hbm_bytes_per_s : float
        The machine's, to tell which load binds.
    """

    name: str
    n_layers: int
    weight_bytes: FloatArray
    kv_bytes: FloatArray
    activation_bytes: FloatArray
    flops: FloatArray
    load_s: FloatArray
    flop_s: FloatArray
    time_s: FloatArray

    @property
    def family(self) -> str:
        """`attention`, `ffn` or `lm_head`."""
        return self.name.split("/")[0]

    def bind_index(self) -> NDArray[np.intp]:
        """Return what binds: 0 flop, then 1 weight_load, 2 kv_load, 3 act_load (ties go to the first)."""
        loads = np.broadcast_arrays(self.weight_bytes, self.kv_bytes, self.activation_bytes)
        largest = np.argmax(np.stack(loads), axis=0) + 1
        return np.where(self.flop_s >= self.load_s, 0, largest)

    @property
    def bind(self) -> str:
        """What binds one scalar component: `flop`, `weight_load`, `kv_load` or `act_load`."""
        return BIND_KINDS[int(self.bind_index())]


BIND_KINDS = ("flop", *LOAD_KINDS)


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


def _floor_s(*, load_bytes: FloatArray, flops: FloatArray, machine: Machine, precision: str) -> FloatArray:
    """Roofline floor: max(bytes/hbm, FLOP/peak) [s]. Williams, Waterman, Patterson, CACM 52(4), 2009."""
    return np.maximum(load_bytes / machine.hbm_bytes_per_s, flops / machine.peak_flops_per_s[precision])


def _compute_stage(
    *,
    name: str,
    component: str,
    n_layers: int,
    machine: Machine,
    workload: Workload,
    weight_bytes: FloatArray = _ZERO,
    kv_bytes: FloatArray = _ZERO,
    activation_bytes: FloatArray = _ZERO,
    flops: FloatArray = _ZERO,
) -> Stage:
    """Scale one layer's counts to all layers and put the floor on them."""
    count = float(n_layers)
    weights, cache, activations, work = (
        count * weight_bytes,
        count * kv_bytes,
        count * activation_bytes,
        count * flops,
    )
    return Stage(
        name=name,
        component=component,
        n_layers=n_layers,
        weight_bytes=weights,
        kv_bytes=cache,
        activation_bytes=activations,
        flops=work,
        time_s=_floor_s(
            load_bytes=weights + cache + activations,
            flops=work,
            machine=machine,
            precision=workload.precision,
        ),
    )


def _attention_compute(
    group: AttentionGroup,
    shard: AttentionShard,
    model: ModelArch,
    machine: Machine,
    parallelism: Parallelism,
    workload: Workload,
) -> list[Stage]:
    """Build the three operators that read weights and cache."""
    batch = as_float(workload.batch)
    tokens = batch * new_tokens_per_sequence(workload=workload, parallelism=parallelism)
    component = f"attention/{group.kind}"
    width = workload.widths.attention
    hidden_bytes = workload.activation_dtype_bytes * tokens * float(model.hidden_size)
    return [
        _compute_stage(
            name="qkv_projection",
            component=component,
            n_layers=group.n_layers,
            machine=machine,
            workload=workload,
            weight_bytes=width * shard.qkv_elements,
            activation_bytes=hidden_bytes,
            flops=2.0 * tokens * shard.qkv_elements,
        ),
        _compute_stage(
            name="scores_and_values",
            component=component,
            n_layers=group.n_layers,
            machine=machine,
            workload=workload,
            kv_bytes=workload.kv_dtype_bytes * batch * shard.cached_elements,
            flops=2.0 * batch * shard.pairs * shard.heads * (shard.score_dim + shard.value_dim),
        ),
        _compute_stage(
            name="output_projection",
            component=component,
            n_layers=group.n_layers,
            machine=machine,
            workload=workload,
            weight_bytes=width * shard.output_elements,
            activation_bytes=hidden_bytes,
            flops=2.0 * tokens * shard.output_elements,
        ),
    ]


def _kv_merge_stage(
    group: AttentionGroup,
    shard: AttentionShard,
    machine: Machine,
    parallelism: Parallelism,
    workload: Workload,
) -> Stage:
    """Merge the partial results of the copies of a KV head: (split-1) exchanges a layer."""
    tokens = as_float(workload.batch) * new_tokens_per_sequence(workload=workload, parallelism=parallelism)
    per_head = workload.activation_dtype_bytes * shard.value_dim + 8.0
    exchange_bytes = tokens * shard.heads * per_head
    axes = (Axis(shard.split, parallelism.tp_axis.stride),)
    if machine.kv_merge_bytes_per_s is None:
        exchange_s = neighbour_exchange_s(axes=axes, message_bytes=exchange_bytes, machine=machine)
    else:
        exchange_s = exchange_bytes / machine.kv_merge_bytes_per_s
    return Stage(
        name="kv_merge",
        component=COMMUNICATION,
        n_layers=group.n_layers,
        link_bytes=(shard.split - 1.0) * exchange_bytes,
        time_s=float(group.n_layers) * (shard.split - 1.0) * exchange_s,
        charged_axes=axes,
    )


def _cp_ring_stage(
    group: AttentionGroup,
    shard: AttentionShard,
    compute: Sequence[Stage],
    machine: Machine,
    parallelism: Parallelism,
    workload: Workload,
) -> Stage:
    """CP-1 hops a layer; in prefill each hides behind 1/CP of the layer's attention."""
    hop_bytes = ring_hop_bytes(shard=shard, parallelism=parallelism, workload=workload)
    axes = (parallelism.cp_axis,)
    hop_s = neighbour_exchange_s(axes=axes, message_bytes=hop_bytes, machine=machine)
    n_layers = float(group.n_layers)
    if workload.phase == "prefill":
        layer_s = _sum_component("", compute, machine, workload).time_s / n_layers
        hop_s = np.maximum(hop_s - layer_s / parallelism.cp, 0.0)
    hops = parallelism.cp - 1.0
    return Stage(
        name="cp_ring",
        component=COMMUNICATION,
        n_layers=group.n_layers,
        link_bytes=hops * hop_bytes,
        time_s=n_layers * hops * hop_s,
        charged_axes=axes,
    )


def _attention_all_reduce_stage(
    group: AttentionGroup,
    model: ModelArch,
    machine: Machine,
    parallelism: Parallelism,
    workload: Workload,
    n_pes: FloatArray,
) -> Stage:
    """All-reduce of the attention output over the TP group, a*T*d bytes a layer."""
    tokens = as_float(workload.batch) * new_tokens_per_sequence(workload=workload, parallelism=parallelism)
    message_bytes = workload.activation_dtype_bytes * tokens * float(model.hidden_size)
    axes = (parallelism.tp_axis,)
    return Stage(
        name="attention_all_reduce",
        component=COMMUNICATION,
        n_layers=group.n_layers,
        link_bytes=message_bytes,
        time_s=float(group.n_layers)
        * all_reduce_s(axes=axes, message_bytes=message_bytes, machine=machine, pes_used=n_pes),
        charged_axes=charged_axes(axes=axes, machine=machine, pes_used=n_pes),
    )


def _experts_read(group: FfnGroup, shard: FfnShard, workload: Workload) -> FloatArray:
    """Experts that the most loaded rank reads: of the ceil(E/EP) it holds the share 1-(1-k/E)^T."""
    idle_share = 1.0 - float(group.n_experts_per_token) / float(group.n_experts)
    touched_share = 1.0 - np.power(idle_share, shard.pool_tokens)
    return shard.experts_held * np.minimum(touched_share * workload.expert_imbalance, 1.0)


def _ffn_compute(
    group: FfnGroup,
    shard: FfnShard,
    model: ModelArch,
    machine: Machine,
    parallelism: Parallelism,
    workload: Workload,
) -> list[Stage]:
    """Router (MoE), up/gate and down projections."""
    hidden = float(model.hidden_size)
    widths = workload.widths
    component = f"ffn/{group.kind}"
    one_matrix = hidden * shard.width
    if group.kind == "moe":
        shared = hidden * shard.shared_width
        experts = _experts_read(group, shard, workload)
        tokens_per_expert = shard.pool_tokens * (group.n_experts_per_token / group.n_experts)
        routed_tokens = shard.experts_held * tokens_per_expert * workload.expert_imbalance
        matrix_bytes = widths.experts * experts * one_matrix + widths.shared_experts * shared
        matrix_flops = 2.0 * routed_tokens * one_matrix + 2.0 * shard.tokens * shared
        replicated_width = widths.router
    else:
        matrix_bytes = widths.ffn * one_matrix
        matrix_flops = 2.0 * shard.tokens * one_matrix
        replicated_width = widths.ffn
    hidden_bytes = workload.activation_dtype_bytes * shard.tokens * hidden
    stages = []
    if group.replicated_weight_elements:
        elements = float(group.replicated_weight_elements)
        stages.append(
            _compute_stage(
                name="router" if group.kind == "moe" else "ffn_replicated",
                component=component,
                n_layers=group.n_layers,
                machine=machine,
                workload=workload,
                weight_bytes=as_float(replicated_width * elements),
                flops=2.0 * shard.tokens * elements,
            )
        )
    n_in = float(group.n_matrices - 1)
    for name, n_matrices in (("ffn_up_gate", n_in), ("ffn_down", 1.0)):
        stages.append(
            _compute_stage(
                name=name,
                component=component,
                n_layers=group.n_layers,
                machine=machine,
                workload=workload,
                weight_bytes=n_matrices * matrix_bytes,
                activation_bytes=hidden_bytes,
                flops=n_matrices * matrix_flops,
            )
        )
    return stages


def all_ffn_stages(
    *, model: ModelArch, machine: Machine, parallelism: Parallelism, workload: Workload
) -> tuple[Stage, ...]:
    """Return every FFN stage of a step: router, up/gate, down, and the collectives.

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
    Dense: w*m*d*ceil(I/group) bytes, 2T times as many FLOP as weights. MoE: the expected distinct experts
    are read, the top k computed; dispatch and combine are all-to-alls of a*T*k*d bytes. One all-reduce of
    a*T*d bytes over the FFN group, T the gathered tokens: gathering them before (all-gather) and
    scattering them after (reduce-scatter) are its two halves, so they are not charged again. Physics
    contract, sections 2, 3 and 6.
    """
    stages: list[Stage] = []
    for group in model.ffn:
        shard = shard_ffn(group=group, parallelism=parallelism, workload=workload)
        stages += _ffn_compute(group, shard, model, machine, parallelism, workload)
        message_bytes = workload.activation_dtype_bytes * shard.tokens * float(model.hidden_size)
        if group.kind == "moe":
            routed_bytes = message_bytes * float(group.n_experts_per_token)
            exchange_s = all_to_all_s(
                axes=shard.expert_axes,
                message_bytes=routed_bytes,
                machine=machine,
                pes_used=shard.n_pes,
            )
            stages.append(
                Stage(
                    name="expert_all_to_all",
                    component=COMMUNICATION,
                    n_layers=group.n_layers,
                    link_bytes=2.0 * routed_bytes,
                    time_s=float(group.n_layers) * 2.0 * exchange_s,
                    charged_axes=charged_axes(axes=shard.expert_axes, machine=machine, pes_used=shard.n_pes),
                )
            )
        stages.append(
            Stage(
                name="ffn_all_reduce",
                component=COMMUNICATION,
                n_layers=group.n_layers,
                link_bytes=message_bytes,
                time_s=float(group.n_layers)
                * all_reduce_s(
                    axes=shard.reduce_axes,
                    message_bytes=message_bytes,
                    machine=machine,
                    pes_used=shard.n_pes,
                ),
                charged_axes=charged_axes(axes=shard.reduce_axes, machine=machine, pes_used=shard.n_pes),
            )
        )
    return tuple(stages)


def _lm_head_stage(model: ModelArch, machine: Machine, parallelism: Parallelism, workload: Workload) -> Stage:
    """Build the projection to the vocabulary, on each sequence's last token only."""
    batch = as_float(workload.batch)
    columns = np.ceil(model.vocab_size / parallelism.tp)
    elements = float(model.hidden_size) * columns
    return _compute_stage(
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
    tokens = as_float(workload.batch) * new_tokens_per_sequence(workload=workload, parallelism=parallelism)
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
        compute = _attention_compute(group, shard, model, machine, parallelism, workload)
        stages += compute
        stages.append(_kv_merge_stage(group, shard, machine, parallelism, workload))
        stages.append(_cp_ring_stage(group, shard, compute, machine, parallelism, workload))
        stages.append(_attention_all_reduce_stage(group, model, machine, parallelism, workload, n_pes))
    stages += all_ffn_stages(model=model, machine=machine, parallelism=parallelism, workload=workload)
    stages.append(_lm_head_stage(model, machine, parallelism, workload))
    stages.append(_pipeline_hop_stage(model, machine, parallelism, workload, n_pes))
    return tuple(stages)


def _sum_arrays(values: Sequence[FloatArray]) -> FloatArray:
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


def _sum_component(name: str, stages: Sequence[Stage], machine: Machine, workload: Workload) -> Component:
    """Sum the stages of one kind; loads and FLOP overlap inside it."""
    weight_bytes = _sum_arrays([stage.weight_bytes for stage in stages])
    kv_bytes = _sum_arrays([stage.kv_bytes for stage in stages])
    activation_bytes = _sum_arrays([stage.activation_bytes for stage in stages])
    flops = _sum_arrays([stage.flops for stage in stages])
    load_s = (weight_bytes + kv_bytes + activation_bytes) / machine.hbm_bytes_per_s
    flop_s = flops / machine.peak_flops_per_s[workload.precision]
    last = stages[-1].name  # every layer has it; a router only some
    return Component(
        name=name,
        n_layers=sum(stage.n_layers for stage in stages if stage.name == last),
        weight_bytes=weight_bytes,
        kv_bytes=kv_bytes,
        activation_bytes=activation_bytes,
        flops=flops,
        load_s=load_s,
        flop_s=flop_s,
        time_s=np.maximum(load_s, flop_s),
    )


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
        _sum_component(name, members, machine, workload) for name, members in by_component.items()
    )
    times = {
        family: [c.time_s for c in components if c.family == family]
        for family in ("attention", "ffn", "lm_head")
    }
    waits = {name: _sum_arrays(values) for name, values in communication.items()}
    # The order of the sums keeps each partial sum on as few axes as it can: what hangs on the KV mode,
    # the ring and the placements first, then what hangs on PP, DP and the FFN scope. A scalar adds in
    # the same order, so it equals its cell of the grid to the bit.
    attention_s = _sum_arrays([*times["lm_head"], *times["attention"]])
    for name in ("kv_merge", "cp_ring"):
        attention_s = attention_s + waits.get(name, _ZERO)
    rest_s = waits["pipeline_hop"] + waits.get("attention_all_reduce", _ZERO)
    rest_s = _sum_arrays([rest_s, *times["ffn"]])
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
        stages += _attention_compute(attention, attention_shard, model, machine, uncut, every)
    for ffn in model.ffn:
        ffn_shard = shard_ffn(group=ffn, parallelism=uncut, workload=every)
        stages += _ffn_compute(ffn, ffn_shard, model, machine, uncut, every)
    load_bytes = _sum_arrays([stage.weight_bytes + stage.kv_bytes for stage in stages])
    return _floor_s(
        load_bytes=load_bytes,
        flops=_sum_arrays([stage.flops for stage in stages]),
        machine=machine,
        precision=workload.precision,
    )
