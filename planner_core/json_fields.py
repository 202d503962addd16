"""Field types for JSON from outside, and pydantic's errors turned into faults.

Owns: numbers, counts, texts and choices with a range and a unit; the words for an unknown or a missing key.
Refuses: any one file's layout (see `hardware_file` and `run_spec`).

A rule is written into a field's type, `Annotated[float, Number(unit="B/s", low=1, high=1e18)]`. It makes the
check and the message, so the two cannot drift apart.
"""

from __future__ import annotations

import difflib
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Final, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, ValidationError
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from planner_core.errors import Fault, shorten
from planner_core.strict_json import MAX_FAULTS, clean_text

MAX_TEXT: Final = 400


class StrictFields(BaseModel):
    """Base of every JSON layout: unknown keys and values of another type are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, protected_namespaces=())


Layout = TypeVar("Layout", bound=StrictFields)


def refused(*, allowed: str, fix: str) -> PydanticCustomError:
    """Return the error that a rule raises; its words end up in the fault."""
    return PydanticCustomError("refused", "{allowed}", {"allowed": allowed, "fix": fix})


def _closest(given: object, known: Iterable[str]) -> str | None:
    match = difflib.get_close_matches(str(given)[:80], tuple(known), n=1)
    return f"did you mean {match[0]!r}?" if match else None


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What is allowed in a field; a subclass says it in words (`allowed`) and checks it (`check`).

    Parameters
    ----------
    null : str, optional
        Where given, null is allowed and means this.
    """

    null: str | None = None

    @property
    @abstractmethod
    def words(self) -> str:
        """What is allowed beside null, in words."""

    @abstractmethod
    def check(self, value: Any) -> object:
        """Return the value to keep, or raise."""

    @property
    def allowed(self) -> str:
        """What is allowed, in words."""
        return self.words if self.null is None else f"{self.words}, or null for {self.null}"

    def _check_or_null(self, value: object) -> object:
        return None if value is None and self.null is not None else self.check(value)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Run the check before pydantic's own."""
        return core_schema.no_info_before_validator_function(self._check_or_null, handler(source))


@dataclass(frozen=True, kw_only=True)
class Number(Rule):
    """A real number from `low` to `high`, or above `low` with `above`, in `unit` ("" for a ratio)."""

    unit: str
    low: float
    high: float
    above: bool = False

    @property
    def words(self) -> str:
        """What is allowed, in words."""
        return f"a number {self._span}{f' {self.unit}' if self.unit else ''}"

    @property
    def _span(self) -> str:
        if self.above:
            return f"above {self.low:g} and up to {self.high:g}"
        return f"from {self.low:g} to {self.high:g}"

    def check(self, value: Any) -> float:
        """Return the number as a float; bool, text and what a float cannot hold exactly are refused."""
        if not _is_number(value):
            raise refused(allowed=self.allowed, fix="write a plain number, without quotes or unit")
        inside = self.low <= value <= self.high and not (self.above and value == self.low)
        if not inside:  # NaN too
            raise refused(allowed=self.allowed, fix=f"give a value {self._span}")
        real = float(value)
        if isinstance(value, int) and int(real) != value:
            raise refused(
                allowed=f"{self.allowed}; past 2**53 only what a 64-bit float holds exactly",
                fix="round it to fewer digits",
            )
        return real


@dataclass(frozen=True, kw_only=True)
class Count(Rule):
    """A whole number of `unit` from `low` to `high`: 8 and 8.0, not true and not "8"."""

    unit: str
    low: int
    high: int

    @property
    def words(self) -> str:
        """What is allowed, in words."""
        return f"a whole number of {self.unit} from {self.low:,} to {self.high:,}"

    def check(self, value: Any) -> int:
        """Return the count as an int."""
        if not _is_number(value) or (isinstance(value, float) and not value.is_integer()):
            raise refused(allowed=self.allowed, fix="write a whole number, without quotes")
        whole = int(value)
        if not self.low <= whole <= self.high:
            raise refused(allowed=self.allowed, fix=f"give a value from {self.low:,} to {self.high:,}")
        return whole


@dataclass(frozen=True, kw_only=True)
class Flag(Rule):
    """Either true or false."""

    @property
    def words(self) -> str:
        """What is allowed, in words."""
        return "true or false"

    def check(self, value: Any) -> bool:
        """Return the value."""
        if not isinstance(value, bool):
            raise refused(allowed=self.allowed, fix="write true or false, without quotes")
        return value


@dataclass(frozen=True, kw_only=True)
class Text(Rule):
    """A short text; it is kept as one printable line. `what` says what it is."""

    what: str
    empty: bool = False

    @property
    def words(self) -> str:
        """What is allowed, in words."""
        return f"{self.what}, a text of {0 if self.empty else 1} to {MAX_TEXT} characters"

    def check(self, value: Any) -> str:
        """Return the text on one line."""
        if not isinstance(value, str) or len(value) > MAX_TEXT or not (self.empty or value.strip()):
            raise refused(allowed=self.allowed, fix="write a short text in quotes")
        return clean_text(value)


@dataclass(frozen=True, kw_only=True)
class Choice(Rule):
    """A text that is one of `choices`."""

    choices: tuple[str, ...]

    @property
    def words(self) -> str:
        """What is allowed, in words."""
        return "one of " + ", ".join(self.choices)

    def check(self, value: Any) -> str:
        """Return the text."""
        if not isinstance(value, str) or value not in self.choices:
            fix = _closest(value, self.choices) or f"write {self.choices[0]!r}"
            raise refused(allowed=self.allowed, fix=fix)
        return value


@dataclass(frozen=True, kw_only=True)
class Items(Rule):
    """An array, or an object with `keyed`, of `low` to `high` items; checked before any item is read."""

    what: str
    low: int
    high: int
    keyed: bool = False

    @property
    def words(self) -> str:
        """What is allowed, in words."""
        return f"{'an object' if self.keyed else 'an array'} of {self.low} to {self.high} {self.what}"

    def check(self, value: Any) -> object:
        """Return the value, an array as a tuple."""
        right_kind = isinstance(value, Mapping) if self.keyed else isinstance(value, (list, tuple))
        if not right_kind or not self.low <= len(value) <= self.high:
            raise refused(allowed=self.allowed, fix=f"give {self.words}")
        return dict(value) if self.keyed else tuple(value)


def dotted(loc: Iterable[int | str]) -> str:
    """Return a path like "tiers[0].link_bytes_per_s" for a pydantic location; a blank key in quotes.

    Examples
    --------
    >>> dotted(("tiers", 0, "name"))
    'tiers[0].name'
    """

    def shown(key: str) -> str:
        text = clean_text(key)[:80]
        return text if text.strip() else repr(text)

    parts = (f"[{part}]" if isinstance(part, int) else f".{shown(part)}" for part in loc)
    return "".join(parts).removeprefix(".")


def _unwrapped(annotation: Any) -> Any:
    """Return the annotation without Annotated and without None."""
    while (origin := get_origin(annotation)) in (Annotated, Union, UnionType):
        arguments = get_args(annotation)
        annotation = (
            arguments[0]
            if origin is Annotated
            else next(argument for argument in arguments if argument is not type(None))
        )
    return annotation


def _fields_at(layout: Any, loc: Iterable[int | str]) -> Mapping[str, Any]:
    """Return the fields of the layout that a location leads to; none where it leads to a plain value."""
    for part in loc:
        fields = getattr(layout, "model_fields", None)
        if fields is None:  # an array or an object: its items are its last type argument but an ellipsis
            arguments = [argument for argument in get_args(layout) if argument is not Ellipsis]
            layout = _unwrapped(arguments[-1]) if arguments else None
        else:
            layout = _unwrapped(fields[part].annotation) if part in fields else None
    found: Mapping[str, Any] = getattr(layout, "model_fields", {})
    return found


def _fault(error: Any, *, layout: type[StrictFields], prefix: str) -> Fault:
    loc = tuple(error["loc"])
    where = dotted((prefix, *loc) if prefix else loc) or "top level"
    if error["type"] == "extra_forbidden":
        known = tuple(_fields_at(layout, loc[:-1]))
        return Fault(
            where=where,
            given="an unknown key",
            allowed="the keys " + ", ".join(known),
            fix=_closest(loc[-1], known) or "take the key out",
        )
    if error["type"] == "missing":
        field = _fields_at(layout, loc[:-1]).get(loc[-1])
        rules = [rule for rule in (field.metadata if field else ()) if isinstance(rule, Rule)]
        allowed = rules[0].allowed if rules else "a JSON object"
        return Fault(where=where, given="nothing", allowed=allowed, fix="add the key")
    context = error.get("ctx", {})
    return Fault(
        where=where,
        given=shorten(error["input"]),
        allowed=str(context.get("allowed", "a JSON object")),
        fix=str(context.get("fix", "give an object in braces")),
    )


def read_layout(
    source: object, *, layout: type[Layout], prefix: str = ""
) -> tuple[Layout | None, list[Fault]]:
    """Check a JSON value against a layout.

    Parameters
    ----------
    source : object
        Parsed JSON.
    layout : type
        A subclass of `StrictFields`.
    prefix : str
        Put before each fault's path.

    Returns
    -------
    tuple
        The checked fields, or None; and all the faults, at most `MAX_FAULTS` of them.
    """
    try:
        return layout.model_validate(source), []
    except ValidationError as error:
        details = error.errors(include_url=False)[:MAX_FAULTS]
        return None, [_fault(detail, layout=layout, prefix=prefix) for detail in details]
