"""States of the app at the edges of what a link may hold, drawn from the state's own schema.

A run-spec in it is one that stands: a preset, or one of its extremes that `planner_core.run_spec` takes.
"""

from __future__ import annotations

import copy
import json
from functools import cache
from random import Random
from typing import Any, Final

from fuzz.mutations import TEXTS, extreme
from fuzz.seeds import Document, seeds
from planner_core.errors import PlannerError
from planner_core.run_spec import parse_run_spec
from planner_core.spec_files import uploads_resolver
from planner_core.strict_json import load_json
from ui.app_state import AppState

SPEC_FIELDS: Final = ("spec",)
# As a file's reader leaves them: it replaces what no page can hold.
_READ_TEXTS: Final = tuple(str(load_json(json.dumps(text), where="text")) for text in TEXTS)


@cache
def _schema() -> Document:
    return AppState.model_json_schema()


def _valid_spec(random: Random) -> Document:
    for _ in range(20):
        spec = copy.deepcopy(random.choice(seeds("run-spec")).document)
        if random.random() < 0.7:
            extreme("run-spec", spec, random)
        spec["model"] = random.choice((spec["model"], *_READ_TEXTS))[:400]
        try:
            parse_run_spec(spec, resolve=uploads_resolver({}))
        except PlannerError:
            continue
        return spec
    return copy.deepcopy(random.choice(seeds("run-spec")).document)


def _whole(schema: Document, random: Random) -> int:
    low, high = int(schema["minimum"]), int(schema["maximum"])
    usual = [value for value in (1, 2, 3, 8, 64, 8192, 131_072) if low <= value <= high]
    return random.choice((*usual, *usual, low, high, min(high, 2 ** random.randrange(41))))


def _drawn(schema: Document, random: Random, name: str = "") -> Any:
    if name in SPEC_FIELDS:
        return _valid_spec(random)
    if "$ref" in schema:
        return _drawn(_schema()["$defs"][schema["$ref"].rpartition("/")[2]], random)
    if "anyOf" in schema:
        return _drawn(random.choice(schema["anyOf"]), random)
    if "enum" in schema:
        return random.choice(schema["enum"])
    if "const" in schema:
        return schema["const"]
    kind = schema["type"]
    if kind == "object":
        kept = {
            key: part
            for key, part in schema["properties"].items()
            if key in schema.get("required", ()) or random.random() < 0.7
        }
        return {key: _drawn(part, random, key) for key, part in kept.items()}
    if kind == "array":
        count = random.choice((0, 1, 2, min(4, schema["maxItems"])))
        return [_drawn(schema["items"], random) for _ in range(count)]
    if kind == "integer":
        return _whole(schema, random)
    if kind == "number":
        return random.choice((schema["minimum"], schema["maximum"], 30.0))
    if kind == "boolean":
        return random.random() < 0.3
    if kind == "string":
        return random.choice(("", "{", "[1", *_READ_TEXTS))[: schema.get("maxLength", 100)]
    return None


def edge_state(random: Random) -> AppState:
    """Return one valid state, most of whose fields are at an edge."""
    return AppState.model_validate(_drawn(_schema(), random))
