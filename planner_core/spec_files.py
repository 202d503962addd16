"""Where the files that a run-spec names may come from.

Owns: the two resolvers, each (field, path) to parsed JSON: files beside the spec for the command line,
uploads and presets for the app, which never opens a path that a spec gives.
Refuses: what the JSON means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final

from planner_core.errors import Fault, InvalidSpec, shorten
from planner_core.preset_files import preset_names, presets_dir
from planner_core.strict_json import (
    MAX_BYTES,
    MAX_CONFIG_BYTES,
    clean_text,
    read_json_file,
    require_object,
)

PRESET_FOLDERS: Final = {"hf_config": "models", "hardware": "hardware"}

Resolver = Callable[[str, str], Mapping[str, Any]]


def _preset_json(key: str, *, field_name: str) -> Mapping[str, Any] | None:
    """Return the preset that a path names in one of its known spellings; the path itself is never opened."""
    folder = PRESET_FOLDERS[field_name]
    for name in preset_names(folder):
        if key in (name, f"{name}.json", f"{folder}/{name}.json", f"../{folder}/{name}.json"):
            place = f"presets/{folder}/{name}.json"
            path = presets_dir() / folder / f"{name}.json"
            return require_object(read_json_file(path, where=place), where=place)
    return None


def file_resolver(spec_path: Path) -> Resolver:
    """Return a resolver for the command line: files relative to the spec, else a preset's bare name.

    Parameters
    ----------
    spec_path : Path
        The spec's own path.

    Returns
    -------
    callable
        (field, path) to parsed JSON.
    """
    folder = spec_path.parent

    def resolve(field_name: str, path: str) -> Mapping[str, Any]:
        if "/" not in path and not (folder / path[:255]).exists():
            preset = _preset_json(path, field_name=field_name)
            if preset is not None:
                return preset
        value = read_json_file(
            folder / path,
            where=f"{field_name} ({clean_text(path)[:80]})",
            allow_non_finite=True,
            max_bytes=MAX_CONFIG_BYTES if field_name == "hf_config" else MAX_BYTES,
        )
        return require_object(value, where=field_name)

    return resolve


def uploads_resolver(uploads: Mapping[str, Mapping[str, Any]]) -> Resolver:
    """Return a resolver for the app: uploads and presets by name, never a file of the server.

    Parameters
    ----------
    uploads : mapping of str to mapping
        Parsed JSON by the file name that it was uploaded under.

    Returns
    -------
    callable
        (field, path) to parsed JSON.
    """

    def resolve(field_name: str, path: str) -> Mapping[str, Any]:
        if path in uploads:
            return uploads[path]
        preset = _preset_json(path, field_name=field_name)
        if preset is not None:
            return preset
        leaves = ".." in PurePosixPath(path.replace("\\", "/")).parts or path.startswith(("/", "\\", "~"))
        known = [*uploads, *preset_names(PRESET_FOLDERS[field_name])]
        raise InvalidSpec(
            [
                Fault(
                    where=field_name,
                    given=shorten(path) + (", which leads outside the uploads" if leaves else ""),
                    allowed="an uploaded file or a preset: "
                    + ", ".join(clean_text(name)[:60] for name in known),
                    fix="upload the file too, or pick a preset",
                )
            ]
        )

    return resolve
