"""What reaches the terminal: safe lines, aligned tables, one JSON document, progress.

Owns: the cleaning of everything that is printed.
Refuses: knowing what it prints.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from planner_core.errors import InvalidSpec, PlannerError
from planner_core.reports import error_document
from planner_core.strict_json import clean_text, dumps

PROGRESS_AFTER_S: Final = 0.3

# Marks that turn or hide text where it is shown: directional marks, embeddings, isolates, zero-width.
_HIDDEN: Final = re.compile("[\u061c\u200b-\u200f\u2060-\u2069\u202a-\u202e\ufeff]")


def safe_line(text: str) -> str:
    """Return text from anywhere as one line that a terminal only shows.

    Examples
    --------
    >>> safe_line("a" + chr(27) + "[31m" + chr(8238) + "b")
    'a\ufffd[31m\ufffdb'
    """
    return _HIDDEN.sub("\N{REPLACEMENT CHARACTER}", clean_text(text))


def _write(stream: Any, text: str) -> None:
    """Write text whatever the terminal's encoding: what it cannot show is written as an escape."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))


def say(*lines: str) -> None:
    """Print lines on stdout."""
    for line in lines:
        _write(sys.stdout, safe_line(line).rstrip() + "\n")


def warn(*lines: str) -> None:
    """Print lines on stderr."""
    sys.stdout.flush()
    for line in lines:
        _write(sys.stderr, safe_line(line).rstrip() + "\n")


def print_json(document: dict[str, Any]) -> None:
    """Print one strict JSON document on stdout, in UTF-8 whatever the locale says."""
    text = dumps(document) + "\n"
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:
        sys.stdout.write(text)
    else:
        sys.stdout.flush()
        buffer.write(text.encode("utf-8"))
        buffer.flush()


def print_error(error: PlannerError, *, as_json: bool) -> None:
    """Print a fault: a line each on stderr, or one document on stdout."""
    if as_json:
        print_json(error_document(error))
    elif isinstance(error, InvalidSpec):
        warn(*(fault.line() for fault in error.faults))
    else:
        warn(str(error))


def table(rows: Iterable[Sequence[str]], *, header: Sequence[str], left: Sequence[str] = ()) -> list[str]:
    """Return rows as aligned lines.

    Parameters
    ----------
    rows : iterable of sequence of str
        Cells.
    header : sequence of str
        A name a column.
    left : sequence of str
        Columns that are aligned to the left; the others hold numbers.

    Returns
    -------
    list of str

    Examples
    --------
    >>> table([["a", "1"], ["bb", "10"]], header=["name", "n"], left=["name"])
    ['name   n', 'a      1', 'bb    10']
    """
    cells = [list(header), *([safe_line(cell) for cell in row] for row in rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(header))]
    lines = []
    for row in cells:
        parts = [
            cell.ljust(width) if name in left else cell.rjust(width)
            for cell, width, name in zip(row, widths, header, strict=True)
        ]
        lines.append("  ".join(parts).rstrip())
    return lines


def progress_printer() -> Callable[[int, int], None] | None:
    """Return a callback that shows progress on one line of stderr; None where that is no terminal."""
    if not sys.stderr.isatty():
        return None
    started_s = time.monotonic()
    shown_s = started_s

    def show(done: int, total: int) -> None:
        nonlocal shown_s
        now_s = time.monotonic()
        finished = done >= total
        if now_s - started_s < PROGRESS_AFTER_S or (now_s - shown_s < 0.1 and not finished):
            return
        shown_s = now_s
        text = f"{100.0 * done / total:5.1f}% of {total:,} configs, {now_s - started_s:.0f} s"
        sys.stderr.write("\r" + (" " * len(text) + "\r" if finished else text))
        sys.stderr.flush()

    return show
