"""Arguments of the command line, checked: every number bounded, every fault at once.

Owns: `Arguments`, which gathers faults, and the loading of a run-spec with overrides.
Refuses: computing anything.
"""

from __future__ import annotations

import importlib.util
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from planner_core.errors import Fault, InvalidSpec, PlannerError, UnsupportedModel, shorten
from planner_core.hardware import COLLECTIVE_MODELS
from planner_core.preset_files import preset_names, presets_dir
from planner_core.run_spec import RunSpec, parse_run_spec
from planner_core.spec_files import file_resolver
from planner_core.strict_json import MAX_BYTES, clean_text, read_json_file, require_object

MAX_COUNT: Final = 1_000_000_000
MAX_CONTEXT_TOKENS: Final = 100_000_000
MAX_LIST: Final = 1024

_OR_NULL: Final = re.compile(", or null for .*$")
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,100}")

# Options that stand for a key of the run-spec.
SPEC_OPTIONS: Final = {
    "--decode-itl-ceiling-ms": "decode_itl_ceiling_ms",
    "--prefill-itps-floor": "prefill_itps_floor",
    "--objective": "objective",
    "--weight-dtype-bytes": "weight_dtype_bytes",
    "--kv-dtype-bytes": "kv_dtype_bytes",
    "--compute-precision": "compute_precision",
}
_TEXT_OPTIONS: Final = ("--objective", "--compute-precision")
_TARGETS: Final = ("decode_itl_ceiling_ms", "prefill_itps_floor")


class MissingExtra(PlannerError):
    """Something optional is not installed, or not whole."""

    kind = "missing_extra"


def require_extra(module: str, *, extra: str, what: str) -> None:
    """Raise `MissingExtra`, which says what to install, where a module is not there."""
    if importlib.util.find_spec(module) is None:
        raise MissingExtra(
            f"{what} needs {module}, which is not installed here; "
            f"fix: pip install 'inference-planner[{extra}]'"
        )


def preset_or_path(text: str, *, kind: str) -> Path:
    """Return the path of a file, or of the preset of that bare name where there is no such file."""
    path = Path(text)
    if "/" not in text and len(text) < 256 and not path.exists():
        name = text.removesuffix(".json")
        if name in preset_names(kind):
            return presets_dir() / kind / f"{name}.json"
    return path


def read_object(
    path: Path, *, allow_non_finite: bool = False, max_bytes: int = MAX_BYTES
) -> dict[str, object]:
    """Return the JSON object in a file of at most `max_bytes` bytes.

    Raises
    ------
    InvalidSpec
        Where there is none.
    """
    where = clean_text(str(path))[:200] or "the path"
    value = read_json_file(path, where=where, allow_non_finite=allow_non_finite, max_bytes=max_bytes)
    return require_object(value, where=where)


def _number(text: str) -> object:
    """Return the number that a text is, else the text: the spec's own check then refuses it."""
    if _WHOLE.fullmatch(text):
        return int(text)
    try:
        return float(text)
    except ValueError:
        return text


def _span(unit: str, low: int, high: int) -> str:
    return f"a whole number {f'of {unit} ' if unit else ''}from {low:,} to {high:,}"


class Arguments:
    """Faults of the arguments, gathered until `raise_faults`."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self._unsupported: UnsupportedModel | None = None

    def add(self, where: str, given: object, *, allowed: str, fix: str) -> None:
        """Note one fault."""
        shown = "nothing" if given is None else shorten(given)
        self.faults.append(Fault(where=where, given=shown, allowed=allowed, fix=fix))

    def raise_faults(self) -> None:
        """Raise what was gathered, if anything."""
        if self._unsupported and not self.faults:
            raise self._unsupported
        if self._unsupported:
            self.add(
                self._unsupported.field,
                self._unsupported.message,
                allowed="a modelled kind of layer",
                fix="take another model",
            )
        if self.faults:
            raise InvalidSpec(self.faults)

    def whole(
        self, option: str, text: str | None, *, unit: str, low: int = 1, high: int = MAX_COUNT
    ) -> int | None:
        """Return a whole number from `low` to `high`; None where it was not given or is faulty."""
        if text is None:
            return None
        if _WHOLE.fullmatch(text) and low <= int(text) <= high:
            return int(text)
        self.add(
            option,
            text,
            allowed=_span(unit, low, high),
            fix="give one number in that range, without unit or separators",
        )
        return None

    def required_whole(self, option: str, text: str | None, *, unit: str, high: int = MAX_COUNT) -> int:
        """Return a whole number from 1 to `high` that must be given; 1 where it is faulty."""
        if text is None:
            self.add(option, None, allowed=_span(unit, 1, high), fix=f"add {option} N")
        return self.whole(option, text, unit=unit, high=high) or 1

    def wholes(self, option: str, text: str | None) -> tuple[int, ...] | None:
        """Return a list like "1,2,4"; None where it was not given or is faulty."""
        if text is None:
            return None
        parts = [part.strip() for part in text.split(",")]
        if len(parts) <= MAX_LIST and all(
            _WHOLE.fullmatch(part) and 1 <= int(part) <= MAX_COUNT for part in parts
        ):
            return tuple(int(part) for part in parts)
        self.add(
            option,
            text,
            allowed=f"1 to {MAX_LIST} whole numbers from 1 to {MAX_COUNT:,}, with commas between",
            fix="write it like 1,2,4,8",
        )
        return None

    def choice(self, option: str, text: str | None, choices: Iterable[str]) -> str | None:
        """Return one of the choices; None where it was not given or is faulty."""
        allowed = tuple(choices)
        if text is None or text in allowed:
            return text
        self.add(option, text, allowed=f"one of {', '.join(allowed)}", fix="pick one of these")
        return None

    def choices(self, option: str, text: str | None, choices: Iterable[str]) -> tuple[str, ...] | None:
        """Return some of the choices, given with commas between; None where not given or faulty."""
        if text is None:
            return None
        allowed = tuple(choices)
        parts = tuple(part.strip() for part in text.split(","))
        if all(part in allowed for part in parts):
            return parts
        self.add(
            option, text, allowed=f"one or more of {', '.join(allowed)}, with commas between", fix="pick some"
        )
        return None

    def spec(
        self, text: str, *, overrides: Mapping[str, str | None], collective_model: str | None = None
    ) -> RunSpec | None:
        """Load a run-spec with options in place of its keys; None where either is faulty."""
        given = {option: value for option, value in overrides.items() if value is not None}
        model = self.choice("--collective-model", collective_model, COLLECTIVE_MODELS)
        path = preset_or_path(text, kind="run_specs")
        try:
            source = _with_overrides(read_object(path), given)
            spec = parse_run_spec(source, resolve=file_resolver(path))
        except InvalidSpec as error:
            self.faults += [_named_after_option(fault, given) for fault in error.faults]
            return None
        except UnsupportedModel as error:
            self._unsupported = error
            return None
        if model is None:
            return spec
        return replace(spec, machine=replace(spec.machine, collective_model=model))


def _with_overrides(source: dict[str, Any], given: Mapping[str, str]) -> dict[str, Any]:
    """Put options in the place of keys; a target given takes the place of an objective, and the other way."""
    result = dict(source)
    keys = {SPEC_OPTIONS[option] for option in given}
    if "objective" in keys and not keys & set(_TARGETS):
        for key in _TARGETS:
            result.pop(key, None)
    elif keys & set(_TARGETS) and "objective" not in keys:
        result.pop("objective", None)
    for option, text in given.items():
        result[SPEC_OPTIONS[option]] = text if option in _TEXT_OPTIONS else _number(text)
    return result


def _named_after_option(fault: Fault, given: Mapping[str, str]) -> Fault:
    """Call a fault by the option that it comes from, with the value as typed."""
    for option, text in given.items():
        if fault.where == SPEC_OPTIONS[option]:
            allowed = _OR_NULL.sub("", fault.allowed)
            return replace(fault, where=option, given=shorten(text), allowed=allowed)
    return fault


def context_warnings(spec: RunSpec, *, context_tokens: int, option: str) -> list[str]:
    """Say where a context is longer than the model is made for; it is answered all the same."""
    longest = spec.model.max_position_tokens
    if context_tokens <= longest:
        return []
    return [
        f"warning: {option}: {context_tokens:,} tokens is above the {longest:,} that the model is made for; "
        "the answer holds only if its positions are extended"
    ]


def short_tokens(tokens: float) -> str:
    """Return "8k" for 8192, "8,000" for 8000.

    Examples
    --------
    >>> short_tokens(131072), short_tokens(8000)
    ('128k', '8,000')
    """
    return (
        f"{int(tokens) // 1024}k" if tokens >= 1024 and math.fmod(tokens, 1024) == 0 else f"{int(tokens):,}"
    )
