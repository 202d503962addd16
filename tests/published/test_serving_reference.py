"""A published tutorial's tables for Granite 4.1 8B on Trainium2, to their last printed digit."""

from dataclasses import replace

import pytest

from planner_core.memory_layout import largest_batch
from planner_core.parallelism import make_parallelism
from planner_core.preset_files import presets_dir
from planner_core.run_spec import load_run_spec
from planner_core.serving_plan import context_buckets, interactivity_curves, plan_serving, upper_frontier
from planner_core.stage_latencies import StepLatency, step_latency
from planner_core.workload import Workload
from tests.presets import preset_machine, preset_model

GRANITE = preset_model("granite-4.1-8b")
TRN2 = preset_machine("trn2")
SPEC = load_run_spec(presets_dir() / "run_specs" / "granite-4.1-8b-trn2.json")


def step(*, tp: int, cp: int = 1, batch: int, context: int = 8192, phase: str = "decode") -> StepLatency:
    return step_latency(
        model=GRANITE,
        machine=TRN2,
        parallelism=make_parallelism(tp=tp, kv_split=cp),
        workload=Workload(phase=phase, context_tokens=context, batch=batch),
    )


CELL = step(tp=8, batch=16)


def test_cell_step() -> None:
    assert f"{CELL.latency_s * 1e3:.3f}" == "8.569"
    assert f"{CELL.communication_s * 1e3:.3f}" == "1.864"
    assert CELL.binding == "attention:kv_load"
    assert f"{16 / CELL.latency_s:.0f}" == "1867"
    assert f"{8 * 16 / CELL.latency_s:.0f}" == "14938"


@pytest.mark.parametrize(
    "printed",
    [
        "attention/global 40 419.43 2684.4 10.5 17.448 4.350 0.110 4.350 kv_load",
        "ffn/dense 40 1572.86 0.0 10.5 25.166 2.211 0.159 2.211 weight_load",
        "lm_head 1 102.76 0.0 0.5 1.644 0.144 0.010 0.144 weight_load",
    ],
)
def test_cell_component(printed: str) -> None:
    (component,) = (c for c in CELL.components if c.name == printed.split()[0])
    assert printed.split() == [
        component.name,
        str(component.n_layers),
        f"{component.weight_bytes / 1e6:.2f}",
        f"{component.kv_bytes / 1e6:.1f}",
        f"{component.activation_bytes / 1e6:.1f}",
        f"{component.flops / 1e9:.3f}",
        f"{component.load_s * 1e3:.3f}",
        f"{component.flop_s * 1e3:.3f}",
        f"{component.time_s * 1e3:.3f}",
        component.bind,
    ]


def test_cell_model_total() -> None:
    assert f"{sum(c.weight_bytes for c in CELL.components) / 1e6:.2f}" == "2095.05"
    assert f"{sum(c.kv_bytes for c in CELL.components) / 1e6:.1f}" == "2684.4"
    assert f"{sum(c.activation_bytes for c in CELL.components) / 1e6:.1f}" == "21.5"
    assert f"{sum(c.flops for c in CELL.components) / 1e9:.3f}" == "44.258"


SWEEP_AT_8K = [
    (4, 1, 56, "33.5", "26768"),
    (8, 1, 124, "35.3", "28089"),
    (16, 2, 262, "39.5", "26500"),
    (32, 1, 134, "41.6", "6441"),
]


@pytest.mark.parametrize(("tp", "cp", "batch", "itl_ms", "tokens_per_s"), SWEEP_AT_8K)
def test_sweep_at_8k_from_the_core(tp: int, cp: int, batch: int, itl_ms: str, tokens_per_s: str) -> None:
    largest = largest_batch(
        model=GRANITE,
        machine=TRN2,
        parallelism=make_parallelism(tp=tp, kv_split=cp),
        workload=Workload(phase="decode", context_tokens=8192, batch=1),
    )
    assert largest == batch
    decode = step(tp=tp, cp=cp, batch=batch)
    assert f"{decode.latency_s * 1e3:.1f}" == itl_ms
    assert f"{64 // tp * batch / decode.latency_s:.0f}" == tokens_per_s
    assert decode.binding == "attention:kv_load"


def test_ttft_from_the_core() -> None:
    assert f"{step(tp=8, batch=1, phase='prefill').latency_s:.2f}" == "0.22"
    assert f"{step(tp=32, batch=1, phase='prefill').latency_s:.2f}" == "0.14"
    assert f"{step(tp=8, batch=1, context=44 * 1024, phase='prefill').latency_s:.2f}" == "1.61"


PLAN = plan_serving(SPEC)


def test_buckets_and_grid() -> None:
    assert [tokens // 1024 for tokens in context_buckets(max_position_tokens=131072)] == [
        8, 16, 28, 44, 76, 128,
    ]
    assert [bucket.context_tokens // 1024 for bucket in PLAN.buckets] == [8, 16, 28, 44, 76, 128]
    assert PLAN.grid_size == 15
    expected = {(tp, cp) for tp in (4, 8, 16, 32) for cp in (1, 2, 4, 8) if cp <= tp}
    for bucket in PLAN.buckets:
        assert {(row.tp, row.cp) for row in bucket.rows} == expected


@pytest.mark.parametrize(("tp", "cp", "batch", "itl_ms", "tokens_per_s"), SWEEP_AT_8K)
def test_sweep_at_8k_from_the_plan(tp: int, cp: int, batch: int, itl_ms: str, tokens_per_s: str) -> None:
    (row,) = (row for row in PLAN.buckets[0].rows if (row.tp, row.cp) == (tp, cp))
    assert (row.n_pes, row.batch, row.binding) == (tp, batch, "attention:kv_load")
    assert row.itl_s is not None
    assert f"{row.itl_s * 1e3:.1f}" == itl_ms
    assert f"{row.tokens_per_s_per_node:.0f}" == tokens_per_s


def test_selected_at_8k() -> None:
    bucket = PLAN.buckets[0]
    assert bucket.selected is not None
    assert (bucket.selected.tp, bucket.selected.cp, bucket.sla_met) == (8, 1, True)
    assert f"{bucket.selected.ttft_s:.2f}" == "0.22"


def test_nothing_meets_30_ms_at_8k() -> None:
    bucket = plan_serving(replace(SPEC, decode_itl_ceiling_s=0.030)).buckets[0]
    assert bucket.selected is not None
    assert bucket.sla_met is False
    assert (bucket.selected.tp, bucket.selected.cp) == (32, 1)
    assert f"{bucket.selected.ttft_s:.2f}" == "0.14"
    assert bucket.selected.itl_s is not None
    assert f"{bucket.selected.itl_s * 1e3:.0f}" == "42"


def test_tp8_fails_the_ttft_ceiling_at_44k() -> None:
    (bucket,) = (bucket for bucket in PLAN.buckets if bucket.context_tokens == 44 * 1024)
    (tp8,) = (row for row in bucket.rows if (row.tp, row.cp) == (8, 1))
    assert bucket.ttft_ceiling_s is not None
    assert f"{bucket.ttft_ceiling_s:.2f}" == "1.50"
    assert f"{tp8.ttft_s:.2f}" == "1.61"
    assert not tp8.meets_ttft


def test_frontier_at_8k_is_all_tp8() -> None:
    configs = [(tp, cp) for tp in (4, 8, 16, 32) for cp in (1, 2, 4, 8) if cp <= tp]
    (curves,) = interactivity_curves(SPEC, configs=configs, buckets=[8192])
    assert {point.tp for point in upper_frontier(curves)} == {8}


@pytest.mark.parametrize(
    ("name", "flops", "weight_mb"),
    [
        ("attention/global", 48_318_382_080, "3355.4"),
        ("ffn/dense", 100_663_296_000, "12582.9"),
        ("lm_head", 6_576_668_672, "822.1"),
    ],
)
def test_oracle_figures(name: str, flops: int, weight_mb: str) -> None:
    whole = step(tp=1, batch=8, context=4096)
    (component,) = (c for c in whole.components if c.name == name)
    assert component.flops == flops
    assert f"{component.weight_bytes / 1e6:.1f}" == weight_mb


def test_oracle_totals() -> None:
    whole = step(tp=1, batch=8, context=4096)
    assert sum(c.flops for c in whole.components) == 155_558_346_752
    assert f"{sum(c.weight_bytes for c in whole.components) / 1e6:.1f}" == "16760.4"
