"""Compare in AppTest: numbers with differences, order, names that tell points apart, and its empty states."""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.app.apptest import check_no_fault, html_of, open_page, state_of
from ui import cell_core, compare_core, compare_figures, compare_words, loaded
from ui import theme as look
from ui.app_state import AppState, CellPoint, ComparePoint, ParallelConfig

SPEC = loaded.default_spec()
H100 = {**SPEC, "hardware": "h100-sxm", "hardware_name": "h100"}
TP8 = CellPoint(batch=124, config=ParallelConfig(tp=8, kv_split=1))
TP1 = CellPoint(batch=32, config=ParallelConfig(tp=1, kv_split=1))


def points() -> tuple[ComparePoint, ...]:
    return (
        compare_core.point_of(SPEC, TP8),
        compare_core.point_of(H100, TP1),
        compare_core.point_of({**SPEC, "kv_dtype_bytes": 1}, TP8, label="<b>FP8</b>"),
    )


def opened(compared: tuple[ComparePoint, ...]) -> AppTest:
    at = open_page("compare", AppState(spec=SPEC, compare=compared))
    check_no_fault(at)
    return at


def laid_out(compared: tuple[ComparePoint, ...]) -> tuple[list[cell_core.Cell], list[dict[str, str]]]:
    found = [cell_core.cell(point.spec, point.cell) for point in compared]
    facets = [compare_core.facets(point, one) for point, one in zip(compared, found, strict=True)]
    return found, facets


def test_nothing_to_compare_says_how_to_add() -> None:
    shown = html_of(opened(()))
    assert "Nothing to compare yet" in shown
    assert "Press Add to compare on Serving plan" in shown


def test_one_point_is_shown_and_asks_for_another() -> None:
    shown = html_of(opened(points()[:1]))
    assert "One point so far: add another" in shown
    assert "35.3\u00a0ms" in shown


def test_numbers_are_those_of_the_cells_with_differences_against_the_first() -> None:
    found, facets = laid_out(points())
    names = compare_core.short_names(facets)
    frame = compare_words.table(names, facets, found)
    steps = [float(one.step.latency_s) for one in found if one.step is not None]
    assert list(frame["Step [ms]"]) == [step_s / 1e-3 for step_s in steps]
    wanted = [100.0 * (step_s / steps[0] - 1.0) for step_s in steps]
    assert list(frame["Step, difference [%]"]) == wanted
    per_pe = frame["Throughput of a PE [tok/s]"]
    assert list(per_pe) == [one.tokens_per_s / one.n_pes for one in found]


def test_names_say_what_differs_and_nothing_else() -> None:
    _, facets = laid_out(points())
    assert compare_core.short_names(facets) == [
        "trn2, KV 2 B, batch 124, TP8",
        "h100, KV 2 B, batch 32, TP1",
        "trn2, KV 1 B, batch 124, TP8",
    ]
    assert compare_core.short_names(facets[:1]) == ["TP8"]
    assert compare_core.short_names([]) == []


def test_points_are_moved_and_removed() -> None:
    at = opened(points())
    at.button(key="compare_later_0").click().run()
    assert [point.spec["hardware_name"] for point in state_of(at).compare] == ["h100", "trn2", "trn2"]
    at.button(key="compare_earlier_2").click().run()
    assert [point.spec.get("kv_dtype_bytes") for point in state_of(at).compare] == [None, 1, None]
    at.button(key="compare_remove_0").click().run()
    assert len(state_of(at).compare) == 2
    assert at.button(key="compare_earlier_0").disabled
    at.button(key="compare_clear").click().run()
    assert state_of(at).compare == ()
    check_no_fault(at)


def test_a_point_that_can_not_run_stands_beside_those_that_can() -> None:
    bad = compare_core.point_of(SPEC, CellPoint(config=ParallelConfig(tp=5, kv_split=1)))
    at = opened((*points()[:2], bad))
    shown = html_of(at)
    assert "can&#x27;t run" in shown
    assert "3. TP: got 5." in shown
    assert html_of(opened((bad,))).count("can&#x27;t run") == 1  # no chart, no fault


def test_points_of_different_phases_or_kinds_are_warned_about() -> None:
    prefill = compare_core.point_of(SPEC, TP8.model_copy(update={"phase": "prefill", "batch": 1}))
    explored = compare_core.point_of(SPEC, CellPoint(config=ParallelConfig(tp=8, cp=2)))
    shown = html_of(opened((points()[0], prefill, explored)))
    assert "different phases" in shown
    assert "compare the throughput of a PE" in shown


def test_rooflines_have_the_same_axes() -> None:
    found, _ = laid_out(points())
    drawn = compare_figures.rooflines(found, look=look.LIGHT)
    ranges: list[Any] = [(f.figure.layout.xaxis.range, f.figure.layout.yaxis.range) for f in drawn]
    assert len(ranges) == 3
    assert len(set(ranges)) == 1


def test_labels_from_outside_are_text() -> None:
    shown = html_of(opened(points()))
    assert "&lt;b&gt;FP8&lt;/b&gt;" not in shown  # the grid's head is the config, not the label
    hostile = {**SPEC, "model": "<script>x</script>"}
    assert "<script>" not in html_of(opened((compare_core.point_of(hostile, TP8), points()[0])))


@pytest.mark.parametrize("position", [-1, 3])
def test_a_move_past_an_end_changes_nothing(position: int) -> None:
    at = opened(points()[:2])
    at.button(key="compare_remove_1").click().run()
    assert len(state_of(at).compare) == 1
    assert position not in range(len(state_of(at).compare))
