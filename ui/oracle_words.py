"""The oracle's report in words and tables.

Owns: the verdict, the big numbers, a table a phase, the reasons under it.
Refuses: counting and explaining (see `planner_core.oracle`).
"""

from __future__ import annotations

import pandas as pd

from planner_core.oracle import OraclePhase, OracleReport
from planner_core.oracle.report import TOTAL
from planner_core.units import GIGA, MB, TERA
from ui import text


def verdict(report: OracleReport, *, model: str) -> str:
    """Return in one sentence whether planner and oracle agree, and where they do not."""
    first = report.phases[0]
    point = f"{first.context_tokens:,} tokens and batch {first.batch:,}"
    if report.agrees:
        return (
            f"They agree: every FLOP and every byte of weights of {model} is accounted for, at {point}, in "
            f"{' and '.join(phase.phase for phase in report.phases)}."
        )
    places = [
        f"{text.operator(segment.name)} in {phase.phase} ({_rest(segment.unexplained_flops, 'FLOP')}, "
        f"{_rest(segment.unexplained_weight_bytes, 'B of weights')})"
        for phase in report.phases
        for segment in phase.segments
        if segment.name != TOTAL and not segment.agrees
    ]
    return f"They do not agree at {point}. Left unexplained: {'; '.join(places) or 'the total'}."


def _rest(value: float, unit: str) -> str:
    return f"{value:+,.0f} {unit}" if value else f"0 {unit}"


def _flops(value: float) -> str:
    """Return a count of FLOP with three digits."""
    for unit, name in ((TERA, "TFLOP"), (GIGA, "GFLOP")):
        if value >= unit:
            return f"{text.sig(value / unit)}{text.NBSP}{name}"
    return f"{text.sig(value)}{text.NBSP}FLOP"


def who_spoke(report: OracleReport) -> str:
    """Return whose code was run."""
    if report.spoke.startswith("transformers"):
        return f"The model's own code in {report.spoke}, run by torch on its meta device: shapes, no weights."
    return f"{report.spoke[:1].upper()}{report.spoke[1:]}: matmuls built from the parsed shapes."


def facts(report: OracleReport) -> list[tuple[str, str, str]]:
    """Return the big numbers: the total of each phase."""
    entries = []
    for phase in report.phases:
        total = phase.segment(TOTAL)
        name = phase.phase.capitalize()
        entries += [
            (
                f"{name}, oracle",
                _flops(total.oracle_flops),
                f"planner {_flops(total.planner_flops)}",
            ),
            (
                f"{name}, unexplained",
                f"{text.count(total.unexplained_flops)}{text.NBSP}FLOP",
                f"weights {text.count(total.unexplained_weight_bytes)}{text.NBSP}B",
            ),
        ]
    total = report.phases[0].segment(TOTAL)
    entries.append(
        (
            "Weights in decode, oracle",
            text.n_bytes(total.oracle_weight_bytes),
            f"planner reads {text.n_bytes(total.planner_weight_bytes)}; 2 bytes each",
        )
    )
    return entries


def phase_table(phase: OraclePhase) -> pd.DataFrame:
    """Return the segments of a phase, the total last."""
    return pd.DataFrame(
        {
            "Segment": text.operator(segment.name),
            "Oracle [GFLOP]": segment.oracle_flops / GIGA,
            "Planner [GFLOP]": segment.planner_flops / GIGA,
            "Explained [GFLOP]": sum(reason.flops for reason in segment.explanations) / GIGA,
            "Unexplained [FLOP]": segment.unexplained_flops,
            "Oracle weights [MB]": segment.oracle_weight_bytes / MB,
            "Planner weights [MB]": segment.planner_weight_bytes / MB,
            "Explained weights [MB]": sum(reason.weight_bytes for reason in segment.explanations) / MB,
            "Unexplained weights [B]": segment.unexplained_weight_bytes,
            "Explained by": segment.explained_by,
        }
        for segment in phase.segments
    )


def reasons(phase: OraclePhase) -> list[str]:
    """Return each known difference of a phase, with what it explains."""
    lines = []
    for segment in phase.segments:
        if segment.name == TOTAL:
            continue
        for reason in segment.explanations:
            amounts = []
            if reason.flops:
                amounts.append(f"{reason.flops:+,} FLOP")
            if reason.weight_bytes:
                amounts.append(f"{reason.weight_bytes / MB:+,.1f} MB of weights")
            lines.append(f"{text.operator(segment.name)}: {reason.text} ({', '.join(amounts)})")
    return lines
