"""The sensitivity panel: what each knob does to the latency around one baseline.

Owns: `sensitivity_panel`.
Refuses: the sweep (see `auto_explore`).

Lines instead of markers, and evens that lie closer than the eye can tell left out: few points redraw fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from planner_core.auto_explore import Config, ParallelismSensitivityRow
from planner_core.figures.frame import (
    LEGEND_BELOW,
    NARROW_LEGEND,
    ROOM_FOR_LEGEND,
    ROOM_FOR_NARROW_LEGEND,
    Area,
    Drawn,
    FigureContext,
    Sheet,
    Trace,
    by_number,
    cell_area,
    degree_ticks,
    drawable,
    empty_figure,
    lay_grid,
    log_axis,
    new_sheet,
    trace,
)
from planner_core.figures.theme import SIZE_HEADING, SIZE_TEXT, Theme
from planner_core.figures.words import binding, n_bytes, operator, percent, plain, seconds

KNOB_TITLES: Final = {
    "cp": "CP, context parallel",
    "tp": "TP, tensor parallel",
    "pp": "PP, pipeline parallel",
    "dp": "DP, data parallel",
    "ep": "EP, expert parallel",
}
# Neighbours on the line at least this factor apart: 2 px on a subplot of 500 px over eight octaves.
THIN_FACTOR: Final = 1.03

Row = ParallelismSensitivityRow


def thinned(rows: Sequence[Row]) -> list[Row]:
    """Leave out values that the eye can't tell from their neighbours on a log axis.

    Kept are the ends, the baseline, every value that does not fit, both sides of a change between fitting
    and not, and each step with the value before it.

    Parameters
    ----------
    rows : sequence of ParallelismSensitivityRow
        One knob's, by value.

    Returns
    -------
    list of ParallelismSensitivityRow
    """
    kept: list[Row] = []
    for at, row in enumerate(rows):
        neighbours = rows[max(at - 1, 0) : at + 2]
        following = rows[at + 1] if at + 1 < len(rows) else None
        matters = (
            at == 0
            or following is None
            or row.is_baseline
            or not row.fits
            or bool(row.step_note)
            or bool(following.step_note)
            or any(other.fits != row.fits for other in neighbours)
        )
        if matters or row.value >= THIN_FACTOR * kept[-1].value:
            kept.append(row)
    return kept


def _hover(row: Row, budget_bytes: float | None) -> str:
    lines = [
        f"<b>{row.knob.upper()} {row.value}</b>" + (" (baseline)" if row.is_baseline else ""),
        f"latency {seconds(row.latency_s)}" + ("" if row.fits else ", if it fitted"),
        f"memory {_memory(row, budget_bytes)}",
        f"{row.pes_used:,} PEs, binds: {binding(row.binding)}",
    ]
    if not row.fits:
        lines.insert(1, f"<b>does not fit: {row.reason}</b>")
    if row.tiers:
        groups: dict[str, list[str]] = {}
        for name, tier in row.tiers.items():
            groups.setdefault(tier, []).append(operator(name))
        lines += [f"{tier}: {', '.join(names)}" for tier, names in groups.items()]
    if row.step_note:
        lines += [f"<b>step</b> {part}" for part in row.step_note.split("; ")]
    return "<br>".join(lines)


def sensitivity_panel(
    *,
    rows: Sequence[Row],
    baseline: Config,
    about: FigureContext,
    theme: Theme,
    budget_bytes: float | None = None,
    n_columns: int = 3,
    summary: bool = True,
    is_moe: bool = True,
) -> Drawn:
    """Draw five subplots, log/log, a knob each, on one latency scale.

    Parameters
    ----------
    rows : sequence of ParallelismSensitivityRow
        As `compute_parallelism_sensitivity` returns them.
    baseline : Config
        What is held while a knob turns.
    about : FigureContext
        For the title.
    theme : Theme
        Light or dark.
    budget_bytes : float, optional
        What a plan may fill on one PE [B], for the share in the hover.
    n_columns : int
        3 puts the legend in the sixth cell; 1 suits a narrow page.
    summary : bool
        Whether the sixth cell tells the baseline's numbers and each knob's best value too.
    is_moe : bool
        Whether the model has experts; where it has none EP cuts its FFN, and the title says so.

    Returns
    -------
    Drawn
        Solid line: fits. Red X: does not fit, at the latency it would have. Dotted vertical line: the
        baseline's value. Diamond: a group crosses a tier boundary, told by its hover.
    """
    title = f"Sensitivity around {baseline.label()}"
    by_knob: dict[str, list[Row]] = {}
    for row in rows:
        if drawable(row.latency_s) and drawable(row.value):
            by_knob.setdefault(row.knob, []).append(row)
    if not by_knob:
        reason = "There is no baseline to vary. Pick a row of the Pareto front."
        return empty_figure(title=title, about=about, theme=theme, reason=reason)
    titles = KNOB_TITLES if is_moe else {**KNOB_TITLES, "ep": "EP, FFN cut over more ranks"}
    is_narrow = n_columns == 1
    n_rows = -(-len(by_knob) // n_columns)
    sheet = new_sheet(
        title=title,
        about=about,
        theme=theme,
        is_narrow=is_narrow,
        hovermode="closest",
        margin={"t": 100},
        height=140 + 320 * n_rows,
    )
    gaps = {"gap_x": 0.05, "gap_y": 0.18 if n_rows == 2 else 0.09}
    lay_grid(
        sheet,
        titles=[titles.get(knob, knob.upper()) for knob in by_knob],
        n_columns=n_columns,
        **gaps,
        theme=theme,
        share_y=True,
    )
    latencies = [row.latency_s * 1e3 for members in by_knob.values() for row in members]
    for cell, members in enumerate(by_knob.values(), start=1):
        for one in _knob_traces(members, theme, budget_bytes):
            sheet.add(one, cell=cell)
        values = [float(row.value) for row in members]
        knob = members[0].knob
        y_title = "Latency [ms]" if (cell - 1) % n_columns == 0 else ""
        sheet.axes(
            x=log_axis(title=f"{knob.upper()} [ranks]", values=values, ticks=degree_ticks(values)),
            y=log_axis(title=y_title, values=latencies),
            cell=cell,
        )
        line = {"dash": "dot", "color": theme.accent, "width": 2}
        sheet.vertical_line(x=getattr(baseline, knob), line=line, cell=cell)
    every = [row for members in by_knob.values() for row in members]
    for one in _legend_keys(every, theme):
        sheet.add(one)
    if n_rows * n_columns > len(by_knob):
        last = cell_area(cell=n_rows * n_columns, n_rows=n_rows, n_columns=n_columns, **gaps)
        _put_legend(sheet, last)
        if summary:
            _put_summary(sheet, last, by_knob, budget_bytes, theme)
    else:
        legend = {"legend": LEGEND_BELOW, "margin": {"t": 100, **ROOM_FOR_LEGEND}}
        narrow = {"legend": NARROW_LEGEND, "margin": {"t": 130, **ROOM_FOR_NARROW_LEGEND}}
        sheet.layout |= narrow if is_narrow else legend
    return sheet.drawn(alt=_alt(title, by_knob))


def _segments(members: Sequence[Row]) -> tuple[list[float | None], list[float | None], list[Row | None]]:
    """Return the fitting points, with a gap wherever values between them do not fit."""
    x: list[float | None] = []
    y: list[float | None] = []
    owners: list[Row | None] = []
    for row in members:
        if row.fits:
            x.append(row.value)
            y.append(float(f"{row.latency_s * 1e3:.6g}"))
            owners.append(row)
        elif x and x[-1] is not None:
            x.append(None)
            y.append(None)
            owners.append(None)
    return x, y, owners


def _knob_traces(members: Sequence[Row], theme: Theme, budget_bytes: float | None) -> list[Trace]:
    """Return one knob's line through what fits, its Xs, its steps and its baseline."""
    shown = thinned(members)
    x, y, owners = _segments(shown)
    lone = sum(row.fits for row in shown) == 1
    line = trace(
        "scatter",
        x=x,
        y=y,
        mode="lines+markers" if lone else "lines",
        line={"color": theme.series[0], "width": 2.5},
        marker={"size": 5, "color": theme.series[0]},
        hovertext=["" if row is None else _hover(row, budget_bytes) for row in owners],
        hoverinfo="text",
        name="fits",
        showlegend=False,
    )
    marked = (
        ("does not fit", [row for row in shown if not row.fits], _unfit_marker(theme)),
        ("step", [row for row in shown if row.fits and row.step_note], _step_marker(theme)),
        ("baseline", [row for row in shown if row.is_baseline and row.fits], _baseline_marker(theme)),
    )
    return [
        line,
        *(
            trace(
                "scatter",
                x=[row.value for row in chosen],
                y=by_number([row.latency_s * 1e3 for row in chosen]),
                mode="markers",
                marker=marker,
                hovertext=[_hover(row, budget_bytes) for row in chosen],
                hoverinfo="text",
                name=name,
                showlegend=False,
            )
            for name, chosen, marker in marked
            if chosen
        ),
    ]


def _unfit_marker(theme: Theme) -> dict[str, Any]:
    return {"symbol": "x-thin", "size": 8, "line": {"color": theme.bad, "width": 2}, "color": theme.bad}


def _step_marker(theme: Theme) -> dict[str, Any]:
    return {
        "symbol": "diamond",
        "size": 10,
        "color": theme.paper,
        "line": {"color": theme.series[0], "width": 2},
    }


def _baseline_marker(theme: Theme) -> dict[str, Any]:
    line = {"color": theme.paper, "width": 1.5}
    return {"symbol": "circle", "size": 9, "color": theme.accent, "line": line}


def _legend_keys(every: Sequence[Row], theme: Theme) -> list[Trace]:
    """Return traces without points that explain the marks, whichever of them a cell happens to have."""
    line = {"color": theme.series[0], "width": 2.5}
    dotted = {"color": theme.accent, "width": 2, "dash": "dot"}
    keys: list[tuple[str, Trace]] = [
        ("fits", {"mode": "lines", "line": line}),
        ("baseline", {"mode": "lines+markers", "line": dotted, "marker": _baseline_marker(theme)}),
    ]
    if any(not row.fits for row in every):
        look = {"mode": "markers", "marker": _unfit_marker(theme)}
        keys.append(("does not fit, at the latency it would have", look))
    if any(row.step_note and row.fits for row in every):
        keys.append(("a group crosses a tier boundary", {"mode": "markers", "marker": _step_marker(theme)}))
    return [trace("scatter", x=[None], y=[None], name=name, hoverinfo="skip", **look) for name, look in keys]


def _put_legend(sheet: Sheet, area: Area) -> None:
    """Put how to read the figure at the top of the free last cell."""
    sheet.layout["legend"] = {
        "x": area.left,
        "y": area.top,
        "xanchor": "left",
        "yanchor": "top",
        "font": {"size": SIZE_TEXT},
        "title": {"text": "<b>How to read it</b>", "font": {"size": SIZE_HEADING}},
    }


def _put_summary(
    sheet: Sheet, area: Area, by_knob: dict[str, list[Row]], budget_bytes: float | None, theme: Theme
) -> None:
    """Put the baseline's numbers and each knob's best value at the foot of the free last cell."""
    baseline = next((row for members in by_knob.values() for row in members if row.is_baseline), None)
    if baseline is None:
        return
    unfit = sorted({row.reason for members in by_knob.values() for row in members if not row.fits})
    best = [f"{knob.upper()} {_best(members)}" for knob, members in by_knob.items()]
    lines = [
        "<b>Baseline</b>" + ("" if baseline.fits else f", does not fit: {baseline.reason}"),
        f"{seconds(baseline.latency_s)}, {baseline.pes_used:,} PEs, {binding(baseline.binding)} binds",
        f"memory {_memory(baseline, budget_bytes)}",
        "<b>Fastest that fits</b>, the others held",
        ", ".join(best[:3]),
        ", ".join(best[3:]),
    ]
    if unfit:
        lines.append(f"What does not fit lacks: {', '.join(unfit)}")
    sheet.note(
        {
            "text": "<br>".join(lines),
            "x": area.left,
            "y": area.foot,
            "xref": "paper",
            "yref": "paper",
            "xanchor": "left",
            "yanchor": "bottom",
            "align": "left",
            "font": {"size": SIZE_TEXT, "color": theme.text},
        }
    )


def _memory(row: Row, budget_bytes: float | None) -> str:
    share = f", {percent(row.memory_bytes_per_pe / budget_bytes)} of the budget" if budget_bytes else ""
    return f"{n_bytes(row.memory_bytes_per_pe)} a PE{share}"


def _best(members: Sequence[Row]) -> str:
    fitting = [row for row in members if row.fits]
    if not fitting:
        return "none"
    best = min(fitting, key=lambda row: row.latency_s)
    return f"{best.value} ({seconds(best.latency_s)})"


def _alt(title: str, by_knob: dict[str, list[Row]]) -> str:
    parts = []
    for knob, members in by_knob.items():
        unfit = sum(not row.fits for row in members)
        parts.append(
            f"{knob.upper()}: fastest that fits {_best(members)}"
            + (f", {unfit} values do not fit" if unfit else "")
        )
    return plain(f"{title}, latency against each knob alone. {'; '.join(parts)}.")
