"""The figure of predicted against measured times."""

import json
from dataclasses import replace

import plotly.graph_objects as go
import pytest

from planner_core.figures.accuracy import NO_MEASUREMENTS, predicted_against_measured
from planner_core.figures.theme import DARK, LIGHT, Theme
from planner_core.measurements import shipped_comparisons


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.mode)
def test_every_measurement_is_a_mark_under_its_machine(theme: Theme) -> None:
    figure = predicted_against_measured(comparisons=shipped_comparisons(), theme=theme).figure
    go.Figure(figure.to_dict())  # checked in full
    marks = {trace.name: trace for trace in figure.data if trace.mode == "markers"}
    for name, trace in marks.items():
        rows = [item for item in shipped_comparisons() if item.measurement.machine.name == name]
        assert list(trace.x) == pytest.approx([item.measured_s * 1e3 for item in rows], rel=1e-5)
        assert list(trace.y) == pytest.approx([item.predicted_s * 1e3 for item in rows], rel=1e-5)
        assert len(trace.hovertext) == len(rows)
    assert set(marks) == {item.measurement.machine.name for item in shipped_comparisons()}
    assert len({(trace.marker.symbol, trace.marker.color) for trace in marks.values()}) == len(marks)


def test_the_lines_are_at_one_to_one_and_at_half() -> None:
    figure = predicted_against_measured(comparisons=shipped_comparisons(), theme=LIGHT).figure
    lines = [trace for trace in figure.data if trace.mode == "lines"]
    assert [trace.y[0] / trace.x[0] for trace in lines] == pytest.approx([1.0, 0.5])
    assert [trace.y[1] / trace.x[1] for trace in lines] == pytest.approx([1.0, 0.5])


def test_axes_are_log_with_units_and_the_words_count() -> None:
    drawn = predicted_against_measured(comparisons=shipped_comparisons(), theme=LIGHT)
    for axis in (drawn.figure.layout.xaxis, drawn.figure.layout.yaxis):
        assert axis.type == "log"
        assert axis.title.text.endswith("[ms]")
    above = sum(item.ratio > 1.0 for item in shipped_comparisons())
    assert f"{len(shipped_comparisons())} measurements on 6 machines" in drawn.alt
    assert f"{above} of them" in drawn.alt


def test_names_from_a_file_are_shown_as_typed() -> None:
    item = shipped_comparisons()[0]
    hostile = replace(item, measurement=replace(item.measurement, model_title="<img src=x>"))
    text = json.dumps(
        predicted_against_measured(comparisons=[hostile], theme=LIGHT).figure.to_dict(), default=str
    )
    assert "&lt;img src=x&gt;" in text
    assert "<img" not in text


def test_nothing_to_compare_says_so() -> None:
    drawn = predicted_against_measured(comparisons=[], theme=LIGHT)
    assert drawn.empty == NO_MEASUREMENTS
