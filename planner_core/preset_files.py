"""Where the presets that come with the planner lie.

Owns: `presets_dir`, which serves a checkout and an installed wheel alike.
Refuses: reading a preset (see `hardware_file` and `run_spec`).
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def presets_dir() -> Path:
    """Return the directory that has `hardware/`, `models/` and `run_specs/`.

    A wheel carries it inside the package; in a checkout it lies beside the package.

    Returns
    -------
    Path
        Absolute.
    """
    inside = _PACKAGE / "_shipped" / "presets"
    return inside if inside.is_dir() else _PACKAGE.parent / "presets"


def preset_names(kind: str) -> tuple[str, ...]:
    """Return the names of the presets of one kind, sorted.

    Parameters
    ----------
    kind : {"hardware", "models", "run_specs"}
        Which directory.

    Returns
    -------
    tuple of str
        File names without ".json".
    """
    return tuple(sorted(path.stem for path in (presets_dir() / kind).glob("*.json")))
