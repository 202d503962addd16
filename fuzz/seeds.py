"""What is mutated: the presets, and the real configs in `../shared/data` where they are there.

A run-spec seed holds its model and its machine inline, so that a mutation may reach into them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from planner_core.preset_files import presets_dir

Kind = Literal["run-spec", "hardware", "config"]
KINDS: Final[tuple[Kind, ...]] = ("run-spec", "hardware", "config")
REAL_CONFIGS: Final = Path(__file__).resolve().parents[2] / "shared" / "data" / "hf_configs"

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Seed:
    """One valid document and its name."""

    kind: Kind
    name: str
    document: Document


def _read(path: Path) -> Document:
    document: Document = json.loads(path.read_text(encoding="utf-8"))
    return document


def _inline(path: Path) -> Document:
    spec = _read(path)
    for key in ("hf_config", "hardware"):
        spec[key] = _read(path.parent / spec[key])
    return spec


@cache
def seeds(kind: Kind) -> tuple[Seed, ...]:
    """Return every seed of a kind, in the order of their names."""
    presets = presets_dir()
    if kind == "run-spec":
        return tuple(
            Seed(kind, path.stem, _inline(path)) for path in sorted((presets / "run_specs").glob("*.json"))
        )
    if kind == "hardware":
        return tuple(
            Seed(kind, path.stem, _read(path)) for path in sorted((presets / "hardware").glob("*.json"))
        )
    models = [path for path in sorted((presets / "models").glob("*.json")) if path.name != "index.json"]
    real = sorted(REAL_CONFIGS.glob("*.json")) if REAL_CONFIGS.is_dir() else []
    return tuple(Seed(kind, path.stem, _read(path)) for path in (*models, *real))
