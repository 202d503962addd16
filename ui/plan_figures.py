"""The figures of Serving plan.

Owns: what each is of, and its title's second line.
Refuses: drawing (see `planner_core.figures`).
"""

from __future__ import annotations

from planner_core.figures.frame import Drawn, FigureContext
from planner_core.figures.frontier import interactivity_frontier
from planner_core.figures.plan import selection_by_context
from planner_core.serving_plan import BucketPlan
from ui import plan_core, theme
from ui.plan_core import Question


def _about(asked: Question, *, phase: str, tokens: int | None) -> FigureContext:
    spec = asked.spec
    return FigureContext(
        model=spec.model_label, machine=spec.machine.title, phase=phase, context_tokens=tokens
    )


def frontier(
    asked: Question,
    bucket: BucketPlan,
    *,
    look: theme.Theme,
    other: Question | None = None,
    other_name: str = "",
) -> Drawn:
    """Return the interactivity frontier of a context length, with another run-spec's frontier beside it."""
    tokens = bucket.context_tokens
    curves, front = plan_core.curves(asked, tokens)
    beside = None if other is None else (other_name, plan_core.curves(other, tokens)[1])
    return interactivity_frontier(
        curves=curves,
        frontier=front,
        about=_about(asked, phase="decode", tokens=tokens),
        theme=look,
        itl_ceiling_s=bucket.itl_ceiling_s,
        selected=bucket.selected,
        beside=beside,
    )


def selection(asked: Question, *, look: theme.Theme) -> Drawn:
    """Return what is selected at each context length."""
    return selection_by_context(
        buckets=plan_core.overview(asked).buckets,
        about=_about(asked, phase="decode and prefill", tokens=None),
        theme=look,
    )
