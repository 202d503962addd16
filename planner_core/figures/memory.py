"""What lies in the memory of a PE, against what a plan may fill.

Owns: `memory_bar` (one point, or several on one scale), and the stacked parts that other figures draw too.
Refuses: bytes (see `memory_layout`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from planner_core.figures.frame import (
    LABEL_LIMIT,
    LEGEND_BELOW,
    ROOM_FOR_LEGEND,
    Drawn,
    FigureContext,
    Sheet,
    empty_figure,
    hatched,
    new_sheet,
    trace,
)
from planner_core.figures.theme import SIZE_TEXT, Theme
from planner_core.figures.words import as_typed, n_bytes, percent
from planner_core.memory_layout import MemoryLayout
from planner_core.units import GB

_LEGEND_PX: Final = 80  # a line of 24 more than others, for five parts with their sizes in half a page
NO_POINTS: Final = "There is no operating point to show. Choose a config, a batch and a context."


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledMemory:
    """A memory layout, and what to call it (text from outside is shown as typed)."""

    label: str
    memory: MemoryLayout


def memory_parts(memory: MemoryLayout) -> dict[str, float]:
    """Return the parts of a scalar layout by name, in stacking order [B]; they sum to its total.

    Parameters
    ----------
    memory : MemoryLayout
        Scalars.

    Returns
    -------
    dict of str to float
    """
    return {
        "weights": float(memory.weight_bytes),
        "embedding": float(memory.embedding_bytes),
        "KV cache": float(memory.kv_bytes),
        "activations": float(memory.activation_bytes),
        "ring buffer": float(memory.ring_buffer_bytes),
        "reserved": float(memory.reserved_bytes),
    }


def part_look(slot: int, theme: Theme) -> dict[str, Any]:
    """Return colour and hatching of a part by its place in `memory_parts`."""
    return hatched(colour=theme.series[(0, 6, 1, 4, 3, 8)[slot]], slot=slot, theme=theme)


def memory_hover(label: str, memory: MemoryLayout) -> str:
    """Return a layout in full, as hover text; `label` is ready for a figure."""
    total = float(memory.total_bytes)
    lines = [f"<b>{label}</b>: {n_bytes(total)}, {percent(total / memory.budget_bytes)} of the budget"]
    lines += [f"{name} {n_bytes(size)}" for name, size in memory_parts(memory).items() if size > 0.0]
    if total > memory.budget_bytes:
        lines.append(f"<b>does not fit: {n_bytes(total - memory.budget_bytes)} over</b>")
    return "<br>".join(lines)


def memory_bar(*, points: Sequence[LabelledMemory], about: FigureContext, theme: Theme) -> Drawn:
    """Draw what lies on the most loaded PE, stacked, against the budget: one point or several on one scale.

    Parameters
    ----------
    points : sequence of LabelledMemory
        One to four, scalars.
    about : FigureContext
        For the title.
    theme : Theme
        Light or dark.

    Returns
    -------
    Drawn
    """
    title = "Memory of the most loaded PE"
    if not points:
        return empty_figure(title=title, about=about, theme=theme, reason=NO_POINTS)
    many = len(points) > 1
    names = [
        f"{at}. {as_typed(p.label, limit=LABEL_LIMIT)}" if many else as_typed(p.label, limit=LABEL_LIMIT)
        for at, p in enumerate(points, start=1)
    ]
    sheet = new_sheet(
        title=title,
        about=about,
        theme=theme,
        barmode="stack",
        bargap=0.45,
        height=220 + 80 * len(points),
        legend={**LEGEND_BELOW, "traceorder": "normal", "maxheight": _LEGEND_PX},
        margin={"b": ROOM_FOR_LEGEND["b"] + 24},
    )
    layouts = [memory_parts(point.memory) for point in points]
    for slot, part in enumerate(layouts[0]):
        sizes = [layout[part] for layout in layouts]
        if any(sizes):
            sheet.add(
                trace(
                    "bar",
                    orientation="h",
                    y=names,
                    x=[size / GB for size in sizes],
                    marker=part_look(slot, theme),
                    name=f"{part}, {n_bytes(sizes[0])}" if not many else part,
                    hovertext=[
                        f"{part} {n_bytes(size)}<br>{memory_hover(name, point.memory)}"
                        for size, name, point in zip(sizes, names, points, strict=True)
                    ],
                    hoverinfo="text",
                )
            )
    _add_budgets(sheet, names, points, theme)
    totals = [float(point.memory.total_bytes) for point in points]
    _add_totals(sheet, names, points, theme)
    largest = max(*totals, *(point.memory.budget_bytes for point in points))
    sheet.axes(
        x={"title": {"text": "Memory a PE [GB]"}, "range": [0.0, largest / GB * 1.16]},
        y={"autorange": "reversed", "showgrid": False, "ticks": "", "showticklabels": many},
    )
    told = "; ".join(
        f"{name} {n_bytes(total)} of {n_bytes(point.memory.budget_bytes)}"
        + ("" if bool(point.memory.fits) else ", does not fit")
        for name, total, point in zip(names, totals, points, strict=True)
    )
    return sheet.drawn(alt=f"Memory of the most loaded PE against the budget: {told}.")


def _add_budgets(sheet: Sheet, names: Sequence[str], points: Sequence[LabelledMemory], theme: Theme) -> None:
    """Mark each point's budget with an upright stroke across its bar."""
    for at, point in enumerate(points):
        x = point.memory.budget_bytes / GB
        line = {"color": theme.text, "width": 2.5}
        sheet.vertical_line(x=x, line=line, y0=at - 0.42, y1=at + 0.42)
    sheet.add(
        trace(
            "scatter",
            x=[None],
            y=[names[0]],
            mode="markers",
            marker={"symbol": "line-ns", "size": 12, "line": {"color": theme.text, "width": 2.5}},
            hoverinfo="skip",
            name=f"budget, {n_bytes(points[0].memory.budget_bytes)}" if len(points) == 1 else "budget",
        )
    )


def _add_totals(sheet: Sheet, names: Sequence[str], points: Sequence[LabelledMemory], theme: Theme) -> None:
    """Write each total above its bar, in red where it does not fit."""
    for at, point in enumerate(points):
        total, budget = float(point.memory.total_bytes), point.memory.budget_bytes
        fits = total <= budget
        sheet.note(
            {
                "x": (total if total < 0.85 * budget else max(total, budget)) / GB,
                "y": at,
                "text": f"<b>{n_bytes(total)}</b><br>{percent(total / budget)}"
                + ("" if fits else ", does not fit"),
                "xanchor": "left",
                "xshift": 8,
                "align": "left",
                "font": {"size": SIZE_TEXT, "color": theme.text if fits else theme.bad},
            }
        )
