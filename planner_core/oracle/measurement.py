"""What an oracle hands over: whole counts by segment, and how the model was executed.

Owns: `SegmentCount`, `Execution` and `Measurement`, plain numbers without torch; `CannotSpeak`.
Refuses: the planner's side of the comparison.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


class CannotSpeak(Exception):
    """`transformers` is missing, does not know the model, or cannot run it: the reason is the message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentCount:
    """One segment of the model as executed.

    Parameters
    ----------
    flops : int
        FLOP that torch counted.
    weight_elements : int
        Elements of its matmul weights, norms and biases left out.
    """

    flops: int = 0
    weight_elements: int = 0

    def plus(self, other: SegmentCount) -> SegmentCount:
        """Return the sum."""
        return SegmentCount(
            flops=self.flops + other.flops,
            weight_elements=self.weight_elements + other.weight_elements,
        )

    def minus(self, other: SegmentCount) -> SegmentCount:
        """Return the difference."""
        return SegmentCount(
            flops=self.flops - other.flops,
            weight_elements=self.weight_elements - other.weight_elements,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """Choices of the executed code that the planner makes differently, as seen in its row counts.

    Parameters
    ----------
    latent_expanded : bool
        MLA: the up-projection of the latent ran over the whole cache, not only over the new token.
    all_experts_ran : bool
        MoE: every expert ran on every token, not only the experts a token is routed to.
    windows_padded : bool
        Layers with a window: a decode step scored the whole cache and masked what lies outside the window.
    lm_head_on_all_tokens : bool
        The lm_head ran on every token of a prefill, not only on each sequence's last.
    n_altup_streams : int
        Residual streams of Gemma 3n's AltUp; 0 elsewhere.
    """

    latent_expanded: bool = False
    all_experts_ran: bool = False
    windows_padded: bool = False
    lm_head_on_all_tokens: bool = False
    n_altup_streams: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One phase, measured.

    Parameters
    ----------
    segments : mapping of str to SegmentCount
        By segment name, whole model.
    execution : Execution
        How it was run.
    """

    segments: Mapping[str, SegmentCount]
    execution: Execution
