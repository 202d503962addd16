"""A scalar call and the same cell of an open grid agree to the last bit, for every public formula.

The axes have unlike lengths and no value twice, so that two swapped axes cannot pass.
"""

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest

from planner_core.auto_explore import ExploreAxes, score_configs
from planner_core.auto_explore.grid import config_at, slabs
from planner_core.collectives import (
    all_reduce_s,
    all_to_all_s,
    charged_axes,
    neighbour_exchange_s,
    point_to_point_s,
    ranks_inside_tiers,
    ring_all_reduce_s,
    tier_spanned,
)
from planner_core.hardware import COLLECTIVE_MODELS, Machine
from planner_core.memory_layout import compute_memory, largest_batch
from planner_core.model_arch import ModelArch, stage_layer_counts
from planner_core.parallelism import Axis, Parallelism, make_parallelism
from planner_core.shards import (
    ep_fits,
    kv_copies,
    new_tokens_per_sequence,
    ring_hop_bytes,
    shard_attention,
    shard_ffn,
)
from planner_core.stage_latencies import all_ffn_stages, all_stages, step_latency, work_floor_s
from planner_core.units import as_float
from planner_core.workload import Workload
from tests.presets import preset_machine, preset_model

# Dense; windows and MoE; MLA, shared experts and dense first layers; chunks and shared experts.
MODELS = ("llama-3.1-70b", "gpt-oss-120b", "deepseek-v3", "llama-4-scout")
N_CELLS = 24

PARALLEL_AXES: dict[str, tuple[Any, ...]] = {
    "cp": (1, 2, 7, 13, 31),
    "tp": (1, 5, 8, 64, 160, 17, 3),
    "pp": (1, 3, 11),
    "dp": (1, 2, 19, 23),
    "ep": (1, 37, 4, 6, 29, 9),
    "kv_split": (float("inf"), 2.0),
    "ffn_over_cp": (False, True),
    "ffn_over_dp": (True, False),
    "tp_outer": (False, True),
    "cp_outer": (True,),
    "ring_qoml": (False, True),
}
WORK_AXES: dict[str, tuple[Any, ...]] = {"context_tokens": (4099, 127, 131_071), "batch": (41, 1)}
AXES = {**PARALLEL_AXES, **WORK_AXES}
SHAPE = tuple(len(values) for values in AXES.values())


def open_grid() -> dict[str, np.ndarray]:
    """Each axis on its own dimension."""
    placed = {}
    for at, (name, values) in enumerate(AXES.items()):
        shape = [1] * len(AXES)
        shape[at] = len(values)
        placed[name] = np.array(values).reshape(shape)
    return placed


GRID = open_grid()


def grid_call() -> tuple[Parallelism, dict[str, Any]]:
    return make_parallelism(**{name: GRID[name] for name in PARALLEL_AXES}), {
        name: GRID[name] for name in WORK_AXES
    }


def sampled_cells(seed: str) -> Iterator[tuple[tuple[int, ...], Parallelism, dict[str, Any]]]:
    """Cells drawn evenly, each as its position and as plain numbers."""
    random = np.random.default_rng(zlib.crc32(seed.encode()))
    for _ in range(N_CELLS):
        cell = tuple(int(random.integers(length)) for length in SHAPE)
        values = {name: AXES[name][at] for name, at in zip(AXES, cell, strict=True)}
        yield (
            cell,
            make_parallelism(**{name: values[name] for name in PARALLEL_AXES}),
            {name: values[name] for name in WORK_AXES},
        )


def leaves(result: Any) -> list[Any]:
    """Every number or array in a result, in order; names are left out."""
    if result is None or isinstance(result, str):
        return []
    if is_dataclass(result):
        return [leaf for field in fields(result) for leaf in leaves(getattr(result, field.name))]
    if isinstance(result, (list, tuple)):
        return [leaf for item in result for leaf in leaves(item)]
    return [result]


def assert_cells_equal(formula: Callable[[Parallelism, dict[str, Any]], Any], seed: str) -> None:
    whole = leaves(formula(*grid_call()))
    assert whole
    for cell, parallelism, work in sampled_cells(seed):
        alone = leaves(formula(parallelism, work))
        assert len(alone) == len(whole)
        for position, (one, many) in enumerate(zip(alone, whole, strict=True)):
            assert np.ndim(one) == 0
            assert np.broadcast_to(many, SHAPE)[cell] == one, (position, cell)


@dataclass(frozen=True)
class Case:
    """What the formulas are called with besides the axes."""

    model: ModelArch
    machine: Machine
    phase: str

    def workload(self, work: dict[str, Any]) -> Workload:
        return Workload(phase=self.phase, expert_imbalance=1.3, **work)

    def given(self, parallelism: Parallelism, work: dict[str, Any]) -> dict[str, Any]:
        return {
            "model": self.model,
            "machine": self.machine,
            "parallelism": parallelism,
            "workload": self.workload(work),
        }


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> ModelArch:
    return preset_model(request.param)


@pytest.fixture(params=["decode", "prefill"])
def phase(request: pytest.FixtureRequest) -> str:
    return request.param


def sip(collective_model: str) -> Machine:
    return replace(preset_machine("sip128"), collective_model=collective_model)


@pytest.mark.parametrize("collective_model", COLLECTIVE_MODELS)
def test_step_latency(model: ModelArch, phase: str, collective_model: str) -> None:
    case = Case(model, sip(collective_model), phase)

    def step(parallelism: Parallelism, work: dict[str, Any]) -> Any:
        found = step_latency(**case.given(parallelism, work))
        return (
            found.latency_s,
            found.communication_s,
            found.binding_index(),
            found.components,
            [component.bind_index() for component in found.components],
        )

    assert_cells_equal(step, f"step {model.name} {phase} {collective_model}")


@pytest.mark.parametrize("merge_bytes_per_s", [None, 320e9])
def test_every_stage(model: ModelArch, phase: str, merge_bytes_per_s: float | None) -> None:
    machine = replace(sip("hierarchical"), kv_merge_bytes_per_s=merge_bytes_per_s)
    case = Case(model, machine, phase)
    assert_cells_equal(
        lambda parallelism, work: all_stages(**case.given(parallelism, work)),
        f"stages {model.name} {phase} {merge_bytes_per_s}",
    )
    assert_cells_equal(
        lambda parallelism, work: all_ffn_stages(**case.given(parallelism, work)),
        f"ffn stages {model.name} {phase} {merge_bytes_per_s}",
    )


def test_memory(model: ModelArch, phase: str) -> None:
    case = Case(model, sip("flat"), phase)

    def memory(parallelism: Parallelism, work: dict[str, Any]) -> Any:
        found = compute_memory(**case.given(parallelism, work))
        return found, found.fits, found.shortage_index()

    assert_cells_equal(memory, f"memory {model.name} {phase}")


def test_largest_batch(model: ModelArch, phase: str) -> None:
    case = Case(model, replace(preset_machine("h200"), batch_multiple=3), phase)
    assert_cells_equal(
        lambda parallelism, work: largest_batch(**case.given(parallelism, work)),
        f"largest batch {model.name} {phase}",
    )


def test_work_floor(model: ModelArch, phase: str) -> None:
    case = Case(model, preset_machine("trn2"), phase)
    assert_cells_equal(
        lambda parallelism, work: work_floor_s(
            model=model, machine=case.machine, workload=case.workload(work), n_replicas=parallelism.dp
        ),
        f"floor {model.name} {phase}",
    )


def test_shards(model: ModelArch, phase: str) -> None:
    case = Case(model, sip("flat"), phase)

    def shards(parallelism: Parallelism, work: dict[str, Any]) -> Any:
        workload = case.workload(work)
        attention = [
            shard_attention(group=group, model=model, parallelism=parallelism, workload=workload)
            for group in model.attention
        ]
        return (
            attention,
            [ring_hop_bytes(shard=one, parallelism=parallelism, workload=workload) for one in attention],
            [shard_ffn(group=group, parallelism=parallelism, workload=workload) for group in model.ffn],
            new_tokens_per_sequence(workload=workload, parallelism=parallelism),
            [kv_copies(n_kv_heads=group.n_kv_heads, tp=parallelism.tp) for group in model.attention],
            ep_fits(parallelism=parallelism),
            list(stage_layer_counts(model, pp=3)),
        )

    assert_cells_equal(shards, f"shards {model.name} {phase}")


def test_layers_of_a_stage(model: ModelArch) -> None:
    """Each candidate stage of each PP is among the scalar call's, and each of those is met."""
    degrees = np.array([[1, 2, 3], [7, 13, 100]])
    candidates = list(stage_layer_counts(model, pp=degrees))
    for at in np.ndindex(degrees.shape):
        alone = {tuple(map(float, counts)) for counts in stage_layer_counts(model, pp=degrees[at])}
        assert alone == {tuple(float(count[at]) for count in counts) for counts in candidates}


def test_placement() -> None:
    def placement(parallelism: Parallelism, work: dict[str, Any]) -> Any:
        del work
        return (
            parallelism.tp_axis,
            parallelism.cp_axis,
            parallelism.dp_axis,
            parallelism.pes_used,
        )

    assert_cells_equal(placement, "placement")


@pytest.mark.parametrize("collective_model", COLLECTIVE_MODELS)
def test_collectives(collective_model: str) -> None:
    machine = sip(collective_model)

    def collectives(parallelism: Parallelism, work: dict[str, Any]) -> Any:
        axes: tuple[Axis, ...] = (parallelism.tp_axis, parallelism.cp_axis, parallelism.dp_axis)
        group = {"axes": axes, "machine": machine}
        message_bytes = as_float(work["context_tokens"]) * 3.7
        return (
            all_reduce_s(**group, message_bytes=message_bytes, pes_used=parallelism.pes_used),
            all_to_all_s(**group, message_bytes=message_bytes, pes_used=parallelism.pes_used),
            tier_spanned(axes=charged_axes(**group, pes_used=parallelism.pes_used), machine=machine),
            neighbour_exchange_s(**group, message_bytes=message_bytes),
            tier_spanned(**group),
            ranks_inside_tiers(**group),
            ring_all_reduce_s(
                n_ranks=parallelism.tp,
                message_bytes=message_bytes,
                hop_latency_s=1.5e-6 * as_float(work["batch"]),
                link_bytes_per_s=1e11 / parallelism.cp,
            ),
            point_to_point_s(
                message_bytes=message_bytes,
                hop_latency_s=1e-6 * parallelism.cp,
                link_bytes_per_s=1e11 / parallelism.dp,
            ),
        )

    assert_cells_equal(collectives, f"collectives {collective_model}")


@pytest.mark.parametrize("name", MODELS)
def test_score_equals_the_cell_of_the_sweep(name: str, phase: str) -> None:
    model, machine = preset_model(name), preset_machine("sip128")
    axes = ExploreAxes(cp=(1, 3, 8, 5), tp=(2, 7, 64, 16, 1), pp=(1, 2, 13), dp=(1, 11))
    workload = Workload(phase=phase, context_tokens=5003, batch=3)
    (slab,) = slabs(axes=axes, model=model, slab_cells=axes.n_cells)
    call = {"model": model, "machine": machine, "parallelism": slab.parallelism, "workload": workload}
    step, memory = step_latency(**call), compute_memory(**call)
    floor_s = work_floor_s(model=model, machine=machine, workload=workload, n_replicas=slab.parallelism.dp)
    efficiency = floor_s / slab.parallelism.pes_used / step.latency_s
    random = np.random.default_rng(7)
    cells = [tuple(int(random.integers(length)) for length in axes.shape) for _ in range(200)]
    scores = score_configs(
        configs=[config_at(axes=axes, index=cell) for cell in cells],
        model=model,
        machine=machine,
        workload=workload,
    )
    for cell, score in zip(cells, scores, strict=True):
        at = [
            np.broadcast_to(values, axes.shape)[cell]
            for values in (
                step.latency_s,
                slab.parallelism.pes_used,
                efficiency,
                memory.total_bytes,
                memory.fits,
            )
        ]
        assert at == [
            score.latency_s,
            score.pes_used,
            score.efficiency,
            score.memory_bytes_per_pe,
            score.fits,
        ]
        binding = np.broadcast_to(step.binding_index(), axes.shape)[cell]
        assert step.binding_labels()[int(binding)] == score.binding
