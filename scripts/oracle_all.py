"""Run the oracle on every model config at hand and print a table, a line a model.

    python scripts/oracle_all.py [FILE ...] [--context 4096] [--batch 8] [--verbose]

Without files: the model presets, and the real configs in ../shared/data/hf_configs where that folder is
there. A model that the planner refuses is listed with the reason. Exits 1 where any model disagrees.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

REPO_ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPO_ROOT))

from planner_core.errors import PlannerError  # noqa: E402
from planner_core.hf_config import parse_config  # noqa: E402
from planner_core.model_arch import ModelArch  # noqa: E402
from planner_core.oracle import OracleReport, OracleUnavailable, run_oracle  # noqa: E402
from planner_core.shipped_files import shipped_root  # noqa: E402
from planner_core.strict_json import MAX_CONFIG_BYTES, read_json_file  # noqa: E402


def config_files() -> list[Path]:
    """Return the presets and, where they are, the real configs."""
    presets = sorted((shipped_root() / "presets" / "models").glob("*.json"))
    presets = [path for path in presets if path.name != "index.json"]
    return presets + sorted((REPO_ROOT.parent / "shared" / "data" / "hf_configs").glob("*.json"))


def context_for(model: ModelArch, wanted: int) -> int:
    """Return `wanted` tokens, or more where a window is longer, within what the model is made for."""
    windows = [group.window_tokens for group in model.attention if group.window_tokens]
    beyond = [2 * window + 3 for window in windows if 2 * window + 3 <= model.max_position_tokens]
    return min(max([wanted, *beyond]), model.max_position_tokens)


def verdict(report: OracleReport) -> str:
    """Return one word, or the segments that disagree and by how much."""
    if report.agrees:
        n_explained = sum(len(s.explanations) for p in report.phases for s in p.segments if s.name != "total")
        return f"agrees, {n_explained} differences explained"
    wrong = [
        f"{phase.phase} {segment.name} {segment.unexplained_flops:+,.0f} FLOP "
        f"{segment.unexplained_weight_bytes:+,.0f} B"
        for phase in report.phases
        for segment in phase.segments
        if not segment.agrees and segment.name != "total"
    ]
    return "DISAGREES: " + "; ".join(wrong)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--context", type=int, default=4096, help="tokens (4096)")
    parser.add_argument("--batch", type=int, default=8, help="sequences (8)")
    parser.add_argument("--verbose", action="store_true", help="print each whole report")
    options = parser.parse_args()
    n_agree = n_disagree = n_refused = 0
    for path in options.files or config_files():
        started = time.monotonic()
        name = path.stem[:46]
        try:
            config = read_json_file(path, allow_non_finite=True, max_bytes=MAX_CONFIG_BYTES)
            model = parse_config(config, name=path.stem)
            report = run_oracle(
                model=model,
                config=config,
                context_tokens=context_for(model, options.context),
                batch=options.batch,
            )
        except OracleUnavailable as fault:
            print(fault)
            return 2
        except PlannerError as fault:
            n_refused += 1
            print(f"{name:<48}refused: {str(fault).splitlines()[0][:150]}", flush=True)
            continue
        n_agree += report.agrees
        n_disagree += not report.agrees
        spoke = report.spoke.split()[0]
        print(f"{name:<48}{spoke:<14}{time.monotonic() - started:5.1f} s  {verdict(report)}", flush=True)
        if options.verbose:
            print("\n".join(report.lines()), end="\n\n")
    print(f"{n_agree} agree, {n_disagree} disagree, {n_refused} refused")
    return 1 if n_disagree else 0


if __name__ == "__main__":
    sys.exit(main())
