"""Predicted against measured, one mark a published measurement.

Owns: `predicted_against_measured`.
Refuses: comparing (see `measurements`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from planner_core.figures.frame import (
    LEGEND_BELOW,
    ROOM_FOR_LEGEND,
    Drawn,
    FigureContext,
    Trace,
    by_number,
    empty_figure,
    log_axis,
    new_sheet,
    trace,
)
from planner_core.figures.theme import DASHES, MARKERS, Theme
from planner_core.figures.words import as_typed, seconds, sig
from planner_core.measurements import METRIC_WORDS, Comparison, summarize
from planner_core.units import MS

NO_MEASUREMENTS: Final = "There is no measurement to compare with. Choose another machine."
_TITLE: Final = "Predicted against measured"
# Lines of one ratio of predicted to measured, and what each says.
_GUIDES: Final = ((1.0, "as measured"), (0.5, "half the measured time"))


def predicted_against_measured(*, comparisons: Sequence[Comparison], theme: Theme) -> Drawn:
    """Draw the planner's times over the measured ones on log axes, with lines at 1:1 and at half.

    Parameters
    ----------
    comparisons : sequence of Comparison
        What to draw, one colour and marker a machine.
    theme : Theme
        Light or dark.

    Returns
    -------
    Drawn
        A mark under the 1:1 line is predicted faster than it was measured.
    """
    machines = tuple(dict.fromkeys(item.measurement.machine.name for item in comparisons))
    models = {item.measurement.model_title for item in comparisons}
    about = FigureContext(
        model=f"{len(models)} model{'s' * (len(models) != 1)}",
        machine=machines[0] if len(machines) == 1 else f"{len(machines)} machines",
        phase="decode and prefill",
        extra=f"{len(comparisons)} published measurement{'s' * (len(comparisons) != 1)}",
    )
    if not comparisons:
        return empty_figure(title=_TITLE, about=about, theme=theme, reason=NO_MEASUREMENTS)
    measured_ms = [item.measured_s / MS for item in comparisons]
    predicted_ms = [item.predicted_s / MS for item in comparisons]
    low, high = min(*measured_ms, *predicted_ms) / 2.0, max(*measured_ms, *predicted_ms) * 2.0
    sheet = new_sheet(
        title=_TITLE,
        about=about,
        theme=theme,
        legend=dict(LEGEND_BELOW),
        margin=dict(ROOM_FOR_LEGEND),
        hovermode="closest",
        height=540,
    )
    for slot, (ratio, words) in enumerate(_GUIDES):
        sheet.add(_guide(ratio, words, slot, (low, high), theme))
    for slot, name in enumerate(machines):
        rows = [item for item in comparisons if item.measurement.machine.name == name]
        sheet.add(_marks(name, rows, slot, theme))
    sheet.axes(
        x=log_axis(title="Measured [ms]", values=[low, high]),
        y=log_axis(title="Predicted [ms]", values=[low, high]),
    )
    return sheet.drawn(alt=_alt(comparisons, len(machines)))


def _guide(ratio: float, words: str, slot: int, span: tuple[float, float], theme: Theme) -> Trace:
    """Return the line of one ratio, cut to the frame."""
    low, high = span
    return trace(
        "scatter",
        x=by_number([max(low, low / ratio), high]),
        y=by_number([max(low, low / ratio) * ratio, high * ratio]),
        mode="lines",
        line={"color": theme.muted, "width": 1.5, "dash": DASHES[slot]},
        hoverinfo="skip",
        name=words,
    )


def _marks(name: str, rows: Sequence[Comparison], slot: int, theme: Theme) -> Trace:
    return trace(
        "scatter",
        x=by_number([item.measured_s / MS for item in rows]),
        y=by_number([item.predicted_s / MS for item in rows]),
        mode="markers",
        marker={
            "symbol": MARKERS[slot % len(MARKERS)],
            "size": 10,
            "color": theme.series[slot % len(theme.series)],
            "line": {"color": theme.paper, "width": 1},
        },
        hovertext=[_hover(item) for item in rows],
        hoverinfo="text",
        name=as_typed(name),
    )


def _hover(item: Comparison) -> str:
    measurement = item.measurement
    lines = (
        f"<b>{as_typed(measurement.model_title)} on {as_typed(measurement.machine.title)}</b>",
        f"{METRIC_WORDS[measurement.metric]}, {measurement.point()}",
        f"measured {seconds(item.measured_s)}, predicted {seconds(item.predicted_s)}",
        f"ratio {sig(item.ratio)}, without communication {sig(item.compute_ratio)}",
    )
    return "<br>".join(lines)


def _alt(comparisons: Sequence[Comparison], n_machines: int) -> str:
    groups = summarize(comparisons)
    above = sum(item.ratio > 1.0 for item in comparisons)
    lowest, highest = min(g.lowest for g in groups), max(g.highest for g in groups)
    return (
        f"{len(comparisons)} measurements on {n_machines} machines: predicted over measured runs from "
        f"{sig(lowest)} to {sig(highest)}, and {above} of them lie above the line where both are equal."
    )
