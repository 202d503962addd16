"""The stages of attention: projections, scores and values, and what its ranks exchange.

Owns: QKV and output projections, scores and values, the KV merge, the CP ring, the TP all-reduce.
Refuses: how heads and cache are cut; see `shards`.

Source: physics contract, sections 2, 3 and 6.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner_core.collectives import all_reduce_s, charged_axes, neighbour_exchange_s
from planner_core.hardware import Machine
from planner_core.model_arch import AttentionGroup, ModelArch
from planner_core.parallelism import Axis, Parallelism
from planner_core.shards import AttentionShard, new_tokens_on_rank, ring_hop_bytes
from planner_core.stage_latencies.component import sum_component
from planner_core.stage_latencies.stage import COMMUNICATION, Stage, compute_stage
from planner_core.units import FloatArray, as_float
from planner_core.workload import Workload


def attention_compute(
    group: AttentionGroup,
    shard: AttentionShard,
    model: ModelArch,
    machine: Machine,
    parallelism: Parallelism,
    workload: Workload,
) -> list[Stage]:
    """Build the three operators that read weights and cache."""
    batch = as_float(workload.batch)
    tokens = new_tokens_on_rank(workload=workload, parallelism=parallelism)
    component = f"attention/{group.kind}"
    width = workload.widths.attention
    hidden_bytes = workload.activation_dtype_bytes * tokens * float(model.hidden_size)
    return [
        compute_stage(
            name="qkv_projection",
            component=component,
            n_layers=group.n_layers,
            machine=machine,
            workload=workload,
            weight_bytes=width * shard.qkv_elements,
            activation_bytes=hidden_bytes,
            flops=2.0 * tokens * shard.qkv_elements,
        ),
        compute_stage(
            name="scores_and_values",
            component=component,
            n_layers=group.n_layers,
            machine=machine,
            workload=workload,
            kv_bytes=workload.kv_dtype_bytes * batch * shard.cached_elements,
            flops=2.0 * batch * shard.pairs * shard.heads * (shard.score_dim + shard.value_dim),
        ),
        compute_stage(
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


def kv_merge_stage(
    group: AttentionGroup,
    shard: AttentionShard,
    machine: Machine,
    parallelism: Parallelism,
    workload: Workload,
) -> Stage:
    """Merge the partial results of the copies of a KV head: (split-1) exchanges a layer."""
    tokens = new_tokens_on_rank(workload=workload, parallelism=parallelism)
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


def cp_ring_stage(
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
        layer_s = sum_component("", compute, machine, workload).time_s / n_layers
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


def attention_all_reduce_stage(
    group: AttentionGroup,
    model: ModelArch,
    machine: Machine,
    parallelism: Parallelism,
    workload: Workload,
    n_pes: FloatArray,
) -> Stage:
    """All-reduce of the attention output over the TP group, a*T*d bytes a layer."""
    tokens = new_tokens_on_rank(workload=workload, parallelism=parallelism)
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
