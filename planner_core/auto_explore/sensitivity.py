"""What each knob does around one baseline, the others held.

Owns: `compute_parallelism_sensitivity`, its rows, and the note that explains a step of a curve.
Refuses: formulas: it calls `stage_latencies` and `memory_layout`.

Source: physics contract, section 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner_core.auto_explore.config import Config, stack_configs
from planner_core.auto_explore.feasibility import lacks
from planner_core.auto_explore.grid import even_values
from planner_core.hardware import Machine
from planner_core.memory_layout import compute_memory
from planner_core.model_arch import ModelArch
from planner_core.stage_latencies import COMMUNICATION, StepLatency, step_latency
from planner_core.workload import Workload

KNOB_MAX: Final = {"cp": 256, "tp": 64, "pp": 32, "dp": 64, "ep": 64}

_GROUP_NAMES: Final = {
    "kv_merge": "KV merge",
    "cp_ring": "CP ring",
    "attention_all_reduce": "TP group",
    "ffn_all_reduce": "FFN group",
    "expert_all_to_all": "EP group",
    "pipeline_hop": "pipeline",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelismSensitivityRow:
    """One value of one knob.

    Parameters
    ----------
    knob : str
        "cp", "tp", "pp", "dp" or "ep".
    value : int
        Its degree.
    latency_s, memory_bytes_per_pe : float
        The step [s] and the most loaded PE [B]; where it does not fit, what they would be.
    fits : bool
        Whether it can run.
    reason : str
        Why not: weights, KV, activations, PEs, not enough ranks, more stages than layers, head split too
        fine; empty where it fits.
    is_baseline : bool
        True at the baseline's own value.
    pes_used : int
        PEs in use.
    ffn_weight_s : float
        Time to load the FFN weights of the step [s].
    binding : str
        What binds the step.
    tiers : dict of str to str
        The tier that each collective lands on.
    step_note : str
        Where a group has just crossed a tier boundary: which, and to what hop and bandwidth.
    """

    knob: str
    value: int
    latency_s: float
    memory_bytes_per_pe: float
    fits: bool
    reason: str
    is_baseline: bool
    pes_used: int
    ffn_weight_s: float
    binding: str
    tiers: dict[str, str]
    step_note: str


def compute_parallelism_sensitivity(
    baseline: Config,
    *,
    model: ModelArch,
    machine: Machine,
    workload: Workload,
    max_pes: float | None = None,
    knobs: Sequence[str] = tuple(KNOB_MAX),
) -> tuple[ParallelismSensitivityRow, ...]:
    """Sweep each knob alone around a baseline.

    Parameters
    ----------
    baseline : Config
        The row to look around.
    model, machine, workload
        As in `step_latency`.
    max_pes : float, optional
        PE budget; the machine's own limit always holds.
    knobs : sequence of str
        Which of cp, tp, pp, dp, ep.

    Returns
    -------
    tuple of ParallelismSensitivityRow
        By knob, then by value: 1, every even number up to the knob's largest (EP: the number of experts,
        if smaller), and the baseline's own value.

    Examples
    --------
    >>> from planner_core.preset_files import presets_dir
    >>> from planner_core.run_spec import load_run_spec
    >>> spec = load_run_spec(presets_dir() / "run_specs" / "llama-3.1-70b-sip128.json")
    >>> rows = compute_parallelism_sensitivity(
    ...     Config(cp=8, tp=16, ffn_shard_scope="TP+CP"), model=spec.model, machine=spec.machine,
    ...     workload=Workload(phase="decode", context_tokens=131072, batch=1), knobs=["cp"])
    >>> [(row.value, row.reason) for row in rows[:4]]
    [(1, 'weights'), (2, 'KV'), (4, ''), (6, '')]
    """
    rows: list[ParallelismSensitivityRow] = []
    for knob in knobs:
        largest = KNOB_MAX[knob]
        if knob == "ep" and model.is_moe:
            largest = min(largest, model.n_experts)
        own = getattr(baseline, knob)
        values = sorted({*even_values(largest), own})
        configs = [replace(_axes_of(baseline), **{knob: value}) for value in values]
        rows += _knob_rows(knob, values, own, configs, model, machine, workload, max_pes)
    return tuple(rows)


def _axes_of(config: Config) -> Config:
    """Return the axes alone, where a scored row was given."""
    from_score = getattr(config, "config", config)
    return from_score if isinstance(from_score, Config) else config


def _knob_rows(
    knob: str,
    values: Sequence[int],
    own: int,
    configs: Sequence[Config],
    model: ModelArch,
    machine: Machine,
    workload: Workload,
    max_pes: float | None,
) -> list[ParallelismSensitivityRow]:
    parallelism = stack_configs(configs)
    count = len(configs)
    step = step_latency(model=model, machine=machine, parallelism=parallelism, workload=workload)
    memory = compute_memory(
        model=model, machine=machine, parallelism=parallelism, workload=workload
    )
    reasons = lacks(
        parallelism=parallelism, memory=memory, model=model, machine=machine, max_pes=max_pes
    )
    latency_s = np.broadcast_to(step.latency_s, (count,))
    total_bytes = np.broadcast_to(memory.total_bytes, (count,))
    binding = np.broadcast_to(step.binding_index(), (count,))
    ffn_weight_s = np.broadcast_to(
        sum(c.weight_bytes for c in step.components if c.family == "ffn")
        / machine.hbm_bytes_per_s,
        (count,),
    )
    labels = step.binding_labels()
    tiers = _tiers(step, count)
    notes = _step_notes(tiers, machine, parallelism.pes_used)
    return [
        ParallelismSensitivityRow(
            knob=knob,
            value=value,
            latency_s=float(latency_s[at]),
            memory_bytes_per_pe=float(total_bytes[at]),
            fits=reasons[at] == "",
            reason=str(reasons[at]),
            is_baseline=value == own,
            pes_used=int(parallelism.pes_used[at]),
            ffn_weight_s=float(ffn_weight_s[at]),
            binding=labels[int(binding[at])],
            tiers={name: machine.tiers[index[at]].name for name, index in tiers.items()},
            step_note=notes[at],
        )
        for at, value in enumerate(values)
    ]


def _tiers(step: StepLatency, count: int) -> dict[str, NDArray[np.intp]]:
    """Tier index of each collective that costs something anywhere on the curve [count]."""
    found: dict[str, NDArray[np.intp]] = {}
    for stage in step.stages:
        if stage.component != COMMUNICATION or stage.tier is None or not np.any(stage.time_s):
            continue
        # A group of one rank costs nothing and lands nowhere: it counts as the innermost tier.
        index = np.broadcast_to(np.where(stage.time_s > 0.0, stage.tier, 0), (count,))
        found[stage.name] = np.maximum(found.get(stage.name, index), index)
    return found


def _step_notes(
    tiers: dict[str, NDArray[np.intp]], machine: Machine, pes_used: NDArray[np.float64]
) -> list[str]:
    """Explain each value at which a collective lands on a tier further out than at the value before."""
    notes = [""] * len(pes_used)
    for at in range(1, len(pes_used)):
        crossed: dict[int, list[str]] = {}
        for name, index in tiers.items():
            if index[at] > index[at - 1]:
                crossed.setdefault(int(index[at]), []).append(_GROUP_NAMES.get(name, name))
        parts = []
        for tier_index, groups in crossed.items():
            tier, inner = machine.tiers[tier_index], machine.tiers[tier_index - 1]
            n_inner = int(-(-pes_used[at] // inner.n_pes))
            where = f"{n_inner} x {inner.name}" if n_inner > 1 else tier.name
            parts.append(
                f"{', '.join(groups)}: the plan's {int(pes_used[at])} PEs span {where}, charged at "
                f"{tier.name}: hop {tier.hop_latency_s * 1e6:.3g} us, {tier.link_bytes_per_s / 1e9:.3g} GB/s"
            )
        notes[at] = "; ".join(parts)
    return notes
