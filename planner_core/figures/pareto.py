"""The Pareto front of a sweep: in three dimensions, and as three projections with the feasible cloud behind.

Owns: `pareto_3d`, `pareto_projections`.
Refuses: ranking (see `auto_explore`).

A point of the front carries its row's index as `customdata`, so that a click finds the row; a point of the
cloud carries none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from planner_core.auto_explore import ConfigScore
from planner_core.figures.frame import (
    Drawn,
    FigureContext,
    by_number,
    degree_ticks,
    drawable,
    empty_figure,
    log_axis,
    new_figure,
)
from planner_core.figures.theme import SIZE_NOTE, Theme, binding_mark
from planner_core.figures.words import binding, n_bytes, percent, seconds, sig

MAX_3D_CLOUD: Final = 400
# SVG markers are what costs time in a browser, so a projection draws one a cell of this grid and binding.
CLOUD_CELLS: Final = 26
NO_FRONT: Final = (
    "No config fits the memory and the PEs allowed. Allow more PEs, a shorter context, a smaller batch, "
    "narrower weights or KV, or search more values."
)
_SCENE_MARKERS: Final = {
    "circle": "circle",
    "square": "square",
    "diamond": "diamond",
    "cross": "cross",
    "triangle-up": "diamond-open",
    "triangle-down": "circle-open",
    "pentagon": "square-open",
    "hexagon": "x",
}

_Value = Callable[[ConfigScore], float]


def _latency_ms(score: ConfigScore) -> float:
    return score.latency_s * 1e3


def _pes(score: ConfigScore) -> float:
    return float(score.pes_used)


def _efficiency_percent(score: ConfigScore) -> float:
    return score.efficiency * 100.0


_LATENCY: Final = ("Latency [ms]", _latency_ms)
_PES: Final = ("PEs used", _pes)
_EFFICIENCY: Final = ("Efficiency [%]", _efficiency_percent)
_PROJECTIONS: Final = ((_PES, _LATENCY), (_LATENCY, _EFFICIENCY), (_PES, _EFFICIENCY))


def pareto_hover(score: ConfigScore, *, row: int | None = None) -> str:
    """Return a scored config in full, as hover text.

    Parameters
    ----------
    score : ConfigScore
        The config.
    row : int, optional
        Its row on the front.

    Returns
    -------
    str
    """
    head = f"<b>{score.label()}</b>" if row is None else f"<b>Row {row}: {score.label()}</b>"
    lines = [
        head,
        f"latency {seconds(score.latency_s)}, efficiency {percent(score.efficiency)}",
        f"{score.pes_used:,} PEs, {sig(score.throughput_tokens_per_s)} tok/s",
        f"memory {n_bytes(score.memory_bytes_per_pe)} a PE, {percent(score.hbm_frac)} of HBM",
        f"binds: {binding(score.binding)}",
        f"CP {score.cp}, TP {score.tp}, PP {score.pp}, DP {score.dp}, EP {score.ep}",
        f"KV {score.kv_shard_mode}, FFN over {score.ffn_shard_scope}, ring {score.cp_ring_variant}",
        f"TP {score.tp_placement}, CP {score.cp_placement}",
    ]
    if score.n_tied:
        lines.append(f"{score.n_tied} more with the same numbers")
    return "<br>".join(lines)


def _can_draw(score: ConfigScore) -> bool:
    return drawable(score.latency_s) and drawable(score.pes_used) and drawable(score.efficiency)


def _by_binding(scores: Sequence[ConfigScore]) -> dict[str, list[ConfigScore]]:
    """Group by what binds, the most frequent first."""
    groups: dict[str, list[ConfigScore]] = {}
    for score in scores:
        groups.setdefault(score.binding, []).append(score)
    return dict(sorted(groups.items(), key=lambda item: -len(item[1])))


def _thinned(
    scores: Sequence[ConfigScore], x_of: _Value, y_of: _Value, *, cells: int
) -> list[ConfigScore]:
    """One score for each cell of a log/log grid over the picture: the others would lie on top of it."""
    x, y = (np.log([value(score) for score in scores]) for value in (x_of, y_of))
    column, row = (
        np.floor((v - v.min()) / max(float(np.ptp(v)), 1e-12) * cells).astype(np.int64) for v in (x, y)
    )
    kept = np.unique(column * (cells + 2) + row, return_index=True)[1]
    return [scores[at] for at in sorted(kept)]


def pareto_projections(
    *,
    front: Sequence[ConfigScore],
    cloud: Sequence[ConfigScore],
    about: FigureContext,
    theme: Theme,
    baseline_row: int | None = None,
) -> Drawn:
    """Draw the front against each pair of objectives, over the feasible cloud coloured by what binds.

    Parameters
    ----------
    front : sequence of ConfigScore
        Rows, by latency.
    cloud : sequence of ConfigScore
        A sample of the feasible configs.
    about : FigureContext
        For the title.
    theme : Theme
        Light or dark.
    baseline_row : int, optional
        The row to star.

    Returns
    -------
    Drawn
    """
    title = "Pareto front: latency, PEs, efficiency"
    rows = [(at, score) for at, score in enumerate(front) if _can_draw(score)]
    if not rows:
        return empty_figure(title=title, about=about, theme=theme, reason=NO_FRONT)
    behind = [score for score in cloud if _can_draw(score)]
    figure = make_subplots(rows=1, cols=3, horizontal_spacing=0.075)
    figure.update_layout(
        new_figure(
            title=title,
            about=about,
            theme=theme,
            legend={"orientation": "h", "y": -0.16, "yanchor": "top", "x": 0},
            hovermode="closest",
        ).layout
    )
    groups = _by_binding(behind)
    everything = [*behind, *(score for _, score in rows)]
    for position, ((x_title, x_of), (y_title, y_of)) in enumerate(_PROJECTIONS, start=1):
        place = {"row": 1, "col": position}
        for label, members in groups.items():
            figure.add_trace(
                _cloud_trace(label, members, x_of, y_of, theme, legend=position == 1), **place
            )
        for trace in _front_traces(rows, x_of, y_of, theme, baseline_row, legend=position == 1):
            figure.add_trace(trace, **place)
        x_values = [x_of(score) for score in everything]
        ticks = degree_ticks(x_values) if x_of is _pes else ()
        figure.update_xaxes(log_axis(title=x_title, values=x_values, ticks=ticks), **place)
        figure.update_yaxes(
            log_axis(title=y_title, values=[y_of(score) for score in everything]), **place
        )
    return Drawn(figure=figure, alt=_alt("Three charts", rows, behind, baseline_row))


def _cloud_trace(
    label: str,
    members: Sequence[ConfigScore],
    x_of: _Value,
    y_of: _Value,
    theme: Theme,
    *,
    legend: bool,
) -> go.Scatter:
    mark = binding_mark(label, theme=theme)
    shown = _thinned(members, x_of, y_of, cells=CLOUD_CELLS)
    return go.Scatter(
        x=by_number([x_of(score) for score in shown]),
        y=by_number([y_of(score) for score in shown]),
        mode="markers",
        marker={"symbol": mark.marker, "color": mark.colour, "size": 6, "opacity": 0.5},
        text=[score.label() for score in shown],
        hovertemplate=(
            f"<b>%{{text}}</b><br>%{{x:,.4~r}}, %{{y:,.4~r}}<br>binds: {binding(label)}<extra></extra>"
        ),
        name=binding(label),
        legendgroup=label,
        showlegend=legend,
    )


def _front_traces(
    rows: Sequence[tuple[int, ConfigScore]],
    x_of: _Value,
    y_of: _Value,
    theme: Theme,
    baseline_row: int | None,
    *,
    legend: bool,
) -> list[go.Scatter]:
    """Return the front as ringed points along a thin line, and a star on the baseline."""
    ordered = sorted(rows, key=lambda item: (x_of(item[1]), y_of(item[1])))
    common: dict[str, Any] = {"hoverinfo": "text"}
    front = go.Scatter(
        x=by_number([x_of(score) for _, score in ordered]),
        y=by_number([y_of(score) for _, score in ordered]),
        mode="lines+markers",
        line={"color": theme.text, "width": 1.5},
        marker={
            "symbol": "circle",
            "size": 11,
            "color": theme.paper,
            "line": {"color": theme.text, "width": 2.5},
        },
        hovertext=[pareto_hover(score, row=at) for at, score in ordered],
        customdata=[at for at, _ in ordered],
        name="Pareto front",
        legendgroup="front",
        showlegend=legend,
        **common,
    )
    starred = [(at, score) for at, score in rows if at == baseline_row]
    if not starred:
        return [front]
    at, score = starred[0]
    star = go.Scatter(
        x=[x_of(score)],
        y=[y_of(score)],
        mode="markers",
        marker={
            "symbol": "star",
            "size": 19,
            "color": theme.accent,
            "line": {"color": theme.paper, "width": 1.5},
        },
        hovertext=[pareto_hover(score, row=at)],
        customdata=[at],
        name=f"Baseline, row {at}",
        legendgroup="baseline",
        showlegend=legend,
        **common,
    )
    return [front, star]


def pareto_3d(
    *,
    front: Sequence[ConfigScore],
    cloud: Sequence[ConfigScore],
    about: FigureContext,
    theme: Theme,
    baseline_row: int | None = None,
) -> Drawn:
    """Draw the front in its three objectives, with the feasible cloud.

    Parameters
    ----------
    front, cloud, about, theme, baseline_row
        As in `pareto_projections`.

    Returns
    -------
    Drawn
    """
    title = "Pareto front in three objectives"
    rows = [(at, score) for at, score in enumerate(front) if _can_draw(score)]
    if not rows:
        return empty_figure(title=title, about=about, theme=theme, reason=NO_FRONT)
    behind = [score for score in cloud if _can_draw(score)]
    figure = new_figure(
        title=title,
        about=about,
        theme=theme,
        margin={"l": 0, "r": 0, "t": 64, "b": 8},
        legend={"orientation": "h", "y": 0, "yanchor": "top", "x": 0.02},
    )
    step = max(1, -(-len(behind) // MAX_3D_CLOUD))
    for label, members in _by_binding(behind[::step]).items():
        mark = binding_mark(label, theme=theme)
        figure.add_trace(
            go.Scatter3d(
                x=by_number([_pes(score) for score in members]),
                y=by_number([_latency_ms(score) for score in members]),
                z=by_number([_efficiency_percent(score) for score in members]),
                mode="markers",
                marker={
                    "symbol": _SCENE_MARKERS.get(mark.marker, "x"),
                    "color": mark.colour,
                    "size": 2.5,
                    "opacity": 0.55,
                },
                text=[score.label() for score in members],
                hovertemplate=(
                    "<b>%{text}</b><br>%{x:,} PEs, %{y:,.4~r} ms, %{z:,.3~r} %"
                    f"<br>binds: {binding(label)}<extra></extra>"
                ),
                name=binding(label),
            )
        )
    _add_front_3d(figure, rows, theme, baseline_row)
    everything = [*behind, *(score for _, score in rows)]
    pes = [_pes(score) for score in everything]
    figure.update_scenes(
        xaxis=_scene_axis("PEs used", pes, ticks=degree_ticks(pes)[::2]),
        yaxis=_scene_axis("Latency [ms]", [_latency_ms(score) for score in everything]),
        zaxis=_scene_axis("Efficiency [%]", [_efficiency_percent(score) for score in everything]),
        camera={"eye": {"x": 1.45, "y": 1.45, "z": 0.75}, "center": {"x": 0, "y": 0, "z": -0.12}},
        aspectmode="manual",
        aspectratio={"x": 1.25, "y": 1.25, "z": 0.85},
    )
    return Drawn(figure=figure, alt=_alt("A 3-D chart", rows, behind, baseline_row))


def _add_front_3d(
    figure: go.Figure,
    rows: Sequence[tuple[int, ConfigScore]],
    theme: Theme,
    baseline_row: int | None,
) -> None:
    """Add the front's points with their row numbers, and the baseline's."""
    for name, members, colour, size in (
        ("Pareto front", [row for row in rows if row[0] != baseline_row], theme.text, 6),
        ("Baseline", [row for row in rows if row[0] == baseline_row], theme.accent, 9),
    ):
        if not members:
            continue
        figure.add_trace(
            go.Scatter3d(
                x=by_number([_pes(score) for _, score in members]),
                y=by_number([_latency_ms(score) for _, score in members]),
                z=by_number([_efficiency_percent(score) for _, score in members]),
                mode="markers+text",
                marker={
                    "symbol": "diamond" if name == "Baseline" else "circle",
                    "color": colour,
                    "size": size,
                    "line": {"color": theme.paper, "width": 1},
                },
                text=[f"row {at}" for at, _ in members],
                textposition="top center",
                textfont={"size": SIZE_NOTE + 1, "color": theme.text},
                hovertext=[pareto_hover(score, row=at) for at, score in members],
                hoverinfo="text",
                customdata=[at for at, _ in members],
                name=name,
            )
        )


def _scene_axis(title: str, values: Sequence[float], ticks: Sequence[float] = ()) -> dict[str, Any]:
    axis = log_axis(title=title, values=values, ticks=ticks)
    del axis["minor"]  # a 3-D axis has none
    return axis


def _alt(
    what: str,
    rows: Sequence[tuple[int, ConfigScore]],
    cloud: Sequence[ConfigScore],
    baseline_row: int | None,
) -> str:
    scores = [score for _, score in rows]
    fastest = min(scores, key=lambda score: score.latency_s)
    thriftiest = max(scores, key=lambda score: score.efficiency)
    star = "" if baseline_row is None else f" Row {baseline_row} is the baseline."
    return (
        f"{what} of latency, PEs used and efficiency: {len(rows)} configs on the Pareto front, from "
        f"{fastest.label()} ({seconds(fastest.latency_s)}, {fastest.pes_used} PEs) to {thriftiest.label()} "
        f"({percent(thriftiest.efficiency)} efficient), before {len(cloud)} other feasible configs.{star}"
    )
