"""The figures of Compare: the same charts on the same scales.

Owns: what they are of, and the common ranges of the rooflines.
Refuses: drawing (see `planner_core.figures`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from planner_core.figures.frame import Drawn, FigureContext
from planner_core.figures.memory import LabelledMemory, memory_bar
from planner_core.figures.step import compare_steps
from ui import cell_figures, compare_words, theme
from ui.cell_core import Cell


def _joined(values: Sequence[str]) -> str:
    return " / ".join(dict.fromkeys(values))


def about(facets: Sequence[Mapping[str, str]], found: Sequence[Cell]) -> FigureContext:
    """Return what figures of all points are of."""
    contexts = {one.point.context_tokens for one in found}
    return FigureContext(
        model=_joined([facet["Model"] for facet in facets]),
        machine=_joined([facet["Machine"] for facet in facets]),
        phase=_joined([facet["Phase"] for facet in facets]),
        context_tokens=contexts.pop() if len(contexts) == 1 else None,
        extra="" if not contexts else "context " + _joined([facet["Context"] for facet in facets]),
    )


def shared(
    names: Sequence[str], facets: Sequence[Mapping[str, str]], found: Sequence[Cell], *, look: theme.Theme
) -> dict[str, Drawn]:
    """Return the steps and the memory of all points, each on one scale."""
    what = about(facets, found)
    layouts = [
        LabelledMemory(label=name, memory=one.memory)
        for name, one in zip(names, found, strict=True)
        if one.memory is not None
    ]
    return {
        "steps": compare_steps(points=compare_words.steps(names, found), about=what, theme=look),
        "memory": memory_bar(points=layouts, about=what, theme=look),
    }


def rooflines(found: Sequence[Cell], *, look: theme.Theme) -> list[Drawn]:
    """Return each runnable point's roofline, all with the same axes."""
    drawn = [cell_figures.figures(one, look=look)["roofline"] for one in found if one.step is not None]
    shown = [figure for figure in drawn if not figure.empty]
    ranges = {axis: _union([_range(figure, axis) for figure in shown]) for axis in ("xaxis", "yaxis")}
    return [_with_ranges(figure, ranges) if not figure.empty else figure for figure in drawn]


def _range(drawn: Drawn, axis: str) -> tuple[float, float]:
    low, high = drawn.layout[axis]["range"]
    return float(low), float(high)


def _union(ranges: Sequence[tuple[float, float]]) -> list[float]:
    return [min(low for low, _ in ranges), max(high for _, high in ranges)] if ranges else []


def _with_ranges(drawn: Drawn, ranges: Mapping[str, list[float]]) -> Drawn:
    layout = {**drawn.layout}
    for axis, span in ranges.items():
        layout[axis] = {**layout[axis], "range": span}
    return replace(drawn, layout=layout)
