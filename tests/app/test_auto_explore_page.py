"""Auto Explore in AppTest: the core's numbers, one baseline, and no state left without words."""

from __future__ import annotations

import json
import time
from dataclasses import fields, replace
from typing import Any

import pytest
import streamlit
from streamlit.testing.v1 import AppTest

from planner_core.auto_explore import ExploreAxes, explore
from planner_core.serving_plan import spec_workload
from planner_core.units import MS
from tests.app.apptest import check_no_fault, html_of, open_page, state_of
from ui import explore_controls, explore_core, explore_job, explore_tables, explore_words, loaded
from ui import state as state_module
from ui.app_state import AppState, ExploreSettings, ParallelConfig, SearchedAxes

SIP = {
    **loaded.default_spec(),
    "hf_config": "llama-3.1-70b",
    "model": "Llama 3.1 70B",
    "hardware": "sip128",
    "hardware_name": "sip128",
}
AROUND = ParallelConfig(cp=8, tp=16, ffn_shard_scope="TP+CP")


def sip(*, baseline: ParallelConfig | None = None, **settings: Any) -> AppState:
    return AppState(
        spec=SIP, explore=ExploreSettings(**{"context_tokens": 131072, **settings}), baseline=baseline
    )


def opened(state: AppState | None = None) -> AppTest:
    at = open_page("auto_explore", state)
    check_no_fault(at)
    return at


def figure_of(at: AppTest, key: str) -> dict[str, Any]:
    (element,) = [element for element in at.get("bidi_component") if element.key == key]
    figure: dict[str, Any] = json.loads(json.loads(element.proto.json)["figure"])
    return figure


def front(state: AppState) -> tuple[Any, ...]:
    return explore_core.sweep(explore_core.question(state)).pareto


def test_the_report_is_around_the_baseline_and_the_view_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    made: dict[str, Any] = {}
    show = streamlit.download_button

    def kept(label: str, **more: Any) -> Any:
        made[label] = more["data"]
        return show(label, **more)

    monkeypatch.setattr(streamlit, "download_button", kept)
    opened(sip(baseline=AROUND, view="3-D"))
    document = made["Export"]().decode()  # as the server does on the click: outside the session
    assert "Sensitivity around TP16 CP8 FFN TP+CP" in document
    assert "Pareto front in three objectives" in document


def test_the_default_axes_of_the_state_are_those_of_the_core() -> None:
    axes = SearchedAxes()
    for field in fields(ExploreAxes):
        assert getattr(axes, field.name) == getattr(ExploreAxes(), field.name)


def test_the_page_shows_the_cores_own_sweep() -> None:
    at = opened(sip())
    spec = loaded.run_spec(SIP)
    result = explore(
        model=spec.model,
        machine=spec.machine,
        workload=spec_workload(spec, phase="decode", context_tokens=131072, batch=1),
    )
    html = html_of(at)
    assert f"<bdi>{result.n_enumerated:,}</bdi>" in html
    assert f"<bdi>{result.n_feasible:,}</bdi>" in html
    assert "weights 10,608" in html
    table = at.dataframe[0].value
    assert list(table["Latency [ms]"]) == pytest.approx(
        [row.latency_s / MS for row in result.pareto], rel=5e-3
    )
    full = explore_tables.front_table(result.pareto)
    assert list(full["Latency [ms]"]) == [row.latency_s / MS for row in result.pareto]
    assert list(table["Config"]) == [row.label() for row in result.pareto]
    assert list(table.columns) == list(explore_tables.FRONT_COLUMNS)


def test_a_first_visit_takes_the_models_context_128k_at_most() -> None:
    document = {**loaded.default_spec(), "hf_config": "gpt-oss-120b", "hardware": "gb200"}
    spec = loaded.run_spec(document)
    assert explore_core.default_context(spec) == 131072
    short = replace(spec, model=replace(spec.model, max_position_tokens=8192))
    assert explore_core.default_context(short) == 8192


def test_a_context_beyond_the_models_is_counted_and_said() -> None:
    assert "longer than the 128k tokens" in html_of(opened(sip(context_tokens=2**20)))


def test_the_number_input_moves_the_baseline_and_everything_with_it() -> None:
    at = opened(sip())
    assert at.number_input(key="explore_baseline_row").value == 0
    at.number_input(key="explore_baseline_row").set_value(2).run()
    check_no_fault(at)
    assert state_of(at).baseline == explore_core.chosen_of(front(sip())[2].config)
    assert at.session_state[explore_controls.TABLE_KEY]["selection"]["rows"] == [2]
    star = [
        trace for trace in figure_of(at, "explore_projections")["data"] if "row 2" in trace.get("name", "")
    ]
    assert len(star) == 3


def test_a_baseline_from_a_link_need_not_be_on_the_front() -> None:
    at = opened(sip(baseline=AROUND, tab="Sensitivity"))
    html = html_of(at)
    assert "not on the front" in html
    assert at.number_input(key="explore_baseline_row").value is None
    assert (
        "Sensitivity around TP16 CP8 FFN TP+CP" in figure_of(at, "explore_panel")["layout"]["title"]["text"]
    )
    at.button(key="explore_first_row").click().run()
    assert state_of(at).baseline is None
    assert at.number_input(key="explore_baseline_row").value == 0


def test_a_baseline_that_does_not_fit_is_shown_and_said() -> None:
    html = html_of(opened(sip(baseline=ParallelConfig(tp=1), tab="Sensitivity")))
    assert "does not fit, lacks weights" in html


def test_a_baseline_of_more_pes_than_64_bits_hold_is_shown() -> None:
    most = 1 << 20
    baseline = ParallelConfig(cp=most, tp=most, pp=most, dp=most)
    explore = ExploreSettings(context_tokens=131072, tab="Sensitivity")
    at = open_page("auto_explore", AppState(spec=loaded.default_spec(), explore=explore, baseline=baseline))
    check_no_fault(at)
    rows = at.get("dataframe")[0].value
    assert rows["PEs"].max() >= float(2**80)


def test_each_knob_has_a_sentence_and_its_rows() -> None:
    at = opened(sip(baseline=AROUND, tab="Sensitivity"))
    asked = explore_core.question(sip(baseline=AROUND))
    rows = explore_core.sensitivity(asked, explore_core.config_of(AROUND))
    table = at.dataframe[0].value
    assert len(table) == len(rows)
    assert list(table["Latency [ms]"]) == pytest.approx([row.latency_s / MS for row in rows], rel=5e-3)
    assert list(explore_tables.sensitivity_table(rows)["Value"]) == [row.value for row in rows]
    html = html_of(at)
    assert "Does not fit: 1 (lacks weights); 2 (lacks KV)" in html  # CP
    assert "Steps at 18" in html  # TP beyond the package
    assert "not enough ranks" in html  # EP


def test_a_grid_with_no_fit_says_which_is_closest_and_what_would_fit() -> None:
    state = sip(context_tokens=2**20, batch=64, max_pes=128)
    at = opened(state)
    html = html_of(at)
    assert "No config fits" in html
    assert "The closest is" in html
    found = explore_core.would_fit(explore_core.question(state))
    assert found.without_budget
    assert found.context_tokens is not None
    assert found.batch is None or found.batch < 64
    fits = replace(explore_core.question(state), context_tokens=found.context_tokens)
    assert explore_core.sweep(fits).n_feasible > 0
    more = replace(fits, context_tokens=2 * found.context_tokens)
    assert explore_core.sweep(more).n_feasible == 0
    assert not at.dataframe


def test_a_budget_under_every_config_says_so() -> None:
    axes = SearchedAxes(cp=(8,), tp=(8,))
    html = html_of(opened(sip(max_pes=2, axes=axes)))
    assert "Every config asks for more than the 2 PEs allowed" in html


def test_an_axis_without_values_names_its_fault() -> None:
    at = opened(sip(axes=SearchedAxes(tp=())))
    html = html_of(at)
    assert "This grid can&#x27;t be searched" in html
    assert "<bdi>tp</bdi>" in html


def test_the_collective_model_can_be_switched_and_how_far_it_moves_is_said() -> None:
    html = html_of(opened(sip(collective_model="hierarchical")))
    assert "flat-all-pes (the machine&#x27;s own) 21.2" in html
    assert "Lowest latency by collective model: hierarchical" in html


def test_the_baseline_goes_to_compare_with_its_collective_model() -> None:
    at = opened(sip(collective_model="flat"))
    at.button(key="explore_compare").click().run()
    check_no_fault(at)
    (point,) = state_of(at).compare
    assert point.cell.collective_model == "flat"
    assert point.cell.context_tokens == 131072
    assert point.cell.config == explore_core.chosen_of(front(sip(collective_model="flat"))[0].config)


def test_values_of_a_link_that_are_no_option_are_kept() -> None:
    at = opened(sip(context_tokens=100_000, batch=24))
    assert at.select_slider[0].value == "100,000" or at.select_slider[0].value == 100_000
    assert state_of(at).explore.batch == 24


@pytest.mark.parametrize("phase", ["decode", "prefill"])
@pytest.mark.parametrize("tab", ["Pareto", "Sensitivity"])
@pytest.mark.parametrize("view", ["Projections", "3-D"])
def test_every_view_opens(phase: Any, tab: Any, view: Any) -> None:
    opened(sip(phase=phase, tab=tab, view=view, context_tokens=8192))


def test_names_from_outside_reach_the_figure_as_typed() -> None:
    state = AppState(spec={**SIP, "model": "<b>x</b> **y**"})
    title = figure_of(opened(state), "explore_projections")["layout"]["title"]["text"]
    assert "&lt;b&gt;x&lt;/b&gt; **y**" in title


def test_review_mode_keeps_the_figure_and_drops_its_buttons() -> None:
    at = opened(sip().model_copy(update={"review": True}))
    (element,) = [element for element in at.get("bidi_component") if element.key == "explore_projections"]
    assert json.loads(element.proto.json)["buttons"] is False


@pytest.mark.parametrize(("row", "picked"), [(-1, False), (0, True), (3, True), (4, False), (10**9, False)])
def test_only_a_row_of_the_front_can_be_picked(
    row: int, picked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes: list[dict[str, Any]] = []
    monkeypatch.setattr(state_module, "current", lambda: sip())
    monkeypatch.setattr(state_module, "update", lambda **fields: changes.append(fields))
    explore_controls.pick_row(row)
    expected = [{"baseline": explore_core.chosen_of(front(sip())[row].config)}] if picked else []
    assert changes == expected


def dense(**settings: Any) -> AppState:
    return sip(dense=True, **settings)


def test_a_dense_grid_waits_for_its_start_and_offers_to_stop() -> None:
    at = opened(dense())
    assert "152,843,328 combinations" in html_of(at)
    at.button(key="explore_start").click().run()
    check_no_fault(at)
    job = at.session_state["_explore_job"]
    assert job.running
    at.button(key="explore_stop").click().run()
    job.join(30)
    assert job.result.stopped
    at.run()
    check_no_fault(at)
    assert "Stopped after" in at.warning[0].value


def small_question() -> explore_core.Question:
    asked = explore_core.question(sip())
    return replace(asked, axes=ExploreAxes(pp=(1, 2, 4, 6), dp=(1, 2, 4, 6)))


def test_a_job_gives_the_sweep_and_keeps_it_for_every_session() -> None:
    asked = small_question()
    job = explore_job.Job(asked, alive=lambda: True)
    job.join(60)
    assert job.result is not None
    assert job.n_done == asked.axes.n_cells
    assert job.result.pareto == explore_core.sweep(asked).pareto
    assert explore_job.kept(asked) is job.result


def test_a_job_ends_when_nobody_looks_any_more() -> None:
    asked = explore_core.question(dense())
    job = explore_job.Job(asked, alive=lambda: False)
    job.join(30)
    assert job.result is not None
    assert job.result.stopped
    assert job.n_done < asked.axes.n_cells // 10
    assert explore_job.kept(asked) is None


def test_a_second_job_waits_for_its_turn_and_can_be_stopped_there() -> None:
    first = explore_job.Job(explore_core.question(dense()), alive=lambda: True)
    second = explore_job.Job(explore_core.question(dense(batch=2)), alive=lambda: True)
    time.sleep(0.3)
    assert second.waiting
    assert second.n_done == 0
    second.stop()
    second.join(30)
    first.stop()
    first.join(30)
    assert second.result is not None
    assert second.result.stopped
    assert second.result.n_enumerated == 0


def test_ranges_are_short() -> None:
    assert explore_words._ranges([1, 2, 4, 6, 20, 22, 40]) == "1 to 6, 20 to 22, 40"
    assert explore_words._ranges(range(2, 60, 4)).endswith("and more")
