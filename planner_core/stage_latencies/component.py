"""Stages of one kind summed: loads and FLOP overlap inside a component.

Owns: `Component`, `sum_component`, and what binds a component.
Refuses: steps; see `step`.

Source: physics contract, section 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner_core.hardware import Machine
from planner_core.stage_latencies.stage import Stage, sum_arrays
from planner_core.units import FloatArray
from planner_core.workload import Workload

LOAD_KINDS = ("weight_load", "kv_load", "act_load")
BIND_KINDS = ("flop", *LOAD_KINDS)


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


def sum_component(name: str, stages: Sequence[Stage], machine: Machine, workload: Workload) -> Component:
    """Sum the stages of one kind; loads and FLOP overlap inside it."""
    weight_bytes = sum_arrays([stage.weight_bytes for stage in stages])
    kv_bytes = sum_arrays([stage.kv_bytes for stage in stages])
    activation_bytes = sum_arrays([stage.activation_bytes for stage in stages])
    flops = sum_arrays([stage.flops for stage in stages])
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
