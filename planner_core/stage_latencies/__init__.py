"""Every formula of time: what a model step costs on a machine, stage by stage."""

from planner_core.stage_latencies.component import BIND_KINDS, Component
from planner_core.stage_latencies.ffn import all_ffn_stages
from planner_core.stage_latencies.stage import COMMUNICATION, Stage
from planner_core.stage_latencies.step import StepLatency, all_stages, step_latency, work_floor_s

__all__ = [
    "BIND_KINDS",
    "COMMUNICATION",
    "Component",
    "Stage",
    "StepLatency",
    "all_ffn_stages",
    "all_stages",
    "step_latency",
    "work_floor_s",
]
