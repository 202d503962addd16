"""The faults that the planner can report, one line each.

Owns: the exception classes and the `Fault` record (where, given, allowed, fix).
Refuses: formatting for a terminal or a browser beyond one plain line.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing wrong with an input.

    Parameters
    ----------
    where : str
        The field, as a dotted path ("configs[0].TP"), or the command line option ("--tp").
    given : str
        The value given, as text, cut to a readable length.
    allowed : str
        What is allowed, with its unit.
    fix : str
        What to change.
    """

    where: str
    given: str
    allowed: str
    fix: str

    def line(self) -> str:
        """Return the fault as one line of text."""
        return f"{self.where}: got {self.given}; allowed: {self.allowed}; fix: {self.fix}"


class PlannerError(Exception):
    """Base of every error that the planner raises on purpose."""

    kind = "error"


class InvalidSpec(PlannerError):
    """An input (run-spec, hardware file, config.json, argument, link) has faults: all of them at once."""

    kind = "invalid_spec"

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults: tuple[Fault, ...] = tuple(faults)
        super().__init__("\n".join(fault.line() for fault in self.faults))


class UnsupportedModel(PlannerError):
    """A model has layers of a kind that is not modelled.

    Parameters
    ----------
    message : str
        Names the kind and how many layers have it.
    field : str
        The config.json field that says so.
    """

    kind = "unsupported_model"

    def __init__(self, message: str, *, field: str) -> None:
        self.message = message
        self.field = field
        super().__init__(f"{field}: {message}")


class ArtifactError(PlannerError):
    """A file could not be written; nothing was left half written."""

    kind = "artifact"


def shorten(value: object, *, limit: int = 80) -> str:
    """Return `repr(value)` cut to at most `limit` characters, for a fault's `given`.

    Examples
    --------
    >>> shorten("x" * 200, limit=10)
    "'xxxxxx..."
    """
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an int of over 4300 digits, or a very deep list
        text = f"a {type(value).__name__} too large to print"
    return text if len(text) <= limit else text[: limit - 3] + "..."
