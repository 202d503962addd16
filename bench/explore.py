"""Auto Explore: 28,800 configs in one process on one core, a dense grid, and the limits beside them."""

from __future__ import annotations

import os
import resource

import numpy as np

from bench.measure import Spent, call, median
from bench.table import Figure, print_figures, print_head, timed
from planner_core.auto_explore import (
    Config,
    ExploreAxes,
    compute_parallelism_sensitivity,
    dense_axes,
    explore,
    score_configs,
)
from planner_core.preset_files import presets_dir
from planner_core.run_spec import RunSpec, load_run_spec
from planner_core.serving_plan import spec_workload

RUNS = 20
SPEC = "llama-3.1-70b-sip128"
CONTEXT_TOKENS = 131_072
# Latency, memory, PEs used and efficiency as float64, and whether it fits as one byte.
BYTES_A_CONFIG = 4 * 8 + 1
# The same axes, and DP twice and four times as long.
DENSE = tuple(dense_axes(cp_max=64, tp_max=32, pp_max=16, dp_max=dp_max) for dp_max in (14, 30, 62))


def one_core() -> None:
    """Stay on one core; the libraries' threads were set to one when the bench started."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def write_speed(n_bytes: int = 200_000_000) -> float:
    """Return how fast this core writes to memory [B/s]: the best of five fills of one large array."""
    array = np.zeros(n_bytes // 8)
    return n_bytes / min(call(lambda: array.fill(1.5)).wall_s for _ in range(5))


def _sweep(spec: RunSpec, axes: ExploreAxes, runs: int) -> tuple[Spent, int]:
    workload = spec_workload(spec, phase="decode", context_tokens=CONTEXT_TOKENS, batch=1)
    found = explore(model=spec.model, machine=spec.machine, workload=workload, axes=axes)
    spent = [
        call(lambda: explore(model=spec.model, machine=spec.machine, workload=workload, axes=axes))
        for _ in range(runs)
    ]
    return median(spent), found.n_enumerated


def _small(spec: RunSpec) -> tuple[list[Figure], float]:
    """The default grid, one scalar call beside it, and the sensitivity panel; and CPU a config [s]."""
    sweep, n_configs = _sweep(spec, ExploreAxes(), RUNS)
    workload = spec_workload(spec, phase="decode", context_tokens=CONTEXT_TOKENS, batch=1)
    about = {"model": spec.model, "machine": spec.machine, "workload": workload}
    config = Config(cp=2, tp=8, pp=2, dp=2)
    scalar = median([call(lambda: score_configs(configs=[config], **about), repeat=5) for _ in range(RUNS)])
    panel = median(
        [call(lambda: compute_parallelism_sensitivity(baseline=config, **about)) for _ in range(RUNS)]
    )
    loop_s = scalar.cpu_s * n_configs
    figures = [
        timed(
            f"{n_configs:,} configs enumerated, scored, ranked",
            sweep.wall_s,
            below_s=0.010,
            cpu_s=sweep.cpu_s,
            note=f"median of {RUNS}",
        ),
        Figure(name="  configs a second of CPU", measured=f"{n_configs / sweep.cpu_s / 1e6:.1f} M/s"),
        timed("one config in one scalar call", scalar.wall_s, cpu_s=scalar.cpu_s),
        Figure(
            name="  a loop over scalar calls takes longer by",
            measured=f"{loop_s / sweep.cpu_s:,.0f} x",
            note=f"{loop_s:.1f} s for {n_configs:,}",
        ),
        timed("sensitivity of every knob around a baseline", panel.wall_s, cpu_s=panel.cpu_s),
    ]
    return figures, sweep.cpu_s / n_configs


def _dense(spec: RunSpec) -> tuple[list[Figure], float]:
    """Three dense grids, each twice as large as the one before; and CPU a cell of the largest [s]."""
    figures, cell_s = [], []
    for axes in DENSE:
        last = axes is DENSE[-1]
        spent, n_enumerated = _sweep(spec, axes, 3)
        cell_s.append(spent.cpu_s / axes.n_cells)
        figures.append(
            Figure(
                name=f"dense grid of {axes.n_cells:,}",
                measured=f"{axes.n_cells / spent.wall_s / 1e6:.1f} M/s",
                target="> 5 M/s" if last else "",
                met=axes.n_cells / spent.wall_s > 5e6 if last else None,
                note=f"{spent.wall_s:.2f} s, CPU {spent.cpu_s:.2f} s = {1e-6 / cell_s[-1]:.1f} M/s of CPU; "
                f"{n_enumerated:,} left by the prunes",
            )
        )
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0
    figures += [
        Figure(
            name="  cost of a cell, largest over smallest",
            measured=f"{cell_s[-1] / cell_s[0]:.2f} x",
            note="1 where the cost is linear in the cells",
        ),
        Figure(
            name="  peak resident size of the process",
            measured=f"{peak_bytes / 1e9:.2f} GB",
            target="< 1 GB",
            met=peak_bytes < 1e9,
        ),
    ]
    return figures, cell_s[-1]


def _over_the_limit(small_s: float, dense_s: float) -> list[Figure]:
    """How much longer a config takes than writing its results once to memory."""
    bytes_per_s = write_speed()
    limit_s = BYTES_A_CONFIG / bytes_per_s
    note = f"{BYTES_A_CONFIG} B a config at {bytes_per_s / 1e9:.1f} GB/s: {1e-6 / limit_s:.0f} M/s"
    return [
        Figure(
            name="default grid over its results written once",
            measured=f"{small_s / limit_s:.0f} x",
            note=note,
        ),
        Figure(name="dense grid over its results written once", measured=f"{dense_s / limit_s:.0f} x"),
    ]


def main() -> None:
    """Measure and print."""
    one_core()
    spec = load_run_spec(presets_dir() / "run_specs" / f"{SPEC}.json")
    print_head(f"explore: {SPEC}, decode at {CONTEXT_TOKENS:,} tokens, one process on one core")
    small, small_s = _small(spec)
    dense, dense_s = _dense(spec)
    print_figures(small + dense + _over_the_limit(small_s, dense_s))
