"""How a model is cut over ranks, and where the ranks lie.

Owns: `Parallelism` (numbers or arrays, one config or a grid), the strides of its axes, its defaults.
Refuses: machines and times.

Source: physics contract, section 6.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner_core.units import FloatArray, as_float

KV_SHARD_MODES: Final = ("split", "replicate")
FFN_SHARD_SCOPES: Final = ("TP", "TP+CP", "TP+DP", "TP+CP+DP")
PLACEMENTS: Final = ("inner", "outer")
CP_RING_VARIANTS: Final = ("qoml", "kv")

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Axis:
    """One parallel axis as it lies on the PEs: `size` ranks, `stride` PEs apart."""

    size: FloatArray
    stride: FloatArray


@dataclass(frozen=True)
class Parallelism:
    """One config, or an open grid of them: every field broadcasts against the others.

    Parameters
    ----------
    cp, tp, pp, dp, ep : ndarray of float64
        Context, tensor, pipeline, data and expert parallel degrees, 1 or more.
    kv_split : ndarray of float64
        Copies of a KV head that its sequence is cut over, as asked for; no more than exist are used
        (1 = replicate, inf = all).
    ffn_over_cp, ffn_over_dp : ndarray of bool
        Whether the FFN is cut over the CP ranks and the DP ranks too.
    tp_outer, cp_outer : ndarray of bool
        Placements; see `tp_axis`.
    ring_qoml : ndarray of bool
        True: Q, O, m, l travel round the CP ring. False: the rank's own cache does.
    """

    cp: FloatArray
    tp: FloatArray
    pp: FloatArray
    dp: FloatArray
    ep: FloatArray
    kv_split: FloatArray
    ffn_over_cp: BoolArray
    ffn_over_dp: BoolArray
    tp_outer: BoolArray
    cp_outer: BoolArray
    ring_qoml: BoolArray

    @cached_property
    def ranks(self) -> FloatArray:
        """PEs of one pipeline stage: CP * TP * DP."""
        return self.cp * self.tp * self.dp

    @cached_property
    def pes_used(self) -> FloatArray:
        """PEs in all: CP * TP * PP * DP. EP reuses them."""
        return self.ranks * self.pp

    @cached_property
    def tp_axis(self) -> Axis:
        """TP: innermost where inner; else outside CP, and outside DP too where CP is outer."""
        outside = np.where(self.cp_outer, self.dp * self.cp, self.cp)
        return Axis(self.tp, np.where(self.tp_outer, outside, 1.0))

    @cached_property
    def cp_axis(self) -> Axis:
        """CP: outside TP where TP is inner; outside DP where CP is outer."""
        return Axis(
            self.cp,
            np.where(self.tp_outer, 1.0, self.tp) * np.where(self.cp_outer, self.dp, 1.0),
        )

    @cached_property
    def dp_axis(self) -> Axis:
        """DP: inside whichever axes are laid outside it."""
        inner_tp = np.where(self.tp_outer, 1.0, self.tp)
        return Axis(self.dp, np.where(self.cp_outer, inner_tp, self.tp * self.cp))


def make_parallelism(
    *,
    tp: ArrayLike,
    cp: ArrayLike = 1.0,
    pp: ArrayLike = 1.0,
    dp: ArrayLike = 1.0,
    ep: ArrayLike = 1.0,
    kv_split: ArrayLike = np.inf,
    ffn_over_cp: ArrayLike = False,
    ffn_over_dp: ArrayLike = False,
    tp_outer: ArrayLike = False,
    cp_outer: ArrayLike = False,
    ring_qoml: ArrayLike = True,
) -> Parallelism:
    """Build a `Parallelism` from numbers or arrays, with the contract's defaults.

    Parameters
    ----------
    tp, cp, pp, dp, ep : array_like
        Degrees, 1 or more.
    kv_split : array_like
        Copies of a KV head to cut its sequence over; 1 = replicate, inf = as many as exist.
    ffn_over_cp, ffn_over_dp, tp_outer, cp_outer, ring_qoml : array_like of bool
        See `Parallelism`.

    Returns
    -------
    Parallelism

    Examples
    --------
    >>> float(make_parallelism(tp=8, cp=2).pes_used)
    16.0
    """
    return Parallelism(
        cp=as_float(cp),
        tp=as_float(tp),
        pp=as_float(pp),
        dp=as_float(dp),
        ep=as_float(ep),
        kv_split=as_float(kv_split),
        ffn_over_cp=np.asarray(ffn_over_cp, dtype=np.bool_),
        ffn_over_dp=np.asarray(ffn_over_dp, dtype=np.bool_),
        tp_outer=np.asarray(tp_outer, dtype=np.bool_),
        cp_outer=np.asarray(cp_outer, dtype=np.bool_),
        ring_qoml=np.asarray(ring_qoml, dtype=np.bool_),
    )
