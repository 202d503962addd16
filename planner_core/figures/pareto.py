"""The Pareto front of a sweep: in three dimensions, and as three projections with the feasible cloud behind.

Owns: `pareto_3d`, `pareto_projections`.
Refuses: ranking (see `auto_explore`).

A point of the front carries its row's index as `customdata`, so that a click finds the row; a point of the
cloud carries none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from planner_core.auto_explore import ConfigScore
from planner_core.figures.frame import (
    LEGEND_BELOW,
    NARROW_CHARS,
    NARROW_LEGEND,
    ROOM_FOR_LEGEND,
    ROOM_FOR_NARROW_LEGEND,
    Drawn,
    FigureContext,
    Sheet,
    Trace,
    by_number,
    degree_ticks,
    drawable,
    empty_figure,
    lay_grid,
    log_axis,
    new_sheet,
    trace,
    wrapped,
)
from planner_core.figures.theme import SIZE_LABEL, SIZE_NOTE, Theme, binding_mark
from planner_core.figures.words import binding, n_bytes, percent, seconds, sig

MAX_3D_CLOUD: Final = 400
# Configs this many times worse than the front's worst in an objective would squeeze it into a corner: they
# lie beyond the frame, and a note counts them.
FRAME_FACTOR: Final = 20.0
MAX_NUMBERED_ROWS: Final = 15
STACKED_HEIGHT: Final = 1000  # [px], within a page of A4
# SVG markers are what costs time in a browser, so a projection draws one a cell of this grid and binding.
CLOUD_CELLS: Final = 26
RING_SHARE: Final = (
    0.035  # radius of a numbered row's ring, as a share of an axis; a dot's where they are many
)
DOT_SHARE: Final = 0.015
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


def _objectives(score: ConfigScore) -> tuple[float, float, float]:
    return (_latency_ms(score), _pes(score), _efficiency_percent(score))


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


def _framed(
    cloud: Sequence[ConfigScore], rows: Sequence[tuple[int, ConfigScore]]
) -> tuple[list[ConfigScore], str]:
    """Return the cloud inside the frame, and a note on what lies beyond."""
    slowest_s = max(score.latency_s for _, score in rows) * FRAME_FACTOR
    most_pes = max(score.pes_used for _, score in rows) * FRAME_FACTOR
    least = min(score.efficiency for _, score in rows) / FRAME_FACTOR
    drawn = [score for score in cloud if _can_draw(score)]
    inside = [
        score
        for score in drawn
        if score.latency_s <= slowest_s and score.pes_used <= most_pes and score.efficiency >= least
    ]
    if len(inside) == len(drawn):
        return inside, ""
    beyond = percent((len(drawn) - len(inside)) / len(drawn))
    return inside, (
        f"{beyond} of the feasible configs lie beyond the frame: slower than {seconds(slowest_s)}, more than "
        f"{most_pes:,.0f} PEs or under {percent(least)} efficient"
    )


def _by_binding(scores: Sequence[ConfigScore]) -> dict[str, list[ConfigScore]]:
    """Group by what binds, the most frequent first."""
    groups: dict[str, list[ConfigScore]] = {}
    for score in scores:
        groups.setdefault(score.binding, []).append(score)
    return dict(sorted(groups.items(), key=lambda item: -len(item[1])))


def _uncovered(
    scores: Sequence[ConfigScore],
    rows: Sequence[tuple[int, ConfigScore]],
    x_of: _Value,
    y_of: _Value,
    everything: Sequence[ConfigScore],
) -> list[ConfigScore]:
    """Leave out what lies under the mark of a row: unseen there, it would take the row's hover and click."""
    radius = RING_SHARE if len(rows) <= MAX_NUMBERED_ROWS else DOT_SHARE
    squares = np.zeros((len(scores), len(rows)))
    for value in (x_of, y_of):
        span = float(np.ptp(np.log([value(score) for score in everything])))
        here = np.log([value(score) for score in scores])[:, np.newaxis]
        there = np.log([value(score) for _, score in rows])
        squares += ((here - there) / max(span, 1e-12)) ** 2
    kept = np.flatnonzero((squares > radius**2).all(axis=1))
    return [scores[at] for at in kept.tolist()]


def _thinned(scores: Sequence[ConfigScore], x_of: _Value, y_of: _Value, *, cells: int) -> list[ConfigScore]:
    """One score for each cell of a log/log grid over the picture: the others would lie on top of it."""
    if not scores:
        return []
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
    n_columns: int = 3,
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
    n_columns : int
        Charts side by side; 1 stacks them, for paper and for a telephone.

    Returns
    -------
    Drawn
    """
    title = "Pareto front: latency, PEs, efficiency"
    rows = [(at, score) for at, score in enumerate(front) if _can_draw(score)]
    if not rows:
        return empty_figure(title=title, about=about, theme=theme, reason=NO_FRONT)
    behind, note = _framed(cloud, rows)
    is_narrow = n_columns == 1
    sheet = new_sheet(
        title=title,
        about=about,
        theme=theme,
        is_narrow=is_narrow,
        legend=NARROW_LEGEND if is_narrow else LEGEND_BELOW,
        margin={"t": 150, **ROOM_FOR_NARROW_LEGEND} if is_narrow else ROOM_FOR_LEGEND,
        height=STACKED_HEIGHT if is_narrow else 540,
        hovermode="closest",
    )
    lay_grid(sheet, titles=["", "", ""], n_columns=n_columns, gap_x=0.09, gap_y=0.09, theme=theme)
    groups = _by_binding(behind)
    everything = [*behind, *(score for _, score in rows)]
    for cell, ((x_title, x_of), (y_title, y_of)) in enumerate(_PROJECTIONS, start=1):
        for label, members in groups.items():
            shown = _thinned(members, x_of, y_of, cells=CLOUD_CELLS)
            free = _uncovered(shown, rows, x_of, y_of, everything)
            sheet.add(
                _cloud_trace(label, free, (x_title, x_of), (y_title, y_of), theme, cell == 1), cell=cell
            )
        for one in _front_traces(rows, x_of, y_of, theme, baseline_row, legend=cell == 1):
            sheet.add(one, cell=cell)
        x_values = [x_of(score) for score in everything]
        ticks = degree_ticks(x_values) if x_of is _pes else ()
        sheet.axes(
            x=log_axis(title=x_title, values=x_values, ticks=ticks),
            y=log_axis(title=y_title, values=[y_of(score) for score in everything]),
            cell=cell,
        )
    _add_note(sheet, note, theme, width=NARROW_CHARS if is_narrow else 70)
    return sheet.drawn(alt=_alt("Three charts", rows, cloud, baseline_row))


def _add_note(sheet: Sheet, note: str, theme: Theme, *, width: int = 70) -> None:
    """Write a note at the top right, under the title's line."""
    if note:
        sheet.note(
            {
                "text": wrapped(note, width=width),
                "align": "right",
                "x": 1,
                "y": 1,
                "xref": "paper",
                "yref": "paper",
                "xanchor": "right",
                "yanchor": "bottom",
                "yshift": 4,
                "font": {"size": SIZE_NOTE, "color": theme.muted},
            }
        )


def _cloud_trace(
    label: str,
    members: Sequence[ConfigScore],
    x_axis: tuple[str, _Value],
    y_axis: tuple[str, _Value],
    theme: Theme,
    legend: bool,
) -> Trace:
    (x_title, x_of), (y_title, y_of) = x_axis, y_axis
    mark = binding_mark(label, theme=theme)
    return trace(
        "scatter",
        x=by_number([x_of(score) for score in members]),
        y=by_number([y_of(score) for score in members]),
        mode="markers",
        marker={"symbol": mark.marker, "color": mark.colour, "size": 7, "opacity": 0.6},
        text=[score.label() for score in members],
        hovertemplate=(
            f"<b>%{{text}}</b><br>{x_title}: %{{x:,.4~r}}<br>{y_title}: %{{y:,.4~r}}"
            f"<br>binds: {binding(label)}<extra></extra>"
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
) -> list[Trace]:
    """Return the front as ringed points along a thin line, and a star on the baseline."""
    ordered = sorted(rows, key=lambda item: (x_of(item[1]), y_of(item[1])))
    numbered = len(ordered) <= MAX_NUMBERED_ROWS
    front = trace(
        "scatter",
        x=by_number([x_of(score) for _, score in ordered]),
        y=by_number([y_of(score) for _, score in ordered]),
        mode="lines+markers+text" if numbered else "lines+markers",
        line={"color": theme.text, "width": 1},
        marker={
            "symbol": "circle",
            "size": 20 if numbered else 9,
            "color": theme.paper,
            "line": {"color": theme.text, "width": 2},
        },
        text=[str(at) for at, _ in ordered] if numbered else None,
        textfont={"size": SIZE_NOTE, "color": theme.text},
        hovertext=[pareto_hover(score, row=at) for at, score in ordered],
        customdata=[at for at, _ in ordered],
        name="Pareto front, by row" if numbered else "Pareto front",
        legendgroup="front",
        showlegend=legend,
        hoverinfo="text",
    )
    starred = [(at, score) for at, score in rows if at == baseline_row]
    if not starred:
        return [front]
    at, score = starred[0]
    star = trace(
        "scatter",
        x=[x_of(score)],
        y=[y_of(score)],
        mode="markers",
        marker={
            "symbol": "star",
            "size": 24,
            "color": theme.accent,
            "line": {"color": theme.paper, "width": 1.5},
        },
        hovertext=[pareto_hover(score, row=at)],
        customdata=[at],
        name=f"Baseline, row {at}",
        legendgroup="baseline",
        showlegend=legend,
        hoverinfo="text",
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
    behind, note = _framed(cloud, rows)
    sheet = new_sheet(
        title=title,
        about=about,
        theme=theme,
        margin={"l": 0, "r": 16, "t": 72, "b": 32},
        height=620,
        legend={**LEGEND_BELOW, "itemsizing": "constant"},
    )
    taken = {_objectives(score) for _, score in rows}  # such a point would take the row's click
    shown = [score for score in behind if _objectives(score) not in taken]
    step = max(1, -(-len(shown) // MAX_3D_CLOUD))
    for label, members in _by_binding(shown[::step]).items():
        mark = binding_mark(label, theme=theme)
        sheet.add(
            trace(
                "scatter3d",
                x=by_number([_pes(score) for score in members]),
                y=by_number([_latency_ms(score) for score in members]),
                z=by_number([_efficiency_percent(score) for score in members]),
                mode="markers",
                marker={
                    "symbol": _SCENE_MARKERS.get(mark.marker, "x"),
                    "color": mark.colour,
                    "size": 3.5,
                    "opacity": 0.7,
                },
                text=[score.label() for score in members],
                hovertemplate=(
                    "<b>%{text}</b><br>%{x:,} PEs, %{y:,.4~r} ms, %{z:,.3~r} %"
                    f"<br>binds: {binding(label)}<extra></extra>"
                ),
                name=binding(label),
            )
        )
    _add_front_3d(sheet, rows, theme, baseline_row)
    everything = [*behind, *(score for _, score in rows)]
    pes = [_pes(score) for score in everything]
    sheet.layout["scene"] = {
        "xaxis": log_axis(title="PEs used", values=pes, ticks=degree_ticks(pes)[::2]),
        "yaxis": log_axis(title="Latency [ms]", values=[_latency_ms(score) for score in everything]),
        "zaxis": log_axis(
            title="Efficiency [%]", values=[_efficiency_percent(score) for score in everything]
        ),
        "camera": {"eye": {"x": 1.35, "y": 1.35, "z": 0.6}, "center": {"x": 0, "y": 0, "z": -0.1}},
        "aspectmode": "manual",
        "aspectratio": {"x": 1.3, "y": 1.3, "z": 0.85},
    }
    _add_note(sheet, note, theme)
    return sheet.drawn(alt=_alt("A 3-D chart", rows, cloud, baseline_row))


def _add_front_3d(
    sheet: Sheet,
    rows: Sequence[tuple[int, ConfigScore]],
    theme: Theme,
    baseline_row: int | None,
) -> None:
    """Add the front's points with their row numbers, and the baseline's."""
    for name, members, colour, size in (
        ("Pareto front, by row", [row for row in rows if row[0] != baseline_row], theme.text, 6),
        ("Baseline", [row for row in rows if row[0] == baseline_row], theme.accent, 9),
    ):
        if not members:
            continue
        sheet.add(
            trace(
                "scatter3d",
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
                text=[f"<b>{at}</b>" for at, _ in members],
                textposition="top center",
                textfont={"size": SIZE_LABEL, "color": theme.text},
                hovertext=[pareto_hover(score, row=at) for at, score in members],
                hoverinfo="text",
                customdata=[at for at, _ in members],
                name=name,
            )
        )


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
