"""Cell in AppTest: the numbers of `planner cell` and of the sweep, and every refusal in words."""

from __future__ import annotations

import math
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from planner_core.auto_explore import Config, score_configs
from planner_core.reports import cell_document
from planner_core.serving_plan import operating_point, spec_workload
from tests.app.apptest import check_no_fault, html_of, open_page, state_of
from ui import cell_core, cell_words, loaded, widgets
from ui.app_state import AppState, CellPoint, ParallelConfig

SPEC = loaded.default_spec()
MOE = {**SPEC, "hf_config": "mixtral-8x7b", "model": "Mixtral 8x7B"}


def opened(cell: CellPoint | None = None, spec: dict[str, Any] = SPEC) -> AppTest:
    at = open_page("cell", AppState(spec=spec, cell=cell or CellPoint()))
    check_no_fault(at)
    return at


def nine(**axes: Any) -> CellPoint:
    return CellPoint(context_tokens=131072, batch=4, config=ParallelConfig(**axes))


def test_the_default_cell_is_the_reference() -> None:
    at = opened()
    shown = html_of(at)
    for number in ("8.57\u00a0ms", "1.86\u00a0ms", "1,870\u00a0tok/s", "14,900\u00a0tok/s"):
        assert number in shown
    frame = at.dataframe[0].value.set_index("Component")
    assert round(frame.loc["attention/global", "KV [MB]"], 1) == 2684.4
    assert round(frame.loc["ffn/dense", "Time [ms]"], 3) == 2.211
    assert round(frame.loc["model total", "Weights [MB]"], 2) == 2095.05
    assert frame.loc["attention/global", "Binds"] == "kv_load"


@pytest.mark.parametrize("phase", ["decode", "prefill"])
def test_a_serving_cell_is_the_command_lines(phase: str) -> None:
    point = CellPoint(phase=phase, batch=3, config=ParallelConfig(tp=16, pp=2, kv_split=2))
    found = cell_core.cell(SPEC, point)
    spec = loaded.run_spec(SPEC)
    wanted = cell_document(
        operating_point(spec, tp=16, cp=2, pp=2, batch=3, context_tokens=8192, phase=phase),
        machine=spec.machine,
    )
    assert found.step is not None
    assert found.memory is not None
    assert float(found.step.latency_s) == wanted["step_s"]
    assert float(found.memory.total_bytes) == wanted["memory"]["total_bytes"]
    assert (found.tokens_per_s, found.tokens_per_s_in_all) == (
        wanted["tokens_per_s_per_replica"],
        wanted["tokens_per_s_per_node"],
    )
    stages = cell_words.stage_table(found)
    assert math.isclose(
        stages["Share [%]"].sum(), 100.0 * stages["Floor [ms]"].sum() / 1e3 / wanted["step_s"]
    )


@pytest.mark.parametrize(
    ("spec", "axes"),
    [
        (SPEC, {"tp": 4, "cp": 8, "dp": 2, "ffn_shard_scope": "TP+CP"}),
        (SPEC, {"tp": 16, "cp": 2, "kv_shard_mode": "replicate", "cp_ring_variant": "kv"}),
        (MOE, {"tp": 4, "cp": 4, "dp": 2, "ep": 4, "cp_placement": "outer", "tp_placement": "outer"}),
    ],
)
def test_a_cell_of_all_nine_axes_is_the_sweeps(spec: dict[str, Any], axes: dict[str, Any]) -> None:
    point = nine(**axes)
    found = cell_core.cell(spec, point)
    parsed = loaded.run_spec(spec)
    (score,) = score_configs(
        configs=[Config(**axes)],
        model=parsed.model,
        machine=parsed.machine,
        workload=spec_workload(parsed, phase="decode", context_tokens=131072, batch=4),
    )
    assert found.step is not None
    assert found.memory is not None
    assert float(found.step.latency_s) == score.latency_s
    assert float(found.memory.total_bytes) == score.memory_bytes_per_pe
    assert found.tokens_per_s_in_all == score.throughput_tokens_per_s
    assert (found.n_pes, found.lacks, found.label) == (score.pes_used, score.lacks, score.config.label())
    check_no_fault(opened(point, spec))


def test_another_collective_model_changes_the_numbers_and_goes_along_to_compare() -> None:
    spec = {**SPEC, "hardware": "h100-cluster-32", "hardware_name": "cluster"}
    point = nine(tp=4, cp=8, dp=2)
    own = cell_core.cell(spec, point)
    assert own.spec.machine.collective_model == "hierarchical"
    other = point.model_copy(update={"collective_model": "flat-all-pes"})
    found = cell_core.cell(spec, other)
    assert found.step is not None
    assert own.step is not None
    assert float(found.step.latency_s) != float(own.step.latency_s)
    assert cell_core.document_in_force(spec, point) == spec
    document = cell_core.document_in_force(spec, other)
    assert document["hardware"]["collective_model"] == "flat-all-pes"
    assert loaded.run_spec(document).machine.collective_model == "flat-all-pes"


def test_an_illegal_tp_is_explained_with_the_legal_degrees() -> None:
    shown = html_of(opened(CellPoint(config=ParallelConfig(tp=5, kv_split=9))))
    assert "This config can&#x27;t run" in shown
    assert (
        "cuts 32 query heads and 8 KV heads evenly on the 64 PEs of a node: 1, 2, 4, 8, 16, 32, 64" in shown
    )
    assert "at most TP, which is 5" in shown  # every fault at once


@pytest.mark.parametrize(
    ("axes", "said"),
    [
        ({"tp": 8, "pp": 9, "kv_split": 1}, "with TP 8 use at most PP 8"),
        ({"tp": 8, "dp": 4, "kv_split": 1}, "choose All nine axes"),
        ({"tp": 1, "pp": 64}, "at most the model&#x27;s 40 layers"),
        ({"tp": 129}, "at most 128, 4 ranks a query head"),
        ({"tp": 8, "ep": 64}, "at most CP*TP*DP, which is 8"),
    ],
)
def test_what_can_not_run_says_why(axes: dict[str, Any], said: str) -> None:
    shown = html_of(opened(CellPoint(config=ParallelConfig(**axes))))
    assert said in shown


def test_too_many_pes_are_refused_on_a_machine_that_ends() -> None:
    shown = html_of(opened(nine(tp=64, cp=64)))
    assert "got <bdi>4,096 PEs</bdi>" in shown
    assert "at most the 64 PEs of the machine" in shown


def test_what_does_not_fit_says_how_far_it_is_and_what_does() -> None:
    shown = html_of(opened(CellPoint(batch=126)))
    assert "This point does not fit" in shown
    assert "the KV cache does not fit beside the weights" in shown
    assert "the largest batch that fits is 124" in shown


def test_what_is_odd_is_said() -> None:
    shown = html_of(opened(CellPoint(batch=1, context_tokens=400_000)))
    assert "longer than the 131,072 tokens" in shown
    assert "Batch 1 is not a multiple of 2" in shown


def test_the_kind_of_config_is_changed_and_back() -> None:
    at = opened(CellPoint(config=ParallelConfig(tp=16, kv_split=2)))
    at.button_group(key="cell_kind").set_value("All nine axes").run()
    assert state_of(at).cell.config == ParallelConfig(tp=16)
    at.number_input(key="field_cell_config_dp").set_value(2).run()
    assert state_of(at).cell.config.dp == 2
    at.button_group(key="cell_kind").set_value("Serving config").run()
    assert state_of(at).cell.config == ParallelConfig(tp=16, kv_split=1)
    check_no_fault(at)


def test_a_named_config_of_the_run_spec_is_opened() -> None:
    named = {"label": "<b>TP=16</b>", "TP": 16, "PP": 1, "CP": 2, "bucket": 16384, "bs": 8}
    at = opened(spec={**SPEC, "configs": [named]})
    at.selectbox(key="cell_named").set_value(0).run()
    cell = state_of(at).cell
    assert (cell.config.tp, cell.config.kv_split, cell.context_tokens, cell.batch) == (16, 2, 16384, 8)
    check_no_fault(at)


def test_add_to_compare() -> None:
    at = opened()
    at.button(key="cell_compare").click().run()
    (point,) = state_of(at).compare
    assert (point.label, point.cell, point.spec) == ("TP8", CellPoint(), SPEC)


@pytest.mark.parametrize(("sent", "kept"), [(3.7, 4), (1e6, 1_000_000), (float("nan"), float("nan"))])
def test_a_float_of_the_browser_becomes_a_whole_number_or_is_left_for_the_state(sent, kept) -> None:
    assert str(widgets._whole(sent)) == str(kept)
