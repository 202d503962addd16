"""Figures on a page: one way to show them, with a PNG and an SVG download.

Owns: the theme put on a figure, its modebar, its download buttons, and keeping zoom over reruns.
Refuses: making figures (see `planner_core.figures` and the pages).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import plotly.graph_objects as go
import streamlit as st

from ui import state, text, theme
from ui.assets import asset

_EXPORT_WIDTH, _EXPORT_HEIGHT = 1200, 675

# The buttons set the format and press the figure's own download button, in the browser: no server work.
_download = st.components.v2.component(
    "planner_figure_download",
    html='<div><button type="button" data-format="png">PNG</button>'
    '<button type="button" data-format="svg">SVG</button></div>',
    css=asset("figure_download.css"),
    js=asset("figure_download.js"),
)


def themed(figure: go.Figure, *, mode: theme.Mode | None = None, key: str = "figure") -> go.Figure:
    """Return a copy of a figure with the theme of a mode and a stable `uirevision`."""
    copy = go.Figure(figure)
    copy.update_layout(template=theme.template(mode), uirevision=copy.layout.uirevision or key)
    return copy


def show_figure(
    figure: go.Figure,
    *,
    key: str,
    name: Sequence[object],
    alt: str,
    on_select: Literal["ignore", "rerun"] | Callable[[], None] = "ignore",
    selection_mode: str | Sequence[str] = "points",
) -> Any:
    """Show a figure, with PNG and SVG downloads under it.

    Parameters
    ----------
    figure : Figure
        With its title, axis units and hover; the theme is put on here. Text from outside in it must have
        gone through `text.plot`.
    key : str
        Unique on the page; zoom is kept while the key stays.
    name : sequence
        Parts of the file name: model, machine, phase, context, what it shows.
    alt : str
        What the figure shows, for a reader who does not see it.
    on_select, selection_mode
        As for `st.plotly_chart`.

    Returns
    -------
    PlotlyState or DeltaGenerator
        What `st.plotly_chart` returns.
    """
    drawn = themed(figure, key=key)
    config = {
        "displaylogo": False,
        "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"],
        "toImageButtonOptions": {
            "format": "png",
            "filename": text.file_name(*name, extension="")[:-1],
            "width": _EXPORT_WIDTH,
            "height": int(figure.layout.height or _EXPORT_HEIGHT),
            "scale": 2,
        },
    }
    options: dict[str, Any] = {} if on_select == "ignore" else {"selection_mode": selection_mode}
    box = f"figure_{key}"
    with st.container(key=box, gap=None):
        result = st.plotly_chart(
            drawn, key=key, theme=None, config=config, alt=alt, on_select=on_select, **options
        )
        if not state.current().review:
            _download(key=f"{key}_download", data={"key": box, "label": alt[:120]})
    return result
