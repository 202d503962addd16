"""Auto Explore: sweep every way to cut a model, rank what fits, and show what each knob does."""

from planner_core.auto_explore.config import Config, config_from_mapping, config_from_text
from planner_core.auto_explore.explore import (
    ConfigScore,
    ExploreResult,
    cloud_scores,
    explore,
    score_configs,
)
from planner_core.auto_explore.grid import ExploreAxes, dense_axes
from planner_core.auto_explore.sensitivity import (
    ParallelismSensitivityRow,
    compute_parallelism_sensitivity,
)

__all__ = [
    "Config",
    "ConfigScore",
    "ExploreAxes",
    "ExploreResult",
    "ParallelismSensitivityRow",
    "cloud_scores",
    "compute_parallelism_sensitivity",
    "config_from_mapping",
    "config_from_text",
    "dense_axes",
    "explore",
    "score_configs",
]
