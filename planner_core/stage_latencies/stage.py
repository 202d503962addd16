"""One operator of a step, and the floor put on it.

Owns: `Stage`, and how one layer's counts become a stage of all its layers.
Refuses: what the operators are; see `attention` and `ffn`.

Source: physics contract, section 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner_core.hardware import Machine
from planner_core.parallelism import Axis
from planner_core.units import FloatArray
from planner_core.workload import Workload

COMMUNICATION = "communication"

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


def floor_s(*, load_bytes: FloatArray, flops: FloatArray, machine: Machine, precision: str) -> FloatArray:
    """Roofline floor: max(bytes/hbm, FLOP/peak) [s]. Williams, Waterman, Patterson, CACM 52(4), 2009."""
    return np.maximum(load_bytes / machine.hbm_bytes_per_s, flops / machine.peak_flops_per_s[precision])


def compute_stage(
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
        time_s=floor_s(
            load_bytes=weights + cache + activations,
            flops=work,
            machine=machine,
            precision=workload.precision,
        ),
    )


def sum_arrays(values: Sequence[FloatArray]) -> FloatArray:
    """Add arrays one after the other, first to last; each partial sum stays as small as it can."""
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total
