"""Text on figures: numbers with three significant digits, and text from outside shown as typed.

Owns: number formats of figures, and `as_typed`.
Refuses: deciding what is said.
"""

from __future__ import annotations

import html
import math
import unicodedata
from functools import lru_cache
from typing import Final

NBSP: Final = "\u00a0"
_ISOLATE, _POP_ISOLATE = "\u2068", "\u2069"
_DIRECTION_MARKS: Final = frozenset(
    "\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)


def visible(text: str) -> str:
    """Return text with each control character replaced by its picture, lone surrogates by U+FFFD.

    Examples
    --------
    >>> visible("a" + chr(7) + "b")
    'a␇b'
    """
    if text.isascii() and text.isprintable():  # nearly all text, and a page shows thousands of them
        return text
    return "".join(map(_visible, text))


def isolated(shown: str) -> str:
    """Return text so that its direction marks and letters do not reorder what stands around it."""
    if shown.isascii():
        return shown
    reorders = any(
        unicodedata.bidirectional(char) in {"R", "AL"} or char in _DIRECTION_MARKS for char in shown
    )
    return f"{_ISOLATE}{shown}{_POP_ISOLATE}" if reorders else shown


def _visible(char: str) -> str:
    """One character, or a picture of it where it has none of its own."""
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if 0x80 <= code < 0xA0 or 0xD800 <= code < 0xE000 or char in "\u2028\u2029":
        return "\ufffd"
    return char


def as_typed(outside: str, *, limit: int = 40) -> str:
    """Return text from outside so that a figure shows it as typed.

    Plotly reads some HTML tags and entities in its text, so `&`, `<` and `>` are escaped; control characters
    become visible; text in the other writing direction is kept from reordering what stands around it.

    Parameters
    ----------
    outside : str
        A model's or machine's name, a label.
    limit : int
        Characters to show; what is cut ends in an ellipsis.

    Returns
    -------
    str

    Examples
    --------
    >>> as_typed("<b>x</b>")
    '&lt;b&gt;x&lt;/b&gt;'
    >>> as_typed("x" * 400, limit=5)
    'xxxx…'
    """
    cut = outside if len(outside) <= limit else outside[: limit - 1] + "\u2026"
    return isolated(html.escape(visible(cut), quote=False))


def plain(shown: str) -> str:
    """Return a figure's text as plain text, for a reader who does not see the figure.

    Examples
    --------
    >>> plain("a &lt;b&gt;<br>c")
    'a <b> c'
    """
    return html.unescape(shown.replace("<br>", " ").replace("<b>", "").replace("</b>", ""))


def sig(value: float, *, digits: int = 3) -> str:
    """Return a number with `digits` significant digits, grouped by thousands.

    Examples
    --------
    >>> sig(28089.0), sig(8.5691), sig(0.00012345), sig(0.0)
    ('28,100', '8.57', '0.000123', '0')
    """
    number = float(value)
    if not math.isfinite(number):
        return "n/a"
    if number == 0.0:
        return "0"
    exponent = math.floor(math.log10(abs(float(f"{number:.{digits - 1}e}"))))
    if exponent >= 15 or exponent < -6:
        return f"{number:.{digits - 1}e}"
    return f"{round(number, digits - 1 - exponent):,.{max(0, digits - 1 - exponent)}f}"


def _scaled(value: float, steps: tuple[tuple[float, str], ...]) -> str:
    """Return the value in the largest unit that leaves it at 1 or more."""
    size, unit = next((step for step in steps if abs(value) >= step[0]), steps[-1])
    return f"{sig(value / size)}{NBSP}{unit}"


def seconds(value_s: float) -> str:
    """Return a time with its unit.

    Examples
    --------
    >>> seconds(0.00857).replace(NBSP, " ")
    '8.57 ms'
    """
    return _scaled(value_s, ((1.0, "s"), (1e-3, "ms"), (1e-6, "\u00b5s"), (1e-9, "ns")))


def n_bytes(value: float) -> str:
    """Return bytes with a decimal unit.

    Examples
    --------
    >>> n_bytes(16.76e9).replace(NBSP, " ")
    '16.8 GB'
    """
    return _scaled(value, ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")))


def rate(value: float, *, unit: str) -> str:
    """Return a rate with a decimal prefix.

    Examples
    --------
    >>> rate(158e12, unit="FLOP/s").replace(NBSP, " ")
    '158 TFLOP/s'
    """
    prefixes = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
    return _scaled(value, tuple((size, prefix + unit) for size, prefix in prefixes))


def percent(share: float) -> str:
    """Return a share as a percentage with three significant digits at most.

    Examples
    --------
    >>> percent(0.8432), percent(0.00213), percent(1.0)
    ('84.3%', '0.213%', '100%')
    """
    return f"{sig(100.0 * share)}%"


def context(n_tokens: float) -> str:
    """Return a context length as people say it.

    Examples
    --------
    >>> context(8192), context(131072), context(1048576), context(5000)
    ('8k', '128k', '1M', '5,000')
    """
    whole = int(n_tokens)
    if whole and whole % (1024 * 1024) == 0:
        return f"{whole // (1024 * 1024)}M"
    if whole and whole % 1024 == 0:
        return f"{whole // 1024}k"
    return f"{whole:,}"


_BINDINGS: Final = {
    "flop": "FLOP",
    "weight_load": "weight load",
    "kv_load": "KV load",
    "act_load": "activation load",
}
_FAMILIES: Final = {"attention": "attention", "ffn": "FFN", "lm_head": "LM head"}


def binding(label: str) -> str:
    """Return what binds, in words.

    Examples
    --------
    >>> binding("attention:kv_load"), binding("communication")
    ('attention, KV load', 'communication')
    """
    family, found, bind = label.partition(":")
    if not found:
        return label
    return f"{_FAMILIES.get(family, family)}, {_BINDINGS.get(bind, bind)}"


@lru_cache(maxsize=256)
def operator(name: str) -> str:
    """Return a stage's or a component's name in words.

    Examples
    --------
    >>> operator("attention/global"), operator("ffn_up_gate"), operator("kv_merge"), operator("lm_head")
    ('attention, global', 'FFN up gate', 'KV merge', 'LM head')
    """
    family, slash, kind = name.partition("/")
    if slash:
        return f"{_FAMILIES.get(family, family)}, {kind.upper() if kind in ('mla', 'moe') else kind}"
    words = {"qkv": "QKV", "ffn": "FFN", "kv": "KV", "cp": "CP", "lm": "LM"}
    return " ".join(words.get(word, word) for word in name.split("_"))
