"""The roofline of a machine with a step's components on it.

Owns: `roofline`.
Refuses: times (see `stage_latencies`).

Source: Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from planner_core.figures.frame import (
    LABEL_LIMIT,
    LEGEND_BELOW,
    ROOM_FOR_LEGEND,
    Drawn,
    FigureContext,
    Trace,
    drawable,
    empty_figure,
    log_axis,
    log_note,
    new_sheet,
    trace,
)
from planner_core.figures.theme import MARKERS, Theme, component_slots
from planner_core.figures.words import as_typed, operator, percent, rate, seconds, sig
from planner_core.hardware import Machine
from planner_core.stage_latencies import StepLatency
from planner_core.units import TERA

NO_POINTS = "No component both computes and loads. Choose a batch of 1 or more."
WHOLE_STEP = "whole step"


@dataclass(frozen=True, slots=True)
class _Point:
    """A component, or the whole step with its communication, on the roofline."""

    name: str
    flop_per_byte: float
    flops_per_s: float
    time_s: float


def _points(step: StepLatency) -> list[_Point]:
    found = []
    for part in step.components:
        loaded = float(part.weight_bytes + part.kv_bytes + part.activation_bytes)
        work, time_s = float(part.flops), float(part.time_s)
        if drawable(loaded) and drawable(work) and drawable(time_s):
            found.append(_Point(part.name, work / loaded, work / time_s, time_s))
    loaded = sum(float(p.weight_bytes + p.kv_bytes + p.activation_bytes) for p in step.components)
    work, total_s = sum(float(part.flops) for part in step.components), float(step.latency_s)
    if found and drawable(total_s):
        found.append(_Point(WHOLE_STEP, work / loaded, work / total_s, total_s))
    return found


def roofline(
    *,
    step: StepLatency,
    machine: Machine,
    precision: str,
    about: FigureContext,
    theme: Theme,
) -> Drawn:
    """Draw one PE's roofline, its ridge, each component of a step on it, and the whole step under it.

    Parameters
    ----------
    step : StepLatency
        One config: scalars.
    machine : Machine
        Peak and memory bandwidth of a PE.
    precision : str
        Which of the machine's peaks.
    about, theme
        For the title and the look.

    Returns
    -------
    Drawn
    """
    title = f"Roofline of one {as_typed(machine.pe_name, limit=LABEL_LIMIT)}, {as_typed(precision)}"
    points = _points(step)
    if not points:
        return empty_figure(title=title, about=about, theme=theme, reason=NO_POINTS)
    peak, bandwidth = machine.peak_flops_per_s[precision], machine.hbm_bytes_per_s
    ridge = peak / bandwidth
    low = min(ridge / 20.0, *(point.flop_per_byte / 3.0 for point in points))
    high = max(ridge * 10.0, *(point.flop_per_byte * 3.0 for point in points))
    sheet = new_sheet(
        title=title,
        about=about,
        theme=theme,
        legend=LEGEND_BELOW,
        margin=ROOM_FOR_LEGEND,
        hovermode="closest",
        height=540,
    )
    sheet.add(
        trace(
            "scatter",
            x=[low, ridge, high],
            y=[low * bandwidth / TERA, peak / TERA, peak / TERA],
            mode="lines",
            line={"color": theme.text, "width": 2.5},
            hovertext=[
                f"memory: {rate(bandwidth, unit='B/s')}",
                f"ridge: {sig(ridge)} FLOP/B",
                f"peak: {rate(peak, unit='FLOP/s')}",
            ],
            hoverinfo="text",
            showlegend=False,
            name="roof",
        )
    )
    total_s = float(step.latency_s)
    slots = component_slots([point.name for point in points])
    for at, point in enumerate(points):
        sheet.add(_trace(point, at, slots[point.name], total_s, theme))
    floor = min(low * bandwidth, *(point.flops_per_s / 2.0 for point in points)) / TERA
    x_axis = log_axis(title="Arithmetic intensity [FLOP/B]", values=[low, high])
    sheet.axes(
        x={**x_axis, "range": [math.log10(low), math.log10(high)]},
        y=log_axis(title="Attained by one PE [TFLOP/s]", values=[floor, peak * 1.6 / TERA]),
    )
    sheet.vertical_line(x=ridge, line={"color": theme.muted, "dash": "dot", "width": 1.5})
    for note in (
        log_note(x=ridge, y=floor, text=f"ridge {sig(ridge)} FLOP/B", theme=theme, xanchor="left", xshift=6),
        log_note(
            x=high,
            y=peak / TERA,
            text=f"peak {rate(peak, unit='FLOP/s')}",
            theme=theme,
            xanchor="right",
            yanchor="bottom",
            xshift=-4,
            yshift=4,
        ),
        log_note(
            x=math.sqrt(low * ridge),
            y=math.sqrt(low * ridge) * bandwidth / TERA,
            text=f"memory {rate(bandwidth, unit='B/s')}",
            theme=theme,
            xanchor="right",
            yanchor="bottom",
            xshift=-10,
            yshift=4,
        ),
    ):
        sheet.note(note)
    return sheet.drawn(alt=_alt(points, ridge, peak, bandwidth))


def _trace(point: _Point, at: int, slot: int, total_s: float, theme: Theme) -> Trace:
    """Return one point; each is drawn smaller than the one before, so that equal ones all show."""
    last = point.name == WHOLE_STEP
    name = point.name if last else operator(point.name)
    marker = {
        "symbol": "star" if last else MARKERS[at % len(MARKERS)],
        "size": 17 if last else max(17 - 4 * at, 7),
        "color": theme.accent if last else theme.series[slot],
        "line": {"color": theme.paper, "width": 1.5},
    }
    share = "" if last else f", {percent(point.time_s / total_s)} of the step"
    return trace(
        "scatter",
        x=[point.flop_per_byte],
        y=[point.flops_per_s / TERA],
        mode="markers",
        marker=marker,
        hovertext=[
            f"<b>{name}</b><br>{sig(point.flop_per_byte)} FLOP/B<br>"
            f"{rate(point.flops_per_s, unit='FLOP/s')}<br>{seconds(point.time_s)}{share}"
        ],
        hoverinfo="text",
        name=f"{name}: {sig(point.flop_per_byte)}",
    )


def _alt(points: Sequence[_Point], ridge: float, peak: float, bandwidth: float) -> str:
    sides = ", ".join(
        f"{operator(point.name)} {sig(point.flop_per_byte)} FLOP/B, "
        f"{'memory' if point.flop_per_byte < ridge else 'compute'} bound"
        for point in points[:-1]
    )
    return (
        f"Roofline with {rate(bandwidth, unit='B/s')} of memory bandwidth and a peak of "
        f"{rate(peak, unit='FLOP/s')}, ridge at {sig(ridge)} FLOP/B: {sides}."
    )
