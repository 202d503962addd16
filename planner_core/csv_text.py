"""Rows to CSV text that a spreadsheet opens without running anything.

Owns: quoting, and the neutralising of cells that a spreadsheet would take for a formula.
Refuses: writing files (see `artifacts`).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from planner_core.strict_json import clean_text

_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def _cell(value: object) -> object:
    """Return a value for a cell: numbers as they are, text on one line and never a formula."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return value
    text = clean_text(str(value))
    return f"'{text}" if text.lstrip().startswith(_FORMULA_STARTS) else text


def csv_text(rows: Iterable[Mapping[str, object]], *, columns: Sequence[str]) -> str:
    r"""Return rows as CSV (RFC 4180, lines end in CR LF), a header first.

    Parameters
    ----------
    rows : iterable of mapping
        By column; a missing one is left empty.
    columns : sequence of str
        Which columns, in order.

    Returns
    -------
    str
        A text that starts with = + - or @, after blanks or not, gets an apostrophe in front, so that a
        spreadsheet shows it and runs nothing. Numbers are left alone.

    Examples
    --------
    >>> csv_text([{"name": "=1+1", "n": -2}], columns=("name", "n"))
    "name,n\r\n'=1+1,-2\r\n"
    """
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([_cell(name) for name in columns])
    writer.writerows([_cell(row.get(name)) for name in columns] for row in rows)
    return out.getvalue()
