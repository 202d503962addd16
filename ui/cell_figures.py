"""The figures of a cell, and of cells side by side.

Owns: what each is of, and its title's second line.
Refuses: drawing (see `planner_core.figures`).
"""

from __future__ import annotations

from planner_core.figures.frame import Drawn, FigureContext
from planner_core.figures.memory import LabelledMemory, memory_bar
from planner_core.figures.roofline import roofline
from planner_core.figures.step import operator_floors, step_waterfall
from ui import theme
from ui.cell_core import Cell


def about(found: Cell) -> FigureContext:
    """Return what a cell's figures are of."""
    spec, point = found.spec, found.point
    return FigureContext(
        model=spec.model_label,
        machine=spec.machine.title,
        phase=point.phase,
        context_tokens=point.context_tokens,
        extra=f"{found.label}, batch {point.batch:,}",
    )


def figures(found: Cell, *, look: theme.Theme) -> dict[str, Drawn]:
    """Return waterfall, roofline, memory bar and operator floors, by name."""
    step, memory = found.step, found.memory
    assert step is not None  # a cell with faults has no figures
    assert memory is not None
    what = about(found)
    return {
        "waterfall": step_waterfall(step=step, about=what, theme=look),
        "roofline": roofline(
            step=step, machine=found.spec.machine, precision=found.spec.precision, about=what, theme=look
        ),
        "memory": memory_bar(
            points=[LabelledMemory(label=found.label, memory=memory)], about=what, theme=look
        ),
        "floors": operator_floors(step=step, about=what, theme=look),
    }
