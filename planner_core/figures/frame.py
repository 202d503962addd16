"""What every figure has: a title that says what it is of, safe log axes, an empty state, a text alternative.

Owns: `FigureContext`, `Drawn`, and the helpers that all figures start from.
Refuses: the content of a figure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import plotly.graph_objects as go

from planner_core.figures.theme import SIZE_HEADING, SIZE_LABEL, Theme, template
from planner_core.figures.words import as_typed, context, plain

MODEL_LIMIT: Final = 40
MACHINE_LIMIT: Final = 24
LABEL_LIMIT: Final = 48
LOG_TICKS: Final = ",.3~r"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A figure, and what it shows in one plain sentence.

    Parameters
    ----------
    figure : plotly.graph_objects.Figure
        With title, axis units and hover. `uirevision` is left to the caller.
    alt : str
        Plain text, for a reader who does not see the figure.
    empty : str
        Why there is nothing to draw, and what to change; empty where something is drawn.
    """

    figure: go.Figure
    alt: str
    empty: str = ""


def drawable(value: float | None) -> bool:
    """Return whether a log axis can hold a value: finite and above zero."""
    return value is not None and math.isfinite(value) and value > 0.0


def new_figure(*, title: str, about: FigureContext, theme: Theme, **layout: Any) -> go.Figure:
    """Return an empty figure with its title and theme.

    Parameters
    ----------
    title : str
        What is shown; text from outside in it has gone through `as_typed`.
    about : FigureContext
        The second line.
    theme : Theme
        Light or dark.
    **layout
        More layout.

    Returns
    -------
    plotly.graph_objects.Figure
    """
    return go.Figure(
        layout={
            "template": template(theme),
            "title": {"text": title, "subtitle": {"text": about.line()}},
            **layout,
        }
    )


def empty_figure(*, title: str, about: FigureContext, theme: Theme, reason: str) -> Drawn:
    """Return a figure that says why there is nothing to see, and what to change.

    Parameters
    ----------
    title, about, theme
        As in `new_figure`.
    reason : str
        One or two plain sentences.

    Returns
    -------
    Drawn
    """
    figure = new_figure(title=title, about=about, theme=theme)
    figure.update_xaxes(visible=False).update_yaxes(visible=False)
    figure.add_annotation(
        text=f"<b>Nothing to draw</b><br>{_wrapped(as_typed(reason, limit=400))}",
        x=0.5,
        y=0.5,
        xref="paper",
        yref="paper",
        showarrow=False,
        font={"size": SIZE_HEADING, "color": theme.muted},
        align="center",
    )
    return Drawn(figure=figure, alt=f"{plain(title)}: nothing to draw. {reason}", empty=reason)


def _wrapped(text: str, *, width: int = 56) -> str:
    """Break a sentence into lines: Plotly does not."""
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + len(word) >= width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return "<br>".join([*lines, line])


def log_axis(*, title: str, values: Iterable[float] = (), ticks: Sequence[float] = ()) -> dict[str, Any]:
    """Return a log axis with its unit in the title and whole numbers at its ticks.

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
        For `update_xaxes` or `update_yaxes`.
    """
    axis: dict[str, Any] = {
        "type": "log",
        "title": {"text": title},
        "tickformat": LOG_TICKS,
        "minor": {"showgrid": False},
    }
    if ticks:
        axis |= {"tickmode": "array", "tickvals": list(ticks), "ticktext": [f"{tick:,.0f}" for tick in ticks]}
    seen = [value for value in values if drawable(value)]
    if seen:
        low, high = math.log10(min(seen)), math.log10(max(seen))
        room = max(0.06 * (high - low), (0.5 - (high - low)) / 2.0, 0.03)
        axis["range"] = [low - room, high + room]
        if not ticks and high - low + 2.0 * room < 2.2:
            axis |= {"tickmode": "array", **_steps_125(low - room, high + room)}
    return axis


def _steps_125(low: float, high: float) -> dict[str, list[Any]]:
    """Ticks at 1, 2, 5 (and 3, 7 where the range is short) of each decade inside [low, high], in log10."""
    digits = (1.0, 2.0, 5.0) if high - low > 0.9 else (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)
    found = []
    for decade in range(math.floor(low), math.ceil(high) + 1):
        found += [digit * 10.0**decade for digit in digits if low <= math.log10(digit) + decade <= high]
    return {"tickvals": found, "ticktext": [f"{tick:,.12g}" for tick in found]}


def degree_ticks(values: Iterable[float]) -> list[float]:
    """Return the powers of two that span degrees of parallelism.

    Examples
    --------
    >>> degree_ticks([1, 6])
    [1.0, 2.0, 4.0, 8.0]
    """
    largest = max(values, default=1.0)
    return [float(2**power) for power in range(math.ceil(math.log2(max(largest, 1.0))) + 1)]


def vertical_line(
    figure: go.Figure, *, x: float, theme: Theme, text: str = "", dash: str = "dot", **where: Any
) -> None:
    """Draw a vertical line with a note at its top.

    Parameters
    ----------
    figure : Figure
        To draw on.
    x : float
        In data units (log axes too).
    theme : Theme
        Light or dark.
    text : str
        The note.
    dash : str
        Plotly dash.
    **where
        `row`, `col`, `line_color`.
    """
    colour = where.pop("line_color", theme.muted)
    figure.add_vline(
        x=x,
        line={"dash": dash, "color": colour, "width": 1.5},
        **({"annotation": _note(text, theme)} if text else {}),
        **where,
    )


def _note(text: str, theme: Theme) -> dict[str, Any]:
    return {
        "text": text,
        "font": {"size": SIZE_LABEL - 1, "color": theme.muted},
        "yanchor": "bottom",
        "showarrow": False,
    }


def by_number(values: Sequence[float]) -> list[float]:
    """Return values as Python floats of six significant digits: half the size of a figure's JSON.

    Examples
    --------
    >>> by_number([8.569123456789])
    [8.56912]
    """
    return [float(f"{value:.6g}") for value in values]
