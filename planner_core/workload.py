"""What is asked of the machine: a phase, a context length, a batch and the byte widths.

Owns: `Workload`.
Refuses: models and machines.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from numpy.typing import ArrayLike

from planner_core.model_arch import WeightWidths

Phase = Literal["decode", "prefill"]
PHASES: Final = ("decode", "prefill")
MAX_BATCH: Final = 1_000_000_000  # sequences; more are neither asked for nor found


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One step of a replica.

    Parameters
    ----------
    phase : {"decode", "prefill"}
        Decode: one new token a sequence, over a cache of `context_tokens`. Prefill: `context_tokens` new
        tokens a sequence.
    context_tokens : array_like
        `S` [tokens].
    batch : array_like
        `n`, sequences on the replica.
    widths : WeightWidths
        `w`, bytes per weight by kind of module.
    kv_dtype_bytes : float
        `c`, bytes per cached element.
    activation_dtype_bytes : float
        `a`, bytes per activation element.
    precision : str
        Which of the machine's peaks computes.
    expert_imbalance : float
        Load of the most loaded expert-parallel rank over the mean, 1 or more.
    """

    phase: Phase
    context_tokens: ArrayLike
    batch: ArrayLike
    widths: WeightWidths = field(default_factory=WeightWidths)
    kv_dtype_bytes: float = 2.0
    activation_dtype_bytes: float = 2.0
    precision: str = "bf16"
    expert_imbalance: float = 1.0
