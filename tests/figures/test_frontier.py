"""The interactivity frontier: curves, the bold upper edge, the shaded target, the starred choice."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner_core.figures.frame import FigureContext
from planner_core.figures.frontier import MAX_CURVE_POINTS, interactivity_frontier
from planner_core.figures.theme import LIGHT

from .conftest import Planned


def draw(planned: Planned, about: FigureContext, **more: Any) -> dict[str, Any]:
    given = {"curves": planned.curves, "frontier": planned.frontier, "about": about, "theme": LIGHT}
    return interactivity_frontier(**{**given, **more}).figure.to_dict()


def trace(figure: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = [one for one in figure["data"] if one["name"] == name]
    return found


def test_the_bold_line_is_the_frontier(planned: Planned, about: FigureContext) -> None:
    bold = trace(draw(planned, about), "<b>upper frontier</b>")
    points = {float(f"{p.itl_s * 1e3:.6g}"): p.tokens_per_s_per_node for p in planned.frontier}
    assert bold["y"] == pytest.approx([points[x] for x in bold["x"]], rel=1e-5)
    assert {min(points), max(points)} <= set(bold["x"])
    curves = [one for one in draw(planned, about)["data"] if one["name"].startswith("TP")]
    assert bold["line"]["width"] > 3 * max(one["line"]["width"] for one in curves)


def test_configs_that_are_the_same_are_one_curve_named_after_all(
    planned: Planned, about: FigureContext
) -> None:
    names = [one["name"] for one in draw(planned, about)["data"]]
    assert "TP8 CP1, 2, 4, 8" in names  # Granite has 8 KV heads: nothing left to split
    assert "TP32 CP2" in names
    assert sum(name.startswith("TP") for name in names) < len(planned.curves)


def test_a_curve_is_few_points_with_both_ends(planned: Planned, about: FigureContext) -> None:
    (tp8,) = [curve for curve in planned.curves if (curve.tp, curve.cp) == (8, 1)]
    drawn = trace(draw(planned, about), "TP8 CP1, 2, 4, 8")
    assert len(drawn["x"]) <= MAX_CURVE_POINTS
    assert [drawn["x"][0], drawn["x"][-1]] == pytest.approx(tp8.itl_s[[0, -1]] * 1e3, rel=1e-5)
    assert drawn["y"][-1] == pytest.approx(tp8.tokens_per_s_per_node[-1], rel=1e-5)


def test_a_replica_is_a_node_over_its_replicas(planned: Planned, about: FigureContext) -> None:
    name = "TP4 CP1, 2, 4"
    node, replica = (trace(draw(planned, about, per=per), name)["y"] for per in ("node", "replica"))
    (tp4,) = [curve for curve in planned.curves if (curve.tp, curve.cp) == (4, 1)]
    assert np.divide(node, replica) == pytest.approx(tp4.replicas_per_node, rel=1e-4)


def test_the_replica_frontier_lies_above_every_curve(planned: Planned, about: FigureContext) -> None:
    figure = draw(planned, about, per="replica")
    bold = trace(figure, "<b>upper frontier</b>")
    assert bold["y"] == sorted(bold["y"])
    assert max(bold["y"]) == pytest.approx(
        max(max(one["y"]) for one in figure["data"] if one["name"].startswith("TP")), rel=1e-5
    )


def test_tokens_per_second_of_a_user_is_one_over_the_latency(planned: Planned, about: FigureContext) -> None:
    name = "TP8 CP1, 2, 4, 8"
    itl_ms, speed = (trace(draw(planned, about, against=axis), name)["x"] for axis in ("itl", "user"))
    assert np.multiply(itl_ms, speed) == pytest.approx(1e3, rel=1e-4)


@pytest.mark.parametrize(("against", "edge"), [("itl", 30.0), ("user", 1e3 / 30.0)])
def test_the_side_that_meets_the_target_is_shaded(
    planned: Planned, about: FigureContext, against: str, edge: float
) -> None:
    layout = draw(planned, about, itl_ceiling_s=0.03, against=against)["layout"]
    (band,) = [shape for shape in layout["shapes"] if shape["type"] == "rect"]
    assert band["x0"] == pytest.approx(edge)
    assert (band["x1"] < edge) == (against == "itl")
    assert band["layer"] == "below"
    assert "shapes" not in draw(planned, about)["layout"]


def test_the_selected_config_is_starred(planned: Planned, about: FigureContext) -> None:
    selected = planned.plan.buckets[0].selected
    assert selected is not None
    star = trace(draw(planned, about, selected=selected), f"selected, {selected.label()}")
    assert selected.itl_s is not None
    assert star["x"] == [pytest.approx(selected.itl_s * 1e3)]
    assert star["y"] == [pytest.approx(selected.tokens_per_s_per_node)]
    assert star["marker"]["symbol"] == "star"
    unfit = replace(selected, itl_s=None, batch=0)
    assert not [one for one in draw(planned, about, selected=unfit)["data"] if "selected" in one["name"]]


def test_no_curve_says_why(planned: Planned, about: FigureContext) -> None:
    nothing = replace(
        planned.curves[0], batch=np.empty(0), itl_s=np.empty(0), tokens_per_s_per_node=np.empty(0)
    )
    drawn = interactivity_frontier(curves=[nothing], frontier=(), about=about, theme=LIGHT)
    assert "Choose a shorter context" in drawn.empty
