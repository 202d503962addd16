"""The command line: whole processes from start to end, and the frontier in one call."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from bench.measure import Spent, call, median, process
from bench.table import Figure, print_figures, print_head, timed
from planner_core.preset_files import presets_dir
from planner_core.run_spec import load_run_spec
from planner_core.serving_plan import context_buckets, interactivity_curves, plan_serving, serving_grid

RUNS = 5
CALLS = 20
SPEC = "granite-4.1-8b-trn2"
ROOT = Path(__file__).resolve().parents[1]


def _processes(*arguments: str) -> Spent:
    return median([process([sys.executable, *arguments], cwd=ROOT) for _ in range(RUNS)])


def main() -> None:
    """Measure and print."""
    print_head(f"plan: {SPEC}")
    spec = load_run_spec(presets_dir() / "run_specs" / f"{SPEC}.json")
    with tempfile.TemporaryDirectory() as folder:
        planner = ("-m", "planner_core")
        plan = _processes(*planner, "plan", SPEC, "--project-root", folder)
        as_json = _processes(*planner, "plan", SPEC, "--project-root", folder, "--json")
    sweep = _processes(*planner, "explore", "llama-3.1-70b-sip128")
    bare = _processes("-c", "pass")
    imported = _processes("-c", "import planner_core.cli")
    needed = _processes(
        "-c", "import planner_core.cli.plan, planner_core.serving_plan, planner_core.run_spec"
    )
    configs = serving_grid(model=spec.model, machine=spec.machine)
    buckets = context_buckets(max_position_tokens=spec.model.max_position_tokens)
    curves = interactivity_curves(spec, configs=configs, buckets=buckets)
    n_points = sum(len(curve.batch) for row in curves for curve in row)
    frontier = median(
        [call(lambda: interactivity_curves(spec, configs=configs, buckets=buckets)) for _ in range(CALLS)]
    )
    planned = median([call(lambda: plan_serving(spec)) for _ in range(CALLS)])
    print_figures(
        [
            timed(
                "planner plan, whole process", plan.wall_s, below_s=1.0, cpu_s=plan.cpu_s, note=_size(plan)
            ),
            timed(
                "planner plan --json", as_json.wall_s, below_s=1.0, cpu_s=as_json.cpu_s, note=_size(as_json)
            ),
            timed("planner explore, whole process", sweep.wall_s, cpu_s=sweep.cpu_s, note=_size(sweep)),
            timed("  of it: Python alone", bare.wall_s, cpu_s=bare.cpu_s),
            timed(
                "  importing planner_core.cli",
                imported.wall_s - bare.wall_s,
                cpu_s=imported.cpu_s - bare.cpu_s,
            ),
            timed(
                "  importing all that plan needs",
                needed.wall_s - bare.wall_s,
                cpu_s=needed.cpu_s - bare.cpu_s,
                note="numpy and pydantic among it",
            ),
            timed(
                f"frontier, {len(configs)} configs x {len(buckets)} contexts x every batch",
                frontier.wall_s,
                below_s=0.050,
                cpu_s=frontier.cpu_s,
                note=f"{n_points:,} points in one call",
            ),
            timed("the whole plan in a running process", planned.wall_s, cpu_s=planned.cpu_s),
            Figure(
                name="  start-up over planning",
                measured=f"{plan.cpu_s / planned.cpu_s:.0f} x",
                note="a process over a call",
            ),
        ]
    )


def _size(spent: Spent) -> str:
    return f"{spent.peak_bytes / 1e6:.0f} MB"
