"""The run-spec that is loaded, and the presets it may name.

Owns: documents to `RunSpec` (cached by value), what a name in a document may refer to, the default document.
Refuses: files of the server: a name is looked up among the presets only. Uploads are put into the document
itself when they arrive (see `uploads`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any

from planner_core.errors import Fault, InvalidSpec, PlannerError, UnsupportedModel
from planner_core.hardware_file import list_presets, preset_hardware_json
from planner_core.preset_files import preset_names, presets_dir
from planner_core.run_spec import RunSpec, parse_run_spec, uploads_resolver
from planner_core.strict_json import dumps, read_json_file, require_object
from ui import text

DEFAULT_MODEL = "granite-4.1-8b"
DEFAULT_MACHINE = "trn2"


@lru_cache(maxsize=1)
def model_index() -> Mapping[str, Mapping[str, Any]]:
    """Return what is known of each model preset by its name: title, published parameters and their source."""
    where = "presets/models/index.json"
    index = require_object(read_json_file(presets_dir() / "models" / "index.json", where=where), where=where)
    return {name.removesuffix(".json"): entry for name, entry in index.items() if isinstance(entry, dict)}


def model_presets() -> tuple[str, ...]:
    """Return the names of the model presets, in the order of the index."""
    present = set(preset_names("models"))
    return tuple(name for name in model_index() if name in present)


def machine_presets() -> tuple[str, ...]:
    """Return the names of the machine presets, those of the examples first."""
    first = ("trn2", "sip128")
    return tuple(sorted(list_presets(), key=lambda name: (first.index(name) if name in first else 2, name)))


@lru_cache(maxsize=64)
def machine_title(name: str) -> str:
    """Return what to call a machine preset."""
    document = preset_hardware_json(name)
    return str(document.get("title") or name) + (" (illustrative)" if document.get("illustrative") else "")


def default_spec() -> dict[str, Any]:
    """Return the run-spec that a first visit opens."""
    return {
        "model": str(model_index()[DEFAULT_MODEL]["title"]),
        "hardware_name": DEFAULT_MACHINE,
        "hf_config": DEFAULT_MODEL,
        "hardware": DEFAULT_MACHINE,
        "serving": "colocated",
        "decode_itl_ceiling_ms": 50,
        "prefill_itps_floor": 30000,
    }


def canonical(document: object) -> str:
    """Return one text for equal documents: the key of every cache."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)


def pretty(document: object) -> str:
    """Return a document as the JSON that is shown and downloaded."""
    return dumps(document, indent=2)


def run_spec(document: Mapping[str, Any]) -> RunSpec:
    """Return the run-spec of a document; equal documents are parsed once.

    Raises
    ------
    PlannerError
        `InvalidSpec` with every fault, or `UnsupportedModel`.
    """
    return _parsed(canonical(document))


@lru_cache(maxsize=128)
def _parsed(document: str) -> RunSpec:
    """Parse a document; a machine that it gives a name of its own is shown under that name everywhere."""
    spec = parse_run_spec(json.loads(document), resolve=uploads_resolver({}))
    if spec.hardware_name in (spec.machine.name, *machine_presets()):
        return spec
    return replace(spec, machine=replace(spec.machine, title=spec.hardware_name))


def targets_line(spec: RunSpec) -> str:
    """Return the targets in one line."""
    if spec.objective is not None:
        return {"lowest_ttft": "lowest TTFT", "highest_throughput": "highest throughput"}[spec.objective]
    parts = []
    if spec.decode_itl_ceiling_s is not None:
        parts.append(f"ITL at most {spec.decode_itl_ceiling_s * 1e3:.6g}{text.NBSP}ms")
    if spec.prefill_tokens_per_s_floor is not None:
        parts.append(f"prefill at least {spec.prefill_tokens_per_s_floor:,.6g}{text.NBSP}tok/s")
    return ", ".join(parts)


def preset_named(value: object, *, known: tuple[str, ...]) -> str | None:
    """Return the preset that a field of a document names, in any spelling that the core takes."""
    if not isinstance(value, str):
        return None
    stem = PurePosixPath(value).stem if value.endswith(".json") else value
    return stem if stem in known else None


def faults_of(error: PlannerError) -> tuple[Fault, ...]:
    """Return the faults that an error holds, whichever kind it is."""
    if isinstance(error, InvalidSpec):
        return error.faults
    if isinstance(error, UnsupportedModel):
        return (
            Fault(
                where=f"hf_config.{error.field}",
                given=f"an unsupported model: {error.message}",
                allowed="a decoder-only model of attention and FFN layers",
                fix="pick another model",
            ),
        )
    return (Fault(where="run-spec", given=str(error), allowed="a run-spec", fix="correct it"),)
