"""The sensitivity panel: a line where it fits, an X where it does not, a dotted line at the baseline."""

from dataclasses import replace
from typing import Any

import pytest

from planner_core.auto_explore import ParallelismSensitivityRow
from planner_core.figures.frame import FigureContext
from planner_core.figures.sensitivity import sensitivity_panel, thinned
from planner_core.figures.theme import LIGHT

from .conftest import Swept

KNOBS = ("cp", "tp", "pp", "dp", "ep")


def panel(swept: Swept, about: FigureContext, **more: Any) -> dict[str, Any]:
    drawn = sensitivity_panel(
        **{"rows": swept.rows, "baseline": swept.baseline, "about": about, "theme": LIGHT, **more}
    )
    return drawn.figure.to_dict()


def traces(figure: dict[str, Any], name: str, cell: int) -> list[dict[str, Any]]:
    axis = "x" if cell == 1 else f"x{cell}"
    found = [t for t in figure["data"] if t.get("xaxis", "x") == axis and t["name"] == name]
    return [trace for trace in found if trace["x"] != [None]]


@pytest.mark.parametrize(("cell", "knob"), list(enumerate(KNOBS, start=1)))
def test_each_value_that_does_not_fit_is_one_red_x_at_its_latency(
    swept: Swept, about: FigureContext, cell: int, knob: str
) -> None:
    unfit = [row for row in swept.rows if row.knob == knob and not row.fits]
    found = traces(panel(swept, about), "does not fit", cell)
    assert len(found) == (1 if unfit else 0)
    if unfit:
        assert found[0]["x"] == [row.value for row in unfit]
        assert found[0]["y"] == pytest.approx([row.latency_s * 1e3 for row in unfit], rel=1e-5)
        assert found[0]["marker"]["symbol"] == "x-thin"
        assert found[0]["marker"]["line"]["color"] == LIGHT.bad
        assert all(row.reason in text for row, text in zip(unfit, found[0]["hovertext"], strict=True))


@pytest.mark.parametrize(("cell", "knob"), list(enumerate(KNOBS, start=1)))
def test_the_solid_line_runs_through_values_that_fit_alone(
    swept: Swept, about: FigureContext, cell: int, knob: str
) -> None:
    fitting = {row.value: row.latency_s * 1e3 for row in swept.rows if row.knob == knob and row.fits}
    (line,) = traces(panel(swept, about), "fits", cell)
    drawn = {x: y for x, y in zip(line["x"], line["y"], strict=True) if x is not None}
    assert set(drawn) <= set(fitting)
    assert {min(fitting), max(fitting)} <= set(drawn)
    assert drawn == pytest.approx({x: fitting[x] for x in drawn}, rel=1e-5)
    assert line["line"].get("dash", "solid") == "solid"


@pytest.mark.parametrize(("cell", "knob"), list(enumerate(KNOBS, start=1)))
def test_a_dotted_line_stands_at_the_baseline_on_log_axes(
    swept: Swept, about: FigureContext, cell: int, knob: str
) -> None:
    layout = panel(swept, about)["layout"]
    number = "" if cell == 1 else str(cell)
    (line,) = [shape for shape in layout["shapes"] if shape["xref"] == f"x{number}"]
    assert line["x0"] == line["x1"] == getattr(swept.baseline, knob)
    assert line["line"]["dash"] == "dot"
    assert layout[f"xaxis{number}"]["type"] == layout[f"yaxis{number}"]["type"] == "log"


def test_one_latency_scale_for_all_five(swept: Swept, about: FigureContext) -> None:
    layout = panel(swept, about)["layout"]
    assert len({tuple(layout[f"yaxis{cell or ''}"]["range"]) for cell in ("", 2, 3, 4, 5)}) == 1
    assert all(layout[f"yaxis{cell}"]["matches"] == "y" for cell in (2, 3, 4, 5))


def test_a_step_is_marked_and_told_by_its_hover(swept: Swept, about: FigureContext) -> None:
    steps = [row for row in swept.rows if row.knob == "cp" and row.fits and row.step_note]
    assert steps, "the case has no step to test"
    (marks,) = traces(panel(swept, about), "step", 1)
    assert marks["x"] == [row.value for row in steps]
    assert steps[0].step_note.split("; ")[0] in marks["hovertext"][0]


def test_the_hover_has_latency_memory_and_tiers(swept: Swept, about: FigureContext) -> None:
    figure = panel(swept, about, budget_bytes=swept.budget_bytes)
    (mark,) = traces(figure, "baseline", 1)
    (row,) = [row for row in swept.rows if row.knob == "cp" and row.is_baseline]
    (text,) = mark["hovertext"]
    assert all(part in text for part in ("CP 8", "(baseline)", "of the budget"))
    assert all(f"{tier}:" in text for tier in row.tiers.values())


def some_rows(fits: str, *, steps: tuple[int, ...] = ()) -> list[ParallelismSensitivityRow]:
    """Rows of values 1, 2, 4, 6, ...; "x" where it does not fit."""
    return [
        ParallelismSensitivityRow(
            knob="cp",
            value=max(1, 2 * at),
            latency_s=0.01 * (at + 1),
            memory_bytes_per_pe=1e9,
            fits=mark != "x",
            reason="KV" if mark == "x" else "",
            is_baseline=at == 1,
            pes_used=8,
            ffn_weight_s=0.0,
            binding="communication",
            tiers={},
            step_note="a step" if at in steps else "",
        )
        for at, mark in enumerate(fits)
    ]


def test_thinning_keeps_what_matters() -> None:
    rows = some_rows("." * 60 + "x" + "." * 60 + "xxxxx" + "." * 20, steps=(90,))
    kept = thinned(rows)
    assert len(kept) < len(rows)
    for at, row in enumerate(rows):
        around = rows[max(at - 1, 0) : at + 2]
        if not row.fits or row.is_baseline or any(other.fits != row.fits for other in around):
            assert row in kept
    assert all(row in kept for row in (rows[0], rows[89], rows[90], rows[-1]))


def test_the_line_breaks_where_values_between_do_not_fit(swept: Swept, about: FigureContext) -> None:
    (line,) = traces(panel(swept, about, rows=some_rows("..x..")), "fits", 1)
    assert line["x"] == [1, 2, None, 6, 8]
    assert line["y"][2] is None


def test_values_that_a_log_axis_cannot_hold_are_left_out(swept: Swept, about: FigureContext) -> None:
    rows = some_rows("....")
    broken = [rows[0], replace(rows[1], latency_s=float("nan")), replace(rows[2], latency_s=0.0), rows[3]]
    (line,) = traces(panel(swept, about, rows=broken), "fits", 1)
    assert [x for x in line["x"] if x is not None] == [1, 6]


@pytest.mark.parametrize("n_knobs", [1, 2, 4])
def test_fewer_knobs_leave_room_for_the_legend_too(swept: Swept, about: FigureContext, n_knobs: int) -> None:
    rows = [row for row in swept.rows if row.knob in KNOBS[:n_knobs]]
    layout = panel(swept, about, rows=rows)["layout"]
    assert layout["legend"]["x"] > layout["xaxis"]["domain"][1]
    assert layout["annotations"][-1]["text"].startswith("<b>Baseline")


def test_nothing_to_vary_says_so(swept: Swept, about: FigureContext) -> None:
    drawn = sensitivity_panel(rows=[], baseline=swept.baseline, about=about, theme=LIGHT)
    assert "Pick a row" in drawn.empty
    assert "Pick a row" in drawn.figure.layout.annotations[0].text.replace("<br>", " ")


def test_one_column_for_a_narrow_page(swept: Swept, about: FigureContext) -> None:
    layout = panel(swept, about, n_columns=1)["layout"]
    assert len({tuple(layout[f"xaxis{cell or ''}"]["domain"]) for cell in ("", 2, 3, 4, 5)}) == 1
    assert layout["legend"]["orientation"] == "h"


@pytest.mark.parametrize("is_moe", [True, False])
def test_ep_of_a_model_without_experts_says_what_it_cuts(
    swept: Swept, about: FigureContext, is_moe: bool
) -> None:
    drawn = sensitivity_panel(
        rows=swept.rows, baseline=swept.baseline, about=about, theme=LIGHT, is_moe=is_moe
    )
    titles = [note["text"] for note in drawn.layout["annotations"]]
    assert ("EP, expert parallel" in titles) == is_moe
    assert ("EP, FFN cut over more ranks" in titles) != is_moe
