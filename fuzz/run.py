"""Batches of mutated documents drawn by hypothesis, their counts, and what broke.

A document that breaks the promise is kept as a file that `python -m fuzz --replay FILE` takes.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from fuzz.answers import Outcome, Spent, answer
from fuzz.mutations import mutated
from fuzz.seeds import KINDS, Kind

BATCH: Final = 500
MAX_BROKEN: Final = 50


@dataclass(frozen=True, slots=True)
class Break:
    """One document that broke the promise, and how."""

    kind: Kind
    data: bytes
    how: str

    def save(self, folder: Path) -> Path:
        """Keep the document; its name says its kind."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.kind}.{hashlib.sha256(self.data).hexdigest()[:12]}.json"
        path.write_bytes(self.data)
        return path


@dataclass(slots=True)
class Tally:
    """What a run has seen."""

    outcomes: Counter[tuple[Kind, Outcome]] = field(default_factory=Counter)
    spent: Spent = field(default_factory=Spent)
    broken: list[Break] = field(default_factory=list)

    @property
    def n_documents(self) -> int:
        """Documents in all."""
        return self.outcomes.total() + len(self.broken)

    def take(self, kind: Kind, data: bytes, *, limit_s: float, thorough: bool = True) -> None:
        """Check one document and note how it went."""
        try:
            outcome = answer(kind, data, spent=self.spent, limit_s=limit_s, thorough=thorough)
            self.outcomes[kind, outcome] += 1
        except Exception as error:
            self.broken.append(Break(kind, data, f"{type(error).__name__}: {error}"[:400]))

    def add(self, other: Tally) -> None:
        """Take the counts of another run."""
        self.outcomes += other.outcomes
        self.broken += other.broken[: max(0, MAX_BROKEN - len(self.broken))]
        if other.spent.longest_s > self.spent.longest_s:
            self.spent.longest_s, self.spent.longest_step = other.spent.longest_s, other.spent.longest_step
        self.spent.largest_growth_bytes = max(
            self.spent.largest_growth_bytes, other.spent.largest_growth_bytes
        )

    def lines(self) -> list[str]:
        """Return the counts as text."""
        lines = [f"{self.n_documents:,} mutated documents, {len(self.broken)} broken promises"]
        for kind in KINDS:
            counts = {name: self.outcomes[kind, name] for name in ("answered", "refused", "unsupported")}
            lines.append(f"  {kind}: " + ", ".join(f"{count:,} {name}" for name, count in counts.items()))
        lines.append(
            f"  longest step: {self.spent.longest_s:.2f} s ({self.spent.longest_step}); "
            f"most memory for one: {self.spent.largest_growth_bytes / 1e6:.0f} MB"
        )
        return lines + [f"  BROKEN {item.kind}: {item.how}" for item in self.broken]


def run_batch(number: int, count: int, *, limit_s: float, thorough: bool = True) -> Tally:
    """Check `count` documents drawn by hypothesis with the seed `number`.

    The draws are one `Random` a document; what breaks is noted, not raised, so that a batch goes on.
    """
    tally = Tally()
    drawn = Random(number)

    @seed(number)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(kind=st.sampled_from(KINDS), random=st.randoms(use_true_random=False))
    def draw(kind: Kind, random: Any) -> None:
        tally.take(kind, mutated(kind, random), limit_s=limit_s, thorough=thorough)

    draw()
    while tally.n_documents < count:  # hypothesis stops early where it believes it has seen everything
        kind = drawn.choice(KINDS)
        tally.take(kind, mutated(kind, drawn), limit_s=limit_s, thorough=thorough)
    return tally
