"""What holds for every figure: valid, titled, safe on log axes, escaped, small, told in words."""

import json
import math
from typing import Any

import plotly.graph_objects as go
import pytest

from planner_core.figures.frame import Drawn, FigureContext
from planner_core.figures.theme import DARK, LIGHT, Theme

from .conftest import Draw

NAMES = (
    "pareto_3d",
    "pareto_projections",
    "sensitivity",
    "frontier_node",
    "frontier_replica",
    "frontier_user",
    "selection",
    "prefill",
    "waterfall",
    "floors",
    "roofline",
    "memory_one",
    "memory_many",
    "compare",
)
each_figure = pytest.mark.parametrize("name", NAMES)


def axes(figure: go.Figure) -> dict[str, Any]:
    """Axes of the layout by name, those of a 3-D scene as "scene.xaxis"."""
    layout = figure.to_dict()["layout"]
    found = {key: value for key, value in layout.items() if key.startswith(("xaxis", "yaxis"))}
    scene = layout.get("scene", {})
    return found | {f"scene.{key}": scene[key] for key in ("xaxis", "yaxis", "zaxis") if key in scene}


def drawn_on(figure: go.Figure, axis: str) -> list[float]:
    """Numbers that traces put on an axis, gaps left out."""
    letter = axis.removeprefix("scene.")[0]
    reference = letter + axis.removeprefix("scene.")[5:]
    values: list[float] = []
    for trace in figure.to_dict()["data"]:
        if "scene" in axis or trace.get(f"{letter}axis", letter) == reference:
            values += [value for value in trace.get(letter, ()) if value is not None]
    return values


def test_the_names_here_are_all_the_figures(figures: dict[str, Draw]) -> None:
    assert set(NAMES) == set(figures)


@each_figure
@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.mode)
def test_plotly_finds_every_property_valid(
    figures: dict[str, Draw], about: FigureContext, name: str, theme: Theme
) -> None:
    figure = figures[name](theme, about).figure
    checked = go.Figure(figure.to_dict())  # checks in full, which drawing leaves out
    assert checked.layout.template.layout.paper_bgcolor == "rgba(0,0,0,0)"
    assert checked.layout.uirevision is None


@each_figure
def test_the_title_says_what_it_is_of(figures: dict[str, Draw], about: FigureContext, name: str) -> None:
    title = figures[name](LIGHT, about).figure.layout.title.text
    for part in ("Llama 3.1 70B", "sip128", "decode", "context 128k", "batch 1"):
        assert part in title


@each_figure
def test_every_axis_is_titled_or_named(figures: dict[str, Draw], about: FigureContext, name: str) -> None:
    figure = figures[name](LIGHT, about).figure
    found = axes(figure)
    assert len(found) >= 2
    for key, axis in found.items():
        title = axis.get("title", {}).get("text", "")
        says_unit = title.endswith("]") or title.startswith(("PEs", "Context length ["))
        names_rows = key.startswith("yaxis") and axis.get("ticks") == ""
        shares_scale = axis.get("matches") == "y" and axis.get("showticklabels") is False
        assert says_unit or names_rows or shares_scale, (key, title)


@each_figure
def test_a_log_axis_receives_numbers_above_zero_only(
    figures: dict[str, Draw], about: FigureContext, name: str
) -> None:
    figure = figures[name](LIGHT, about).figure
    for key, axis in axes(figure).items():
        if axis.get("type") == "log":
            values = drawn_on(figure, key)
            assert values
            assert all(math.isfinite(value) and value > 0.0 for value in values), key
            low, high = axis["range"]
            assert high > low
    for note in figure.to_dict()["layout"].get("annotations", ()):
        for letter in "xy":
            reference = note.get(f"{letter}ref", "")
            key = f"{letter}axis{reference[1:]}"
            if reference != "paper" and axes(figure).get(key, {}).get("type") == "log":
                low, high = axes(figure)[key]["range"]
                assert low <= note[letter] <= high, note["text"]  # a note's place is a logarithm


@each_figure
def test_names_from_outside_are_shown_as_typed(figures: dict[str, Draw], name: str) -> None:
    hostile = FigureContext(
        model="<script>alert(1)</script>" + "x" * 400,
        machine="<b>a</b> & %{x}",
        phase="decode",
        context_tokens=8192,
    )
    drawn = figures[name](LIGHT, hostile)
    title = drawn.figure.layout.title.text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in title
    assert "&lt;b&gt;a&lt;/b&gt; &amp; %{x}" in title
    assert "x" * 41 not in title
    assert "<script" not in json.dumps(drawn.figure.to_dict(), default=str)


@each_figure
def test_the_words_for_it_are_one_plain_sentence_or_two(
    figures: dict[str, Draw], about: FigureContext, name: str
) -> None:
    drawn = figures[name](LIGHT, about)
    assert drawn.empty == ""
    assert 40 < len(drawn.alt) < 700
    assert drawn.alt.endswith(".")
    assert not any(mark in drawn.alt for mark in ("<br>", "&lt;", "nan", "None"))


@each_figure
def test_the_json_is_strict_and_small(figures: dict[str, Draw], about: FigureContext, name: str) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    text = figures[name](LIGHT, about).figure.to_json()
    json.loads(text, parse_constant=refuse)
    assert len(text) < 100_000


@each_figure
def test_the_themes_differ_in_colour_alone(figures: dict[str, Draw], about: FigureContext, name: str) -> None:
    def shape(drawn: Drawn) -> list[tuple[str, int]]:
        traces = drawn.figure.to_dict()["data"]
        return [(trace.get("name", ""), len(trace.get("x", ()))) for trace in traces]

    light, dark = figures[name](LIGHT, about), figures[name](DARK, about)
    assert shape(light) == shape(dark)
    assert light.alt == dark.alt
    assert light.figure.to_json() != dark.figure.to_json()


@each_figure
def test_every_point_has_a_hover(figures: dict[str, Draw], about: FigureContext, name: str) -> None:
    for trace in figures[name](LIGHT, about).figure.to_dict()["data"]:
        if trace.get("hoverinfo") == "skip":
            continue
        if "hovertemplate" in trace:
            assert len(trace["text"]) == len(trace["x"])
        else:
            assert trace["hoverinfo"] == "text"
            assert len(trace["hovertext"]) == len(trace["x"])
