"""The sweep against a brute force: every config of a small grid, scored alone and ranked by definition."""

import importlib
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner_core.auto_explore import (
    Config,
    ConfigScore,
    ExploreAxes,
    cloud_scores,
    dense_axes,
    explore,
    score_configs,
)
from planner_core.auto_explore.config import MODES
from planner_core.auto_explore.grid import AXIS_NAMES, slabs
from planner_core.errors import InvalidSpec
from planner_core.hardware import COLLECTIVE_MODELS, Machine
from planner_core.model_arch import ModelArch
from planner_core.preset_files import presets_dir
from planner_core.run_spec import load_run_spec
from planner_core.serving_plan import operating_point
from planner_core.workload import Workload
from tests.presets import preset_machine, preset_model

LLAMA = preset_model("llama-3.1-70b")
SIP = preset_machine("sip128")
EXPLORE_MODULE = importlib.import_module("planner_core.auto_explore.explore")  # the package has the function
NAMES = ("llama-3.1-8b", "llama-3.1-70b", "gpt-oss-120b", "deepseek-v3")


def some(values: tuple[Any, ...], *, most: int, least: int = 1) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(st.sampled_from(values), min_size=least, max_size=most, unique=True).map(tuple)


@st.composite
def small_axes(draw: st.DrawFn) -> ExploreAxes:
    return ExploreAxes(
        cp=draw(some((1, 2, 3, 8, 16), least=2, most=4)),
        tp=draw(some((1, 4, 6, 16, 64, 300), least=2, most=4)),
        pp=draw(some((1, 2, 4, 61, 100), most=2)),
        dp=draw(some((1, 2, 4), least=2, most=2)),
        **{name: draw(some(choices, most=len(choices))) for name, choices in MODES.items()},
    )


@st.composite
def sweeps(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "model": preset_model(draw(st.sampled_from(NAMES))),
        "machine": replace(
            SIP,
            collective_model=draw(st.sampled_from(COLLECTIVE_MODELS)),
            hbm_bytes=draw(st.sampled_from((1e9, 20e9, 80e9, 1e12, 4e12))),
        ),
        "workload": Workload(
            phase=draw(st.sampled_from(("decode", "prefill"))),
            context_tokens=draw(st.sampled_from((512, 8192, 131_072))),
            batch=draw(st.sampled_from((1, 8))),
        ),
        "axes": draw(small_axes()),
        "max_pes": draw(st.sampled_from((None, None, 16, 128))),
    }


def every_config(axes: ExploreAxes) -> Iterator[Config]:
    for values in product(*(getattr(axes, name) for name in AXIS_NAMES)):
        yield Config(**dict(zip(AXIS_NAMES, values, strict=True)))


def prune_of(config: Config, model: ModelArch) -> str:
    if config.pp > model.n_layers:
        return "more stages than layers"
    if config.tp > 4 * model.n_q_heads:
        return "head split too fine"
    if "DP" in config.ffn_shard_scope and config.dp == 1:
        return "FFN scope over DP without DP"
    if config.cp_ring_variant == "qoml" and config.cp == 1:
        return "qoml ring without CP"
    return ""


def objectives(score: ConfigScore) -> tuple[float, float, float]:
    return score.latency_s, float(score.pes_used), -score.efficiency


def simplicity(config: Config) -> tuple[int, ...]:
    """Fewest modes off their default (a ring needs CP above 1), smallest PP, DP, CP, then mode by mode."""
    n_off = sum(
        getattr(config, name) != getattr(Config(), name)
        for name in MODES
        if name != "cp_ring_variant" or config.cp > 1
    )
    places = (choices.index(getattr(config, name)) for name, choices in MODES.items())
    return (n_off, config.pp, config.dp, config.cp, *places)


def dominates(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))


@settings(max_examples=60)
@given(sweep=sweeps())
def test_brute_force(sweep: dict[str, Any]) -> None:
    result = explore(**sweep)
    model = sweep["model"]
    pruned = dict.fromkeys(result.pruned, 0)
    kept = []
    for config in every_config(sweep["axes"]):
        reason = prune_of(config, model)
        if reason:
            pruned[reason] += 1
        else:
            kept.append(config)
    assert result.n_grid == sweep["axes"].n_cells == len(kept) + sum(pruned.values())
    assert result.n_enumerated == len(kept)
    assert result.pruned == pruned

    given_to_score = {name: value for name, value in sweep.items() if name != "axes"}
    scores = score_configs(configs=kept, **given_to_score)
    feasible = [score for score in scores if score.fits]
    assert result.n_feasible == len(feasible)
    missing = dict.fromkeys(result.infeasible, 0)
    for score in scores:
        if not score.fits:
            missing[score.lacks] += 1
    assert result.infeasible == missing
    assert result.n_feasible + sum(result.infeasible.values()) == result.n_enumerated

    by_point: dict[tuple[float, float, float], list[ConfigScore]] = {}
    for score in feasible:
        by_point.setdefault(objectives(score), []).append(score)
    front = {point for point in by_point if not any(dominates(other, point) for other in by_point)}
    assert [objectives(row) for row in result.pareto] == sorted(front)
    for row in result.pareto:
        tied = by_point[objectives(row)]
        assert row.n_tied == len(tied) - 1
        assert row.config == min(tied, key=simplicity).config
        assert 0.0 < row.efficiency <= 1.0
        assert all(math.isfinite(value) for value in objectives(row))

    allowed = [score for score in scores if score.lacks != "PEs"]
    if feasible or not allowed:
        assert result.closest is None
    else:
        assert result.closest is not None
        assert not result.closest.fits
        least = min(score.memory_bytes_per_pe for score in allowed)
        assert result.closest.memory_bytes_per_pe == least


@settings(max_examples=30)
@given(sweep=sweeps(), random=st.randoms(use_true_random=False))
def test_the_order_of_an_axis_changes_nothing(sweep: dict[str, Any], random: Any) -> None:
    axes = sweep["axes"]
    orders = {name: list(getattr(axes, name)) for name in AXIS_NAMES}
    for values in orders.values():
        random.shuffle(values)
    shuffled = replace(axes, **{name: tuple(values) for name, values in orders.items()})
    one, other = explore(**sweep), explore(**{**sweep, "axes": shuffled})
    assert one.pareto == other.pareto
    assert (one.n_feasible, one.pruned, one.infeasible) == (other.n_feasible, other.pruned, other.infeasible)


@settings(max_examples=30)
@given(sweep=sweeps(), slab_cells=st.sampled_from((1, 7, 100, 1000)))
def test_slab_size_changes_nothing(sweep: dict[str, Any], slab_cells: int) -> None:
    whole = explore(**sweep)
    with pytest.MonkeyPatch.context() as patch:
        at_least = sweep["axes"].n_cells // 60  # not too many of them
        patch.setattr(EXPLORE_MODULE, "slabs", partial(slabs, slab_cells=max(slab_cells, at_least)))
        cut = explore(**sweep)
    assert cut.pareto == whole.pareto
    assert (cut.n_enumerated, cut.n_feasible) == (whole.n_enumerated, whole.n_feasible)
    assert (cut.pruned, cut.infeasible) == (whole.pruned, whole.infeasible)
    if whole.closest is not None:
        assert cut.closest is not None
        assert cut.closest.memory_bytes_per_pe == whole.closest.memory_bytes_per_pe


@pytest.mark.parametrize("slab_cells", [1, 31, 700, 10**6])
def test_slabs_cover_each_cell_once(slab_cells: int) -> None:
    axes = ExploreAxes(cp=(1, 2, 3), tp=(1, 2), pp=(1, 5), dp=(1,), kv_shard_mode=("split",))
    seen = np.zeros(axes.shape, dtype=int)
    for slab in slabs(axes=axes, model=LLAMA, slab_cells=slab_cells):
        assert np.prod(slab.shape) <= slab_cells
        seen[tuple(slice(at, at + n) for at, n in zip(slab.offset, slab.shape, strict=True))] += 1
    assert np.all(seen == 1)


DECODE_8K = Workload(phase="decode", context_tokens=8192, batch=1)


def test_default_grid_prunes() -> None:
    result = explore(model=LLAMA, machine=SIP, workload=DECODE_8K)
    assert result.n_grid == 36_864
    assert result.n_enumerated == 28_800
    assert sum(result.pruned.values()) == 36_864 - 28_800


def near_equal(one: ConfigScore, other: ConfigScore) -> bool:
    return one.pes_used == other.pes_used and math.isclose(one.latency_s, other.latency_s, rel_tol=1e-9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("phase", ["decode", "prefill"])
def test_no_two_rows_differ_by_rounding_alone(name: str, phase: str) -> None:
    for batch in (1, 5, 64):
        for context_tokens in (8192, 50_000, 131_072):
            rows = explore(
                model=preset_model(name),
                machine=replace(SIP, hbm_bytes=24e9),
                workload=Workload(phase=phase, context_tokens=context_tokens, batch=batch),
            ).pareto
            assert not any(near_equal(a, b) for at, a in enumerate(rows) for b in rows[:at])


@pytest.mark.parametrize("max_pes", [1, 32, 33, 128, 5000])
def test_pe_budget(max_pes: int) -> None:
    result = explore(model=LLAMA, machine=SIP, workload=DECODE_8K, max_pes=max_pes)
    expected = sum(
        1
        for config in every_config(ExploreAxes())
        if not prune_of(config, LLAMA) and config.cp * config.tp * config.pp * config.dp > max_pes
    )
    assert result.infeasible["PEs"] == expected
    assert all(row.pes_used <= max_pes for row in result.pareto)


def test_the_machine_has_only_so_many_pes() -> None:
    trn2 = preset_machine("trn2")
    result = explore(model=LLAMA, machine=trn2, workload=DECODE_8K, max_pes=1000)
    assert result.infeasible["PEs"] > 0
    assert all(row.pes_used <= 64 for row in result.pareto)


def test_closest_where_nothing_fits() -> None:
    small = replace(SIP, hbm_bytes=3e7)
    result = explore(model=LLAMA, machine=small, workload=DECODE_8K)
    assert result.pareto == ()
    assert (result.n_feasible, result.infeasible["weights"]) == (0, 28_800)
    assert result.closest is not None
    assert (result.closest.fits, result.closest.lacks) == (False, "weights")
    assert len(result.cloud_index) == 0


def test_progress_and_stop() -> None:
    axes = dense_axes(cp_max=32, tp_max=16, pp_max=4, dp_max=4)
    calls: list[tuple[int, int]] = []
    whole = explore(
        model=LLAMA,
        machine=SIP,
        workload=DECODE_8K,
        axes=axes,
        progress=lambda done, total: calls.append((done, total)),
    )
    assert not whole.stopped
    assert len(calls) > 1
    assert [done for done, _ in calls] == sorted({done for done, _ in calls})
    assert calls[-1] == (axes.n_cells, axes.n_cells)

    answers = iter([False, True])
    stopped = explore(
        model=LLAMA, machine=SIP, workload=DECODE_8K, axes=axes, should_stop=lambda: next(answers)
    )
    assert stopped.stopped
    assert 0 < stopped.n_enumerated < whole.n_enumerated
    at_once = explore(model=LLAMA, machine=SIP, workload=DECODE_8K, axes=axes, should_stop=lambda: True)
    assert (at_once.stopped, at_once.n_enumerated, at_once.pareto) == (True, 0, ())
    assert (at_once.closest, at_once.n_grid) == (None, axes.n_cells)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_no_nan_on_the_front(bad: float) -> None:
    """A tier whose latency is no number: what touches it is a NaN, and never on the front."""
    inner = SIP.tiers[:2]
    broken = replace(SIP, tiers=(*inner, replace(SIP.tiers[2], hop_latency_s=bad), SIP.tiers[3]))
    with np.errstate(invalid="ignore"):
        result = explore(model=LLAMA, machine=broken, workload=DECODE_8K)
    within = explore(model=LLAMA, machine=SIP, workload=DECODE_8K, max_pes=128)
    assert [objectives(row) for row in result.pareto] == [objectives(row) for row in within.pareto]
    assert len(result.pareto) > 1


def test_cloud_is_feasible_and_spread() -> None:
    result = explore(model=LLAMA, machine=SIP, workload=DECODE_8K)
    cloud = cloud_scores(result=result, model=LLAMA, machine=SIP, workload=DECODE_8K, n_points=300)
    assert 100 < len(cloud) <= 300
    assert all(score.fits for score in cloud)
    assert len({(score.latency_s, score.pes_used) for score in cloud}) == len(cloud)
    front = [objectives(row) for row in result.pareto]
    for score in cloud:
        point = objectives(score)
        assert point in front or any(dominates(other, point) for other in front)


@pytest.mark.parametrize("tp", [1, 2, 4, 8, 16, 32, 64])
@pytest.mark.parametrize("phase", ["decode", "prefill"])
def test_agrees_with_the_serving_plan_cell(tp: int, phase: str) -> None:
    """TP alone on trn2, copies of a KV head not split: number for number."""
    spec = load_run_spec(presets_dir() / "run_specs" / "granite-4.1-8b-trn2.json")
    cell = operating_point(spec, tp=tp, cp=1, batch=6, context_tokens=8192, phase=phase)
    (score,) = score_configs(
        configs=[Config(tp=tp, kv_shard_mode="replicate")],
        model=spec.model,
        machine=spec.machine,
        workload=Workload(phase=phase, context_tokens=8192, batch=6),
    )
    assert score.latency_s == cell.step.latency_s
    assert score.binding == cell.step.binding
    assert score.memory_bytes_per_pe == cell.memory.total_bytes
    assert score.fits == cell.memory.fits
    assert score.throughput_tokens_per_s == pytest.approx(cell.tokens_per_s_per_replica, rel=1e-15)
    if tp > 8:  # all the copies share the sequence: the plan's CP
        split = operating_point(spec, tp=tp, cp=tp // 8, batch=6, context_tokens=8192, phase=phase)
        (score,) = score_configs(
            configs=[Config(tp=tp)],
            model=spec.model,
            machine=spec.machine,
            workload=Workload(phase=phase, context_tokens=8192, batch=6),
        )
        assert score.latency_s == split.step.latency_s
        assert score.memory_bytes_per_pe == split.memory.total_bytes


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (Config(tp=8, ep=4), "not enough ranks"),
        (Config(tp=8, cp=4, ep=4), ""),
        (Config(tp=8, pp=81), "more stages than layers"),
        (Config(tp=512), "head split too fine"),
        (Config(tp=2), "weights"),
    ],
)
def test_what_a_named_config_lacks(config: Config, reason: str) -> None:
    machine: Machine = replace(SIP, hbm_bytes=40e9)
    (score,) = score_configs(configs=[config], model=LLAMA, machine=machine, workload=DECODE_8K)
    assert (score.lacks, score.fits) == (reason, reason == "")


@pytest.mark.parametrize(
    "axes",
    [
        ExploreAxes(cp=()),
        ExploreAxes(tp=(0, 1)),
        ExploreAxes(pp=(1, 1)),
        ExploreAxes(dp=(True,)),
        ExploreAxes(cp_placement=("middle",)),
        ExploreAxes(cp=tuple(range(1, 1025)), tp=tuple(range(1, 1025)), pp=(1, 2), dp=(1, 2)),
    ],
)
def test_wrong_axes_are_refused(axes: ExploreAxes) -> None:
    with pytest.raises(InvalidSpec, match="allowed: "):
        explore(model=LLAMA, machine=SIP, workload=DECODE_8K, axes=axes)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("phase", ["decode", "prefill"])
def test_efficiency_reaches_one_and_never_passes_it(name: str, phase: str) -> None:
    """One PE that computes all the time: the floor is the step itself, summed in another order."""
    slow = replace(SIP, peak_flops_per_s={"bf16": 1e9}, hbm_bytes=1e15)
    for batch in range(1, 40):
        (score,) = score_configs(
            configs=[Config()],
            model=preset_model(name),
            machine=slow,
            workload=Workload(phase=phase, context_tokens=777 * batch, batch=batch),
        )
        assert 1.0 - 1e-12 <= score.efficiency <= 1.0
