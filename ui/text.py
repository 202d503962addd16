"""Text from outside made safe to show, and numbers made readable.

Owns: escaping for Markdown, HTML, cells and file names. The number formats (three significant digits, a unit)
are those of `planner_core.figures.words`, offered here too.
Refuses: deciding what is shown.

A model name, a label or a citation comes from a file that anybody may have written. It is shown as typed:
never as markup, with control characters made visible and direction marks kept inside the text they belong to.
"""

from __future__ import annotations

import html
import re
import string
import unicodedata

from planner_core.figures.words import (
    NBSP,
    binding,
    context,
    isolated,
    n_bytes,
    operator,
    percent,
    rate,
    seconds,
    sig,
    visible,
)

__all__ = [
    "NBSP",
    "binding",
    "context",
    "count",
    "file_name",
    "htm",
    "isolated",
    "md",
    "n_bytes",
    "operator",
    "percent",
    "plain",
    "rate",
    "seconds",
    "shortened",
    "sig",
    "title_attribute",
    "tokens_per_s",
    "visible",
]

_JOINER = "\u2060"  # word joiner: invisible, breaks the patterns that Streamlit replaces in plain text
_PUNCTUATION = frozenset(string.punctuation)


def shortened(text: str, *, limit: int) -> str:
    """Return `text` cut to `limit` characters, the last of them an ellipsis where it was cut."""
    return text if len(text) <= limit else text[: limit - 1] + "\u2026"


def md(outside: str, *, limit: int = 120) -> str:
    """Return text from outside for a Markdown context (a label, `st.markdown`, `st.write`), shown as typed.

    Every ASCII punctuation character is escaped; shortcodes (`:name:`) and typographical replacements
    (`->`) are broken by an invisible joiner.
    """
    escaped = (
        "\\" + char + (_JOINER if char in ":-<>~=" else "") if char in _PUNCTUATION else char
        for char in shortened(visible(outside), limit=limit)
    )
    return isolated("".join(escaped))


def htm(outside: str, *, limit: int = 400) -> str:
    """Return text from outside for an HTML context, inside its own direction."""
    return f"<bdi>{html.escape(shortened(visible(outside), limit=limit), quote=True)}</bdi>"


def plain(outside: str, *, limit: int = 120) -> str:
    """Return text from outside for a place that shows plain text (a table's cell, an option)."""
    return isolated(shortened(visible(outside), limit=limit))


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


def tokens_per_s(value: float) -> str:
    """Return a throughput: "28,100 tok/s"."""
    return f"{sig(value)}{NBSP}tok/s"


def count(value: float) -> str:
    """Return a whole number, exact, grouped by thousands."""
    return f"{int(value):,}"


def title_attribute(outside: str, *, limit: int = 400) -> str:
    """Return text from outside for an HTML attribute in double quotes."""
    return html.escape(isolated(shortened(visible(outside), limit=limit)), quote=True)
