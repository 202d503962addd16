"""A serving plan over its context lengths: what is selected, and what a prefill takes.

Owns: `selection_by_context`, `prefill_footprint`.
Refuses: choices (see `serving_plan`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from planner_core.figures.frame import (
    LEGEND_BELOW,
    ROOM_FOR_LEGEND,
    Drawn,
    FigureContext,
    Sheet,
    Trace,
    by_number,
    drawable,
    empty_figure,
    hatched,
    lay_grid,
    log_axis,
    new_sheet,
    trace,
)
from planner_core.figures.memory import memory_hover, memory_parts, part_look
from planner_core.figures.theme import Theme, component_slots
from planner_core.figures.words import binding, context, n_bytes, operator, seconds, sig
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
    panels: tuple[tuple[str, list[float], list[float | None]], ...] = (
        (
            "ITL [ms]",
            [(row.itl_s or 0.0) * 1e3 for _, row in chosen],
            _ms(bucket.itl_ceiling_s for bucket, _ in chosen),
        ),
        (
            "TTFT [ms]",
            [row.ttft_s * 1e3 for _, row in chosen],
            _ms(bucket.ttft_ceiling_s for bucket, _ in chosen),
        ),
        ("Throughput of a node [tok/s]", [row.tokens_per_s_per_node for _, row in chosen], []),
    )
    sheet = new_sheet(
        title=title,
        about=about,
        theme=theme,
        margin={"t": 100, **ROOM_FOR_LEGEND},
        height=500,
        legend=LEGEND_BELOW,
        hovermode="closest",
    )
    titles = ["Inter-token latency", "Time to first token", "Throughput"]
    lay_grid(sheet, titles=titles, n_columns=3, gap_x=0.1, gap_y=0.0, theme=theme)
    tokens = [float(bucket.context_tokens) for bucket, _ in chosen]
    for cell, (y_title, values, targets) in enumerate(panels, start=1):
        limits = [(x, y) for x, y in zip(tokens, targets, strict=False) if y is not None]
        if limits:
            sheet.add(_target_trace(limits, theme, legend=cell == 1), cell=cell)
        for one in _selection_traces(chosen, tokens, values, theme, legend=cell == 1):
            sheet.add(one, cell=cell)
        axis = log_axis(title="Context length [tokens]", values=tokens, ticks=tokens)
        axis["ticktext"] = _length_ticks(chosen)
        sheet.axes(x=axis, y=log_axis(title=y_title, values=[*values, *(y for _, y in limits)]), cell=cell)
    told = "; ".join(
        f"{context(bucket.context_tokens)} {row.label()}" + ("" if bucket.sla_met else " (misses a target)")
        for bucket, row in chosen
    )
    return sheet.drawn(alt=f"ITL, TTFT and throughput of the selected config by context length: {told}.")


def _ms(limits: Any) -> list[float | None]:
    return [None if limit is None or not drawable(limit) else limit * 1e3 for limit in limits]


def _selection_traces(
    chosen: Sequence[tuple[BucketPlan, PlanRow]],
    tokens: Sequence[float],
    values: Sequence[float],
    theme: Theme,
    *,
    legend: bool,
) -> list[Trace]:
    """Return the line with the configs' names, then the points that meet the targets and those that miss."""
    line = trace(
        "scatter",
        x=list(tokens),
        y=by_number(values),
        mode="lines",
        line={"color": theme.series[0], "width": 2},
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
                trace(
                    "scatter",
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


def _length_ticks(chosen: Sequence[tuple[BucketPlan, PlanRow]]) -> list[str]:
    """Return each context length, and under it the config where it differs from the one before."""
    labels = [row.label() for _, row in chosen]
    return [
        context(bucket.context_tokens)
        + (f"<br>{labels[at]}" if at == 0 or labels[at] != labels[at - 1] else "")
        for at, (bucket, _) in enumerate(chosen)
    ]


def _target_trace(limits: Sequence[tuple[float, float]], theme: Theme, *, legend: bool) -> Trace:
    return trace(
        "scatter",
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
    sheet = new_sheet(
        title=title,
        about=about,
        theme=theme,
        barmode="stack",
        bargap=0.35,
        margin={"t": 100, "b": 116},
        height=540,
        legend={**LEGEND_BELOW, "traceorder": "normal"},
    )
    titles = ["Time to first token", "Memory of the most loaded PE"]
    lay_grid(sheet, titles=titles, n_columns=2, gap_x=0.09, gap_y=0.0, theme=theme)
    names = [f"{context(point.context_tokens)}<br>{_config(point)}" for point in points]
    _add_times(sheet, points, names, theme)
    _add_target_strokes(sheet, ttft_ceilings_s, names, theme)
    _add_memory(sheet, points, names, theme)
    for cell, y_title in enumerate(("TTFT [s]", "Memory a PE [GB]"), start=1):
        sheet.axes(
            x={
                "title": {"text": "Context length [tokens], selected config"},
                "showgrid": False,
                "ticks": "",
                "tickangle": 0,
            },
            y={"title": {"text": y_title}, "rangemode": "tozero"},
            cell=cell,
        )
    told = "; ".join(
        f"{context(point.context_tokens)} {_config(point)} {seconds(float(point.step.latency_s))}, "
        f"{n_bytes(float(point.memory.total_bytes))} a PE"
        for point in points
    )
    return sheet.drawn(alt=f"Prefill time and memory by context length: {told}.")


def _config(point: OperatingPoint) -> str:
    degrees = (("TP", point.tp), ("CP", point.cp), ("PP", point.pp))
    return " ".join(f"{name}{degree}" for name, degree in degrees if degree > 1 or name == "TP")


def _add_times(sheet: Sheet, points: Sequence[OperatingPoint], names: Sequence[str], theme: Theme) -> None:
    parts: dict[str, list[float]] = {}
    for at, point in enumerate(points):
        times = {component.name: float(component.time_s) for component in point.step.components}
        times[COMMUNICATION] = float(point.step.communication_s)
        for name, time_s in times.items():
            parts.setdefault(name, [0.0] * len(points))[at] = time_s
    slots = component_slots(list(parts))
    for name, values in sorted(parts.items(), key=lambda item: item[0] == COMMUNICATION):
        sheet.add(
            trace(
                "bar",
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
        )


def _strokes(
    sheet: Sheet, y: Sequence[float], names: Sequence[str], name: str, colour: str, told: str, cell: int
) -> None:
    """Mark a limit with a level stroke across each bar."""
    sheet.add(
        trace(
            "scatter",
            x=list(names),
            y=list(y),
            mode="markers",
            marker={"symbol": "line-ew", "size": 46, "line": {"color": colour, "width": 2.5}},
            hovertext=[told.format(value) for value in y],
            hoverinfo="text",
            name=name,
        ),
        cell=cell,
    )


def _add_target_strokes(
    sheet: Sheet, ceilings_s: Sequence[float | None], names: Sequence[str], theme: Theme
) -> None:
    limits = [(name, limit) for name, limit in zip(names, ceilings_s, strict=True) if limit is not None]
    if limits:
        _strokes(
            sheet,
            [limit for _, limit in limits],
            [name for name, _ in limits],
            "TTFT target",
            theme.accent,
            "TTFT target {:.3g} s",
            1,
        )


def _add_memory(sheet: Sheet, points: Sequence[OperatingPoint], names: Sequence[str], theme: Theme) -> None:
    layouts = [memory_parts(point.memory) for point in points]
    for slot, part in enumerate(layouts[0]):
        sizes = [layout[part] for layout in layouts]
        if any(sizes):
            sheet.add(
                trace(
                    "bar",
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
                cell=2,
            )
    budgets = [point.memory.budget_bytes / GB for point in points]
    _strokes(sheet, budgets, names, "budget", theme.text, "budget {:.3g} GB", 2)
