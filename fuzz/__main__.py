"""`python -m fuzz`: many mutated documents, and a line on how it went; exit code 1 where a promise broke."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Final

from fuzz.answers import LIMIT_S, Spent
from fuzz.run import BATCH, Break, Tally, run_batch
from fuzz.seeds import KINDS, Kind

ROOT: Final = Path(__file__).resolve().parents[1]
BROKEN: Final = Path("fuzz-broken")
GUIDED_SHARE: Final = 0.25
MAX_INPUT_BYTES: Final = 60_000


def by_hypothesis(count: int, *, first_seed: int, jobs: int) -> Tally:
    """Run batches in `jobs` processes and print how far it is."""
    total = Tally()
    sizes = [BATCH] * (count // BATCH) + ([count % BATCH] if count % BATCH else [])
    started_s = time.monotonic()
    work = partial(run_batch, limit_s=LIMIT_S)
    with ProcessPoolExecutor(jobs) as pool:
        batches = [pool.submit(work, first_seed + at, size) for at, size in enumerate(sizes)]
        for done, batch in enumerate(as_completed(batches), start=1):
            total.add(batch.result())
            if done % 10 == 0 or done == len(sizes):
                took_s = time.monotonic() - started_s
                print(f"  {total.n_documents:,} of {count:,}, {took_s:.0f} s", file=sys.stderr, flush=True)
    return total


def by_atheris(count: int, *, seed: int) -> Tally:
    """Run atheris in a process of its own; none are counted where it is not installed."""
    if importlib.util.find_spec("atheris") is None:
        print("atheris is not installed: every document is drawn by hypothesis", file=sys.stderr)
        return Tally()
    with tempfile.TemporaryDirectory() as folder:
        report, corpus = Path(folder) / "report.json", Path(folder) / "corpus"
        command = [sys.executable, "-m", "fuzz.coverage_guided", str(report), str(BROKEN.absolute())]
        command += [str(corpus), f"-runs={count}", f"-seed={seed}", f"-max_len={MAX_INPUT_BYTES}"]
        command += ["-rss_limit_mb=2048", "-timeout=120"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if not report.exists():
            raise SystemExit(f"atheris did not run:\n{done.stderr[-2000:]}")
        tally = _read_report(report)
        if done.returncode:
            how = f"atheris ended with {done.returncode}: {done.stderr[-600:]}"
            tally.broken.append(Break("config", b"", how))
    return tally


def _read_report(path: Path) -> Tally:
    document = json.loads(path.read_text(encoding="utf-8"))
    tally = Tally(
        spent=Spent(document["longest_s"], document["longest_step"], document["largest_growth_bytes"]),
        broken=[Break(kind, bytes.fromhex(data), how) for kind, data, how in document["broken"]],
    )
    tally.outcomes.update({(kind, name): count for kind, name, count in document["outcomes"]})
    return tally


def replay(path: Path) -> int:
    """Check one kept document, and raise what breaks."""
    from fuzz.answers import answer

    kind: Kind = next((kind for kind in KINDS if path.name.startswith(kind)), "config")
    print(answer(kind, path.read_bytes(), spent=Spent()))
    return 0


def main() -> int:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=100_000, help="documents in all")
    parser.add_argument("--seed", type=int, default=0, help="of the first batch")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--replay", type=Path, help="check one kept document instead")
    given = parser.parse_args()
    if given.replay is not None:
        return replay(given.replay)
    started_s = time.monotonic()
    guided = by_atheris(round(given.count * GUIDED_SHARE), seed=given.seed + 1)
    print("atheris:", *guided.lines(), sep="\n")
    drawn = by_hypothesis(given.count - guided.n_documents, first_seed=given.seed, jobs=given.jobs)
    print("hypothesis:", *drawn.lines(), sep="\n")
    total = guided.n_documents + drawn.n_documents
    broken = [*guided.broken, *drawn.broken]
    for item in broken:
        print(f"kept: {item.save(BROKEN)}")
    print(f"{total:,} documents in {time.monotonic() - started_s:.0f} s, {len(broken)} broken promises")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
