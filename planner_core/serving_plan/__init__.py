"""The serving planner: one node, colocated, driven by latency targets."""

from planner_core.serving_plan.buckets import context_buckets, serving_grid
from planner_core.serving_plan.frontier import (
    FrontierPoint,
    InteractivityCurve,
    interactivity_curves,
    largest_batch_within,
    upper_frontier,
)
from planner_core.serving_plan.rows import (
    OperatingPoint,
    PlanRow,
    operating_point,
    plan_rows,
    spec_workload,
    ttft_ceiling_s,
)
from planner_core.serving_plan.select import BucketPlan, ServingPlan, plan_serving

__all__ = [
    "BucketPlan",
    "FrontierPoint",
    "InteractivityCurve",
    "OperatingPoint",
    "PlanRow",
    "ServingPlan",
    "context_buckets",
    "interactivity_curves",
    "largest_batch_within",
    "operating_point",
    "plan_rows",
    "plan_serving",
    "serving_grid",
    "spec_workload",
    "ttft_ceiling_s",
    "upper_frontier",
]
