"""The front: numbered rows that a click finds, a starred baseline, the cloud behind."""

import math
from dataclasses import replace
from typing import Any

import pytest

from planner_core.figures.frame import FigureContext
from planner_core.figures.pareto import RING_SHARE, pareto_3d, pareto_projections
from planner_core.figures.theme import LIGHT

from .conftest import Swept


def projections(swept: Swept, about: FigureContext, **more: Any) -> dict[str, Any]:
    given = {"front": swept.front, "cloud": swept.cloud, "about": about, "theme": LIGHT, "baseline_row": 1}
    return pareto_projections(**{**given, **more}).figure.to_dict()


def named(figure: dict[str, Any], start: str) -> list[dict[str, Any]]:
    return [trace for trace in figure["data"] if trace["name"].startswith(start)]


def test_each_projection_has_the_whole_front_and_its_rows(swept: Swept, about: FigureContext) -> None:
    fronts = named(projections(swept, about), "Pareto front")
    assert [trace.get("xaxis", "x") for trace in fronts] == ["x", "x2", "x3"]
    for trace in fronts:
        assert sorted(trace["customdata"]) == list(range(len(swept.front)))
    first = fronts[0]
    for row, pes, latency_ms in zip(first["customdata"], first["x"], first["y"], strict=True):
        assert pes == swept.front[row].pes_used
        assert latency_ms == pytest.approx(swept.front[row].latency_s * 1e3, rel=1e-5)


def test_the_projections_are_of_the_right_pairs(swept: Swept, about: FigureContext) -> None:
    second, third = named(projections(swept, about), "Pareto front")[1:]
    for row, x, y in zip(second["customdata"], second["x"], second["y"], strict=True):
        score = swept.front[row]
        assert (x, y) == pytest.approx((score.latency_s * 1e3, score.efficiency * 100.0), rel=1e-5)
    for row, x, y in zip(third["customdata"], third["x"], third["y"], strict=True):
        score = swept.front[row]
        assert (x, y) == pytest.approx((score.pes_used, score.efficiency * 100.0), rel=1e-5)


def test_the_baseline_is_starred_and_clickable(swept: Swept, about: FigureContext) -> None:
    stars = named(projections(swept, about), "Baseline")
    assert len(stars) == 3
    assert all(star["customdata"] == [1] and star["marker"]["symbol"] == "star" for star in stars)
    assert swept.front[1].label() in stars[0]["hovertext"][0]
    assert not named(projections(swept, about, baseline_row=None), "Baseline")


def test_the_cloud_tells_what_binds_by_colour_and_by_shape(swept: Swept, about: FigureContext) -> None:
    figure = projections(swept, about)
    cloud = [trace for trace in figure["data"] if "customdata" not in trace]
    assert {trace["name"] for trace in cloud} >= {"communication", "FFN, weight load"}
    looks = {trace["name"]: (trace["marker"]["symbol"], trace["marker"]["color"]) for trace in cloud}
    assert len({symbol for symbol, _ in looks.values()}) == len(looks)
    assert len({colour for _, colour in looks.values()}) == len(looks)
    assert sum(trace.get("showlegend", True) for trace in cloud) == len(looks)


def test_no_point_of_the_cloud_lies_on_a_row_and_takes_its_click(swept: Swept, about: FigureContext) -> None:
    figure = projections(swept, about, cloud=[*swept.front, *swept.cloud])
    for axis in ("x", "x2", "x3"):
        here = [trace for trace in figure["data"] if trace.get("xaxis", "x") == axis]
        (front,) = named({"data": here}, "Pareto front")
        drawn = [point for trace in here for point in zip(trace["x"], trace["y"], strict=True)]
        spans = [math.log(max(values) / min(values)) for values in zip(*drawn, strict=True)]
        assert len(front["x"]) > 1
        for trace in here:
            if "customdata" in trace:
                continue
            for point in zip(trace["x"], trace["y"], strict=True):
                for row in zip(front["x"], front["y"], strict=True):
                    away = [
                        math.log(a / b) / span for a, b, span in zip(point, row, spans, strict=True) if span
                    ]
                    assert math.hypot(*away) > 0.9 * RING_SHARE


def test_the_cloud_is_few_points_however_many_were_scored(swept: Swept, about: FigureContext) -> None:
    figure = projections(swept, about, cloud=swept.cloud * 5)
    assert sum(len(trace["x"]) for trace in figure["data"]) <= 1000
    assert len(figure["data"]) <= 3 * 8


def test_a_note_counts_what_lies_beyond_the_frame(swept: Swept, about: FigureContext) -> None:
    near = [score for score in swept.cloud if score.pes_used <= 128 and score.efficiency > 0.1][:3]
    far = replace(near[0], latency_s=3600.0)
    (note,) = projections(swept, about, cloud=[*near, far])["layout"]["annotations"]
    assert note["text"].startswith("25.0% of the feasible configs lie beyond the frame")
    assert "annotations" not in projections(swept, about, cloud=near)["layout"]


def test_the_front_in_three_dimensions_carries_its_rows(swept: Swept, about: FigureContext) -> None:
    figure = pareto_3d(
        front=swept.front, cloud=swept.cloud, about=about, theme=LIGHT, baseline_row=1
    ).figure.to_dict()
    rows = {row for trace in figure["data"] for row in trace.get("customdata", ())}
    assert rows == set(range(len(swept.front)))
    assert {axis["type"] for key, axis in figure["layout"]["scene"].items() if key.endswith("axis")} == {
        "log"
    }


def test_scores_that_a_log_axis_cannot_hold_are_left_out(swept: Swept, about: FigureContext) -> None:
    broken = [replace(swept.front[0], efficiency=0.0), *swept.front[1:]]
    fronts = named(projections(swept, about, front=broken), "Pareto front")
    assert all(sorted(trace["customdata"]) == list(range(1, len(broken))) for trace in fronts)


@pytest.mark.parametrize("draw", [pareto_projections, pareto_3d])
def test_an_empty_front_says_why_and_what_to_change(draw: Any, about: FigureContext) -> None:
    drawn = draw(front=[], cloud=[], about=about, theme=LIGHT)
    assert "Allow more PEs" in drawn.empty
    assert "No config fits" in drawn.figure.layout.annotations[0].text.replace("<br>", " ")
    assert not drawn.figure.data


def test_stacked_projections_have_the_same_traces_one_below_the_other(
    swept: Swept, about: FigureContext
) -> None:
    beside, stacked = projections(swept, about), projections(swept, about, n_columns=1)
    assert stacked["data"] == beside["data"]
    axes = [stacked["layout"][name] for name in ("xaxis", "xaxis2", "xaxis3")]
    assert all(axis["domain"] == [0.0, 1.0] for axis in axes)
    feet = [stacked["layout"][name]["domain"][0] for name in ("yaxis", "yaxis2", "yaxis3")]
    assert feet == sorted(feet, reverse=True)
    assert len(set(feet)) == 3


def test_a_note_on_a_stacked_sheet_lies_below_the_title(swept: Swept, about: FigureContext) -> None:
    slow = replace(swept.cloud[0], latency_s=swept.front[-1].latency_s * 1e4)
    layout = projections(swept, about, cloud=[*swept.cloud, slow], n_columns=1)["layout"]
    (note,) = [one["text"] for one in layout["annotations"]]
    assert "lie beyond" in note
    n_lines = note.count("<br>") + layout["title"]["text"].count("<br>") + 2
    assert layout["margin"]["t"] >= 25 * n_lines
