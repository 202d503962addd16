"""Where the time of one step goes: a waterfall of its components, its operators' floors, steps side by side.

Owns: `step_waterfall`, `operator_floors`, `compare_steps`.
Refuses: times (see `stage_latencies`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from planner_core.figures.frame import (
    LABEL_LIMIT,
    LEGEND_BELOW,
    ROOM_FOR_LEGEND,
    Drawn,
    FigureContext,
    Trace,
    empty_figure,
    hatched,
    new_sheet,
    trace,
)
from planner_core.figures.theme import SIZE_TEXT, Theme, component_slots
from planner_core.figures.words import as_typed, binding, n_bytes, operator, percent, rate, seconds
from planner_core.stage_latencies import COMMUNICATION, Component, Stage, StepLatency

NO_STEP = "The step takes no time: no layers, or a batch of zero. Choose a batch of 1 or more."
LOAD, COMPUTE, WAIT = "load", "compute", "communication"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledStep:
    """A step to compare, and what to call it (text from outside is shown as typed)."""

    label: str
    step: StepLatency


@dataclass(frozen=True, slots=True)
class _Bar:
    """One horizontal bar: from `start_s`, `length_s` long."""

    row: str
    kind: str
    start_s: float
    length_s: float
    hover: str


def _look(kind: str, theme: Theme) -> dict[str, Any]:
    """Colour and hatching of load, compute and communication."""
    slot = (LOAD, COMPUTE, WAIT).index(kind)
    return hatched(colour=theme.series[slot], slot=slot, theme=theme)


def _unit(largest_s: float) -> tuple[float, str]:
    """Milliseconds, or seconds from one second up, or microseconds below a tenth of a millisecond."""
    if largest_s >= 1.0:
        return 1.0, "s"
    return (1e3, "ms") if largest_s >= 1e-4 else (1e6, "\u00b5s")


def _row_name(component: Component) -> str:
    count = f" x {component.n_layers}" if component.n_layers > 1 else ""
    return operator(component.name) + count


def _component_hover(component: Component) -> str:
    return "<br>".join(
        [
            f"<b>{_row_name(component)}</b>: {seconds(float(component.time_s))}",
            f"load {seconds(float(component.load_s))}, compute {seconds(float(component.flop_s))}",
            f"weights {n_bytes(float(component.weight_bytes))}, KV {n_bytes(float(component.kv_bytes))}, "
            f"activations {n_bytes(float(component.activation_bytes))}",
            f"{rate(float(component.flops), unit='FLOP')}",
            f"binds: {binding(f'{component.family}:{component.bind}')}",
        ]
    )


def _waits(step: StepLatency) -> dict[str, float]:
    """Communication that costs something, by collective [s]."""
    found: dict[str, float] = {}
    for stage in step.stages:
        if stage.component == COMMUNICATION and float(stage.time_s) > 0.0:
            found[stage.name] = found.get(stage.name, 0.0) + float(stage.time_s)
    return found


def _bars(step: StepLatency) -> list[_Bar]:
    """Components in turn, load and compute of each from the same start; then the collectives."""
    bars = []
    start_s = 0.0
    for component in step.components:
        row, hover = _row_name(component), _component_hover(component)
        for kind, length_s in ((LOAD, float(component.load_s)), (COMPUTE, float(component.flop_s))):
            bars.append(_Bar(row, kind, start_s, length_s, hover))
        start_s += float(component.time_s)
    for name, length_s in _waits(step).items():
        share = percent(length_s / float(step.latency_s))
        hover = f"<b>{operator(name)}</b>: {seconds(length_s)}<br>{share} of the step"
        bars.append(_Bar(operator(name), WAIT, start_s, length_s, hover))
        start_s += length_s
    return bars


def step_waterfall(*, step: StepLatency, about: FigureContext, theme: Theme) -> Drawn:
    """Draw the step as a waterfall: each component's load and compute, which overlap, then communication.

    Parameters
    ----------
    step : StepLatency
        One config: scalars.
    about : FigureContext
        For the title.
    theme : Theme
        Light or dark.

    Returns
    -------
    Drawn
    """
    total_s = float(step.latency_s)
    title = f"Where the {seconds(total_s)} of a step go" if total_s > 0.0 else "Where the time of a step goes"
    if not total_s > 0.0:
        return empty_figure(title=title, about=about, theme=theme, reason=NO_STEP)
    bars = _bars(step)
    scale, unit = _unit(total_s)
    sheet = new_sheet(
        title=title,
        about=about,
        theme=theme,
        barmode="group",
        bargap=0.3,
        height=180 + 72 * len({bar.row for bar in bars}),
        bargroupgap=0.08,
        legend={**LEGEND_BELOW, "traceorder": "normal"},
        margin=ROOM_FOR_LEGEND,
        hovermode="closest",
    )
    for kind in (LOAD, COMPUTE, WAIT):
        chosen = [bar for bar in bars if bar.kind == kind]
        if not chosen:
            continue
        sheet.add(
            trace(
                "bar",
                orientation="h",
                y=[bar.row for bar in chosen],
                x=[bar.length_s * scale for bar in chosen],
                base=[bar.start_s * scale for bar in chosen],
                width=0.66 if kind == WAIT else 0.36,
                offset={LOAD: -0.37, COMPUTE: 0.01, WAIT: -0.33}[kind],
                marker=_look(kind, theme),
                text=[_bar_text(bar, total_s) for bar in chosen],
                textposition="outside",
                textfont={"size": SIZE_TEXT, "color": theme.text},
                cliponaxis=False,
                hovertext=[bar.hover for bar in chosen],
                hoverinfo="text",
                name=kind,
            )
        )
    rows = list(dict.fromkeys(bar.row for bar in bars))
    sheet.axes(
        x={"title": {"text": f"Time in the step [{unit}]"}, "range": [0.0, total_s * scale * 1.14]},
        y=_rows_axis(rows),
    )
    sheet.vertical_line(x=total_s * scale, line={"color": theme.muted, "width": 1.5, "dash": "dot"})
    return sheet.drawn(alt=_waterfall_alt(step))


def _rows_axis(rows: Sequence[str]) -> Trace:
    """Return a y axis of named rows, the first at the top."""
    return {
        "categoryorder": "array",
        "categoryarray": list(rows),
        "autorange": "reversed",
        "showgrid": False,
        "ticks": "",
    }


def _bar_text(bar: _Bar, total_s: float) -> str:
    return seconds(bar.length_s) if bar.length_s >= 5e-4 * total_s else ""


def _waterfall_alt(step: StepLatency) -> str:
    parts = [f"{_row_name(component)} {seconds(float(component.time_s))}" for component in step.components]
    return (
        f"Waterfall of a step of {seconds(float(step.latency_s))}: {', '.join(parts)}, communication "
        f"{seconds(float(step.communication_s))}. {binding(step.binding)} binds."
    )


def operator_floors(*, step: StepLatency, about: FigureContext, theme: Theme) -> Drawn:
    """Draw each operator's floor: the larger of its loads and its FLOP, all layers together.

    Parameters
    ----------
    step, about, theme
        As in `step_waterfall`.

    Returns
    -------
    Drawn
        Bars from the longest down, coloured by load, compute or communication.
    """
    title = "Floor of each operator"
    ranked = sorted(_timed_stages(step), key=lambda item: -item[1])
    if not ranked:
        return empty_figure(title=title, about=about, theme=theme, reason=NO_STEP)
    scale, unit = _unit(ranked[0][1])
    sheet = new_sheet(
        title=title,
        about=about,
        theme=theme,
        bargap=0.32,
        height=180 + 40 * len(ranked),
        legend={**LEGEND_BELOW, "traceorder": "normal"},
        margin=ROOM_FOR_LEGEND,
    )
    load_rate = _load_seconds_per_byte(step)
    kinds = [_stage_kind(stage, time_s, load_rate) for stage, time_s in ranked]
    for kind in (LOAD, COMPUTE, WAIT):
        chosen = [item for item, found in zip(ranked, kinds, strict=True) if found == kind]
        if not chosen:
            continue
        sheet.add(
            trace(
                "bar",
                orientation="h",
                y=[_stage_row(stage) for stage, _ in chosen],
                x=[time_s * scale for _, time_s in chosen],
                marker=_look(kind, theme),
                text=[seconds(time_s) for _, time_s in chosen],
                textposition="outside",
                textfont={"size": SIZE_TEXT, "color": theme.text},
                cliponaxis=False,
                hovertext=[_stage_hover(stage, time_s) for stage, time_s in chosen],
                hoverinfo="text",
                name=f"{kind} bound" if kind != WAIT else kind,
            )
        )
    sheet.axes(
        x={"title": {"text": f"Floor, all layers [{unit}]"}, "range": [0.0, ranked[0][1] * scale * 1.12]},
        y=_rows_axis([_stage_row(stage) for stage, _ in ranked]),
    )
    top = ", ".join(f"{_stage_row(stage)} {seconds(time_s)}" for stage, time_s in ranked[:3])
    return sheet.drawn(alt=f"Bars of {len(ranked)} operators' floors; the longest are {top}.")


def _timed_stages(step: StepLatency) -> list[tuple[Stage, float]]:
    return [(stage, float(stage.time_s)) for stage in step.stages if float(stage.time_s) > 0.0]


def _load_seconds_per_byte(step: StepLatency) -> float:
    """Return the machine's seconds per byte as the step's components have them."""
    for component in step.components:
        loaded = component.weight_bytes + component.kv_bytes + component.activation_bytes
        if float(loaded) > 0.0:
            return float(component.load_s / loaded)
    return 0.0


def _stage_kind(stage: Stage, time_s: float, load_seconds_per_byte: float) -> str:
    if stage.component == COMMUNICATION:
        return WAIT
    loaded = float(stage.weight_bytes + stage.kv_bytes + stage.activation_bytes)
    return LOAD if loaded * load_seconds_per_byte >= time_s * (1.0 - 1e-9) else COMPUTE


def _stage_row(stage: Stage) -> str:
    where = "" if stage.component in (COMMUNICATION, stage.name) else f" ({operator(stage.component)})"
    return operator(stage.name) + where


def _stage_hover(stage: Stage, time_s: float) -> str:
    lines = [f"<b>{_stage_row(stage)}</b>: {seconds(time_s)}", f"{stage.n_layers} layers"]
    if stage.component == COMMUNICATION:
        lines.append(f"{n_bytes(float(stage.link_bytes))} a layer")
    else:
        lines.append(
            f"weights {n_bytes(float(stage.weight_bytes))}, KV {n_bytes(float(stage.kv_bytes))}, "
            f"activations {n_bytes(float(stage.activation_bytes))}"
        )
        lines.append(rate(float(stage.flops), unit="FLOP"))
    return "<br>".join(lines)


def compare_steps(*, points: Sequence[LabelledStep], about: FigureContext, theme: Theme) -> Drawn:
    """Draw steps side by side on one scale: components and communication stacked, a bar a point.

    Parameters
    ----------
    points : sequence of LabelledStep
        Two to four, scalars.
    about, theme
        As in `step_waterfall`.

    Returns
    -------
    Drawn
    """
    title = "Where the time of a step goes, side by side"
    shown = [point for point in points if float(point.step.latency_s) > 0.0]
    if not shown:
        reason = "Nothing to compare yet. Add two to four points with Add to compare."
        return empty_figure(title=title, about=about, theme=theme, reason=reason)
    longest_s = max(float(point.step.latency_s) for point in shown)
    scale, unit = _unit(longest_s)
    sheet = new_sheet(
        title=title,
        about=about,
        theme=theme,
        barmode="stack",
        bargap=0.4,
        height=180 + 80 * len(shown),
        legend={**LEGEND_BELOW, "traceorder": "normal"},
        margin=ROOM_FOR_LEGEND,
    )
    names = [f"{at}. {as_typed(point.label, limit=LABEL_LIMIT)}" for at, point in enumerate(shown, start=1)]
    parts = [_parts(point.step) for point in shown]
    labels = list(dict.fromkeys(label for part in parts for label in part))
    labels.sort(key=lambda label: label == COMMUNICATION)
    slots = component_slots(labels)
    for label in labels:
        values = [part.get(label, 0.0) for part in parts]
        sheet.add(
            trace(
                "bar",
                orientation="h",
                y=names,
                x=[value * scale for value in values],
                marker=hatched(colour=theme.series[slots[label]], slot=slots[label], theme=theme),
                hovertext=[
                    f"<b>{name}</b><br>{operator(label)}: {seconds(value)}"
                    for name, value in zip(names, values, strict=True)
                ],
                hoverinfo="text",
                name=operator(label),
            )
        )
    totals = [float(point.step.latency_s) for point in shown]
    sheet.add(
        trace(
            "scatter",
            x=[total * scale for total in totals],
            y=names,
            mode="text",
            text=[f"  <b>{seconds(total)}</b>" for total in totals],
            textposition="middle right",
            cliponaxis=False,
            hoverinfo="skip",
            showlegend=False,
        )
    )
    sheet.axes(
        x={"title": {"text": f"Step [{unit}]"}, "range": [0.0, longest_s * scale * 1.12]}, y=_rows_axis(names)
    )
    told = "; ".join(f"{name} {seconds(total)}" for name, total in zip(names, totals, strict=True))
    return sheet.drawn(alt=f"Stacked bars of {len(shown)} steps on one scale: {told}.")


def _parts(step: StepLatency) -> dict[str, float]:
    found = {component.name: float(component.time_s) for component in step.components}
    found[COMMUNICATION] = float(step.communication_s)
    return found
