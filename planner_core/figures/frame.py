"""What every figure has: a title that says what it is of, safe log axes, an empty state, a text alternative.

Owns: `FigureContext`, `Drawn`, and the helpers that all figures start from.
Refuses: the content of a figure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import plotly.graph_objects as go

from planner_core.figures.theme import HATCHES, SIZE_HEADING, SIZE_LABEL, SIZE_TEXT, Theme, template
from planner_core.figures.words import as_typed, context, plain

Trace = dict[str, Any]

MODEL_LIMIT: Final = 40
MACHINE_LIMIT: Final = 24
LABEL_LIMIT: Final = 48
NARROW_PX: Final = 360  # a telephone's width within the page's margins
NARROW_CHARS: Final = 50  # of a label, in that width
LOG_TICKS: Final = ",.3~r"
# A legend along the foot of the figure, whatever its height: two lines at most, more scroll.
LEGEND_BELOW: Final = {
    "orientation": "h",
    "x": 0,
    "xanchor": "left",
    "y": 0,
    "yref": "container",
    "yanchor": "bottom",
    "maxheight": 56,
}
ROOM_FOR_LEGEND: Final = {"b": 112}
# The same on a narrow sheet: five lines.
NARROW_LEGEND: Final = {**LEGEND_BELOW, "maxheight": 130}
ROOM_FOR_NARROW_LEGEND: Final = {"b": 190}


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureContext:
    """What a figure is of; its title says so.

    Parameters
    ----------
    model, machine : str
        Names as they came, from outside: they are shown as typed, shortened.
    phase : str
        "decode", "prefill", or "decode and prefill".
    context_tokens : int, optional
        Context length [tokens]; None where the figure runs over it.
    extra : str
        One more fact ("batch 16"), as text.
    """

    model: str
    machine: str
    phase: str
    context_tokens: int | None = None
    extra: str = ""

    def line(self) -> str:
        """Return the figure's second title line, ready for a figure."""
        parts = [
            as_typed(self.model, limit=MODEL_LIMIT),
            as_typed(self.machine, limit=MACHINE_LIMIT),
            as_typed(self.phase),
        ]
        if self.context_tokens is not None:
            parts.append(f"context {context(self.context_tokens)}")
        if self.extra:
            parts.append(as_typed(self.extra, limit=LABEL_LIMIT))
        return " · ".join(parts)


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A figure, and what it shows in one plain sentence.

    Parameters
    ----------
    data, layout : list of dict, dict
        Plotly's traces and layout, with title, axis units and hover; treat them as immutable. `uirevision` is
        left to the caller.
    alt : str
        Plain text, for a reader who does not see the figure.
    empty : str
        Why there is nothing to draw, and what to change; empty where something is drawn.
    """

    data: list[Trace]
    layout: Trace
    alt: str
    empty: str = ""

    @cached_property
    def figure(self) -> go.Figure:
        """The figure as Plotly's own object: made where it is asked for, since that costs milliseconds."""
        return go.Figure(data=self.data, layout=self.layout, _validate=False)


def drawable(value: float | None) -> bool:
    """Return whether a log axis can hold a value: finite and above zero."""
    return value is not None and math.isfinite(value) and value > 0.0


def trace(kind: str, **fields: Any) -> Trace:
    """Return a trace of a kind: "scatter", "bar", "scatter3d"."""
    return {"type": kind, **fields}


@dataclass(slots=True)
class Sheet:
    """A figure in the making: traces and layout as plain mappings.

    Plotly checks every property on every change; a figure of five subplots made that way takes 100 ms, made
    at once and unchecked it takes 3 ms, and as mappings next to nothing. The tests check each figure in full
    instead.

    Parameters
    ----------
    layout : dict
        Plotly's layout.
    traces : list of dict
        Plotly's traces.
    """

    layout: Trace
    traces: list[Trace]

    def add(self, trace: Trace, *, cell: int = 1) -> None:
        """Add a trace to a cell of the grid, the first cell by default."""
        place = {} if cell == 1 else {"xaxis": f"x{cell}", "yaxis": f"y{cell}"}
        self.traces.append({**trace, **place})

    def axes(self, *, x: Trace, y: Trace, cell: int = 1) -> None:
        """Set the axes of a cell; what the grid has set before is kept."""
        number = "" if cell == 1 else str(cell)
        for name, axis in (("xaxis", x), ("yaxis", y)):
            key = f"{name}{number}"
            self.layout[key] = {**self.layout.get(key, {}), **axis}

    def note(self, note: Trace, *, cell: int = 1) -> None:
        """Add a note; it lies in the cell's data units unless it says where it lies."""
        number = "" if cell == 1 else str(cell)
        where = {"xref": f"x{number}", "yref": f"y{number}"}
        self.layout.setdefault("annotations", []).append({**where, "showarrow": False, **note})

    def vertical_line(
        self, *, x: float, line: Trace, cell: int = 1, y0: float | None = None, y1: float | None = None
    ) -> None:
        """Draw a vertical line at x, through the whole cell or from y0 to y1; all in data units."""
        shape: Trace = {"type": "line", "x0": x, "x1": x, "line": line}
        if y0 is not None and y1 is not None:
            shape |= {"yref": "y" if cell == 1 else f"y{cell}", "y0": y0, "y1": y1}
        self._shape(shape, cell)

    def vertical_band(self, *, x0: float, x1: float, colour: str, cell: int = 1) -> None:
        """Shade a cell between two x, in data units, behind everything else."""
        band = {"type": "rect", "x0": x0, "x1": x1, "fillcolor": colour, "line": {"width": 0}}
        self._shape({**band, "layer": "below"}, cell)

    def _shape(self, shape: Trace, cell: int) -> None:
        number = "" if cell == 1 else str(cell)
        where = {"xref": f"x{number}", "yref": f"y{number} domain", "y0": 0, "y1": 1}
        self.layout.setdefault("shapes", []).append({**where, **shape})

    def drawn(self, *, alt: str) -> Drawn:
        """Return the figure with its text alternative."""
        return Drawn(data=self.traces, layout=self.layout, alt=plain(alt))


def new_sheet(
    *, title: str, about: FigureContext, theme: Theme, is_narrow: bool = False, **layout: Any
) -> Sheet:
    """Return an empty sheet with its title and theme.

    Parameters
    ----------
    title : str
        What is shown; text from outside in it has gone through `as_typed`.
    about : FigureContext
        The second line.
    theme : Theme
        Light or dark.
    is_narrow : bool
        Break the second line where a figure of `NARROW_PX` would cut it off.
    **layout
        More layout.

    Returns
    -------
    Sheet
    """
    line = wrapped(about.line(), width=NARROW_CHARS) if is_narrow else about.line()
    second = f"<span style='font-size:{SIZE_LABEL}px;color:{theme.muted}'>{line}</span>"
    common = {"template": template(theme), "title": {"text": f"{title}<br>{second}"}}
    return Sheet({**common, **layout}, [])


@dataclass(frozen=True, slots=True)
class Area:
    """Where a cell lies, as shares of the plotting area."""

    left: float
    right: float
    foot: float
    top: float


def cell_area(*, cell: int, n_rows: int, n_columns: int, gap_x: float, gap_y: float) -> Area:
    """Return where a cell of a grid lies; cells count from 1, row by row from the top.

    Examples
    --------
    >>> cell_area(cell=4, n_rows=2, n_columns=2, gap_x=0.2, gap_y=0.0)
    Area(left=0.6, right=1.0, foot=0.0, top=0.5)
    """
    row, column = divmod(cell - 1, n_columns)
    width = (1.0 - gap_x * (n_columns - 1)) / n_columns
    height = (1.0 - gap_y * (n_rows - 1)) / n_rows
    left, top = column * (width + gap_x), 1.0 - row * (height + gap_y)
    return Area(left, min(left + width, 1.0), max(top - height, 0.0), top)


def lay_grid(
    sheet: Sheet,
    *,
    titles: Sequence[str],
    n_columns: int,
    gap_x: float,
    gap_y: float,
    theme: Theme,
    share_y: bool = False,
) -> None:
    """Divide a sheet into cells, row by row, each with a title above it.

    Parameters
    ----------
    sheet : Sheet
        To divide.
    titles : sequence of str
        One a cell; empty for none.
    n_columns : int
        Cells in a row.
    gap_x, gap_y : float
        Between cells, as a share of the plotting area.
    theme : Theme
        Light or dark.
    share_y : bool
        One y scale for all cells, with its numbers at the first of each row.
    """
    n_rows = -(-len(titles) // n_columns)
    for cell, title in enumerate(titles, start=1):
        area = cell_area(cell=cell, n_rows=n_rows, n_columns=n_columns, gap_x=gap_x, gap_y=gap_y)
        number = "" if cell == 1 else str(cell)
        x = {"domain": [area.left, area.right], "anchor": f"y{number}"}
        y: Trace = {"domain": [area.foot, area.top], "anchor": f"x{number}"}
        if share_y and cell > 1:
            y |= {"matches": "y", "showticklabels": (cell - 1) % n_columns == 0}
        sheet.axes(x=x, y=y, cell=cell)
        if title:
            sheet.note(
                {
                    "text": title,
                    "x": (area.left + area.right) / 2.0,
                    "y": area.top,
                    "xref": "paper",
                    "yref": "paper",
                    "xanchor": "center",
                    "yanchor": "bottom",
                    "yshift": 6,
                    "font": {"size": SIZE_HEADING, "color": theme.text},
                }
            )


def empty_figure(*, title: str, about: FigureContext, theme: Theme, reason: str) -> Drawn:
    """Return a figure that says why there is nothing to see, and what to change.

    Parameters
    ----------
    title, about, theme
        As in `new_sheet`.
    reason : str
        One or two plain sentences.

    Returns
    -------
    Drawn
    """
    sheet = new_sheet(title=title, about=about, theme=theme)
    sheet.axes(x={"visible": False}, y={"visible": False})
    sheet.note(
        {
            "text": f"<b>Nothing to draw</b><br>{wrapped(as_typed(reason, limit=400))}",
            "x": 0.5,
            "y": 0.5,
            "xref": "paper",
            "yref": "paper",
            "font": {"size": SIZE_HEADING, "color": theme.muted},
            "align": "center",
        }
    )
    drawn = sheet.drawn(alt=f"{title}: nothing to draw. {reason}")
    return replace(drawn, empty=reason)


def wrapped(text: str, *, width: int = 56) -> str:
    """Return a sentence broken into lines: Plotly breaks none.

    Examples
    --------
    >>> wrapped("one two three", width=9)
    'one two<br>three'
    """
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + len(word) >= width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return "<br>".join([*lines, line])


def log_axis(*, title: str, values: Iterable[float] = (), ticks: Sequence[float] = ()) -> dict[str, Any]:
    """Return a log axis with its unit in the title and plain numbers at its ticks.

    Parameters
    ----------
    title : str
        Quantity and unit: "Latency [ms]".
    values : iterable of float
        What will be drawn; where it spans less than half a decade the range is widened, since a log axis
        without room shows a single tick.
    ticks : sequence of float
        Ticks to show, where the axis has natural ones (degrees of parallelism).

    Returns
    -------
    dict
        For `Sheet.axes`.
    """
    axis: dict[str, Any] = {"type": "log", "title": {"text": title}, "tickformat": LOG_TICKS, "tickangle": 0}
    if ticks:
        axis |= {"tickmode": "array", "tickvals": list(ticks), "ticktext": [f"{tick:,.0f}" for tick in ticks]}
    seen = [value for value in values if drawable(value)]
    if seen:
        low, high = math.log10(min(seen)), math.log10(max(seen))
        room = max(0.06 * (high - low), (0.5 - (high - low)) / 2.0, 0.03)
        axis["range"] = [low - room, high + room]
        if not ticks:
            axis["dtick"] = _log_step(high - low + 2.0 * room)
    return axis


def _log_step(decades: float) -> str | int:
    """Every digit on a short axis, 1-2-5 on a longer one, then whole decades, or every second."""
    if decades < 1.0:
        return "D1"
    if decades < 4.0:
        return "D2"
    return 1 if decades < 9.0 else 2


def degree_ticks(values: Iterable[float]) -> list[float]:
    """Return the powers of two that span degrees of parallelism, or of four or more where those are many.

    Examples
    --------
    >>> degree_ticks([1, 6])
    [1.0, 2.0, 4.0, 8.0]
    >>> degree_ticks([32, 4096])
    [32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0]
    """
    seen = [value for value in values if drawable(value)] or [1.0]
    low, high = math.floor(math.log2(min(seen))), math.ceil(math.log2(max(seen)))
    stride = 1 + (high - low) // 9
    return [float(2**power) for power in range(low, high + 1, stride)]


def log_note(*, x: float, y: float, text: str, theme: Theme, **look: Any) -> dict[str, Any]:
    """Return a note placed in data units on log axes, for `Sheet.note`.

    Parameters
    ----------
    x, y : float
        Data units; Plotly itself wants their logarithms here, unlike for a trace or a shape.
    text : str
        What it says.
    theme : Theme
        Light or dark.
    **look
        `xanchor`, `yanchor`, `xshift`, `yshift`, `textangle`, `font`.

    Returns
    -------
    dict
    """
    font = {"size": SIZE_TEXT, "color": theme.muted, **look.pop("font", {})}
    return {"x": math.log10(x), "y": math.log10(y), "text": text, "font": font, **look}


def hatched(*, colour: str, slot: int, theme: Theme) -> dict[str, Any]:
    """Return the marker of a bar: its colour, and a hatching that tells it apart without the colour.

    Parameters
    ----------
    colour : str
        Fill.
    slot : int
        Which hatching; 0 is plain.
    theme : Theme
        Light or dark.

    Returns
    -------
    dict
    """
    return {
        "color": colour,
        "line": {"color": theme.paper, "width": 1},
        "pattern": {
            "shape": HATCHES[slot % len(HATCHES)],
            "fillmode": "overlay",
            "fgcolor": theme.paper,
            "fgopacity": 0.5,
            "size": 7,
            "solidity": 0.2,
        },
    }


def by_number(values: Sequence[float]) -> list[float]:
    """Return values as Python floats of six significant digits: half the size of a figure's JSON.

    Examples
    --------
    >>> by_number([8.569123456789])
    [8.56912]
    """
    return [float(f"{value:.6g}") for value in values]
