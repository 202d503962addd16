"""The figures that `planner plan --visualize` writes: HTML always, PNG where there is a Chrome.

Owns: which figures, of which points, under which file names.
Refuses: drawing (see `figures`) and writing (see `artifacts`).
"""

from __future__ import annotations

from planner_core.figures.frame import Drawn, FigureContext
from planner_core.figures.frontier import interactivity_frontier
from planner_core.figures.plan import prefill_footprint
from planner_core.figures.render import ImagesUnavailable, to_html, to_images
from planner_core.figures.roofline import roofline
from planner_core.figures.theme import LIGHT
from planner_core.run_spec import RunSpec
from planner_core.serving_plan import (
    BucketPlan,
    ServingPlan,
    interactivity_curves,
    operating_point,
    serving_grid,
    upper_frontier,
)


def _about(spec: RunSpec, *, phase: str, bucket: BucketPlan | None = None, extra: str = "") -> FigureContext:
    return FigureContext(
        model=spec.model_label,
        machine=spec.hardware_name,
        phase=phase,
        context_tokens=None if bucket is None else bucket.context_tokens,
        extra=extra,
    )


def _roofline(spec: RunSpec, bucket: BucketPlan) -> Drawn | None:
    row = bucket.selected
    if row is None:
        return None
    point = operating_point(
        spec, tp=row.tp, cp=row.cp, batch=row.batch, context_tokens=bucket.context_tokens, phase="decode"
    )
    return roofline(
        step=point.step,
        machine=spec.machine,
        precision=spec.precision,
        about=_about(spec, phase="decode", bucket=bucket, extra=f"{row.label()}, batch {row.batch}"),
        theme=LIGHT,
    )


def _frontiers(spec: RunSpec, bucket: BucketPlan) -> dict[str, Drawn]:
    configs = serving_grid(model=spec.model, machine=spec.machine)
    (curves,) = interactivity_curves(spec, configs=configs, buckets=[bucket.context_tokens])
    frontier = upper_frontier(curves)

    def drawn(per: str) -> Drawn:
        return interactivity_frontier(
            curves=curves,
            frontier=frontier,
            about=_about(spec, phase="decode", bucket=bucket),
            theme=LIGHT,
            itl_ceiling_s=bucket.itl_ceiling_s,
            selected=bucket.selected,
            per="node" if per == "node" else "replica",
        )

    return {f"interactivity_per_{per}": drawn(per) for per in ("replica", "node")}


def _footprint(spec: RunSpec, plan: ServingPlan) -> Drawn:
    chosen = [(bucket, bucket.selected) for bucket in plan.buckets if bucket.selected is not None]
    points = [
        operating_point(
            spec, tp=row.tp, cp=row.cp, batch=1, context_tokens=bucket.context_tokens, phase="prefill"
        )
        for bucket, row in chosen
    ]
    return prefill_footprint(
        points=points,
        ttft_ceilings_s=[bucket.ttft_ceiling_s for bucket, _ in chosen],
        about=_about(spec, phase="prefill"),
        theme=LIGHT,
    )


def figure_files(spec: RunSpec, plan: ServingPlan) -> tuple[dict[str, bytes | str], list[str]]:
    """Return the figures of a plan by file name, and what to say about those that could not be drawn.

    Parameters
    ----------
    spec : RunSpec
        What was asked for.
    plan : ServingPlan
        Its plan.

    Returns
    -------
    tuple
        Files; and at most one line, where no PNG could be drawn.
    """
    chosen = [bucket for bucket in plan.buckets if bucket.selected is not None]
    bucket = (chosen or list(plan.buckets))[0]
    figures = _frontiers(spec, bucket) | {"prefill_footprint": _footprint(spec, plan)}
    roof = _roofline(spec, bucket)
    if roof is not None:
        figures["roofline"] = roof
    files: dict[str, bytes | str] = {
        f"{name}.html": to_html(drawn.figure, theme=LIGHT, alt=drawn.alt) for name, drawn in figures.items()
    }
    try:
        images = to_images([drawn.figure for drawn in figures.values()], theme=LIGHT)
    except ImagesUnavailable as error:
        return files, [f"{error}; the HTML figures are written all the same"]
    files |= {f"{name}.png": image for name, image in zip(figures, images, strict=True)}
    return files, []
