"""The numbers of a serving plan: every config at every context length, at its largest batch.

Owns: `PlanRow`, `plan_rows` (one array call over configs and buckets), `operating_point` (one cell).
Refuses: choices (see `select`) and formulas (see `stage_latencies`, `memory_layout`).

Source: physics contract, sections 2 to 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from planner_core.memory_layout import SHORTAGES, MemoryLayout, compute_memory, largest_batch
from planner_core.parallelism import make_parallelism
from planner_core.run_spec import RunSpec
from planner_core.stage_latencies import StepLatency, step_latency
from planner_core.units import FloatArray, as_float
from planner_core.workload import Phase, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """One config at one context length, at its largest batch.

    Parameters
    ----------
    context_tokens : int
        The bucket [tokens].
    tp, cp : int
        Tensor parallel ranks, and the KV split inside them.
    n_pes, replicas_per_node : int
        PEs of a replica, and replicas that fill the node.
    batch : int
        Sequences a replica; 0 where not even the smallest batch fits.
    itl_s, ttft_s : float or None
        Decode step at that batch, prefill of one prompt [s]; `itl_s` None where nothing fits.
    tokens_per_s_per_node : float
        replicas * batch / itl_s [tokens/s]; 0 where nothing fits.
    binding : str
        What binds the decode step; what is short of memory where nothing fits.
    meets_itl, meets_ttft : bool
        Against the targets; True where there is no such target.
    memory_bytes_per_pe : float
        Decode step [B]; at the smallest batch where nothing fits.
    prefill_fits : bool
        Whether a prefill of the bucket fits beside the batch.
    longest_context_tokens : int, optional
        Where nothing fits, the longest context (in steps of 1k) whose smallest batch does; 0 if none. None
        where a batch fits: then it is not looked for.
    """

    context_tokens: int
    tp: int
    cp: int
    n_pes: int
    replicas_per_node: int
    batch: int
    itl_s: float | None
    ttft_s: float
    tokens_per_s_per_node: float
    binding: str
    meets_itl: bool
    meets_ttft: bool
    memory_bytes_per_pe: float
    prefill_fits: bool
    longest_context_tokens: int | None

    @property
    def fits(self) -> bool:
        """True where at least the smallest batch fits."""
        return self.batch > 0

    @property
    def meets_both(self) -> bool:
        """True where it fits and meets every target."""
        return self.fits and self.meets_itl and self.meets_ttft

    def label(self) -> str:
        """Return "TP8" or "TP16 CP2"."""
        return f"TP{self.tp}" if self.cp == 1 else f"TP{self.tp} CP{self.cp}"


def by_throughput(row: PlanRow) -> tuple[float, int, int]:
    """Sort by tokens/s a node, the most first; a tie goes to the smaller CP."""
    return (-row.tokens_per_s_per_node, row.cp, row.tp)


def by_ttft(row: PlanRow) -> tuple[float, int, int]:
    """Sort by TTFT, the lowest first; a tie goes to the smaller CP."""
    return (row.ttft_s, row.cp, row.tp)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatingPoint:
    """One cell: a config, a batch and a context length, in one phase.

    Parameters
    ----------
    phase : str
        "decode" or "prefill".
    tp, cp, pp, batch, context_tokens : int
        The point.
    step : StepLatency
        Scalars.
    memory : MemoryLayout
        Scalars.
    replicas_per_node : int
        Replicas that fill the node.
    tokens_per_s_per_replica, tokens_per_s_per_node : float
        New tokens over the step [tokens/s].
    """

    phase: Phase
    tp: int
    cp: int
    pp: int
    batch: int
    context_tokens: int
    step: StepLatency
    memory: MemoryLayout
    replicas_per_node: int
    tokens_per_s_per_replica: float
    tokens_per_s_per_node: float


def spec_workload(spec: RunSpec, *, phase: Phase, context_tokens: ArrayLike, batch: ArrayLike) -> Workload:
    """Return the workload that a run-spec asks for, at a phase, context [tokens] and batch."""
    return Workload(
        phase=phase,
        context_tokens=context_tokens,
        batch=batch,
        widths=spec.widths,
        kv_dtype_bytes=spec.kv_dtype_bytes,
        activation_dtype_bytes=spec.activation_dtype_bytes,
        precision=spec.precision,
    )


def ttft_ceiling_s(spec: RunSpec, *, context_tokens: ArrayLike) -> FloatArray | None:
    """Return the TTFT that a prefill floor of F tokens/s allows: S/F [s]; None without a floor."""
    if spec.prefill_tokens_per_s_floor is None:
        return None
    return as_float(context_tokens) / spec.prefill_tokens_per_s_floor


def operating_point(
    spec: RunSpec,
    *,
    tp: int,
    cp: int = 1,
    pp: int = 1,
    batch: int,
    context_tokens: int,
    phase: Phase = "decode",
) -> OperatingPoint:
    """Return one cell of the plan.

    Parameters
    ----------
    spec : RunSpec
        Model, machine and byte widths.
    tp, cp, pp : int
        Tensor parallel ranks, KV split inside them, pipeline stages.
    batch : int
        Sequences on the replica.
    context_tokens : int
        `S` [tokens].
    phase : {"decode", "prefill"}
        The phase.

    Returns
    -------
    OperatingPoint

    Notes
    -----
    tokens/s a replica: batch over the decode step, batch * S over the prefill.
    """
    parallelism = make_parallelism(tp=tp, pp=pp, kv_split=cp)
    workload = spec_workload(spec, phase=phase, context_tokens=context_tokens, batch=batch)
    step = step_latency(model=spec.model, machine=spec.machine, parallelism=parallelism, workload=workload)
    memory = compute_memory(
        model=spec.model, machine=spec.machine, parallelism=parallelism, workload=workload
    )
    new_tokens = batch if phase == "decode" else batch * context_tokens
    rate = new_tokens / float(step.latency_s)
    replicas = spec.machine.node_pes // (tp * pp)
    return OperatingPoint(
        phase=phase,
        tp=tp,
        cp=cp,
        pp=pp,
        batch=batch,
        context_tokens=context_tokens,
        step=step,
        memory=memory,
        replicas_per_node=replicas,
        tokens_per_s_per_replica=rate,
        tokens_per_s_per_node=replicas * rate,
    )


def plan_rows(
    spec: RunSpec, *, configs: Sequence[tuple[int, int]], buckets: Sequence[int]
) -> list[list[PlanRow]]:
    """Evaluate every config at every bucket in one array call.

    Parameters
    ----------
    spec : RunSpec
        Model, machine, targets and byte widths.
    configs : sequence of (int, int)
        (TP, CP).
    buckets : sequence of int
        Context lengths [tokens].

    Returns
    -------
    list of list of PlanRow
        By bucket, then by config.
    """
    model, machine = spec.model, spec.machine
    tp = as_float([pair[0] for pair in configs])
    context = as_float(buckets)[:, np.newaxis]
    shape = (len(buckets), len(configs))
    parallelism = make_parallelism(tp=tp, kv_split=as_float([pair[1] for pair in configs]))
    decode_any = spec_workload(spec, phase="decode", context_tokens=context, batch=1.0)
    batch = np.broadcast_to(
        largest_batch(model=model, machine=machine, parallelism=parallelism, workload=decode_any),
        shape,
    )
    smallest = float(machine.batch_multiple)
    fits = batch > 0.0
    decode = spec_workload(
        spec, phase="decode", context_tokens=context, batch=np.where(fits, batch, smallest)
    )
    step = step_latency(model=model, machine=machine, parallelism=parallelism, workload=decode)
    memory = compute_memory(model=model, machine=machine, parallelism=parallelism, workload=decode)
    prefill = spec_workload(spec, phase="prefill", context_tokens=context, batch=1.0)
    ttft_s = np.broadcast_to(
        step_latency(model=model, machine=machine, parallelism=parallelism, workload=prefill).latency_s,
        shape,
    )
    prefill_bytes = compute_memory(
        model=model, machine=machine, parallelism=parallelism, workload=prefill
    ).activation_bytes
    prefill_fits = memory.total_bytes + prefill_bytes <= machine.budget_bytes

    itl_s = np.broadcast_to(step.latency_s, shape)
    replicas = np.floor(machine.node_pes / tp)
    rate = replicas * batch / itl_s
    ceiling_s = ttft_ceiling_s(spec, context_tokens=context)
    itl_limit_s = np.inf if spec.decode_itl_ceiling_s is None else spec.decode_itl_ceiling_s
    meets_itl = itl_s <= itl_limit_s
    meets_ttft = ttft_s <= (np.inf if ceiling_s is None else ceiling_s)
    binding = np.broadcast_to(step.binding_index(), shape)
    labels = step.binding_labels()
    shortage = np.broadcast_to(memory.shortage_index(), shape)
    total = np.broadcast_to(memory.total_bytes, shape)
    prefill_fits = np.broadcast_to(prefill_fits, shape)
    return [
        [
            PlanRow(
                context_tokens=int(tokens),
                tp=pair[0],
                cp=pair[1],
                n_pes=pair[0],
                replicas_per_node=int(replicas[j]),
                batch=int(batch[i, j]),
                itl_s=float(itl_s[i, j]) if fits[i, j] else None,
                ttft_s=float(ttft_s[i, j]),
                tokens_per_s_per_node=float(rate[i, j]),
                binding=(
                    labels[int(binding[i, j])] if fits[i, j] else f"memory:{SHORTAGES[int(shortage[i, j])]}"
                ),
                meets_itl=bool(fits[i, j] and meets_itl[i, j]),
                meets_ttft=bool(meets_ttft[i, j]),
                memory_bytes_per_pe=float(total[i, j]),
                prefill_fits=bool(fits[i, j] and prefill_fits[i, j]),
                longest_context_tokens=(
                    None if fits[i, j] else _longest_context(spec, pair=pair, below_tokens=tokens)
                ),
            )
            for j, pair in enumerate(configs)
        ]
        for i, tokens in enumerate(buckets)
    ]


def _longest_context(spec: RunSpec, *, pair: tuple[int, int], below_tokens: int) -> int:
    """Longest context under `below_tokens`, in steps of 1k, at which the smallest batch fits; 0 if none."""
    lengths = as_float(np.unique(np.linspace(1024, max(below_tokens, 1024), 2048) // 1024 * 1024))
    memory = compute_memory(
        model=spec.model,
        machine=spec.machine,
        parallelism=make_parallelism(tp=pair[0], kv_split=pair[1]),
        workload=spec_workload(
            spec,
            phase="decode",
            context_tokens=lengths,
            batch=float(spec.machine.batch_multiple),
        ),
    )
    fitting = lengths[np.broadcast_to(memory.fits, lengths.shape)]
    return int(fitting[-1]) if len(fitting) else 0
