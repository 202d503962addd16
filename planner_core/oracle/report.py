"""What the oracle found: segment by segment, with each known difference explained in FLOP and bytes.

Owns: the frozen report, whether it agrees, and its JSON and text forms.
Refuses: counting and explaining (see `compare` and `explain`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

TOTAL = "total"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One known reason why the oracle counts more (or less) than the planner.

    Parameters
    ----------
    text : str
        The reason, with the shapes it follows from.
    flops : int
        Oracle minus planner that it explains [FLOP].
    weight_bytes : float
        Oracle minus planner that it explains [B]; a fraction, where an expected count of experts is one.
    """

    text: str
    flops: int = 0
    weight_bytes: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleSegment:
    """One of the planner's components, as both sides count it over the whole model.

    Parameters
    ----------
    name : str
        "attention/global", "ffn/moe", "lm_head", "total"; "other" for work outside all of them.
    oracle_flops : int
        FLOP that torch counted.
    planner_flops : float
        FLOP of the planner's component.
    oracle_weight_bytes : float
        Matmul weights of the modules that ran, norms and biases left out [B].
    planner_weight_bytes : float
        Weights that the planner's component reads [B].
    explanations : tuple of Explanation
        Known differences.
    """

    name: str
    oracle_flops: int
    planner_flops: float
    oracle_weight_bytes: float
    planner_weight_bytes: float
    explanations: tuple[Explanation, ...] = ()

    @property
    def unexplained_flops(self) -> float:
        """Oracle minus planner minus what is explained; exactly 0 where they agree [FLOP].

        The planner counts in float64, where a whole number above 2**53 is rounded: a rest below that
        rounding is no difference.
        """
        explained = sum(explanation.flops for explanation in self.explanations)
        rest = self.oracle_flops - explained - self.planner_flops
        return _without_rounding(rest, largest=max(float(self.oracle_flops), self.planner_flops))

    @property
    def unexplained_weight_bytes(self) -> float:
        """The same for the weights [B]."""
        explained = sum(explanation.weight_bytes for explanation in self.explanations)
        rest = self.oracle_weight_bytes - explained - self.planner_weight_bytes
        largest = max(self.oracle_weight_bytes, self.planner_weight_bytes)
        return _without_rounding(rest, largest=largest)

    @property
    def agrees(self) -> bool:
        """True where nothing is left unexplained."""
        return self.unexplained_flops == 0 and self.unexplained_weight_bytes == 0

    @property
    def explained_by(self) -> str:
        """The explanations as one text, each with what it explains; empty where both counts are equal."""
        return "; ".join(f"{explanation.text} ({_amounts(explanation)})" for explanation in self.explanations)

    def to_json(self) -> dict[str, Any]:
        """Return the segment as plain values."""
        return {
            "name": self.name,
            "oracle_flops": self.oracle_flops,
            "planner_flops": _whole(self.planner_flops),
            "oracle_weight_bytes": _whole(self.oracle_weight_bytes),
            "planner_weight_bytes": _whole(self.planner_weight_bytes),
            "explained_by": self.explained_by,
            "explanations": [
                {
                    "text": explanation.text,
                    "flops": explanation.flops,
                    "weight_bytes": _whole(explanation.weight_bytes),
                }
                for explanation in self.explanations
            ],
            "unexplained_flops": _whole(self.unexplained_flops),
            "unexplained_weight_bytes": _whole(self.unexplained_weight_bytes),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class OraclePhase:
    """One step: decode or prefill.

    Parameters
    ----------
    phase : str
        "decode" or "prefill".
    context_tokens, batch : int
        `S` [tokens] and `n`.
    segments : tuple of OracleSegment
        Attention, FFN, lm_head, whatever lies outside them, and last the total.
    """

    phase: str
    context_tokens: int
    batch: int
    segments: tuple[OracleSegment, ...]

    @property
    def agrees(self) -> bool:
        """True where every segment agrees."""
        return all(segment.agrees for segment in self.segments)

    def segment(self, name: str) -> OracleSegment:
        """Return the segment of that name; KeyError where there is none."""
        for segment in self.segments:
            if segment.name == name:
                return segment
        raise KeyError(name)

    def to_json(self) -> dict[str, Any]:
        """Return the phase as plain values."""
        return {
            "phase": self.phase,
            "context_tokens": self.context_tokens,
            "batch": self.batch,
            "segments": [segment.to_json() for segment in self.segments],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleReport:
    """Both phases, and who spoke.

    Parameters
    ----------
    phases : tuple of OraclePhase
        What was run.
    spoke : str
        "transformers 5.24.0", the model's own code; or "shapes (torch 2.13.0)", matmuls built here from
        the parsed shapes.
    notes : tuple of str
        Why the shapes spoke, and what stands for what.
    """

    phases: tuple[OraclePhase, ...]
    spoke: str
    notes: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        """True where nothing is left unexplained in any phase."""
        return all(phase.agrees for phase in self.phases)

    def to_json(self) -> dict[str, Any]:
        """Return the document that `planner oracle --json` prints."""
        return {
            "phases": [phase.to_json() for phase in self.phases],
            "agrees": self.agrees,
            "spoke": self.spoke,
            "notes": list(self.notes),
        }

    def lines(self) -> tuple[str, ...]:
        """Return the report as lines of text: a table a phase, each explanation under its row."""
        out = [f"oracle: {self.spoke}"]
        out += [f"note: {note}" for note in self.notes]
        for phase in self.phases:
            out += [
                "",
                f"{phase.phase}, context {phase.context_tokens} tokens, batch {phase.batch}, whole model",
                f"{'segment':<18}{'oracle FLOP':>26}{'planner FLOP':>26}{'unexplained':>26}"
                f"{'oracle MB':>12}{'planner MB':>12}{'unexplained':>13}",
            ]
            for segment in phase.segments:
                out.append(
                    f"{segment.name:<18}{segment.oracle_flops:>26,}{segment.planner_flops:>26,.0f}"
                    f"{segment.unexplained_flops:>26,.0f}{segment.oracle_weight_bytes / 1e6:>12.1f}"
                    f"{segment.planner_weight_bytes / 1e6:>12.1f}"
                    f"{segment.unexplained_weight_bytes / 1e6:>13.1f}"
                )
                if segment.name != TOTAL:
                    out += [
                        f"    {explanation.text} ({_amounts(explanation)})"
                        for explanation in segment.explanations
                    ]
        out += ["", "agrees" if self.agrees else "does NOT agree: something is left unexplained"]
        return tuple(out)


def _without_rounding(rest: float, *, largest: float) -> float:
    """Return 0.0 for a rest that float64 cannot tell from 0 beside `largest`, else the rest."""
    return 0.0 if abs(rest) <= 8.0 * float(np.spacing(largest)) else float(rest)


def _whole(value: float) -> int | float:
    """Return an int for a whole number, so that JSON shows a count as a count."""
    return int(value) if float(value).is_integer() else float(value)


def _amounts(explanation: Explanation) -> str:
    """Return what an explanation explains, signed: oracle minus planner."""
    parts = []
    if explanation.flops:
        parts.append(f"{explanation.flops:+,} FLOP")
    if explanation.weight_bytes:
        parts.append(f"{explanation.weight_bytes / 1e6:+,.1f} MB of weights")
    return ", ".join(parts) or "nothing at this size"
