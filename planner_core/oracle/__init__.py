"""The oracle: the model's own code, run by torch on the meta device, compared with the planner.

Owns: `run_oracle` and its report. Importing this package does not import torch; calling `run_oracle` does.
Refuses: weights, accelerators, downloads, and any code that comes with a model.
"""

from planner_core.oracle.compare import default_context_tokens, run_oracle
from planner_core.oracle.report import Explanation, OraclePhase, OracleReport, OracleSegment
from planner_core.oracle.torch_room import OracleUnavailable

__all__ = [
    "Explanation",
    "OraclePhase",
    "OracleReport",
    "OracleSegment",
    "OracleUnavailable",
    "default_context_tokens",
    "run_oracle",
]
