"""Run the benches: `python -m bench` all, one after the other; `python -m bench explore` one.

Each runs in a process of its own, with one thread in every library, so that neither the size nor the caches
of one show up in another. Only loopback is used.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys

PARTS = ("explore", "plan", "browser", "load")
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def main() -> int:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="*", help=f"any of: {', '.join(PARTS)}; all by default")
    parser.add_argument("--long", action="store_true", help="load for five minutes instead of one")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if unknown := sorted(set(chosen.part) - set(PARTS)):
        parser.error(f"no bench {', '.join(unknown)}; there are {', '.join(PARTS)}")
    if chosen.here:
        run = importlib.import_module(f"bench.{chosen.part[0]}").main
        run(long=chosen.long) if chosen.part[0] == "load" else run()
        return 0
    failed = 0
    for part in chosen.part or PARTS:
        command = [sys.executable, "-m", "bench", part, "--here", *(["--long"] if chosen.long else [])]
        failed |= subprocess.run(command, env={**os.environ, **ONE_THREAD}, check=False).returncode
    return int(failed != 0)


if __name__ == "__main__":
    sys.exit(main())
