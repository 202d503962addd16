"""What must come out of the sweep of Llama 3.1 70B on sip128: bf16, batch 1, decode, the default grid."""

from dataclasses import replace
from itertools import pairwise

import pytest

from planner_core.auto_explore import (
    Config,
    ExploreResult,
    ParallelismSensitivityRow,
    compute_parallelism_sensitivity,
    explore,
)
from planner_core.workload import Workload
from tests.presets import preset_machine, preset_model

LLAMA = preset_model("llama-3.1-70b")
SIP = preset_machine("sip128")
K = 1024
BASELINE = Config(cp=8, tp=16, ffn_shard_scope="TP+CP")


def decode(context_tokens: int) -> Workload:
    return Workload(phase="decode", context_tokens=context_tokens, batch=1)


def sweep(context_tokens: int) -> ExploreResult:
    return explore(model=LLAMA, machine=SIP, workload=decode(context_tokens))


def curve(
    knob: str, *, baseline: Config = BASELINE, collective_model: str = "flat-all-pes"
) -> dict[int, ParallelismSensitivityRow]:
    rows = compute_parallelism_sensitivity(
        baseline,
        model=LLAMA,
        machine=replace(SIP, collective_model=collective_model),
        workload=decode(128 * K),
        knobs=[knob],
    )
    return {row.value: row for row in rows}


@pytest.mark.parametrize("context_tokens", [8 * K, 64 * K, 128 * K])
def test_front_within_one_package(context_tokens: int) -> None:
    result = sweep(context_tokens)
    assert (result.n_grid, result.n_enumerated) == (36_864, 28_800)
    assert 2 <= len(result.pareto) <= 7
    assert all(row.pes_used <= 128 for row in result.pareto)
    assert all(row.fits for row in result.pareto)


@pytest.mark.parametrize("context_tokens", [1000 * 1000, 1024 * K])
def test_one_row_at_1m(context_tokens: int) -> None:
    (row,) = sweep(context_tokens).pareto
    assert row.pes_used == 128
    assert 0.80 <= row.hbm_frac <= 0.90


def test_values_are_one_and_every_even_number() -> None:
    for knob, largest in (("cp", 256), ("tp", 64), ("pp", 32), ("dp", 64), ("ep", 64)):
        assert list(curve(knob)) == [1, *range(2, largest + 1, 2)]


def test_cp() -> None:
    cp = curve("cp")
    assert not cp[1].fits
    assert not cp[2].fits
    assert cp[4].fits
    assert cp[8].fits
    for value, row in cp.items():
        if value > 8:
            assert row.latency_s > 10 * cp[8].latency_s
            assert row.tiers["attention_all_reduce"] in ("pod", "beyond")
    assert cp[8].tiers["attention_all_reduce"] == "package"
    assert cp[10].step_note


def test_tp() -> None:
    tp = curve("tp")
    assert not tp[4].fits
    assert tp[8].fits
    assert 0.99 < tp[8].memory_bytes_per_pe / SIP.hbm_bytes <= 1.0
    assert tp[16].fits
    best = min((row for row in tp.values() if row.fits), key=lambda row: row.latency_s)
    assert best.value == 16
    assert all(row.latency_s > 10 * tp[16].latency_s for value, row in tp.items() if value > 16)


def test_pp_and_dp_step_up_with_the_same_shape() -> None:
    pp, dp = curve("pp"), curve("dp")
    for knob in (pp, dp):
        assert knob[1].tiers["attention_all_reduce"] == "package"
        assert all(row.latency_s > 10 * knob[1].latency_s for value, row in knob.items() if value > 1)
        assert knob[2].step_note
    for value, row in pp.items():
        assert row.latency_s == pytest.approx(dp[value].latency_s, rel=0.01)


def test_ep_with_the_ffn_cut_over_tp_alone() -> None:
    ep = curve("ep", baseline=replace(BASELINE, ffn_shard_scope="TP"))
    assert not ep[1].fits
    for value in (2, 4, 6, 8):
        assert ep[value].fits
    times = [ep[value].ffn_weight_s for value in (1, 2, 4, 6, 8)]
    assert all(later < earlier for earlier, later in pairwise(times))
    for value, row in ep.items():
        if value > 8:
            assert (row.fits, row.reason) == (False, "not enough ranks")


@pytest.mark.parametrize("knob", ["pp", "dp"])
def test_hierarchical_takes_the_steps_away(knob: str) -> None:
    rows = curve(knob, collective_model="hierarchical")
    for row in rows.values():
        assert row.latency_s == pytest.approx(rows[1].latency_s, rel=0.05)
        assert row.tiers["attention_all_reduce"] == rows[1].tiers["attention_all_reduce"]
        assert row.tiers["ffn_all_reduce"] == rows[1].tiers["ffn_all_reduce"]


def test_baseline_is_marked_once_a_knob() -> None:
    for knob, own in (("cp", 8), ("tp", 16), ("pp", 1), ("dp", 1), ("ep", 1)):
        assert [value for value, row in curve(knob).items() if row.is_baseline] == [own]
