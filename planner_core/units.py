"""Unit constants and the one place where inputs become float64.

Owns: the decimal byte units, the width of bf16, and `as_float`, the entry door of every formula.
Refuses: nothing; it knows no physics.

Inside the code every quantity is in SI base units (bytes, seconds, FLOP, tokens); a unit other than SI
appears only at the edge (a preset file, a printed table, a chart axis).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

MB = 1e6
GB = 1e9
MS = 1e-3
TERA = 1e12
GIGA = 1e9
BF16_BYTES = 2.0

FloatArray = NDArray[np.float64]


def as_float(value: ArrayLike) -> FloatArray:
    """Convert a number or an array to float64.

    int64 wraps silently at FLOP scale (2**63 is 9.2e18), so every formula calls this on entry.

    Parameters
    ----------
    value : array_like
        Any real number or array of them.

    Returns
    -------
    ndarray of float64
        The same shape as `value`; 0-d for a scalar.

    Examples
    --------
    >>> as_float(3).dtype
    dtype('float64')
    """
    return np.asarray(value, dtype=np.float64)
