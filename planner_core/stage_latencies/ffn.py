"""The stages of the FFN: router, projections, experts, and what its ranks exchange.

Owns: `all_ffn_stages`.
Refuses: how widths, experts and tokens are cut; see `shards`.

Source: physics contract, sections 2, 3 and 6.
"""

from __future__ import annotations

import numpy as np

from planner_core.collectives import all_reduce_s, all_to_all_s, charged_axes
from planner_core.hardware import Machine
from planner_core.model_arch import FfnGroup, ModelArch
from planner_core.parallelism import Parallelism
from planner_core.shards import FfnShard, shard_ffn
from planner_core.stage_latencies.stage import COMMUNICATION, Stage, compute_stage
from planner_core.units import FloatArray, as_float
from planner_core.workload import Workload


def _experts_read(group: FfnGroup, shard: FfnShard, workload: Workload) -> FloatArray:
    """Experts that the most loaded rank reads: of the ceil(E/EP) it holds the share 1-(1-k/E)^T."""
    idle_share = 1.0 - float(group.n_experts_per_token) / float(group.n_experts)
    touched_share = 1.0 - np.power(idle_share, shard.pool_tokens)
    return shard.experts_held * np.minimum(touched_share * workload.expert_imbalance, 1.0)


def ffn_compute(
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
            compute_stage(
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
            compute_stage(
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
        stages += ffn_compute(group, shard, model, machine, parallelism, workload)
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
