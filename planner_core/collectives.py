"""How long ranks take to exchange bytes.

Owns: ring all-reduce, all-to-all and point-to-point times over the tiers of a machine, under its
collective model; and the tier that a group of ranks spans.
Refuses: what the bytes mean; see `stage_latencies`.

Source: physics contract, section 3.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner_core.hardware import Machine
from planner_core.parallelism import Axis
from planner_core.units import FloatArray, as_float


def ring_all_reduce_s(
    *,
    n_ranks: ArrayLike,
    message_bytes: ArrayLike,
    hop_latency_s: ArrayLike,
    link_bytes_per_s: ArrayLike,
) -> FloatArray:
    """Time of a ring all-reduce.

    Parameters
    ----------
    n_ranks : array_like
        `g`, ranks in the ring, 1 or more.
    message_bytes : array_like
        `M`, bytes that every rank holds before and after [B].
    hop_latency_s : array_like
        Latency of a hop [s].
    link_bytes_per_s : array_like
        Bandwidth of a rank's link in one direction [B/s].

    Returns
    -------
    ndarray
        Seconds, broadcast over the inputs; exactly 0 for one rank.

    Notes
    -----
    2(g-1)*latency + 2(g-1)/g * M/bandwidth. Physics contract, section 3; the ring algorithm of
    Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", JPDC 69(2), 2009. Left out: the time to
    add, congestion, and the overlap of the two terms.

    Examples
    --------
    >>> float(ring_all_reduce_s(n_ranks=8, message_bytes=131072, hop_latency_s=1.5e-6,
    ...                         link_bytes_per_s=100e9))
    2.329376e-05
    """
    ranks = as_float(n_ranks)
    steps = 2.0 * (ranks - 1.0)
    bytes_sent = steps / ranks * as_float(message_bytes)
    return steps * as_float(hop_latency_s) + bytes_sent / as_float(link_bytes_per_s)


def point_to_point_s(
    *, message_bytes: ArrayLike, hop_latency_s: ArrayLike, link_bytes_per_s: ArrayLike
) -> FloatArray:
    """Time to send `message_bytes` to a neighbour: latency + bytes/bandwidth [s].

    Parameters
    ----------
    message_bytes, hop_latency_s, link_bytes_per_s : array_like
        Bytes [B], latency [s], bandwidth [B/s].

    Returns
    -------
    ndarray
        Seconds.

    Examples
    --------
    >>> float(point_to_point_s(message_bytes=1e3, hop_latency_s=1e-6, link_bytes_per_s=1e9))
    2e-06
    """
    return as_float(hop_latency_s) + as_float(message_bytes) / as_float(link_bytes_per_s)


def neighbour_exchange_s(*, axes: Sequence[Axis], message_bytes: ArrayLike, machine: Machine) -> FloatArray:
    """Time to send `message_bytes` to the next rank of a group, at the tier that the group spans [s].

    Parameters
    ----------
    axes : sequence of Axis
        The axes that the group is made of.
    message_bytes : array_like
        Bytes [B].
    machine : Machine
        The tiers.

    Returns
    -------
    ndarray
        Seconds.

    Notes
    -----
    Whatever the collective model: the KV merge, the CP ring and the pipeline hop are point to point.
    Physics contract, section 3.
    """
    tier = tier_spanned(axes=axes, machine=machine)
    return point_to_point_s(
        message_bytes=message_bytes,
        hop_latency_s=machine.slowest_latency_s[tier],
        link_bytes_per_s=machine.slowest_bytes_per_s[tier],
    )


def ranks_inside_tiers(*, axes: Sequence[Axis], machine: Machine) -> list[FloatArray]:
    """Ranks of a group that lie inside one tier, for each tier.

    Parameters
    ----------
    axes : sequence of Axis
        The parallel axes that the group is made of.
    machine : Machine
        The tiers.

    Returns
    -------
    list of ndarray
        `g_k`, innermost tier first. The outermost counts the whole group: whether the machine has that
        many PEs is a question of feasibility.

    Notes
    -----
    An axis of size n at stride s has clip(floor(tier_pes/s), 1, n) ranks inside a tier; a group of
    several axes the product. Physics contract, section 3.
    """
    inside: list[FloatArray] = []
    for n_pes in machine.tier_pes[:-1]:
        ranks = as_float(1.0)
        for axis in axes:
            ranks = ranks * np.minimum(np.maximum(np.floor(n_pes / axis.stride), 1.0), axis.size)
        inside.append(ranks)
    inside.append(_group_size(axes))
    return inside


def _group_size(axes: Sequence[Axis]) -> FloatArray:
    size = as_float(1.0)
    for axis in axes:
        size = size * axis.size
    return size


def tier_spanned(*, axes: Sequence[Axis], machine: Machine) -> NDArray[np.intp]:
    """Index of the innermost tier that holds a whole group.

    Parameters
    ----------
    axes : sequence of Axis
        The axes that the group is made of.
    machine : Machine
        The tiers.

    Returns
    -------
    ndarray of int
        0 for a group of one rank.
    """
    inside = ranks_inside_tiers(axes=axes, machine=machine)
    whole = inside[-1]
    tier = np.zeros(np.shape(whole), dtype=np.intp)
    for ranks in inside[:-1]:
        tier = tier + (ranks < whole)
    return tier


def charged_axes(*, axes: Sequence[Axis], machine: Machine, pes_used: ArrayLike) -> tuple[Axis, ...]:
    """Axes whose span says at which tier a collective is charged.

    Parameters
    ----------
    axes, machine, pes_used
        As in `all_reduce_s`.

    Returns
    -------
    tuple of Axis
        The group's own; under `flat-all-pes` all PEs in use, side by side.
    """
    if machine.collective_model == "flat-all-pes":
        return (Axis(as_float(pes_used), as_float(1.0)),)
    return tuple(axes)


def all_reduce_s(
    *, axes: Sequence[Axis], message_bytes: ArrayLike, machine: Machine, pes_used: ArrayLike
) -> FloatArray:
    """Time of an all-reduce over a group, under the machine's collective model.

    Parameters
    ----------
    axes : sequence of Axis
        The axes that the group is made of.
    message_bytes : array_like
        `M` [B].
    machine : Machine
        Tiers and model.
    pes_used : array_like
        All PEs of the plan; what `flat-all-pes` looks at.

    Returns
    -------
    ndarray
        Seconds; 0 for a group of one rank.

    Notes
    -----
    `hierarchical`: with g_k ranks inside tier k and l_k = g_k/g_(k-1), the sum over k of
    2(l_k-1)*latency_k + 2(l_k-1)/l_k * (M/g_(k-1))/bandwidth_k. `flat`: one ring at the slowest tier that
    the group touches. `flat-all-pes`: one ring at the tier that holds all PEs in use. Physics contract,
    section 3.

    Examples
    --------
    >>> from planner_core.hardware_file import load_preset
    >>> from planner_core.parallelism import make_parallelism
    >>> float(all_reduce_s(axes=[make_parallelism(tp=8).tp_axis], message_bytes=131072,
    ...                    machine=load_preset("trn2"), pes_used=8))
    2.329376e-05
    """
    message = as_float(message_bytes)
    if machine.collective_model == "hierarchical":
        total = as_float(0.0)
        ranks_before = as_float(1.0)
        for tier, ranks in zip(machine.tiers, ranks_inside_tiers(axes=axes, machine=machine), strict=True):
            total = total + ring_all_reduce_s(
                n_ranks=ranks / ranks_before,
                message_bytes=message / ranks_before,
                hop_latency_s=tier.hop_latency_s,
                link_bytes_per_s=tier.link_bytes_per_s,
            )
            ranks_before = ranks
        return total
    tier_index = tier_spanned(
        axes=charged_axes(axes=axes, machine=machine, pes_used=pes_used), machine=machine
    )
    return ring_all_reduce_s(
        n_ranks=_group_size(axes),
        message_bytes=message,
        hop_latency_s=machine.slowest_latency_s[tier_index],
        link_bytes_per_s=machine.slowest_bytes_per_s[tier_index],
    )


def all_to_all_s(
    *, axes: Sequence[Axis], message_bytes: ArrayLike, machine: Machine, pes_used: ArrayLike
) -> FloatArray:
    """Time of a pairwise all-to-all over a group, under the machine's collective model.

    Parameters
    ----------
    axes, machine, pes_used
        As in `all_reduce_s`.
    message_bytes : array_like
        `M`, bytes that a rank has for all ranks, itself included [B].

    Returns
    -------
    ndarray
        Seconds; 0 for a group of one rank.

    Notes
    -----
    (g-1)*latency + (g-1)/g * M/bandwidth: g-1 exchanges of M/g each. Under `hierarchical` an exchange is
    charged at the tier that its partner lies in: the sum over k of (g_k - g_(k-1)) such exchanges.
    Physics contract, section 3; Thakur, Rabenseifner and Gropp, "Optimization of collective communication
    operations in MPICH", IJHPCA 19(1), 2005, section 4.3.
    """
    share = as_float(message_bytes) / _group_size(axes)
    if machine.collective_model == "hierarchical":
        total = as_float(0.0)
        ranks_before = as_float(1.0)
        for tier, ranks in zip(machine.tiers, ranks_inside_tiers(axes=axes, machine=machine), strict=True):
            exchange_s = point_to_point_s(
                message_bytes=share,
                hop_latency_s=tier.hop_latency_s,
                link_bytes_per_s=tier.link_bytes_per_s,
            )
            total = total + (ranks - ranks_before) * exchange_s
            ranks_before = ranks
        return total
    tier_index = tier_spanned(
        axes=charged_axes(axes=axes, machine=machine, pes_used=pes_used), machine=machine
    )
    exchange_s = point_to_point_s(
        message_bytes=share,
        hop_latency_s=machine.slowest_latency_s[tier_index],
        link_bytes_per_s=machine.slowest_bytes_per_s[tier_index],
    )
    return (_group_size(axes) - 1.0) * exchange_s
