"""How a bench prints: one line a figure, its target beside it, and what the machine was doing."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One measured figure; `met` is None where there is no target."""

    name: str
    measured: str
    target: str = ""
    met: bool | None = None
    note: str = ""


def timed(
    name: str, seconds: float, *, below_s: float | None = None, cpu_s: float | None = None, note: str = ""
) -> Figure:
    """Return a figure of time, with the CPU time beside it where it was taken."""
    parts = [note] if note else []
    if cpu_s is not None:
        parts.insert(0, f"CPU {duration(cpu_s)}")
    return Figure(
        name=name,
        measured=duration(seconds),
        target="" if below_s is None else f"< {duration(below_s)}",
        met=None if below_s is None else seconds < below_s,
        note="; ".join(parts),
    )


def duration(seconds: float) -> str:
    """Return a time with a unit.

    Examples
    --------
    >>> duration(0.00333), duration(2.5), duration(0.3), duration(0)
    ('3.33 ms', '2.5 s', '300 ms', '0 s')
    """
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds:.3g} s"


def _load() -> str:
    return " ".join(f"{load:.1f}" for load in os.getloadavg()) if hasattr(os, "getloadavg") else "unknown"


def print_head(title: str) -> None:
    """Print what is measured, and on what."""
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    print(f"\n{title}")
    print(
        f"{now}, Python {platform.python_version()}, {os.cpu_count()} cores, load average {_load()} "
        "(above the number of cores, wall times are longer than on a quiet machine)"
    )


def print_figures(figures: list[Figure]) -> None:
    """Print the figures as one table."""
    names = ("figure", "measured", "target", "", "")
    rows = [
        (
            figure.name,
            figure.measured,
            figure.target,
            {None: "", True: "met", False: "MISSED"}[figure.met],
            figure.note,
        )
        for figure in figures
    ]
    widths = [max(len(row[column]) for row in (names, *rows)) for column in range(4)]
    for row in (names, *rows):
        cells = [f"{row[0]:<{widths[0]}}", f"{row[1]:>{widths[1]}}", f"{row[2]:>{widths[2]}}"]
        print("  ".join([*cells, f"{row[3]:<{widths[3]}}", row[4]]).rstrip(), flush=True)
