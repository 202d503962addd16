"""Figures on a page: one way to show them, with a PNG and an SVG download.

Owns: a figure's modebar, its download buttons, keeping zoom over reruns, and never an empty chart.
Refuses: making figures (see `planner_core.figures` and the pages).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import streamlit as st

from planner_core.figures.frame import Drawn
from ui import layout, state, text
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


def show_figure(
    drawn: Drawn,
    *,
    key: str,
    name: Sequence[object],
    on_select: Literal["ignore", "rerun"] | Callable[[], None] = "ignore",
    selection_mode: str | Sequence[str] = "points",
) -> Any:
    """Show a figure with PNG and SVG downloads under it, or say why there is nothing to show.

    Parameters
    ----------
    drawn : Drawn
        From `planner_core.figures`, made with `theme.current()`.
    key : str
        Unique on the page; zoom is kept while the key stays.
    name : sequence
        Parts of the file name: model, machine, phase, context, what it shows.
    on_select, selection_mode
        As for `st.plotly_chart`.

    Returns
    -------
    PlotlyState or DeltaGenerator or None
        What `st.plotly_chart` returns; None where there is nothing to show.
    """
    if drawn.empty:
        layout.empty("Nothing to draw", drawn.empty)
        return None
    figure = drawn.figure
    figure.layout.uirevision = key
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
            figure, key=key, theme=None, config=config, alt=drawn.alt, on_select=on_select, **options
        )
        if not state.current().review:
            _download(key=f"{key}_download", data={"key": box, "label": drawn.alt[:120]})
    return result
