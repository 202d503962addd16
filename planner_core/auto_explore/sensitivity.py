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
from planner_core.collectives import ranks_inside_tiers, tier_spanned
from planner_core.hardware import Machine
from planner_core.memory_layout import compute_memory
from planner_core.model_arch import ModelArch
from planner_core.stage_latencies import StepLatency, step_latency
from planner_core.units import FloatArray
from planner_core.workload import Workload

KNOB_MAX: Final = {"cp": 256, "tp": 64, "pp": 32, "dp": 64, "ep": 64}

_CHARGED_WITH_ALL_PES: Final = ("attention_all_reduce", "ffn_all_reduce", "expert_all_to_all")
_GROUP_NAMES: Final = {
    "kv_merge": "KV merge",
    "cp_ring": "CP ring",
    "attention_all_reduce": "TP group",
    "ffn_all_reduce": "FFN group",
    "expert_all_to_all": "EP group",
    "pipeline_hop": "pipeline stages",
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
    memory = compute_memory(model=model, machine=machine, parallelism=parallelism, workload=workload)
    reasons = lacks(parallelism=parallelism, memory=memory, model=model, machine=machine, max_pes=max_pes)
    latency_s = np.broadcast_to(step.latency_s, (count,))
    total_bytes = np.broadcast_to(memory.total_bytes, (count,))
    binding = np.broadcast_to(step.binding_index(), (count,))
    ffn_weight_s = np.broadcast_to(
        sum(c.weight_bytes for c in step.components if c.family == "ffn") / machine.hbm_bytes_per_s,
        (count,),
    )
    labels = step.binding_labels()
    spans = _spans(step, machine, count)
    notes = _step_notes(spans, machine, count)
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
            tiers={name: machine.tiers[span.tier[at]].name for name, span in spans.items()},
            step_note=notes[at],
        )
        for at, value in enumerate(values)
    ]


@dataclass(frozen=True, slots=True)
class _Span:
    """Where one collective lands along a curve [count]: its tier, and the tiers inside it that it spans."""

    tier: NDArray[np.intp]
    n_inner: FloatArray


def _spans(step: StepLatency, machine: Machine, count: int) -> dict[str, _Span]:
    """Return the span of each collective that costs something anywhere on the curve.

    Where layers differ in shape the collective of the widest is kept. A group of one rank costs nothing
    and lands nowhere: it counts as the innermost tier.
    """
    found: dict[str, _Span] = {}
    for stage in step.stages:
        if not stage.charged_axes or not np.any(stage.time_s):
            continue
        inside = ranks_inside_tiers(axes=stage.charged_axes, machine=machine)
        tier = np.where(stage.time_s > 0.0, tier_spanned(axes=stage.charged_axes, machine=machine), 0)
        per_tier = np.stack([np.broadcast_to(ranks, (count,)) for ranks in inside])
        tier = np.broadcast_to(tier, (count,))
        inner = per_tier[np.maximum(tier - 1, 0), np.arange(count)]
        span = _Span(tier=tier, n_inner=np.ceil(per_tier[-1] / inner))
        if stage.name not in found or np.any(tier > found[stage.name].tier):
            found[stage.name] = span
    return found


def _step_notes(spans: dict[str, _Span], machine: Machine, count: int) -> list[str]:
    """Explain each value at which a collective lands on a tier further out than at the value before."""
    notes = [""] * count
    charged_whole = machine.collective_model == "flat-all-pes"
    for at in range(1, count):
        parts: dict[str, list[str]] = {}
        for name, span in spans.items():
            if span.tier[at] <= span.tier[at - 1]:
                continue
            tier, inner = machine.tiers[span.tier[at]], machine.tiers[span.tier[at] - 1]
            text = (
                f"{int(span.n_inner[at])} {inner.name}s ({tier.name}): "
                f"hop {tier.hop_latency_s * 1e6:.3g} us, {tier.link_bytes_per_s / 1e9:.3g} GB/s"
            )
            whole = charged_whole and name in _CHARGED_WITH_ALL_PES
            who = "the plan's PEs" if whole else _GROUP_NAMES.get(name, name)
            groups = parts.setdefault(text, [])
            if who not in groups:
                groups.append(who)
        notes[at] = "; ".join(
            f"{' and '.join(groups)} {_verb(groups)} {text}" for text, groups in parts.items()
        )
    return notes


def _verb(groups: Sequence[str]) -> str:
    """Return "spans" after one group, "span" after several or a plural."""
    return "spans" if len(groups) == 1 and not groups[0].endswith("s") else "span"
