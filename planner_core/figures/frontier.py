"""The interactivity frontier: what throughput each inter-token latency buys.

Owns: `interactivity_frontier`, a node or a replica at a time, against ITL or tokens/s a user.
Refuses: sweeps and choices (see `serving_plan`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

import numpy as np
import plotly.graph_objects as go

from planner_core.figures.frame import (
    Drawn,
    FigureContext,
    by_number,
    drawable,
    empty_figure,
    log_axis,
    new_figure,
)
from planner_core.figures.theme import DASHES, MARKERS, SIZE_TEXT, Theme
from planner_core.figures.words import percent, seconds, sig
from planner_core.serving_plan import FrontierPoint, InteractivityCurve, PlanRow

Per = Literal["node", "replica"]
Against = Literal["itl", "user"]

# A curve is smooth: so many points draw it to less than a pixel.
MAX_CURVE_POINTS: Final = 40
MAX_FRONTIER_POINTS: Final = 120
NO_CURVES: Final = (
    "No config holds the weights and one sequence at this context. Choose a shorter context, narrower weights "
    "or KV, or a machine with more memory."
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

    Returns
    -------
    Drawn
    """
    title = f"Interactivity frontier, per {per}"
    shown = [curve for curve in curves if len(curve.batch)]
    if not shown:
        return empty_figure(title=title, about=about, theme=theme, reason=NO_CURVES)
    figure = new_figure(
        title=title,
        about=about,
        theme=theme,
        hovermode="closest",
        legend={"x": 1.01, "y": 1, "xanchor": "left", "yanchor": "top", "tracegroupgap": 2},
    )
    tps = sorted({curve.tp for curve in shown})
    cps = sorted({curve.cp for curve in shown})
    for curve in shown:
        figure.add_trace(_curve_trace(curve, tps.index(curve.tp), cps.index(curve.cp), per, against, theme))
    bold = _envelope(shown) if per == "replica" else [(p.itl_s, p.tokens_per_s_per_node) for p in frontier]
    bold = [point for point in bold if drawable(point[0]) and drawable(point[1])]
    if bold:
        figure.add_trace(_frontier_trace(bold, against, theme))
    x_values = [_x(itl, against) for curve in shown for itl in (curve.itl_s[0], curve.itl_s[-1])]
    if itl_ceiling_s is not None and drawable(itl_ceiling_s):
        x_values.append(_x(itl_ceiling_s, against))
        _shade(figure, itl_ceiling_s, against, theme)
    star = _star_trace(selected, per, against, theme)
    if star is not None:
        figure.add_trace(star)
    y_values = [y for curve in shown for y in _rates(curve, per)]
    x_title = "Inter-token latency [ms]" if against == "itl" else "Speed for a user [tok/s]"
    figure.update_xaxes(log_axis(title=x_title, values=x_values))
    figure.update_yaxes(log_axis(title=f"Throughput of a {per} [tok/s]", values=y_values))
    return Drawn(figure=figure, alt=_alt(shown, bold, itl_ceiling_s, selected, per))


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
    curve: InteractivityCurve, tp_slot: int, cp_slot: int, per: Per, against: Against, theme: Theme
) -> go.Scatter:
    """Return one config: its colour tells TP, its dash CP, a marker its largest batch."""
    rates = _rates(curve, per)
    chosen = [at for at in _picked(len(curve.batch), MAX_CURVE_POINTS) if drawable(float(rates[at]))]
    colour = theme.series[tp_slot % len(theme.series)]
    return go.Scatter(
        x=by_number([_x(curve.itl_s[at], against) for at in chosen]),
        y=by_number([float(rates[at]) for at in chosen]),
        mode="lines+markers",
        line={"color": colour, "width": 1.75, "dash": DASHES[cp_slot % len(DASHES)]},
        marker={
            "symbol": MARKERS[tp_slot % len(MARKERS)],
            "size": [0] * (len(chosen) - 1) + [8],
            "color": colour,
        },
        opacity=0.9,
        hovertext=[
            f"<b>{curve.label()}</b>, batch {curve.batch[at]:,.0f}<br>"
            f"ITL {seconds(float(curve.itl_s[at]))}, {sig(1.0 / float(curve.itl_s[at]))} tok/s a user<br>"
            f"{sig(float(curve.tokens_per_s_per_replica[at]))} tok/s a replica of {curve.n_pes} PEs<br>"
            f"{sig(float(curve.tokens_per_s_per_node[at]))} tok/s a node of {curve.replicas_per_node} replicas"
            for at in chosen
        ],
        hoverinfo="text",
        name=curve.label(),
    )


def _envelope(curves: Sequence[InteractivityCurve]) -> list[tuple[float, float]]:
    """Return the replica points that no other beats in both ITL and tokens/s."""
    itl_s = np.concatenate([curve.itl_s for curve in curves])
    rate = np.concatenate([curve.tokens_per_s_per_replica for curve in curves])
    order = np.lexsort((-rate, itl_s))
    best = np.maximum.accumulate(rate[order])
    risen = np.concatenate([[True], best[1:] > best[:-1]])
    return [(float(itl_s[at]), float(rate[at])) for at in order[risen]]


def _frontier_trace(bold: Sequence[tuple[float, float]], against: Against, theme: Theme) -> go.Scatter:
    chosen = [bold[at] for at in _picked(len(bold), MAX_FRONTIER_POINTS)]
    return go.Scatter(
        x=by_number([_x(itl, against) for itl, _ in chosen]),
        y=by_number([rate for _, rate in chosen]),
        mode="lines",
        line={"color": theme.text, "width": 5},
        opacity=0.55,
        hoverinfo="skip",
        name="<b>upper frontier</b>",
    )


def _shade(figure: go.Figure, itl_ceiling_s: float, against: Against, theme: Theme) -> None:
    """Shade where the ITL target is met: left of the ceiling, or right of it in tokens/s a user."""
    limit = _x(itl_ceiling_s, against)
    beyond = 1e-6 if against == "itl" else 1e9
    figure.add_vrect(x0=limit, x1=beyond, fillcolor=theme.region, line_width=0, layer="below")
    text = f"ITL target {seconds(itl_ceiling_s)}"
    figure.add_vline(
        x=limit,
        line={"color": theme.accent, "dash": "dash", "width": 1.5},
        annotation={
            "text": text if against == "itl" else f"{sig(limit)} tok/s a user",
            "font": {"size": SIZE_TEXT, "color": theme.accent},
            "y": 0.02,
            "yanchor": "bottom",
            "xanchor": "right" if against == "itl" else "left",
            "xshift": -4 if against == "itl" else 4,
        },
    )


def _star_trace(selected: PlanRow | None, per: Per, against: Against, theme: Theme) -> go.Scatter | None:
    if selected is None or selected.itl_s is None or not drawable(selected.itl_s):
        return None
    rate = selected.tokens_per_s_per_node if per == "node" else selected.batch / selected.itl_s
    if not drawable(rate):
        return None
    return go.Scatter(
        x=[_x(selected.itl_s, against)],
        y=[rate],
        mode="markers",
        marker={
            "symbol": "star",
            "size": 20,
            "color": theme.accent,
            "line": {"color": theme.paper, "width": 1.5},
        },
        hovertext=[
            f"<b>Selected: {selected.label()}</b>, batch {selected.batch:,}<br>ITL {seconds(selected.itl_s)}, "
            f"TTFT {seconds(selected.ttft_s)}<br>{sig(selected.tokens_per_s_per_node)} tok/s a node"
        ],
        hoverinfo="text",
        name=f"selected, {selected.label()}",
    )


def _alt(
    shown: Sequence[InteractivityCurve],
    bold: Sequence[tuple[float, float]],
    itl_ceiling_s: float | None,
    selected: PlanRow | None,
    per: Per,
) -> str:
    parts = [f"Throughput of a {per} against inter-token latency for {len(shown)} configs over the batch"]
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
