"""Text from outside made safe to show, and numbers made readable.

Owns: escaping for Markdown, HTML, Plotly and file names; number formats with three significant digits.
Refuses: deciding what is shown.

A model name, a label or a citation comes from a file that anybody may have written. It is shown as typed:
never as markup, with control characters made visible and direction marks kept inside the text they belong to.
"""

from __future__ import annotations

import html
import math
import re
import string
import unicodedata

NBSP = "\u00a0"
_JOINER = "\u2060"  # word joiner: invisible, breaks the patterns that Streamlit replaces in plain text
_ISOLATE, _POP_ISOLATE = "\u2068", "\u2069"
_DIRECTION_MARKS = frozenset("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_PUNCTUATION = frozenset(string.punctuation)
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def visible(text: str) -> str:
    """Return `text` with each control character replaced by its picture, and lone surrogates by U+FFFD.

    Examples
    --------
    >>> visible("a" + chr(7) + "b")
    'a␇b'
    """
    shown = []
    for char in text:
        code = ord(char)
        if code < 0x20:
            shown.append(chr(0x2400 + code))
        elif code == 0x7F:
            shown.append("\u2421")
        elif 0x80 <= code < 0xA0 or 0xD800 <= code < 0xE000 or char in "\u2028\u2029":
            shown.append("\ufffd")
        else:
            shown.append(char)
    return "".join(shown)


def shortened(text: str, *, limit: int) -> str:
    """Return `text` cut to `limit` characters, the last of them an ellipsis where it was cut."""
    return text if len(text) <= limit else text[: limit - 1] + "\u2026"


def _isolated(text: str) -> str:
    """Keep direction marks from reordering what stands around the text."""
    needs = any(unicodedata.bidirectional(char) in {"R", "AL"} or char in _DIRECTION_MARKS for char in text)
    return f"{_ISOLATE}{text}{_POP_ISOLATE}" if needs else text


def md(outside: str, *, limit: int = 120) -> str:
    """Return text from outside for a Markdown context (a label, `st.markdown`, `st.write`), shown as typed.

    Every ASCII punctuation character is escaped; shortcodes (`:name:`) and typographical replacements
    (`->`) are broken by an invisible joiner.
    """
    escaped = (
        "\\" + char + (_JOINER if char in ":-<>~=" else "") if char in _PUNCTUATION else char
        for char in shortened(visible(outside), limit=limit)
    )
    return _isolated("".join(escaped))


def htm(outside: str, *, limit: int = 400) -> str:
    """Return text from outside for an HTML context, inside its own direction."""
    return f"<bdi>{html.escape(shortened(visible(outside), limit=limit), quote=True)}</bdi>"


def plot(outside: str, *, limit: int = 60) -> str:
    """Return text from outside for a figure (Plotly reads a few HTML tags in its text)."""
    return _isolated(html.escape(shortened(visible(outside), limit=limit), quote=False))


def plain(outside: str, *, limit: int = 120) -> str:
    """Return text from outside for a place that shows plain text (a table's cell, an option)."""
    return _isolated(shortened(visible(outside), limit=limit))


def csv_cell(value: object) -> object:
    """Return a cell that no spreadsheet runs as a formula: text that starts like one gets a leading `'`.

    Examples
    --------
    >>> csv_cell("=1+1"), csv_cell(-2.5)
    ("'=1+1", -2.5)
    """
    if isinstance(value, str) and value.lstrip(" \u00a0\ufeff").startswith(_FORMULA_STARTS):
        return "'" + value
    return value


def file_name(*parts: object, extension: str) -> str:
    """Return a file name made of parts (model, machine, phase, context), safe on every system.

    Examples
    --------
    >>> file_name("Llama 3.1 70B", "trn2", "decode", "8k", extension="csv")
    'Llama-3.1-70B_trn2_decode_8k.csv'
    """
    cleaned = []
    for part in parts:
        ascii_text = unicodedata.normalize("NFKD", str(part)).encode("ascii", "ignore").decode("ascii")
        word = re.sub(r"[^A-Za-z0-9.]+", "-", ascii_text).strip("-.")[:40].rstrip("-.")
        if word:
            cleaned.append(word)
    return f"{'_'.join(cleaned) or 'planner'}.{extension}"


def sig(value: float, digits: int = 3) -> str:
    """Return a number with `digits` significant digits, grouped by thousands.

    Examples
    --------
    >>> sig(28089), sig(8.5691), sig(0.00012345)
    ('28,100', '8.57', '0.000123')
    """
    number = float(value)
    if not math.isfinite(number):
        return "n/a"
    if number == 0:
        return "0"
    exponent = math.floor(math.log10(abs(float(f"{number:.{digits - 1}e}"))))
    if exponent >= 15 or exponent < -6:
        return f"{number:.{digits - 1}e}"
    decimals = max(0, digits - 1 - exponent)
    return f"{round(number, digits - 1 - exponent):,.{decimals}f}"


def _scaled(value: float, steps: tuple[tuple[float, str], ...]) -> str:
    """Return the value in the largest unit of `steps` that leaves it at 1 or more."""
    for size, unit in steps:
        if abs(value) >= size:
            return f"{sig(value / size)}{NBSP}{unit}"
    size, unit = steps[-1]
    return f"{sig(value / size)}{NBSP}{unit}"


def seconds(value_s: float) -> str:
    """Return a time with its unit: "8.57 ms"."""
    return _scaled(value_s, ((1.0, "s"), (1e-3, "ms"), (1e-6, "\u00b5s"), (1e-9, "ns")))


def n_bytes(value: float) -> str:
    """Return bytes with a decimal unit: "16.8 GB"."""
    return _scaled(value, ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")))


def rate(value: float, unit: str) -> str:
    """Return a rate with a decimal prefix: `rate(158e12, "FLOP/s")` is "158 TFLOP/s"."""
    prefixes = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
    return _scaled(value, tuple((size, prefix + unit) for size, prefix in prefixes))


def tokens_per_s(value: float) -> str:
    """Return a throughput: "28,100 tok/s"."""
    return f"{sig(value)}{NBSP}tok/s"


def count(value: float) -> str:
    """Return a whole number, exact, grouped by thousands."""
    return f"{int(value):,}"


def context(n_tokens: float) -> str:
    """Return a context length as people say it: 8192 is "8k", 1048576 is "1M", 5000 is "5,000".

    Examples
    --------
    >>> context(8192), context(131072), context(5000)
    ('8k', '128k', '5,000')
    """
    whole = int(n_tokens)
    if whole and whole % (1024 * 1024) == 0:
        return f"{whole // (1024 * 1024)}M"
    if whole and whole % 1024 == 0:
        return f"{whole // 1024}k"
    return f"{whole:,}"


def title_attribute(outside: str, *, limit: int = 400) -> str:
    """Return text from outside for an HTML attribute in double quotes."""
    return html.escape(_isolated(shortened(visible(outside), limit=limit)), quote=True)
