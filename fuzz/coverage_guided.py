"""The same promise under atheris: bytes that reach new lines of the planner are kept and mutated further.

Run as a process of its own, since libFuzzer ends the process that it runs in: `python -m fuzz` starts it. The
first byte of an input chooses the kind of file.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any, Final

import atheris

with atheris.instrument_imports(include=["planner_core"], enable_loader_override=False):
    from fuzz.answers import LIMIT_S
    from fuzz.mutations import restructured
    from fuzz.run import Tally
    from fuzz.seeds import KINDS, Kind, seeds

# Instrumented code is slower by about this much.
SLOWER: Final = 4.0
REPORT_EVERY: Final = 100
_LETTERS: Final[dict[Kind, bytes]] = {"run-spec": b"R", "hardware": b"H", "config": b"C"}


def write_corpus(folder: Path) -> None:
    """Write every seed as a file for libFuzzer to start from."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        for item in seeds(kind):
            text = json.dumps(item.document)
            (folder / f"{kind}-{item.name}").write_bytes(_LETTERS[kind] + text.encode("utf-8"))


def kind_of(data: bytes) -> Kind:
    """Return the kind of file that an input stands for."""
    for kind, letter in _LETTERS.items():
        if data.startswith(letter):
            return kind
    return KINDS[data[0] % len(KINDS)] if data else "config"


def mutate(data: bytes, max_size: int, number: int) -> bytes:
    """Change an input: as a document where it is one, else (and often anyway) as bytes."""
    drawn = random.Random(number)
    if data and drawn.random() < 0.5:
        changed = restructured(kind_of(data), data[1:].decode("utf-8", "replace"), drawn)
        if changed is not None and len(changed) < max_size:
            return data[:1] + changed
    mutated: bytes = atheris.Mutate(data, max_size)
    return mutated


class Target:
    """What libFuzzer calls with each input."""

    def __init__(self, report: Path, broken: Path) -> None:
        self.report = report
        self.broken = broken
        self.tally = Tally()
        self.calls = 0

    def __call__(self, data: bytes) -> None:
        if data:
            self.tally.take(kind_of(data), data[1:], limit_s=LIMIT_S * SLOWER)
        self.calls += 1
        if self.calls % REPORT_EVERY == 0 or self.tally.broken:
            self.write()

    def write(self) -> None:
        """Write the counts, since the process ends without a word; keep what broke."""
        for item in self.tally.broken:
            item.save(self.broken)
        document: dict[str, Any] = {
            "outcomes": [[kind, name, count] for (kind, name), count in self.tally.outcomes.items()],
            "longest_s": self.tally.spent.longest_s,
            "longest_step": self.tally.spent.longest_step,
            "largest_growth_bytes": self.tally.spent.largest_growth_bytes,
            "broken": [[item.kind, item.data.hex(), item.how] for item in self.tally.broken],
        }
        self.report.write_text(json.dumps(document), encoding="utf-8")


def main() -> None:
    """Fuzz: REPORT BROKEN CORPUS [libFuzzer's own arguments]."""
    corpus = Path(sys.argv[3])
    write_corpus(corpus)
    target = Target(Path(sys.argv[1]), Path(sys.argv[2]))
    atheris.Setup([sys.argv[0], *sys.argv[4:], str(corpus)], target, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
