"""The presets that come with the planner, by kind.

Owns: the folder of presets and the names in it.
Refuses: reading a preset (see `hardware_file` and `run_spec`), and where shipped files lie (see
`shipped_files`).
"""

from __future__ import annotations

from pathlib import Path

from planner_core.shipped_files import shipped_root


def presets_dir() -> Path:
    """Return the folder that has `hardware/`, `models/` and `run_specs/`.

    Returns
    -------
    Path
        Absolute.
    """
    return shipped_root() / "presets"


def preset_names(kind: str) -> tuple[str, ...]:
    """Return the names of the presets of one kind, sorted.

    Parameters
    ----------
    kind : {"hardware", "models", "run_specs"}
        Which folder.

    Returns
    -------
    tuple of str
        File names without ".json"; an index of names is left out.
    """
    paths = (presets_dir() / kind).glob("*.json")
    return tuple(sorted(path.stem for path in paths if path.stem != "index"))
