"""The interactivity frontier: what throughput each inter-token latency buys.

Owns: `interactivity_frontier`, a node or a replica at a time, against ITL or tokens/s a user.
Refuses: sweeps and choices (see `serving_plan`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

import numpy as np

from planner_core.figures.frame import (
    Drawn,
    FigureContext,
    Sheet,
    Trace,
    by_number,
    drawable,
    empty_figure,
    log_axis,
    log_note,
    new_sheet,
    trace,
)
from planner_core.figures.theme import DASHES, MARKERS, Theme
from planner_core.figures.words import as_typed, percent, seconds, sig
from planner_core.serving_plan import FrontierPoint, InteractivityCurve, PlanRow

Per = Literal["node", "replica"]
Against = Literal["itl", "user"]

# A curve is smooth: so many points draw it to less than a pixel.
MAX_CURVE_POINTS: Final = 40
MAX_FRONTIER_POINTS: Final = 120
ROOM_FOR_TARGET: Final = 1.4
NO_CURVES: Final = (
    "No config holds the weights and one sequence at this context. Choose a shorter context, narrower "
    "weights or KV, or a machine with more memory."
)


def interactivity_frontier(
    *,
    curves: Sequence[InteractivityCurve],
    frontier: Sequence[FrontierPoint],
    about: FigureContext,
    theme: Theme,
    itl_ceiling_s: float | None = None,
    selected: PlanRow | None = None,
    per: Per = "node",
    against: Against = "itl",
    beside: tuple[str, Sequence[FrontierPoint]] | None = None,
) -> Drawn:
    """Draw a curve a config over the batch, the upper frontier in bold, the region that meets the ITL target.

    Parameters
    ----------
    curves : sequence of InteractivityCurve
        One context length's.
    frontier : sequence of FrontierPoint
        Of a node; drawn where `per` is "node". For a replica the upper envelope of its own curves is drawn.
    about, theme
        For the title and the look.
    itl_ceiling_s : float, optional
        The target [s]; its region is shaded.
    selected : PlanRow, optional
        Starred.
    per : {"node", "replica"}
        Whose throughput.
    against : {"itl", "user"}
        Inter-token latency, or tokens/s a user.
    beside : tuple of str and sequence of FrontierPoint, optional
        Another frontier of a node to draw beside it ("FP8 weights"), and what to call it.

    Returns
    -------
    Drawn
    """
    title = f"Interactivity frontier, per {per}"
    shown = _distinct([curve for curve in curves if len(curve.batch)])
    if not shown:
        return empty_figure(title=title, about=about, theme=theme, reason=NO_CURVES)
    sheet = new_sheet(
        title=title,
        about=about,
        theme=theme,
        hovermode="closest",
        height=560,
        legend={"x": 1.01, "y": 1, "xanchor": "left", "yanchor": "top", "tracegroupgap": 2},
    )
    first = [alike[0] for alike in shown]
    bold = _envelope(first) if per == "replica" else [(p.itl_s, p.tokens_per_s_per_node) for p in frontier]
    bold = [point for point in bold if drawable(point[0]) and drawable(point[1])]
    if bold:
        sheet.add(_frontier_trace(bold, against, theme))
    other = [(p.itl_s, p.tokens_per_s_per_node) for p in (beside[1] if beside else ())]
    if beside and other and per == "node":
        sheet.add(_beside_trace(as_typed(beside[0]), other, against, theme))
    tps = sorted({curve.tp for curve in first})
    cps = sorted({curve.cp for curve in first})
    for alike in shown:
        slots = tps.index(alike[0].tp), cps.index(alike[0].cp)
        sheet.add(_curve_trace(alike, slots, per, against, theme))
    star = _star_trace(selected, per, against, theme)
    if star is not None:
        sheet.add(star)
    x_values = [_x(itl, against) for curve in first for itl in (curve.itl_s[0], curve.itl_s[-1])]
    y_values = [float(y) for curve in first for y in (_rates(curve, per).min(), _rates(curve, per).max())]
    if per == "node":
        x_values += [_x(itl_s, against) for itl_s, _ in other]
        y_values += [rate for _, rate in other]
    # Room for a target past the slowest point. The range does not hang on the target itself: a reader who has
    # zoomed in keeps that while the target moves.
    slowest_s = max(float(curve.itl_s[-1]) for curve in first)
    x_values.append(_x(ROOM_FOR_TARGET * slowest_s, against))
    if itl_ceiling_s is not None and drawable(itl_ceiling_s):
        _shade(sheet, itl_ceiling_s, against, (min(x_values), max(x_values)), min(y_values), theme)
    x_title = "Inter-token latency [ms]" if against == "itl" else "Speed for a user [tok/s]"
    sheet.axes(
        x=log_axis(title=x_title, values=x_values),
        y=log_axis(title=f"Throughput of a {per} [tok/s]", values=y_values),
    )
    return sheet.drawn(alt=_alt(len(curves), bold, itl_ceiling_s, selected, per))


def _distinct(curves: Sequence[InteractivityCurve]) -> list[list[InteractivityCurve]]:
    """Group the curves that are the same: past as many copies of a KV head as exist, CP changes nothing."""
    groups: dict[tuple[int, bytes, bytes], list[InteractivityCurve]] = {}
    for curve in curves:
        groups.setdefault((curve.tp, curve.batch.tobytes(), curve.itl_s.tobytes()), []).append(curve)
    return list(groups.values())


def _name(alike: Sequence[InteractivityCurve]) -> str:
    if len(alike) == 1:
        return alike[0].label()
    return f"TP{alike[0].tp} CP{', '.join(str(curve.cp) for curve in alike)}"


def _x(itl_s: float, against: Against) -> float:
    return float(itl_s) * 1e3 if against == "itl" else 1.0 / float(itl_s)


def _rates(curve: InteractivityCurve, per: Per) -> Any:
    return curve.tokens_per_s_per_node if per == "node" else curve.tokens_per_s_per_replica


def _picked(count: int, most: int) -> list[int]:
    """Return positions spread geometrically over `count`, both ends among them."""
    if count <= most:
        return list(range(count))
    spread = np.geomspace(1.0, count, most)
    return sorted({0, count - 1, *(int(at) - 1 for at in spread)})


def _curve_trace(
    alike: Sequence[InteractivityCurve], slots: tuple[int, int], per: Per, against: Against, theme: Theme
) -> Trace:
    """Return one config: its colour tells TP, its dash CP, a marker its largest batch."""
    curve, name = alike[0], _name(alike)
    rates = _rates(curve, per)
    chosen = [at for at in _picked(len(curve.batch), MAX_CURVE_POINTS) if drawable(float(rates[at]))]
    colour = theme.series[slots[0] % len(theme.series)]
    return trace(
        "scatter",
        x=by_number([_x(curve.itl_s[at], against) for at in chosen]),
        y=by_number([float(rates[at]) for at in chosen]),
        mode="lines+markers",
        line={"color": colour, "width": 2, "dash": DASHES[slots[1] % len(DASHES)]},
        marker={
            "symbol": MARKERS[slots[0] % len(MARKERS)],
            "size": [0] * (len(chosen) - 1) + [10],
            "color": colour,
            "line": {"width": 0},
            "opacity": 1,
        },
        hovertext=[_hover(curve, name, at) for at in chosen],
        hoverinfo="text",
        name=name,
    )


def _hover(curve: InteractivityCurve, name: str, at: int) -> str:
    itl_s = float(curve.itl_s[at])
    return (
        f"<b>{name}</b>, batch {curve.batch[at]:,.0f}<br>"
        f"ITL {seconds(itl_s)}, {sig(1.0 / itl_s)} tok/s a user<br>"
        f"{sig(float(curve.tokens_per_s_per_replica[at]))} tok/s a replica of {curve.n_pes} PEs<br>"
        f"{sig(float(curve.tokens_per_s_per_node[at]))} tok/s a node of {curve.replicas_per_node}"
    )


def _envelope(curves: Sequence[InteractivityCurve]) -> list[tuple[float, float]]:
    """Return the replica points that no other beats in both ITL and tokens/s."""
    itl_s = np.concatenate([curve.itl_s for curve in curves])
    rate = np.concatenate([curve.tokens_per_s_per_replica for curve in curves])
    order = np.lexsort((-rate, itl_s))
    best = np.maximum.accumulate(rate[order])
    risen = np.concatenate([[True], best[1:] > best[:-1]])
    return [(float(itl_s[at]), float(rate[at])) for at in order[risen]]


def _frontier_trace(bold: Sequence[tuple[float, float]], against: Against, theme: Theme) -> Trace:
    chosen = [bold[at] for at in _picked(len(bold), MAX_FRONTIER_POINTS)]
    return trace(
        "scatter",
        x=by_number([_x(itl, against) for itl, _ in chosen]),
        y=by_number([rate for _, rate in chosen]),
        mode="lines",
        line={"color": theme.text, "width": 9},
        opacity=0.3,
        hoverinfo="skip",
        name="<b>upper frontier</b>",
    )


def _beside_trace(name: str, points: Sequence[tuple[float, float]], against: Against, theme: Theme) -> Trace:
    chosen = [points[at] for at in _picked(len(points), MAX_FRONTIER_POINTS)]
    return trace(
        "scatter",
        x=by_number([_x(itl, against) for itl, _ in chosen]),
        y=by_number([rate for _, rate in chosen]),
        mode="lines",
        line={"color": theme.accent, "width": 4, "dash": "dot"},
        hovertext=[
            f"<b>{name}</b><br>ITL {seconds(itl)}<br>{sig(rate)} tok/s a node" for itl, rate in chosen
        ],
        hoverinfo="text",
        name=f"upper frontier,<br>{name}",
    )


def _shade(
    sheet: Sheet,
    itl_ceiling_s: float,
    against: Against,
    span: tuple[float, float],
    lowest: float,
    theme: Theme,
) -> None:
    """Shade where the ITL target is met: left of the ceiling, or right of it in tokens/s a user."""
    limit = _x(itl_ceiling_s, against)
    left = against == "itl"
    beyond = limit / 1e4 if left else limit * 1e4
    sheet.vertical_band(x0=limit, x1=beyond, colour=theme.region)
    sheet.vertical_line(x=limit, line={"color": theme.accent, "dash": "dash", "width": 1.5})
    target = f"the ITL target of {seconds(itl_ceiling_s)}"
    met = f"meets {target} ←" if left else f"→ meets {target}"
    nothing = limit < span[0] if left else limit > span[1]
    if nothing:
        met = f"nothing meets {target}"
    at_right = left != nothing
    sheet.note(
        log_note(
            x=min(max(limit, span[0]), span[1]),
            y=lowest,
            text=met,
            theme=theme,
            font={"color": theme.accent},
            xanchor="right" if at_right else "left",
            xshift=-6 if at_right else 6,
        )
    )


def _star_trace(selected: PlanRow | None, per: Per, against: Against, theme: Theme) -> Trace | None:
    if selected is None or selected.itl_s is None or not drawable(selected.itl_s):
        return None
    rate = selected.tokens_per_s_per_node if per == "node" else selected.batch / selected.itl_s
    if not drawable(rate):
        return None
    return trace(
        "scatter",
        x=[_x(selected.itl_s, against)],
        y=[rate],
        mode="markers",
        marker={
            "symbol": "star",
            "size": 22,
            "color": theme.accent,
            "line": {"color": theme.paper, "width": 1.5},
        },
        hovertext=[
            f"<b>Selected: {selected.label()}</b>, batch {selected.batch:,}<br>"
            f"ITL {seconds(selected.itl_s)}, TTFT {seconds(selected.ttft_s)}<br>"
            f"{sig(selected.tokens_per_s_per_node)} tok/s a node"
        ],
        hoverinfo="text",
        name=f"selected, {selected.label()}",
    )


def _alt(
    n_configs: int,
    bold: Sequence[tuple[float, float]],
    itl_ceiling_s: float | None,
    selected: PlanRow | None,
    per: Per,
) -> str:
    parts = [f"Throughput of a {per} against inter-token latency for {n_configs} configs over the batch"]
    if bold:
        parts.append(
            f"the upper frontier rises from {sig(bold[0][1])} tok/s at {seconds(bold[0][0])} to "
            f"{sig(bold[-1][1])} tok/s at {seconds(bold[-1][0])}"
        )
    if itl_ceiling_s is not None:
        parts.append(f"the ITL target is {seconds(itl_ceiling_s)}")
    if selected is not None and selected.itl_s is not None:
        headroom = ""
        if itl_ceiling_s:
            headroom = f", {percent(selected.itl_s / itl_ceiling_s)} of the target"
        parts.append(f"selected is {selected.label()} at {seconds(selected.itl_s)}{headroom}")
    return "; ".join(parts) + "."
