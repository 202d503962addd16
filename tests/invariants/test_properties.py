"""What must hold whatever the model, the machine and the cut."""

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from planner_core.collectives import all_reduce_s, all_to_all_s, ring_all_reduce_s
from planner_core.hardware import COLLECTIVE_MODELS, Machine
from planner_core.memory_layout import SHORTAGES, compute_memory, largest_batch
from planner_core.model_arch import ModelArch
from planner_core.parallelism import Axis
from planner_core.stage_latencies import COMMUNICATION, all_ffn_stages, all_stages, step_latency
from planner_core.units import as_float
from planner_core.workload import MAX_BATCH, Workload
from tests.presets import preset_machine, preset_model
from tests.reference_physics import Cut
from tests.strategies import as_parallelism, cuts, machines, models, workloads

ANY = {"model": models(), "machine": machines(), "cut": cuts(), "workload": workloads()}
# One part in 1e12: what sums of the same terms in another order may differ by.
SLACK = 1.0 + 1e-12


def latency(model: ModelArch, machine: Machine, cut: Cut, workload: Workload) -> float:
    return float(
        step_latency(
            model=model, machine=machine, parallelism=as_parallelism(cut), workload=workload
        ).latency_s
    )


@given(**ANY)
def test_nothing_is_negative_or_no_number(
    model: ModelArch, machine: Machine, cut: Cut, workload: Workload
) -> None:
    call = {"model": model, "machine": machine, "parallelism": as_parallelism(cut), "workload": workload}
    step, memory = step_latency(**call), compute_memory(**call)
    numbers = [step.latency_s, memory.total_bytes, memory.weight_bytes, memory.embedding_bytes]
    numbers += [memory.kv_bytes, memory.activation_bytes, memory.ring_buffer_bytes]
    for stage in step.stages:
        numbers += [stage.weight_bytes, stage.kv_bytes, stage.activation_bytes, stage.flops]
        numbers += [stage.link_bytes, stage.time_s]
    assert all(math.isfinite(float(number)) and float(number) >= 0.0 for number in numbers)
    assert float(step.latency_s) > 0.0


@given(**ANY)
def test_parts_sum_to_the_total(model: ModelArch, machine: Machine, cut: Cut, workload: Workload) -> None:
    call = {"model": model, "machine": machine, "parallelism": as_parallelism(cut), "workload": workload}
    step = step_latency(**call)
    compute_s = sum(float(component.time_s) for component in step.components)
    assert math.isclose(compute_s + float(step.communication_s), float(step.latency_s), rel_tol=1e-12)
    for component in step.components:
        stages = [stage for stage in step.stages if stage.component == component.name]
        for name in ("weight_bytes", "kv_bytes", "activation_bytes", "flops"):
            parts = sum(float(getattr(stage, name)) for stage in stages)
            assert math.isclose(parts, float(getattr(component, name)), rel_tol=1e-12)
        # The stages' floors sum to no less than the component's.
        assert sum(float(stage.time_s) for stage in stages) * SLACK >= float(component.time_s)
    layers = {"attention": 0, "ffn": 0}
    for component in step.components:
        if component.family in layers:
            layers[component.family] += component.n_layers
    assert layers == {"attention": model.n_layers, "ffn": model.n_layers}
    names = [stage.name for stage in all_ffn_stages(**call)]
    assert names == [stage.name for stage in all_stages(**call) if stage.name in set(names)]


RATES = ("hop_latency_s", "link_bytes_per_s")


@given(**ANY, tier=st.integers(0, 3), factor=st.floats(1.0, 50.0), rate=st.sampled_from(RATES))
def test_a_slower_link_is_never_faster(
    model: ModelArch, machine: Machine, cut: Cut, workload: Workload, tier: int, factor: float, rate: str
) -> None:
    at = tier % len(machine.tiers)
    old = machine.tiers[at]
    if rate == "hop_latency_s":
        new = replace(old, hop_latency_s=(old.hop_latency_s + 1e-7) * factor)
    else:
        new = replace(old, link_bytes_per_s=old.link_bytes_per_s / factor)
    slower = replace(machine, tiers=(*machine.tiers[:at], new, *machine.tiers[at + 1 :]))
    assert latency(model, slower, cut, workload) * SLACK >= latency(model, machine, cut, workload)


@given(**ANY, factor=st.floats(1.0, 50.0), which=st.sampled_from(("hbm", "peak", "merge")))
def test_a_slower_pe_is_never_faster(
    model: ModelArch, machine: Machine, cut: Cut, workload: Workload, factor: float, which: str
) -> None:
    machine = replace(machine, kv_merge_bytes_per_s=320e9)
    if which == "hbm":
        slower = replace(machine, hbm_bytes_per_s=machine.hbm_bytes_per_s / factor)
    elif which == "peak":
        slower = replace(machine, peak_flops_per_s={"bf16": machine.peak_flops_per_s["bf16"] / factor})
    else:
        slower = replace(machine, kv_merge_bytes_per_s=320e9 / factor)
    assert latency(model, slower, cut, workload) * SLACK >= latency(model, machine, cut, workload)


@given(**ANY, factor=st.sampled_from((2.0, 4.0, 1024.0)))
def test_scaling_bytes_and_bandwidth_together_changes_nothing(
    model: ModelArch, machine: Machine, cut: Cut, workload: Workload, factor: float
) -> None:
    """A power of two, so that it is exact; the 8 bytes of max and sum a head are the one fixed size."""
    quiet = replace(cut, kv_shard_mode="replicate", cp_ring_variant="kv")
    widths = workload.widths
    wider = replace(
        workload,
        kv_dtype_bytes=workload.kv_dtype_bytes * factor,
        activation_dtype_bytes=workload.activation_dtype_bytes * factor,
        widths=replace(
            widths, **{name: getattr(widths, name) * factor for name in widths.__dataclass_fields__}
        ),
    )
    faster = replace(
        machine,
        hbm_bytes_per_s=machine.hbm_bytes_per_s * factor,
        hbm_bytes=machine.hbm_bytes * factor,
        reserved_bytes=machine.reserved_bytes * factor,
        tiers=tuple(
            replace(tier, link_bytes_per_s=tier.link_bytes_per_s * factor) for tier in machine.tiers
        ),
    )
    assert latency(model, faster, quiet, wider) == latency(model, machine, quiet, workload)
    first, second = (
        compute_memory(model=model, machine=m, parallelism=as_parallelism(quiet), workload=w)
        for m, w in ((machine, workload), (faster, wider))
    )
    assert float(second.total_bytes) == factor * float(first.total_bytes)
    assert bool(first.fits) == bool(second.fits)


def held_bytes(model: ModelArch, machine: Machine, cut: Cut, workload: Workload) -> tuple[float, float]:
    if model.tied_embeddings:  # one table has one width
        widths = replace(workload.widths, embedding=workload.widths.lm_head)
        workload = replace(workload, widths=widths)
    memory = compute_memory(
        model=model, machine=machine, parallelism=as_parallelism(cut), workload=workload
    )
    return float(memory.weight_bytes + memory.embedding_bytes), float(memory.kv_bytes)


@given(
    model=models(uniform=True),
    machine=machines(),
    cut=cuts(with_ep=False),
    workload=workloads(),
    axis=st.sampled_from(("cp", "tp", "pp", "ep")),
)
def test_weights_and_cache_never_rise_with_a_degree(
    model: ModelArch, machine: Machine, cut: Cut, workload: Workload, axis: str
) -> None:
    """All copies of a KV head share its sequence here: the default. Layers are alike: see the next test."""
    cut = replace(cut, kv_shard_mode="split", kv_split=None)
    degrees = (1, 2, 3, 4, 5, 7, 8, 12, 16, 33, 64, 160)
    held = [held_bytes(model, machine, replace(cut, **{axis: degree}), workload) for degree in degrees]
    for (weights, cache), (next_weights, next_cache) in pairwise(held):
        assert next_weights <= weights * SLACK
        assert next_cache <= cache * SLACK


@given(model=models(), machine=machines(), cut=cuts(with_ep=False), workload=workloads())
def test_a_pipeline_of_unlike_layers_holds_no_more_than_the_whole(
    model: ModelArch, machine: Machine, cut: Cut, workload: Workload
) -> None:
    """Stages are blocks of ceil(L/PP) layers: where layers differ, a finer cut may put two heavy ones
    together that a coarser one had apart, but never more than one stage alone would hold."""
    whole = sum(held_bytes(model, machine, replace(cut, pp=1), workload))
    for pp in (2, 3, 4, 5, 12):
        assert sum(held_bytes(model, machine, replace(cut, pp=pp), workload)) <= whole * SLACK


@given(model=models(), machine=machines(), cut=cuts(beyond=False), workload=workloads())
def test_a_pipeline_never_shortens_a_request(
    model: ModelArch, machine: Machine, cut: Cut, workload: Workload
) -> None:
    """With ranks that exist: ranks that EP would have to add lie past the pipeline, so a longer one can
    move them over a tier, and a hierarchical all-reduce of two short rings can beat one long one."""
    times = [latency(model, machine, replace(cut, pp=pp), workload) for pp in (1, 2, 3, 5, 8)]
    assert all(later * SLACK >= sooner for sooner, later in pairwise(times))


@given(**ANY)
def test_data_parallelism_outside_the_ffn_leaves_a_request_alone(
    model: ModelArch, machine: Machine, cut: Cut, workload: Workload
) -> None:
    """DP replicates: with no shared FFN and no PE count in the collectives, nothing else changes."""
    alone = replace(cut, dp=1, ep=1, pp=1, ffn_shard_scope="TP", tp_placement="inner", cp_placement="inner")
    for model_name in ("flat", "hierarchical"):
        other = replace(machine, collective_model=model_name)
        expected = latency(model, other, alone, workload)
        assert latency(model, other, replace(alone, dp=4), workload) == expected


@given(model=models(), machine=machines(), cut=cuts(), workload=workloads())
def test_memory_grows_with_batch_and_context(
    model: ModelArch, machine: Machine, cut: Cut, workload: Workload
) -> None:
    def total(**changed: Any) -> float:
        memory = compute_memory(
            model=model,
            machine=machine,
            parallelism=as_parallelism(cut),
            workload=replace(workload, **changed),
        )
        return float(memory.total_bytes)

    assert total(batch=workload.batch + 1) > total()
    assert total(context_tokens=workload.context_tokens + 1) >= total() / SLACK


@given(model=models(), machine=machines(), cut=cuts(), workload=workloads())
def test_largest_batch_fits_and_the_next_does_not(
    model: ModelArch, machine: Machine, cut: Cut, workload: Workload
) -> None:
    call = {"model": model, "machine": machine, "parallelism": as_parallelism(cut)}
    batch = float(largest_batch(**call, workload=workload))
    assert batch % machine.batch_multiple == 0
    if batch:
        assert compute_memory(**call, workload=replace(workload, batch=batch)).fits
    more = batch + machine.batch_multiple
    assert not compute_memory(**call, workload=replace(workload, batch=more)).fits


@given(model=models(), machine=machines(), cut=cuts(), workload=workloads())
def test_largest_batch_ends_where_batches_end(
    model: ModelArch, machine: Machine, cut: Cut, workload: Workload
) -> None:
    # So much memory that a sequence is less than the last digit of the total, in either direction.
    for fixed_bytes, width in ((0.0, 1e-3), (9e17, 1e-3), (9e17, 16.0)):
        roomy = replace(machine, hbm_bytes=1e18, usable_hbm_frac=1.0, reserved_bytes=fixed_bytes)
        batch = float(
            largest_batch(
                model=model,
                machine=roomy,
                parallelism=as_parallelism(cut),
                workload=replace(workload, kv_dtype_bytes=width, context_tokens=1),
            )
        )
        assert batch == MAX_BATCH // machine.batch_multiple * machine.batch_multiple


@given(model=models(), machine=machines(), cut=cuts(), workload=workloads())
def test_what_is_short_is_named(model: ModelArch, machine: Machine, cut: Cut, workload: Workload) -> None:
    memory = compute_memory(
        model=model, machine=machine, parallelism=as_parallelism(cut), workload=workload
    )
    reason = SHORTAGES[int(memory.shortage_index())]
    budget = machine.usable_hbm_frac * machine.hbm_bytes
    weights = float(memory.reserved_bytes + memory.weight_bytes + memory.embedding_bytes)
    if float(memory.total_bytes) <= budget:
        expected = ""
    elif weights > budget:
        expected = "weights"
    elif weights + float(memory.kv_bytes) > budget:
        expected = "KV"
    else:
        expected = "activations"
    assert reason == expected


@given(
    machine=machines(),
    message=st.floats(0.0, 1e12),
    strides=st.lists(st.sampled_from((1.0, 3.0, 16.0, 4096.0)), min_size=1, max_size=3),
    pes=st.sampled_from((1, 7, 5000)),
)
def test_a_group_of_one_rank_costs_exactly_nothing(
    machine: Machine, message: float, strides: list[float], pes: int
) -> None:
    axes = [Axis(as_float(1.0), as_float(stride)) for stride in strides]
    call = {"axes": axes, "message_bytes": message, "machine": machine, "pes_used": pes}
    assert float(all_reduce_s(**call)) == 0.0
    assert float(all_to_all_s(**call)) == 0.0


@given(model=models(), machine=machines(), workload=workloads())
def test_one_pe_communicates_nothing(model: ModelArch, machine: Machine, workload: Workload) -> None:
    step = step_latency(
        model=model, machine=machine, parallelism=as_parallelism(Cut()), workload=workload
    )
    assert float(step.communication_s) == 0.0
    assert all(float(stage.time_s) == 0.0 for stage in step.stages if stage.component == COMMUNICATION)


@given(
    machine=machines(),
    message=st.floats(1.0, 1e10),
    sizes=st.tuples(*[st.sampled_from((1, 2, 3, 8))] * 3),
)
def test_models_of_a_collective_are_ordered(
    machine: Machine, message: float, sizes: tuple[int, int, int]
) -> None:
    """Hierarchical <= flat <= flat at the tier of all PEs, for a group inside them; equal on one tier."""
    strides = (1, sizes[0], sizes[0] * sizes[1])
    axes = [Axis(as_float(n), as_float(s)) for n, s in zip(sizes, strides, strict=True)]
    times = [
        float(
            all_reduce_s(
                axes=axes,
                message_bytes=message,
                machine=replace(machine, collective_model=name),
                pes_used=math.prod(sizes),
            )
        )
        for name in COLLECTIVE_MODELS
    ]
    assert times[0] <= times[1] * SLACK
    assert times[1] <= times[2] * SLACK
    if len(machine.tiers) == 1:
        assert times[0] == times[1] == times[2]


@settings(max_examples=50)
@given(g=st.integers(1, 4096), message=st.floats(0.0, 1e15), latency_s=st.floats(0.0, 1e-3))
def test_ring_by_steps(g: int, message: float, latency_s: float) -> None:
    """g-1 steps of reduce-scatter and g-1 of all-gather, M/g bytes each."""
    steps = 2 * (g - 1)
    expected = steps * (latency_s + message / g / 1e11)
    found = ring_all_reduce_s(
        n_ranks=g, message_bytes=message, hop_latency_s=latency_s, link_bytes_per_s=1e11
    )
    assert math.isclose(float(found), expected, rel_tol=1e-12)


@pytest.mark.parametrize("phase", ["decode", "prefill"])
@pytest.mark.parametrize("name", ["llama-3.1-70b", "gpt-oss-120b", "deepseek-v3"])
def test_no_wrap_at_flop_scale(name: str, phase: str) -> None:
    """Ints on entry become floats: int64 would wrap past 9.2e18."""
    step = step_latency(
        model=preset_model(name),
        machine=preset_machine("h200"),
        parallelism=as_parallelism(Cut(tp=8)),
        workload=Workload(phase=phase, context_tokens=np.int64(10_000_000), batch=np.int64(100_000)),
    )
    assert all(float(component.flops) > 0.0 for component in step.components)
    one = step_latency(
        model=preset_model(name),
        machine=preset_machine("h200"),
        parallelism=as_parallelism(Cut(tp=8)),
        workload=Workload(phase=phase, context_tokens=10_000_000.0, batch=100_000.0),
    )
    assert float(one.latency_s) == float(step.latency_s)


@given(**ANY)
def test_windows_and_splits_only_take_away(
    model: ModelArch, machine: Machine, cut: Cut, workload: Workload
) -> None:
    assume(any(group.window_tokens is not None for group in model.attention))
    full = replace(
        model,
        attention=tuple(replace(group, window_tokens=None) for group in model.attention),
    )
    call = {"machine": machine, "parallelism": as_parallelism(cut), "workload": workload}
    windowed, whole = compute_memory(model=model, **call), compute_memory(model=full, **call)
    assert float(windowed.kv_bytes) <= float(whole.kv_bytes) * SLACK
    work, full_work = step_latency(model=model, **call), step_latency(model=full, **call)
    for component, other in zip(work.components, full_work.components, strict=True):
        assert float(component.kv_bytes) <= float(other.kv_bytes) * SLACK
        assert float(component.flops) <= float(other.flops) * SLACK
