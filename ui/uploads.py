"""Uploaded files to one run-spec document that stands on its own.

Owns: which uploads make a run-spec together, and putting each where the run-spec names it.
Refuses: paths: only the last part of one is compared, and only with the names of the uploads.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from planner_core.errors import Fault, InvalidSpec, shorten
from planner_core.file_kinds import Kind, kind_of
from planner_core.strict_json import MAX_BYTES, load_json, require_object


@dataclass(frozen=True)
class Upload:
    """One file that was read: its name, its kind, its content."""

    name: str
    kind: Kind
    document: dict[str, Any]


def read_upload(name: str, data: str | bytes) -> Upload:
    """Return one uploaded or pasted file.

    Raises
    ------
    InvalidSpec
        If it is too large, not strict JSON, or none of the three kinds.
    """
    shown = shorten(base_name(name), limit=60).strip("'\"") or "upload"
    document = require_object(
        _finite(load_json(data, where=shown, max_bytes=MAX_BYTES, allow_non_finite=True)), where=shown
    )
    kind = kind_of(document)
    if kind is not None:
        return Upload(name, kind, document)
    raise InvalidSpec(
        [
            Fault(
                where=shown,
                given="an object with the keys " + shorten(sorted(document)[:6]),
                allowed="a run-spec, a hardware file or a Hugging Face config.json",
                fix="upload one of these",
            )
        ]
    )


def _finite(value: object) -> object:
    """Return the value with NaN and Infinity as null: some `config.json` files have them in keys not read."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def base_name(name: str) -> str:
    """Return the last part of a path of either kind of system."""
    return PurePosixPath(name.replace("\\", "/")).name


def merged(current: Mapping[str, Any], files: Sequence[Upload]) -> dict[str, Any]:
    """Return the run-spec that the uploads make: one of them, or the current one, with the rest put in.

    A machine or a model goes where the run-spec names its file; where it names none of the uploads, the one
    upload of that kind takes the place.

    Raises
    ------
    InvalidSpec
        If there are two files of a kind and the run-spec says of neither that it is meant.
    """
    specs = [file for file in files if file.kind == "run-spec"]
    if len(specs) > 1:
        raise _several("run-spec", specs)
    document = dict(specs[0].document if specs else current)
    kinds: tuple[tuple[Kind, str, str], ...] = (
        ("model", "hf_config", "model"),
        ("machine", "hardware", "hardware_name"),
    )
    for kind, field, label in kinds:
        offered = [file for file in files if file.kind == kind]
        if not offered:
            continue
        named = document.get(field)
        meant = [
            file for file in offered if isinstance(named, str) and base_name(named) == base_name(file.name)
        ]
        if not meant and len(offered) > 1:
            raise _several(kind, offered)
        chosen = (meant or offered)[0]
        document[field] = chosen.document
        if not specs and not meant:
            document[label] = _label(chosen)
    return document


def _label(file: Upload) -> str:
    """Return what to call a machine or a model that came without a run-spec."""
    for key in ("name", "_name_or_path"):
        value = file.document.get(key)
        if isinstance(value, str) and value.strip():
            return value.strip()
    stem = PurePosixPath(base_name(file.name)).stem
    kinds = file.document.get("architectures")
    if stem in {"config", "pasted", ""} and isinstance(kinds, list) and kinds and isinstance(kinds[0], str):
        return kinds[0]
    return stem or "uploaded"


def _several(kind: str, files: Sequence[Upload]) -> InvalidSpec:
    names = ", ".join(base_name(file.name) for file in files)
    return InvalidSpec(
        [
            Fault(
                where="uploads",
                given=f"{len(files)} files of the kind {kind}: {shorten(names)}",
                allowed=f"one {kind}, or a run-spec that names one of them",
                fix="upload one of them",
            )
        ]
    )
