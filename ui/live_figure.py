"""A figure that is redrawn in place: zoom and camera stay while a slider moves or the baseline changes.

Owns: the component, its PNG and SVG downloads, and the click on a point.
Refuses: making figures (see `planner_core.figures`).

Why not `st.plotly_chart`: in Streamlit 1.67 its identity is the figure's JSON, so each change takes the chart
down and builds a new one. That loses the zoom, whatever `uirevision` says, and costs twice the time of a
redraw. This component hands the figure to the same Plotly, the one in Streamlit's own bundle; where a
Streamlit has no such file, `st.plotly_chart` is used, clicks and all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import plotly.io
import streamlit as st

from planner_core.figures.frame import Drawn
from ui import charts, layout, state, text
from ui.assets import asset

_EXPORT_WIDTH: Final = 1600
_HEIGHT: Final = 450
_NARROW_BELOW_PX: Final = 600

_figure = st.components.v2.component(
    "planner_live_figure",
    html='<div><div class="planner-figure-host" role="figure"></div><div class="planner-figure-buttons">'
    '<button type="button" data-format="png">PNG</button><button type="button" data-format="svg">SVG</button>'
    "</div></div>",
    css=asset("live_figure.css"),
    js=asset("live_figure.js"),
    isolate_styles=False,
)


@cache
def _plotly_chunk() -> str | None:
    """Return the file of Streamlit's bundle that brings `window.Plotly`, or None."""
    folder = Path(st.__file__).parent / "static" / "static" / "js"
    found = [path for path in folder.glob("PlotlyChart.*.js") if b"window.Plotly=" in path.read_bytes()]
    return found[0].name if len(found) == 1 else None


def show_live_figure(
    drawn: Drawn,
    *,
    key: str,
    name: Sequence[object],
    height: int = _HEIGHT,
    revision: str = "",
    on_pick: Callable[[int], None] | None = None,
    narrow: Drawn | None = None,
) -> None:
    """Show a figure, with PNG and SVG downloads under it, or say why there is nothing to show.

    Parameters
    ----------
    drawn : Drawn
        From `planner_core.figures`, made with `theme.current()`.
    key : str
        Unique on the page.
    name : sequence
        Parts of the file name: model, machine, phase, context, what it shows.
    height : int
        [px].
    revision : str
        Zoom and camera are kept while this stays.
    on_pick : callable, optional
        Called with the `customdata` of a clicked point that has one.
    narrow : Drawn, optional
        The same traces laid out for a narrow screen, at a height of its own.
    """
    if drawn.empty:
        layout.empty("Nothing to draw", drawn.empty)
        return
    chunk = _plotly_chunk()
    if chunk is None:
        charts.show_figure(drawn, key=key, name=name, on_select=_picker(key, on_pick, of_chart=True))
        return
    figure = {"data": drawn.data, "layout": {**drawn.layout, "uirevision": f"{key} {revision}"}}
    _figure(
        key=key,
        data={
            "figure": plotly.io.to_json(figure, validate=False),
            "chunk": chunk,
            "alt": drawn.alt,
            "label": drawn.alt[:120],
            "filename": text.file_name(*name, extension="")[:-1],
            "height": height,
            "width": _EXPORT_WIDTH,
            "buttons": not state.current().review,
            "narrow_below": _NARROW_BELOW_PX,
            "narrow": None if narrow is None else plotly.io.to_json(_changes(drawn, narrow), validate=False),
        },
        on_picked_change=_picker(key, on_pick, of_chart=False),
    )


def _changes(drawn: Drawn, narrow: Drawn) -> dict[str, Any]:
    """Return the parts of a figure's layout that another layout of its traces has otherwise."""
    return {name: value for name, value in narrow.layout.items() if value != drawn.layout.get(name)}


def _picker(key: str, on_pick: Callable[[int], None] | None, *, of_chart: bool) -> Callable[[], None]:
    """Return a callback that hands on the row of the point that was clicked."""

    def picked() -> None:
        widget: Any = st.session_state.get(key)
        if on_pick is None or widget is None:
            return
        if of_chart:
            rows = [point.get("customdata") for point in widget["selection"]["points"]]
        else:
            rows = [widget.get("picked")]
        chosen = next((row for row in rows if row is not None), None)
        if isinstance(chosen, (int, float)) and not isinstance(chosen, bool):
            on_pick(int(chosen))

    return picked
