"""A plan over its contexts, a step's waterfall and floors, the roofline, the memory of a PE."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner_core.figures.frame import FigureContext
from planner_core.figures.memory import LabelledMemory, memory_bar, memory_parts
from planner_core.figures.plan import prefill_footprint, selection_by_context
from planner_core.figures.roofline import WHOLE_STEP, roofline
from planner_core.figures.step import LabelledStep, compare_steps, operator_floors, step_waterfall
from planner_core.figures.theme import LIGHT
from planner_core.stage_latencies import StepLatency

from .conftest import Planned


def traces(figure: Any) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in figure.to_dict()["data"]}


def test_the_selection_shows_each_context_with_its_targets(planned: Planned, about: FigureContext) -> None:
    buckets = planned.plan.buckets
    figure = selection_by_context(buckets=buckets, about=about, theme=LIGHT).figure
    points = [one for one in figure.to_dict()["data"] if one.get("customdata")]
    assert [point["customdata"] for point in points] == [[b.context_tokens for b in buckets]] * 3
    selected = [bucket.selected for bucket in buckets]
    assert points[1]["y"] == pytest.approx([row.ttft_s * 1e3 for row in selected if row], rel=1e-5)
    targets = [one for one in figure.to_dict()["data"] if one.get("name") == "target"]
    assert targets[0]["y"] == [50.0] * len(buckets)
    assert targets[1]["y"] == pytest.approx([b.context_tokens / 30.0 for b in buckets], rel=1e-5)
    assert figure.layout.xaxis.ticktext[0] == "8k<br>TP8"
    assert figure.layout.xaxis.ticktext[1] == "16k"


def test_a_missed_target_is_a_red_x(planned: Planned, about: FigureContext) -> None:
    first, *rest = planned.plan.buckets
    missed = [replace(first, sla_met=False), *rest]
    drawn = selection_by_context(buckets=missed, about=about, theme=LIGHT)
    marks = [one for one in drawn.figure.to_dict()["data"] if one.get("name") == "misses a target"]
    assert [mark["customdata"] for mark in marks] == [[first.context_tokens]] * 3
    assert {(mark["marker"]["symbol"], mark["marker"]["color"]) for mark in marks} == {("x", LIGHT.bad)}
    assert "8k TP8 (misses a target)" in drawn.alt


def test_no_selection_says_why(planned: Planned, about: FigureContext) -> None:
    none = [replace(bucket, selected=None) for bucket in planned.plan.buckets]
    assert "No config fits" in selection_by_context(buckets=none, about=about, theme=LIGHT).empty
    assert prefill_footprint(points=[], ttft_ceilings_s=[], about=about, theme=LIGHT).empty


def test_the_prefill_bars_sum_to_ttft_and_to_memory(planned: Planned, about: FigureContext) -> None:
    points = planned.prefills
    ceilings_s = [None, *(1.0 for _ in points[1:])]
    figure = prefill_footprint(points=points, ttft_ceilings_s=ceilings_s, about=about, theme=LIGHT).figure
    bars = [one for one in figure.to_dict()["data"] if one["type"] == "bar"]
    times = np.sum([one["y"] for one in bars if one.get("xaxis", "x") == "x"], axis=0)
    sizes = np.sum([one["y"] for one in bars if one.get("xaxis") == "x2"], axis=0)
    assert times == pytest.approx([float(point.step.latency_s) for point in points])
    assert sizes == pytest.approx([float(point.memory.total_bytes) / 1e9 for point in points])
    assert len(traces(figure)["TTFT target"]["x"]) == len(points) - 1
    assert traces(figure)["budget"]["y"] == [pytest.approx(points[0].memory.budget_bytes / 1e9)] * len(points)


def test_the_waterfall_runs_from_zero_to_the_latency_without_a_gap(
    planned: Planned, about: FigureContext
) -> None:
    step = planned.cell.step
    found = traces(step_waterfall(step=step, about=about, theme=LIGHT).figure)
    load, compute, wait = found["load"], found["compute"], found["communication"]
    assert load["base"] == compute["base"]
    ends = [base + max(a, b) for base, a, b in zip(load["base"], load["x"], compute["x"], strict=True)] + [
        base + x for base, x in zip(wait["base"], wait["x"], strict=True)
    ]
    starts = [*load["base"], *wait["base"]]
    assert starts == pytest.approx([0.0, *ends[:-1]])
    assert ends[-1] == pytest.approx(float(step.latency_s) * 1e3)
    looks = [one["marker"] for one in (load, compute, wait)]
    assert len({look["color"] for look in looks}) == len({look["pattern"]["shape"] for look in looks}) == 3


def test_the_floors_are_every_operator_longest_first(planned: Planned, about: FigureContext) -> None:
    step = planned.cell.step
    figure = operator_floors(step=step, about=about, theme=LIGHT).figure
    values = {row: x for one in figure.data for row, x in zip(one.y, one.x, strict=True)}
    ordered = [values[row] for row in figure.layout.yaxis.categoryarray]
    assert ordered == sorted(ordered, reverse=True)
    assert sorted(ordered) == pytest.approx(
        sorted(float(stage.time_s) * 1e3 for stage in step.stages if stage.time_s > 0.0)
    )
    assert {one.name for one in figure.data} == {"load bound", "communication"}  # a decode loads


def test_a_prefill_has_operators_bound_by_compute(planned: Planned, about: FigureContext) -> None:
    figure = operator_floors(step=planned.prefills[-1].step, about=about, theme=LIGHT).figure
    assert "compute bound" in {one.name for one in figure.data}


def test_steps_side_by_side_sum_to_their_latency(planned: Planned, about: FigureContext) -> None:
    points = [
        LabelledStep(label="one", step=planned.cell.step),
        LabelledStep(label="<i>two</i>", step=planned.too_large.step),
    ]
    figure = compare_steps(points=points, about=about, theme=LIGHT).figure
    bars = [one for one in figure.data if one.type == "bar"]
    assert np.sum([one.x for one in bars], axis=0) == pytest.approx(
        [float(point.step.latency_s) * 1e3 for point in points]
    )
    assert bars[0].y == ("1. one", "2. &lt;i&gt;two&lt;/i&gt;")
    assert "Add to compare" in compare_steps(points=[], about=about, theme=LIGHT).empty


def test_a_step_that_takes_no_time_says_so(planned: Planned, about: FigureContext) -> None:
    nothing = StepLatency(components=(), stages=(), latency_s=np.asarray(0.0))
    for draw in (step_waterfall, operator_floors):
        assert "no time" in draw(step=nothing, about=about, theme=LIGHT).empty
    drawn = roofline(step=nothing, machine=planned.spec.machine, precision="bf16", about=about, theme=LIGHT)
    assert drawn.empty


def test_components_lie_on_the_roof_and_the_step_under_it(planned: Planned, about: FigureContext) -> None:
    machine = planned.spec.machine
    figure = roofline(
        step=planned.cell.step, machine=machine, precision="bf16", about=about, theme=LIGHT
    ).figure
    roof, *points = figure.data
    peak, bandwidth = machine.peak_flops_per_s["bf16"], machine.hbm_bytes_per_s
    assert roof.x[1] == pytest.approx(peak / bandwidth)
    assert figure.layout.shapes[0].x0 == pytest.approx(peak / bandwidth)
    assert len(points) == len(planned.cell.step.components) + 1
    for point in points:
        height = min(point.x[0] * bandwidth, peak) / 1e12
        if point.name.startswith(WHOLE_STEP):
            assert point.y[0] < height
        else:
            assert point.y[0] == pytest.approx(height)
    assert len({point.marker.symbol for point in points}) == len(points)


def test_the_memory_parts_stack_to_the_total(planned: Planned, about: FigureContext) -> None:
    points = [
        LabelledMemory(label="fits", memory=planned.cell.memory),
        LabelledMemory(label="too large", memory=planned.too_large.memory),
    ]
    drawn = memory_bar(points=points, about=about, theme=LIGHT)
    bars = [one for one in drawn.figure.data if one.type == "bar"]
    assert np.sum([one.x for one in bars], axis=0) == pytest.approx(
        [float(point.memory.total_bytes) / 1e9 for point in points]
    )
    fits, too_large = drawn.figure.layout.annotations
    assert (fits.font.color, too_large.font.color) == (LIGHT.text, LIGHT.bad)
    assert "does not fit" in too_large.text
    assert "does not fit" not in fits.text
    assert [shape.x0 for shape in drawn.figure.layout.shapes] == [
        pytest.approx(point.memory.budget_bytes / 1e9) for point in points
    ]
    assert "2. too large" in drawn.alt
    assert memory_bar(points=[], about=about, theme=LIGHT).empty


def test_the_parts_of_a_layout_sum_to_its_total(planned: Planned) -> None:
    memory = planned.too_large.memory
    assert sum(memory_parts(memory).values()) == pytest.approx(float(memory.total_bytes), rel=1e-12)
