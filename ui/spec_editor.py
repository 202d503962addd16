"""Editing the run-spec: a document in force, and a draft while it has faults.

Owns: what the form and the JSON text edit, so that they are always in step, and which faults a field has.
Refuses: drawing, and the rules of a run-spec (see `planner_core.run_spec`).

A change that makes a valid document is in force at once. One that does not is kept as the draft, with its
faults; the last valid document stays in force until the draft is mended or discarded.
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from planner_core.errors import Fault, InvalidSpec, PlannerError
from planner_core.strict_json import load_json, require_object
from ui import loaded, state

EDITED = ", edited"  # of a machine whose constants are no longer those that its name stands for
_INTEGER = re.compile(r"[+-]?\d{1,100}\Z")
_REAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?\Z")
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def text_of(document: Mapping[str, Any]) -> str:
    """Return the JSON text of a document."""
    return loaded.pretty(document)


def shown_text() -> str:
    """Return the JSON text on the page: the draft, or the document in force."""
    now = state.current()
    return now.draft if now.draft is not None else text_of(now.spec)


def shown_document() -> dict[str, Any] | None:
    """Return the document that the form shows; None where the draft is not readable JSON."""
    now = state.current()
    if now.draft is None:
        return dict(now.spec)
    try:
        return require_object(load_json(now.draft, where="run-spec"), where="run-spec")
    except InvalidSpec:
        return None


def faults() -> tuple[Fault, ...]:
    """Return every fault of the draft; none where the document shown is in force."""
    now = state.current()
    if now.draft is None:
        return ()
    try:
        loaded.run_spec(require_object(load_json(now.draft, where="run-spec"), where="run-spec"))
    except PlannerError as error:
        return loaded.faults_of(error)
    return ()


class PlacedFaults:
    """Every fault of the draft, and which of them the form has shown beside a field.

    What no field took is shown as a list: which fields there are depends on the document.
    """

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        self.faults = faults
        self._taken: set[Fault] = set()

    def at(self, path: str) -> tuple[Fault, ...]:
        """Return the faults of a field or of anything inside it."""
        return tuple(
            fault
            for fault in self.faults
            if path in fault.where.split(", ") or fault.where.startswith((path + ".", path + "["))
        )

    def take(self, path: str, *, exact: bool = False) -> tuple[Fault, ...]:
        """Return the faults to show beside a field; `exact` leaves those of anything inside it."""
        mine = tuple(fault for fault in self.at(path) if not exact or path == fault.where)
        self._taken.update(mine)
        return mine

    def not_taken(self) -> tuple[Fault, ...]:
        """Return the faults that no field has shown."""
        return tuple(fault for fault in self.faults if fault not in self._taken)


def put_text(draft: str) -> None:
    """Take what was typed or pasted as JSON."""
    try:
        document = require_object(load_json(draft, where="run-spec"), where="run-spec")
    except InvalidSpec:
        state.set_at("draft", draft)
        return
    if not _in_force(document):
        state.set_at("draft", draft)


def put_document(document: Mapping[str, Any]) -> bool:
    """Take a whole document; return True where it is valid and so in force."""
    if _in_force(document):
        return True
    state.set_at("draft", text_of(document))
    return False


def _in_force(document: Mapping[str, Any]) -> bool:
    try:
        loaded.run_spec(document)
    except PlannerError:
        return False
    state.update(spec=dict(document), draft=None)
    return True


def discard() -> None:
    """Drop the draft: the document in force is shown again."""
    state.set_at("draft", None)


def put_fields(changes: Mapping[str, Any]) -> None:
    """Change fields of the document shown, by dotted path; None removes one."""
    document = shown_document()
    if document is None:
        return
    changed = copy.deepcopy(document)
    for path, value in changes.items():
        _put(changed, path, value)
    put_document(changed)


def put_constant(path: str, value: Any) -> None:
    """Change a constant of the machine, which is then no longer what its source and its name say."""
    document = shown_document()
    if document is None:
        return
    changed = copy.deepcopy(document)
    _put(changed, f"hardware.{path}", value)
    sources = changed["hardware"].get("sources")
    if isinstance(sources, dict):
        if value is None:
            sources.pop(path, None)
        else:
            today = datetime.now(UTC).date().isoformat()
            sources[path] = {"kind": "assumed", "cite": "Set by hand in the app", "date": today}
    if changed.get("hardware_name") in (changed["hardware"].get("name"), *loaded.machine_presets()):
        changed["hardware_name"] = f"{changed['hardware_name']}{EDITED}"
    put_document(changed)


def value_at(document: Mapping[str, Any], path: str) -> Any:
    """Return the value at a path ("hardware.tiers[0].n_pes"); None where there is none."""
    value: Any = document
    for step in _steps(path):
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _steps(path: str) -> list[str | int]:
    return [name or int(index) for name, index in _STEP.findall(path)]


def _put(document: dict[str, Any], path: str, value: Any) -> None:
    *parents, last = _steps(path)
    place: Any = document
    for step in parents:
        if isinstance(step, str):
            place = place.setdefault(step, {})
        else:
            place = place[step]
    if value is None and isinstance(last, str):
        place.pop(last, None)
    else:
        place[last] = value


def plain_numbers(value: Any) -> Any:
    """Return a JSON value with whole floats as integers, which read better: 158e12, not 158000000000000.0."""
    if isinstance(value, dict):
        return {key: plain_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain_numbers(item) for item in value]
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return int(value) if whole else value


def number_or_text(typed: str) -> int | float | str | None:
    """Return what was typed as an exact number; as the text itself where it is none, which is then a fault.

    An integer stays one of any size. A decimal past 2^53 that a float does not hold exactly stays text: it is
    refused rather than rounded in silence.

    Examples
    --------
    >>> number_or_text("9007199254740993"), number_or_text("9007199254740993.0")
    (9007199254740993, '9007199254740993.0')
    """
    stripped = typed.strip().replace("_", "").replace("\u00a0", "")
    if not stripped:
        return None
    if _INTEGER.match(stripped):
        return int(stripped)
    if not _REAL.match(stripped):
        return typed
    number = float(stripped)
    try:
        exact = Decimal(stripped) == Decimal(number) if math.isfinite(number) else False
    except (InvalidOperation, OverflowError):
        exact = False
    if not abs(number) < 2**53:
        return number if exact else typed
    return int(number) if number.is_integer() else number


def number_text(value: object) -> str:
    """Return the text of a value in an input: short, and exact.

    Examples
    --------
    >>> number_text(158000000000000), number_text(25769803776), number_text(None)
    ('1.58e14', '25769803776', '')
    """
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    plain = str(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        plain = str(int(value))
    if abs(value) >= 2**53 or 1e-3 <= abs(value) < 1e6 or value == 0:
        return plain
    return min(plain, _short_exponent(float(value)), key=len)


def _short_exponent(value: float) -> str:
    """Return the shortest mantissa and exponent that read back as the same float."""
    for digits in range(17):
        text = f"{value:.{digits}e}"
        if float(text) == value:
            mantissa, _, exponent = text.partition("e")
            return f"{mantissa}e{int(exponent)}"
    return repr(value)
