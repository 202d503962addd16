"""Text to values: JSON as strict as the planner needs it, bounded in size, depth and kind of file.

Owns: decoding, the limits, duplicate keys, non-finite numbers, cleaning of text from outside, and writing
JSON without NaN or Infinity.
Refuses: any knowledge of what the values mean (see `hardware_file`, `hf_config`, `run_spec`).

Every refusal is an `InvalidSpec`; no input raises anything else, blocks, or takes memory beyond a multiple of
its own bounded size.
"""

from __future__ import annotations

import codecs
import errno
import json
import math
import os
import re
import stat
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Final

from planner_core.errors import Fault, InvalidSpec, shorten

MAX_BYTES: Final = 1_000_000
# On the command line: a quantized checkpoint may list each module that it leaves alone, 3 MB of them.
MAX_CONFIG_BYTES: Final = 4_000_000
MAX_DEPTH: Final = 64
MAX_INT_DIGITS: Final = 100
MAX_FAULTS: Final = 20
MAX_PATH_CHARACTERS: Final = 4096

# A quoted string to its end, or to the end of the text where it is not closed (so that the scan is linear).
_STRING: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_NOT_BRACKET: Final = re.compile(r"[^\[\]{}]+")
_BRACKET_STEP: Final = {"[": 1, "{": 1, "]": -1, "}": -1}
# Control characters but tab, line feed and carriage return; DEL and C1; lone surrogates.
_UNPRINTABLE: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_RAW_UNPRINTABLE: Final = re.compile(r"[\x7f-\x9f\ud800-\udfff]")
_UNPRINTABLE_ESCAPE: Final = re.compile(r"\\[bf]|\\u(?:00[01789]|[dD][89a-fA-F])")
_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
_WIDE_BOMS: Final = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


def clean_text(text: str) -> str:
    r"""Return `text` on one line, with what no terminal or browser can show replaced by U+FFFD.

    Parameters
    ----------
    text : str
        Text from outside: a name, a label, a path.

    Returns
    -------
    str
        As long as `text`; never a control character, a line break or a lone surrogate.

    Examples
    --------
    >>> clean_text("two\nlines")
    'two lines'
    """
    return re.sub(r"[\t\n\r\u2028\u2029]", " ", _UNPRINTABLE.sub(_REPLACEMENT, text))


def _refuse(where: str, given: str, allowed: str, fix: str) -> InvalidSpec:
    return InvalidSpec([Fault(where=where, given=given, allowed=allowed, fix=fix)])


def _too_big(where: str, given: str, max_bytes: int) -> InvalidSpec:
    return _refuse(
        where,
        given,
        f"at most {max_bytes:,} bytes of JSON",
        "give a config, not weights or data; drop what the planner does not read",
    )


def _decode(data: bytes, *, where: str) -> str:
    """UTF-8, with or without a byte order mark."""
    allowed = "UTF-8 text (a byte order mark is accepted)"
    fix = "save the file as UTF-8"
    for bom, encoding in _WIDE_BOMS:
        if data.startswith(bom):
            raise _refuse(where, f"{encoding} text", allowed, fix)
    data = data.removeprefix(codecs.BOM_UTF8)
    if b"\x00" in data:
        position = data.index(b"\x00")
        raise _refuse(where, f"a zero byte at offset {position} (UTF-16 or a binary file)", allowed, fix)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        given = f"byte 0x{data[error.start]:02x} at offset {error.start}, which is not UTF-8"
        raise _refuse(where, given, allowed, fix) from None


def _depth(text: str) -> int:
    """Deepest nesting of arrays and objects, brackets inside strings left out."""
    brackets = _NOT_BRACKET.sub("", _STRING.sub("", text))
    return max(accumulate(_BRACKET_STEP[bracket] for bracket in brackets), default=0)


def _cleaned(value: object) -> object:
    """Return the value with every string in it (and every key) safe to print."""
    if isinstance(value, str):
        return _UNPRINTABLE.sub(_REPLACEMENT, value)
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    if isinstance(value, dict):
        return {_UNPRINTABLE.sub(_REPLACEMENT, key): _cleaned(item) for key, item in value.items()}
    return value


class _Reader:
    """The hooks of one parse, which collect faults instead of raising at the first."""

    def __init__(self, *, where: str, allow_non_finite: bool) -> None:
        self.where = where
        self.allow_non_finite = allow_non_finite
        self.faults: list[Fault] = []

    def add(self, given: str, allowed: str, fix: str) -> None:
        if len(self.faults) < MAX_FAULTS:
            self.faults.append(Fault(where=self.where, given=given, allowed=allowed, fix=fix))

    def real(self, text: str) -> float:
        value = float(text)
        if math.isinf(value):
            self.add(
                shorten(text).strip("'"),
                "numbers up to 1.8e308 in size",
                "write a smaller number",
            )
        return value

    def whole(self, text: str) -> int:
        if len(text) > MAX_INT_DIGITS:
            self.add(
                f"an integer of {len(text.lstrip('-')):,} digits",
                f"integers of up to {MAX_INT_DIGITS} digits",
                "write a smaller number",
            )
            return 0
        return int(text)

    def constant(self, text: str) -> float:
        if not self.allow_non_finite:
            self.add(text, "finite numbers", "write a number, or leave the key out")
        return float(text.replace("Infinity", "inf"))

    def pairs(self, items: list[tuple[str, object]]) -> dict[str, object]:
        result = dict(items)
        if len(result) < len(items):
            seen: set[str] = set()
            for key, _ in items:
                if key in seen:
                    self.add(
                        f"key {shorten(key)} more than once in one object",
                        "each key once",
                        "keep one of them",
                    )
                seen.add(key)
        return result


def load_json(
    data: str | bytes, *, where: str, allow_non_finite: bool = False, max_bytes: int = MAX_BYTES
) -> object:
    """Parse JSON text from outside.

    Parameters
    ----------
    data : str or bytes
        The text; bytes must be UTF-8.
    where : str
        What to call it in a fault: a path, an upload's name, a field.
    allow_non_finite : bool
        Accept NaN and Infinity as values (some `config.json` files have them in keys that are not read).
    max_bytes : int
        Longest text [bytes].

    Returns
    -------
    object
        dict, list, str, int, float, bool or None. Strings hold no control character and no lone surrogate.

    Raises
    ------
    InvalidSpec
        Too long, nested too deep, not UTF-8, not JSON, a duplicate key, a number out of range.

    Examples
    --------
    >>> load_json('{"a": 1}', where="example")
    {'a': 1}
    """
    size = len(data)
    if isinstance(data, str) and size <= max_bytes:
        size = len(data.encode("utf-8", "surrogatepass"))
    if size > max_bytes:
        raise _too_big(where, f"{size:,} bytes", max_bytes)
    text = data.removeprefix("\ufeff") if isinstance(data, str) else _decode(data, where=where)
    if not text.strip():
        raise _refuse(where, "an empty text", "JSON", "give the content of a JSON file")
    depth = _depth(text)
    if depth > MAX_DEPTH:
        raise _refuse(
            where,
            f"{depth:,} levels of nesting",
            f"at most {MAX_DEPTH} levels of arrays and objects",
            "flatten it; no file that the planner reads is this deep",
        )
    reader = _Reader(where=where, allow_non_finite=allow_non_finite)
    try:
        value: object = json.loads(
            _RAW_UNPRINTABLE.sub(_REPLACEMENT, text),
            parse_float=reader.real,
            parse_int=reader.whole,
            parse_constant=reader.constant,
            object_pairs_hook=reader.pairs,
        )
    except json.JSONDecodeError as error:
        line = text.count("\n", 0, error.pos) + 1
        given = f"text that is not JSON at line {line}, column {error.colno}: {error.msg}"
        raise _refuse(where, given, "JSON", "correct it there") from None
    if reader.faults:
        raise InvalidSpec(reader.faults)
    return _cleaned(value) if _UNPRINTABLE_ESCAPE.search(text) else value


def require_object(value: object, *, where: str) -> dict[str, object]:
    """Return `value` where it is a JSON object, else refuse it.

    Parameters
    ----------
    value : object
        What `load_json` returned.
    where : str
        What to call it in a fault.

    Returns
    -------
    dict

    Raises
    ------
    InvalidSpec
        An array, a text, a number, true, false or null.
    """
    if isinstance(value, dict):
        return value
    kinds: dict[type, str] = {list: "an array", str: "a text", bool: "true or false", type(None): "null"}
    given = kinds.get(type(value), "a number")
    raise _refuse(where, f"{given} at top level", "a JSON object", "start it with { and end it with }")


def _os_fault(where: str, error: OSError) -> InvalidSpec:
    given, fix = {
        errno.ENOENT: ("a path that does not exist", "check the path"),
        errno.ENOTDIR: ("a path that does not exist", "check the path"),
        errno.EACCES: ("a file that may not be read", "give read permission"),
        errno.EPERM: ("a file that may not be read", "give read permission"),
        errno.ELOOP: ("symbolic links that go round in a circle", "point the link at a file"),
        errno.ENAMETOOLONG: ("a path that is too long", "check the path"),
    }.get(error.errno or 0, (f"a file that cannot be read ({error.strerror})", "check the file"))
    return _refuse(where, given, "a JSON file that can be read", fix)


def _kind_of_file(mode: int) -> str:
    tests: tuple[tuple[Callable[[int], bool], str], ...] = (
        (stat.S_ISDIR, "a directory"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
    )
    return next((name for test, name in tests if test(mode)), "a device")


def _read_regular_file(path: Path, *, where: str, max_bytes: int) -> bytes:
    """Return the bytes of a regular file no longer than `max_bytes`; never waits for a pipe or a device."""

    def check(status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            raise _refuse(where, _kind_of_file(status.st_mode), "a regular file", "give a JSON file")
        if status.st_size > max_bytes:
            raise _too_big(where, f"a file of {status.st_size:,} bytes", max_bytes)

    try:
        check(path.stat())
        # Again once open, without waiting, since the path may have changed in between.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(handle, "rb") as file:
            check(os.fstat(handle))
            data = file.read(max_bytes + 1)
    except OSError as error:
        raise _os_fault(where, error) from None
    if len(data) > max_bytes:  # a file that grew, or one that does not say its size
        raise _too_big(where, f"over {max_bytes:,} bytes", max_bytes)
    return data


def read_json_file(
    path: Path,
    *,
    root: Path | None = None,
    allow_non_finite: bool = False,
    max_bytes: int = MAX_BYTES,
    where: str | None = None,
) -> object:
    """Read one JSON file.

    Parameters
    ----------
    path : Path
        The file.
    root : Path, optional
        A directory that the file must be in once symbolic links are followed.
    allow_non_finite : bool
        As for `load_json`.
    max_bytes : int
        Longest file [bytes].
    where : str, optional
        What to call it in a fault; its path by default.

    Returns
    -------
    object
        As for `load_json`.

    Raises
    ------
    InvalidSpec
        Missing, not a regular file, not readable, outside `root`, or refused by `load_json`.
    """
    name = clean_text(str(path))
    place = name[:200] if where is None else where
    if "\x00" in str(path) or len(str(path)) > MAX_PATH_CHARACTERS:
        raise _refuse(place, shorten(str(path)), "a path", "check the path")
    if root is not None and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):
        raise _refuse(
            place,
            f"{shorten(name)}, which leads outside",
            f"a file inside {clean_text(str(root))}",
            "put the file there",
        )
    data = _read_regular_file(path, where=place, max_bytes=max_bytes)
    return load_json(data, where=place, allow_non_finite=allow_non_finite, max_bytes=max_bytes)


def dumps(value: object, *, indent: int | None = 2) -> str:
    """Write strict JSON: NaN and Infinity raise ValueError, since they would be a fault of the planner.

    Parameters
    ----------
    value : object
        dict, list, str, int, float, bool or None.
    indent : int or None
        Spaces a level; None for one line without blanks.

    Returns
    -------
    str
        Text that encodes as UTF-8, without a final newline.

    Examples
    --------
    >>> dumps({"a": 1}, indent=None)
    '{"a":1}'
    """
    separators = (",", ":") if indent is None else None
    text = json.dumps(value, allow_nan=False, indent=indent, separators=separators, ensure_ascii=False)
    return text.encode("utf-8", "replace").decode("utf-8")
