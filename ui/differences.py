"""A number against the same number of a baseline, in words.

Owns: the form of a difference: signed, a percentage up to tenfold, then a factor.
Refuses: saying which way is better.
"""

from __future__ import annotations

import math

from ui import text

_MINUS = "\u2212"
_FACTOR_FROM = 10.0


def change(value: float | None, base: float | None) -> str:
    """Return how a value differs from a baseline's.

    Examples
    --------
    >>> change(90.0, 100.0), change(100.0, 100.0), change(2500.0, 100.0), change(None, 1.0)
    ('−10.0%', 'same', '25.0x', '')
    """
    if value is None or base is None or not math.isfinite(value) or not math.isfinite(base):
        return ""
    if value == base:
        return "same"
    if base == 0.0 or value / base < 0.0:
        return ""
    ratio = value / base
    if ratio >= _FACTOR_FROM:
        return f"{text.sig(ratio)}x"
    sign = "+" if ratio > 1.0 else _MINUS
    return f"{sign}{text.percent(abs(ratio - 1.0))}"
