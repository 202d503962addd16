"""Typed reads from one JSON object of a config.json, with every fault, default and unread key kept.

Owns: `Log` (what was wrong, assumed, noted, read), `Fields` (one JSON object), the caps on sizes.
Refuses: knowing what any field means to a model.

A read never raises: a bad value becomes a fault and a harmless stand-in, so that one pass finds every fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from planner_core.errors import Fault, InvalidSpec, shorten

MAX_LAYERS: Final = 1024
MAX_HEADS: Final = 2**16
MAX_HEAD_DIM: Final = 2**16
MAX_HIDDEN: Final = 2**20
MAX_INTERMEDIATE: Final = 2**24
MAX_VOCAB: Final = 2**26
MAX_EXPERTS: Final = 2**16
MAX_TOKENS: Final = 2**40
MAX_REPORTED: Final = 200


@dataclass(slots=True)
class Log:
    """What one pass over a config.json found."""

    faults: list[Fault] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    read: set[str] = field(default_factory=set)

    def fault(self, where: str, given: object, *, allowed: str, fix: str, shown: str | None = None) -> None:
        """Add a fault, once a field, up to a readable number; `shown` replaces the value given."""
        text = shorten(given) if shown is None else shown
        fault = Fault(where=where, given=text, allowed=allowed, fix=fix)
        if len(self.faults) < MAX_REPORTED and not self.has_fault(where):
            self.faults.append(fault)

    def has_fault(self, where: str) -> bool:
        """Return whether a field has a fault, so that what was put in its place says nothing."""
        return any(fault.where == where for fault in self.faults)

    def assume(self, text: str) -> None:
        """Add one applied default."""
        if text not in self.assumed:
            self.assumed.append(text)

    def note(self, text: str) -> None:
        """Add one remark on the reading chosen."""
        if text not in self.notes:
            self.notes.append(text)

    def raise_faults(self) -> None:
        """Raise all faults found so far, if any."""
        if self.faults:
            raise InvalidSpec(self.faults)


def is_whole(value: object) -> bool:
    """Return True for an int that is no bool."""
    return isinstance(value, int) and not isinstance(value, bool)


def _whole_range(low: int, high: int) -> str:
    return f"a whole number from {low:,} to {high:,}"


@dataclass(frozen=True, slots=True)
class Fields:
    """One JSON object and where it sits in the file."""

    source: Mapping[str, object]
    log: Log
    where: str = ""

    def path(self, name: str) -> str:
        """Return the dotted path of a field."""
        return f"{self.where}.{name}" if self.where else name

    def get(self, name: str) -> object:
        """Return the value as it is, None if missing, and mark it as read."""
        self.log.read.add(self.path(name))
        return self.source.get(name)

    def has(self, name: str) -> bool:
        """Return True where the field is present and not null; doesn't mark it as read."""
        return self.source.get(name) is not None

    def first(self, names: Sequence[str]) -> tuple[str, object] | None:
        """Return the first name whose value is present and not null, and note others that disagree."""
        found: tuple[str, object] | None = None
        for name in names:
            value = self.get(name)
            if value is None:
                continue
            if found is None:
                found = (name, value)
            elif is_whole(value) and is_whole(found[1]) and value != found[1]:
                self.log.note(
                    f"{self.path(found[0])} = {shorten(found[1])} and {self.path(name)} = {shorten(value)} "
                    f"disagree; {found[0]} is used"
                )
        return found

    def checked_count(self, name: str, value: object, *, low: int, high: int) -> int:
        """Return a whole number in [low, high]; a fault and `low` (at least 1) for anything else."""
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        self.log.fault(
            self.path(name),
            value,
            allowed=_whole_range(low, high),
            fix=f"give {name} as a whole number in that range",
        )
        return max(low, 1)

    def optional_count(self, *names: str, low: int = 1, high: int) -> int | None:
        """Return a whole number, or None where no name has one."""
        found = self.first(names)
        if found is None:
            return None
        return self.checked_count(found[0], found[1], low=low, high=high)

    def count(self, *names: str, default: object = None, low: int = 1, high: int) -> int:
        """Return a whole number; the class default (kept under `assumed`) or a fault where it is missing."""
        value = self.optional_count(*names, low=low, high=high)
        if value is not None:
            return value
        nulls = [name for name in names if name in self.source]
        if isinstance(default, int) and not isinstance(default, bool) and not nulls:
            self.log.assume(f"{self.path(names[0])} = {default} (class default)")
            return default
        name = nulls[0] if nulls else names[0]
        self.log.fault(
            self.path(name),
            None,
            shown="null" if nulls else "nothing",
            allowed=_whole_range(low, high),
            fix=f"add {name}" if not nulls else f"give {name} a value",
        )
        return max(low, 1)

    def optional_flag(self, name: str) -> bool | None:
        """Return true or false, or None where the field is missing or null."""
        value = self.get(name)
        if value is None or isinstance(value, bool):
            return value
        self.log.fault(self.path(name), value, allowed="true or false", fix=f"give {name} as a boolean")
        return None

    def flag(self, name: str, *, default: bool) -> bool:
        """Return true or false; the class default, kept under `assumed`, where it is missing."""
        value = self.optional_flag(name)
        if value is not None:
            return value
        self.log.assume(f"{self.path(name)} = {str(default).lower()} (class default)")
        return default

    def text(self, name: str) -> str | None:
        """Return a text, or None where the field is missing or null."""
        value = self.get(name)
        if value is None or isinstance(value, str):
            return value
        self.log.fault(self.path(name), value, allowed="a text", fix=f"give {name} as a text")
        return None

    def number(self, name: str, value: object, *, low: float, high: float) -> float:
        """Return a real number in [low, high]; a fault and `low` for anything else."""
        if isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high:
            return float(value)
        self.log.fault(
            self.path(name),
            value,
            allowed=f"a number from {low:g} to {high:g}",
            fix=f"give {name} as a number in that range",
        )
        return low

    def window(self, name: str, *, default: int | None = None) -> int | None:
        """Return a window in tokens; None for -1, 0 and null, which mean no window."""
        if name not in self.source:
            if default is not None:
                self.log.assume(f"{self.path(name)} = {default} (class default)")
            return default
        value = self.get(name)
        if value is None or (is_whole(value) and value in (-1, 0)):
            return None
        return self.checked_count(name, value, low=1, high=MAX_TOKENS)

    def items(self, name: str, *, at_most: int) -> list[object] | None:
        """Return a list of at most `at_most` values, or None where the field is missing or null."""
        value = self.get(name)
        if value is None:
            return None
        if isinstance(value, list) and len(value) <= at_most:
            return value
        self.log.fault(
            self.path(name),
            value,
            shown=f"a list of {len(value):,} values" if isinstance(value, list) else None,
            allowed=f"a list of at most {at_most:,} values",
            fix=f"give {name} as a list, one value a layer at most",
        )
        return None

    def per_layer(self, name: str, *, n_layers: int, spare: object = 0) -> list[object] | None:
        """Return a list with one value a layer, or None where the field is missing, null or faulty.

        A list may go on for `spare` further layers (multi-token prediction), which are cut off.
        """
        values = self.items(name, at_most=MAX_LAYERS)
        if values is not None and isinstance(spare, int) and len(values) == n_layers + spare:
            return values[:n_layers]
        if values is not None and len(values) != n_layers:
            self.log.fault(
                self.path(name),
                None,
                shown=f"a list of {len(values):,} values",
                allowed=f"one value a layer: {n_layers:,}",
                fix=f"match {name} to the number of layers",
            )
            return None
        return values

    def layer_indices(self, name: str, *, n_layers: int) -> frozenset[int] | None:
        """Return a list of layer numbers as a set, or None where the field is missing, null or faulty."""
        values = self.items(name, at_most=MAX_LAYERS)
        if values is None:
            return None
        return frozenset(
            self.checked_count(f"{name}[{position}]", value, low=0, high=n_layers - 1)
            for position, value in enumerate(values)
        )

    def child(self, name: str) -> Fields | None:
        """Return a nested object, or None where the field is missing or null; a fault for another type."""
        value = self.get(name)
        if value is None:
            return None
        if isinstance(value, Mapping):
            return Fields(value, self.log, self.path(name))
        self.log.fault(self.path(name), value, allowed="an object", fix=f"give {name} as an object")
        return None

    def unread(self) -> Iterator[str]:
        """Yield the dotted path of each field that nothing has read."""
        for name in self.source:
            path = self.path(name)
            if path not in self.log.read:
                yield path
