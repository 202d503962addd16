"""Every formula of memory: what lies on one PE, whether it fits, and the largest batch that does.

Owns: `compute_memory`, `largest_batch`, and why something does not fit.
Refuses: times.

Source: physics contract, section 4.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner_core.hardware import Machine
from planner_core.model_arch import FfnGroup, ModelArch, stage_layer_counts
from planner_core.parallelism import BoolArray, Parallelism
from planner_core.shards import (
    FfnShard,
    new_tokens_on_rank,
    ring_hop_bytes,
    shard_attention,
    shard_ffn,
    vocabulary_columns,
)
from planner_core.units import FloatArray, as_float
from planner_core.workload import MAX_BATCH, Workload

SHORTAGES: Final = ("", "weights", "KV", "activations")
_LEVEL_BYTES: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLayout:
    """What lies on the most loaded PE [B]; the parts sum to `total_bytes`.

    Parameters
    ----------
    weight_bytes : ndarray
        Layers of the heaviest pipeline stage, and the lm_head where it holds it.
    embedding_bytes : ndarray
        The embedding table where the stage holds it and it is not the lm_head.
    kv_bytes, activation_bytes, ring_buffer_bytes : ndarray
        Cache; one layer's input and output of each component; the receive buffer of the CP ring.
    reserved_bytes, budget_bytes : float
        What a runtime keeps, and what a plan may fill.
    total_bytes : ndarray
        The sum.
    """

    weight_bytes: FloatArray
    embedding_bytes: FloatArray
    kv_bytes: FloatArray
    activation_bytes: FloatArray
    ring_buffer_bytes: FloatArray
    reserved_bytes: float
    budget_bytes: float
    total_bytes: FloatArray

    @property
    def fits(self) -> BoolArray:
        """True where the total is within the budget."""
        return np.asarray(self.total_bytes <= self.budget_bytes)

    def shortage_index(self) -> NDArray[np.intp]:
        """Return what does not fit, as an index into `SHORTAGES`: weights, then with the KV, then all."""
        weights = self.reserved_bytes + self.weight_bytes + self.embedding_bytes
        return np.where(
            self.fits,
            0,
            np.where(
                weights > self.budget_bytes,
                1,
                np.where(weights + self.kv_bytes > self.budget_bytes, 2, 3),
            ),
        )


def _ffn_layer_bytes(group: FfnGroup, shard: FfnShard, hidden: float, workload: Workload) -> FloatArray:
    """Weights of one FFN layer that lie on a PE: every expert held, touched or not [B]."""
    widths = workload.widths
    n_matrices = float(group.n_matrices)
    replicated = float(group.replicated_weight_elements)
    if group.kind == "moe":
        return (
            widths.experts * shard.experts_held * n_matrices * hidden * shard.width
            + widths.shared_experts * n_matrices * hidden * shard.shared_width
            + widths.router * replicated
        )
    return widths.ffn * (n_matrices * hidden * shard.width + replicated)


def compute_memory(
    *, model: ModelArch, machine: Machine, parallelism: Parallelism, workload: Workload
) -> MemoryLayout:
    """Return what lies on the most loaded PE.

    Parameters
    ----------
    model : ModelArch
        The model.
    machine : Machine
        Budget and reserve.
    parallelism : Parallelism
        The cut; fields broadcast.
    workload : Workload
        Phase, context [tokens], batch, byte widths.

    Returns
    -------
    MemoryLayout
        Bytes; arrays broadcast over the inputs.

    Notes
    -----
    weights (heaviest pipeline stage) + KV + activations + reserved, with a*T*(2d + 2d) + a*n*(d + V/tp) of
    activations and, where CP > 1, the buffer that receives one ring hop. A stage has ceil(L/pp) layers;
    with PP = 1 it holds embedding and lm_head (once, if tied), with PP > 1 the heavier of the two. Physics
    contract, section 4. Left out: norms and biases, allocator slack, CUDA graphs (see `reserved_bytes`).

    Examples
    --------
    >>> from planner_core.preset_files import presets_dir
    >>> from planner_core.run_spec import load_run_spec
    >>> spec = load_run_spec(presets_dir() / "run_specs" / "granite-4.1-8b-trn2.json")
    >>> from planner_core.parallelism import make_parallelism
    >>> memory = compute_memory(model=spec.model, machine=spec.machine, parallelism=make_parallelism(tp=8),
    ...                         workload=Workload(phase="decode", context_tokens=8192, batch=16))
    >>> round(float(memory.weight_bytes) / 1e6, 2), round(float(memory.kv_bytes) / 1e6, 1)
    (2095.05, 2684.4)
    """
    hidden = float(model.hidden_size)
    batch = as_float(workload.batch)
    a_bytes = workload.activation_dtype_bytes

    layer_weights: list[FloatArray] = []
    layer_cache: list[FloatArray] = []
    ring_buffer = as_float(0.0)
    for attention in model.attention:
        shard = shard_attention(group=attention, model=model, parallelism=parallelism, workload=workload)
        layer_weights.append(workload.widths.attention * (shard.qkv_elements + shard.output_elements))
        cache = workload.kv_dtype_bytes * batch * shard.cached_elements
        layer_cache.append(cache if attention.owns_cache else cache * 0.0)
        ring_buffer = np.maximum(
            ring_buffer, ring_hop_bytes(shard=shard, parallelism=parallelism, workload=workload)
        )
    ffn_tokens = as_float(0.0)
    for ffn in model.ffn:
        ffn_shard = shard_ffn(group=ffn, parallelism=parallelism, workload=workload)
        layer_weights.append(_ffn_layer_bytes(ffn, ffn_shard, hidden, workload))
        ffn_tokens = np.maximum(ffn_tokens, ffn_shard.tokens)

    weight_bytes, kv_bytes = _heaviest_stage(model, parallelism, layer_weights, layer_cache)
    columns = vocabulary_columns(model=model, parallelism=parallelism)
    lm_head = workload.widths.lm_head * hidden * columns
    extra = workload.widths.embedding * np.ceil(model.extra_embedding_elements / parallelism.tp)
    table = workload.widths.embedding * hidden * columns
    beside_head = extra if model.tied_embeddings else table + extra
    first_stage = table + extra
    whole = parallelism.pp == 1.0
    heavier_head = lm_head >= first_stage
    head_bytes = np.where(whole | heavier_head, lm_head, 0.0)
    embedding_bytes = np.where(whole, beside_head, np.where(heavier_head, 0.0, first_stage))

    attention_tokens = new_tokens_on_rank(workload=workload, parallelism=parallelism)
    activation_bytes = a_bytes * (
        attention_tokens * 2.0 * hidden * bool(model.attention) + ffn_tokens * 2.0 * hidden
    ) + a_bytes * batch * (hidden + columns)
    weight_bytes = weight_bytes + head_bytes
    fixed = weight_bytes + embedding_bytes + machine.reserved_bytes
    return MemoryLayout(
        weight_bytes=weight_bytes,
        embedding_bytes=embedding_bytes,
        kv_bytes=kv_bytes,
        activation_bytes=activation_bytes,
        ring_buffer_bytes=ring_buffer,
        reserved_bytes=machine.reserved_bytes,
        budget_bytes=machine.budget_bytes,
        total_bytes=fixed + kv_bytes + activation_bytes + ring_buffer,
    )


def _heaviest_stage(
    model: ModelArch,
    parallelism: Parallelism,
    layer_weights: list[FloatArray],
    layer_cache: list[FloatArray],
) -> tuple[FloatArray, FloatArray]:
    """Weights and cache of the pipeline stage where the two together weigh most [B]."""
    best: tuple[FloatArray, FloatArray] | None = None
    for counts in stage_layer_counts(model, pp=parallelism.pp):
        weights = as_float(0.0)
        for count, layer in zip(counts, layer_weights, strict=True):
            weights = weights + count * layer
        cache = as_float(0.0)
        for count, layer in zip(counts, layer_cache, strict=False):
            cache = cache + count * layer
        if best is None:
            best = (weights, cache)
        else:
            heavier = weights + cache > best[0] + best[1]
            best = (np.where(heavier, weights, best[0]), np.where(heavier, cache, best[1]))
    assert best is not None  # a model has at least one layer
    return best


def largest_batch(
    *, model: ModelArch, machine: Machine, parallelism: Parallelism, workload: Workload
) -> FloatArray:
    """Return the largest batch whose step fits, a multiple of the machine's `batch_multiple`.

    Parameters
    ----------
    model, machine, parallelism
        As in `compute_memory`.
    workload : Workload
        Phase, context and widths; its batch is not read.

    Returns
    -------
    ndarray
        Sequences, at most `MAX_BATCH`; 0 where not even one multiple fits.

    Notes
    -----
    A pipeline stage's memory is a straight line in the batch, and the total is the largest of them, so a
    line drawn through a small batch can only promise too many. From there each step goes down the line at
    the batch it stands on (Newton's method from above), which ends at the largest batch that fits; it is
    checked on both sides, so that rounding never lies. Physics contract, section 4.

    Examples
    --------
    >>> from planner_core.preset_files import presets_dir
    >>> from planner_core.run_spec import load_run_spec
    >>> spec = load_run_spec(presets_dir() / "run_specs" / "granite-4.1-8b-trn2.json")
    >>> from planner_core.parallelism import make_parallelism
    >>> float(largest_batch(model=spec.model, machine=spec.machine, parallelism=make_parallelism(tp=8),
    ...                     workload=Workload(phase="decode", context_tokens=8192, batch=1)))
    124.0
    """

    def total(batch: FloatArray) -> FloatArray:
        return compute_memory(
            model=model,
            machine=machine,
            parallelism=parallelism,
            workload=replace(workload, batch=batch),
        ).total_bytes

    multiple = float(machine.batch_multiple)
    budget = machine.budget_bytes
    most = MAX_BATCH // machine.batch_multiple * multiple
    fixed = total(as_float(0.0))
    # Where a sequence is less than the total's last digit the line looks level: start at the most.
    a_sequence = np.maximum(total(as_float(1.0)) - fixed, _LEVEL_BYTES)
    batch = np.floor(np.clip((budget - fixed) / a_sequence, 0.0, most) / multiple) * multiple
    needed = total(batch)
    over = (needed > budget) & (batch > 0.0)
    while np.any(over):
        a_sequence = total(batch + 1.0) - needed
        level = a_sequence <= _LEVEL_BYTES
        steps = np.ceil((needed - budget) / np.where(level, 1.0, a_sequence) / multiple)
        steps = np.where(level, np.ceil(batch / multiple / 2.0), steps)
        batch = np.where(over, np.maximum(batch - steps * multiple, 0.0), batch)
        needed = total(batch)
        over = (needed > budget) & (batch > 0.0)
    more = np.minimum(batch + multiple, most)
    return np.where(total(more) <= budget, more, batch)
