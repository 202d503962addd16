"""A serving plan over its context lengths: what is selected, and what a prefill takes.

Owns: `selection_by_context`, `prefill_footprint`.
Refuses: choices (see `serving_plan`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from planner_core.figures.frame import (
    LEGEND_BELOW,
    ROOM_FOR_LEGEND,
    Drawn,
    FigureContext,
    by_number,
    drawable,
    empty_figure,
    hatched,
    log_axis,
    new_figure,
)
from planner_core.figures.memory import memory_hover, memory_parts, part_look
from planner_core.figures.theme import SIZE_HEADING, SIZE_TEXT, Theme, component_slots
from planner_core.figures.words import binding, context, n_bytes, operator, plain, seconds, sig
from planner_core.serving_plan import BucketPlan, OperatingPoint, PlanRow
from planner_core.stage_latencies import COMMUNICATION
from planner_core.units import GB

NO_SELECTION: Final = (
    "No config fits at any context length. Choose shorter contexts, narrower weights or KV, or a machine "
    "with more memory."
)
NO_PREFILL: Final = "No config was selected, so there is no prefill to show."


def _hover(bucket: BucketPlan, row: PlanRow) -> str:
    verdict = "meets the targets" if bucket.sla_met else "<b>misses a target</b>"
    itl = "n/a" if row.itl_s is None else seconds(row.itl_s)
    return "<br>".join(
        [
            f"<b>{context(bucket.context_tokens)}: {row.label()}</b>, batch {row.batch:,}",
            f"ITL {itl}, TTFT {seconds(row.ttft_s)}",
            f"{sig(row.tokens_per_s_per_node)} tok/s a node, {row.replicas_per_node} replicas",
            f"binds: {binding(row.binding)}",
            verdict,
        ]
    )


def selection_by_context(*, buckets: Sequence[BucketPlan], about: FigureContext, theme: Theme) -> Drawn:
    """Draw ITL, TTFT and tokens/s a node of the selected config against the context length.

    Parameters
    ----------
    buckets : sequence of BucketPlan
        By context length.
    about, theme
        For the title and the look.

    Returns
    -------
    Drawn
        A filled circle meets the targets, a red X misses one; dashed: the target.
    """
    title = "Selected config by context length"
    chosen = [(bucket, bucket.selected) for bucket in buckets if bucket.selected is not None]
    chosen = [(bucket, row) for bucket, row in chosen if row.itl_s is not None and drawable(row.itl_s)]
    if not chosen:
        return empty_figure(title=title, about=about, theme=theme, reason=NO_SELECTION)
    panels: tuple[tuple[str, str, list[float], list[float | None]], ...] = (
        (
            "top center",
            "ITL [ms]",
            [(row.itl_s or 0.0) * 1e3 for _, row in chosen],
            _ms(bucket.itl_ceiling_s for bucket, _ in chosen),
        ),
        (
            "bottom right",
            "TTFT [ms]",
            [row.ttft_s * 1e3 for _, row in chosen],
            _ms(bucket.ttft_ceiling_s for bucket, _ in chosen),
        ),
        ("top right", "Throughput of a node [tok/s]", [row.tokens_per_s_per_node for _, row in chosen], []),
    )
    figure = make_subplots(
        rows=1,
        cols=3,
        horizontal_spacing=0.075,
        subplot_titles=["Inter-token latency", "Time to first token", "Throughput"],
        figure=new_figure(
            title=title,
            about=about,
            theme=theme,
            margin={"t": 100, "r": 56, **ROOM_FOR_LEGEND},
            height=500,
            legend=LEGEND_BELOW,
            hovermode="closest",
        ),
    )
    figure.update_annotations(font={"size": SIZE_HEADING, "color": theme.text}, yshift=8)
    tokens = [float(bucket.context_tokens) for bucket, _ in chosen]
    for position, (side, y_title, values, targets) in enumerate(panels, start=1):
        place = {"row": 1, "col": position}
        for trace in _selection_traces(chosen, tokens, values, side, theme, legend=position == 1):
            figure.add_trace(trace, **place)
        limits = [(x, y) for x, y in zip(tokens, targets, strict=False) if y is not None]
        if limits:
            figure.add_trace(_target_trace(limits, theme, legend=position == 1), **place)
        everything = [*values, *(y for _, y in limits)]
        figure.update_yaxes(log_axis(title=y_title, values=everything), **place)
        axis = log_axis(title="Context length [tokens]", values=tokens, ticks=tokens)
        axis["ticktext"] = [context(count) for count in tokens]
        figure.update_xaxes(axis, **place)
    told = "; ".join(
        f"{context(bucket.context_tokens)} {row.label()}" + ("" if bucket.sla_met else " (misses a target)")
        for bucket, row in chosen
    )
    return Drawn(
        figure=figure, alt=f"ITL, TTFT and throughput of the selected config by context length: {told}."
    )


def _ms(limits: Any) -> list[float | None]:
    return [None if limit is None or not drawable(limit) else limit * 1e3 for limit in limits]


def _selection_traces(
    chosen: Sequence[tuple[BucketPlan, PlanRow]],
    tokens: Sequence[float],
    values: Sequence[float],
    text_side: str,
    theme: Theme,
    *,
    legend: bool,
) -> list[go.Scatter]:
    """Return the line with the configs' names, then the points that meet the targets and those that miss."""
    line = go.Scatter(
        x=list(tokens),
        y=by_number(values),
        mode="lines+text",
        line={"color": theme.series[0], "width": 2},
        text=_changes([row.label() for _, row in chosen]),
        textposition=text_side,
        textfont={"size": SIZE_TEXT, "color": theme.text},
        cliponaxis=False,
        hoverinfo="skip",
        showlegend=False,
    )
    traces = [line]
    for met, name, marker in (
        (True, "meets the targets", {"symbol": "circle", "size": 10, "color": theme.series[0]}),
        (False, "misses a target", {"symbol": "x", "size": 10, "color": theme.bad}),
    ):
        at = [position for position, (bucket, _) in enumerate(chosen) if bucket.sla_met == met]
        if at:
            traces.append(
                go.Scatter(
                    x=[tokens[i] for i in at],
                    y=by_number([values[i] for i in at]),
                    mode="markers",
                    marker=marker,
                    hovertext=[_hover(*chosen[i]) for i in at],
                    hoverinfo="text",
                    customdata=[chosen[i][0].context_tokens for i in at],
                    name=name,
                    legendgroup=name,
                    showlegend=legend,
                )
            )
    return traces


def _changes(labels: Sequence[str]) -> list[str]:
    """Keep a label where it differs from the one before."""
    return [label if at == 0 or label != labels[at - 1] else "" for at, label in enumerate(labels)]


def _target_trace(limits: Sequence[tuple[float, float]], theme: Theme, *, legend: bool) -> go.Scatter:
    return go.Scatter(
        x=[x for x, _ in limits],
        y=by_number([y for _, y in limits]),
        mode="lines",
        line={"color": theme.accent, "dash": "dash", "width": 1.5},
        hovertext=[f"target {seconds(y / 1e3)}" for _, y in limits],
        hoverinfo="text",
        name="target",
        legendgroup="target",
        showlegend=legend,
    )


def prefill_footprint(
    *,
    points: Sequence[OperatingPoint],
    ttft_ceilings_s: Sequence[float | None],
    about: FigureContext,
    theme: Theme,
) -> Drawn:
    """Draw what a prefill takes at each context length: its time against the target, its memory on a PE.

    Parameters
    ----------
    points : sequence of OperatingPoint
        The selected config's prefill, one a context length.
    ttft_ceilings_s : sequence of float or None
        The TTFT targets [s], in step with `points`.
    about, theme
        For the title and the look.

    Returns
    -------
    Drawn
    """
    title = "Prefill footprint by context length"
    if not points:
        return empty_figure(title=title, about=about, theme=theme, reason=NO_PREFILL)
    figure = make_subplots(
        rows=1,
        cols=2,
        horizontal_spacing=0.09,
        subplot_titles=["Time to first token", "Memory of the most loaded PE"],
        figure=new_figure(
            title=title,
            about=about,
            theme=theme,
            barmode="stack",
            bargap=0.35,
            margin={"t": 100, "b": 116},
            height=540,
            legend={**LEGEND_BELOW, "traceorder": "normal"},
        ),
    )
    figure.update_annotations(font={"size": SIZE_HEADING, "color": theme.text}, yshift=8)
    names = [f"{context(point.context_tokens)}<br>{_config(point)}" for point in points]
    _add_times(figure, points, names, theme)
    _add_target_strokes(figure, ttft_ceilings_s, names, theme)
    _add_memory(figure, points, names, theme)
    figure.update_xaxes(title={"text": "Context length [tokens], selected config"}, showgrid=False, ticks="")
    figure.update_yaxes(title={"text": "TTFT [s]"}, rangemode="tozero", row=1, col=1)
    figure.update_yaxes(title={"text": "Memory a PE [GB]"}, rangemode="tozero", row=1, col=2)
    told = "; ".join(
        f"{context(point.context_tokens)} {_config(point)} {seconds(float(point.step.latency_s))}, "
        f"{n_bytes(float(point.memory.total_bytes))} a PE"
        for point in points
    )
    return Drawn(figure=figure, alt=plain(f"Prefill time and memory by context length: {told}."))


def _config(point: OperatingPoint) -> str:
    degrees = (("TP", point.tp), ("CP", point.cp), ("PP", point.pp))
    return " ".join(f"{name}{degree}" for name, degree in degrees if degree > 1 or name == "TP")


def _add_times(
    figure: go.Figure, points: Sequence[OperatingPoint], names: Sequence[str], theme: Theme
) -> None:
    parts: dict[str, list[float]] = {}
    for at, point in enumerate(points):
        times = {component.name: float(component.time_s) for component in point.step.components}
        times[COMMUNICATION] = float(point.step.communication_s)
        for name, time_s in times.items():
            parts.setdefault(name, [0.0] * len(points))[at] = time_s
    slots = component_slots(list(parts))
    for name, values in sorted(parts.items(), key=lambda item: item[0] == COMMUNICATION):
        figure.add_trace(
            go.Bar(
                x=list(names),
                y=values,
                marker=hatched(colour=theme.series[slots[name]], slot=slots[name], theme=theme),
                hovertext=[
                    f"{operator(name)} {seconds(value)}<br><b>TTFT {seconds(float(point.step.latency_s))}</b>"
                    for value, point in zip(values, points, strict=True)
                ],
                hoverinfo="text",
                name=operator(name),
            ),
            row=1,
            col=1,
        )


def _strokes(
    figure: go.Figure, y: Sequence[float], names: Sequence[str], name: str, colour: str, told: str, col: int
) -> None:
    """Mark a limit with a level stroke across each bar."""
    figure.add_trace(
        go.Scatter(
            x=list(names),
            y=list(y),
            mode="markers",
            marker={"symbol": "line-ew", "size": 46, "line": {"color": colour, "width": 2.5}},
            hovertext=[told.format(value) for value in y],
            hoverinfo="text",
            name=name,
        ),
        row=1,
        col=col,
    )


def _add_target_strokes(
    figure: go.Figure, ceilings_s: Sequence[float | None], names: Sequence[str], theme: Theme
) -> None:
    limits = [(name, limit) for name, limit in zip(names, ceilings_s, strict=True) if limit is not None]
    if limits:
        _strokes(
            figure,
            [limit for _, limit in limits],
            [name for name, _ in limits],
            "TTFT target",
            theme.accent,
            "TTFT target {:.3g} s",
            1,
        )


def _add_memory(
    figure: go.Figure, points: Sequence[OperatingPoint], names: Sequence[str], theme: Theme
) -> None:
    layouts = [memory_parts(point.memory) for point in points]
    for slot, part in enumerate(layouts[0]):
        sizes = [layout[part] for layout in layouts]
        if any(sizes):
            figure.add_trace(
                go.Bar(
                    x=list(names),
                    y=[size / GB for size in sizes],
                    marker=part_look(slot, theme),
                    hovertext=[
                        f"{part} {n_bytes(size)}<br>"
                        + memory_hover(context(point.context_tokens), point.memory)
                        for size, point in zip(sizes, points, strict=True)
                    ],
                    hoverinfo="text",
                    name=part,
                ),
                row=1,
                col=2,
            )
    budgets = [point.memory.budget_bytes / GB for point in points]
    _strokes(figure, budgets, names, "budget", theme.text, "budget {:.3g} GB", 2)
