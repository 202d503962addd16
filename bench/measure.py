"""Clocks: wall and CPU time of a call, of a process, and the size of one."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

CLOCK_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Spent:
    """Wall and CPU time [s], and the largest resident size [B] where it is known."""

    wall_s: float
    cpu_s: float
    peak_bytes: float = 0.0


def median(spent: Sequence[Spent]) -> Spent:
    """Return the medians of each."""
    return Spent(
        statistics.median(one.wall_s for one in spent),
        statistics.median(one.cpu_s for one in spent),
        max(one.peak_bytes for one in spent),
    )


def call(function: Callable[[], object], *, repeat: int = 1) -> Spent:
    """Return the time of a call, the mean where it is repeated."""
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(repeat):
        function()
    return Spent((time.perf_counter() - wall) / repeat, (time.process_time() - cpu) / repeat)


def process(command: Sequence[str], *, cwd: Path | None = None) -> Spent:
    """Return the time of a whole process, start-up included; its output is thrown away."""
    wall = time.perf_counter()
    child = subprocess.Popen(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert child.stderr is not None
    said = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - wall
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {child.returncode}: {said.decode()[-500:]}")
    return Spent(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024.0)


def cpu_of(pid: int) -> float:
    """Return the CPU time that a running process has used [s]."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS_PER_S


def resident_bytes(pid: int) -> float:
    """Return a running process's resident size [B]."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return float(line.split()[1]) * 1024
    raise RuntimeError(f"process {pid} has no size")


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that `share` of the values do not exceed.

    Examples
    --------
    >>> percentile([1.0, 2.0, 3.0, 4.0], 0.5), percentile([1.0, 2.0, 3.0, 4.0], 0.95)
    (2.0, 4.0)
    """
    ordered = sorted(values)
    return ordered[max(0, -(-int(share * 1000) * len(ordered) // 1000) - 1)]
