"""What a machine is: constants with their sources, no formula.

Owns: `Machine` and its tiers, and the worst constants up to each tier.
Refuses: reading JSON (see `hardware_file`), and any constant without a unit in its name.

Source: physics contract, sections 3 and 5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from planner_core.units import FloatArray

COLLECTIVE_MODELS = ("hierarchical", "flat", "flat-all-pes")
SOURCE_KINDS = ("vendor", "published", "measured", "fitted", "assumed", "illustrative")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """One level of a machine's network.

    Parameters
    ----------
    name : str
        "chip", "node", "package".
    n_pes : float
        PEs inside one such tier; `inf` where there is no limit.
    hop_latency_s : float
        Latency of a hop [s].
    link_bytes_per_s : float
        Bandwidth of a PE's link in one direction [B/s].
    """

    name: str
    n_pes: float
    hop_latency_s: float
    link_bytes_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a constant comes from.

    Parameters
    ----------
    kind : str
        One of `SOURCE_KINDS`.
    cite : str
        Vendor page, table or how it was fitted.
    date : str
        When that was read or measured, ISO.
    """

    kind: str
    cite: str
    date: str = ""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A machine's constants, in SI base units, per PE.

    Parameters
    ----------
    name, title, pe_name : str
        Short name, what to show, and what a PE is on this machine ("GPU").
    node_pes : int
        PEs of one node: what a serving plan fills.
    peak_flops_per_s : mapping of str to float
        Dense peak by precision ("bf16", "fp8") [FLOP/s].
    hbm_bytes_per_s, hbm_bytes, usable_hbm_frac, reserved_bytes : float
        Memory bandwidth, size, the share of it that a plan may use, and what a runtime keeps for itself.
    collective_model : str
        One of `COLLECTIVE_MODELS`.
    tiers : tuple of Tier
        Innermost first.
    kv_merge_bytes_per_s : float or None
        Bandwidth at which copies of a KV head merge their partial results; None: the tier they span.
    batch_multiple : int
        A batch is a multiple of it.
    tp_grid, cp_grid : tuple of int
        What the serving plan sweeps.
    sources : mapping of str to Source
        By dotted path of the constant.
    illustrative : bool
        True for a machine that does not exist.
    """

    name: str
    title: str
    pe_name: str
    node_pes: int
    peak_flops_per_s: Mapping[str, float]
    hbm_bytes_per_s: float
    hbm_bytes: float
    usable_hbm_frac: float
    collective_model: str
    tiers: tuple[Tier, ...]
    tp_grid: tuple[int, ...]
    cp_grid: tuple[int, ...]
    reserved_bytes: float = 0.0
    kv_merge_bytes_per_s: float | None = None
    batch_multiple: int = 1
    sources: Mapping[str, Source] = field(default_factory=dict)
    illustrative: bool = False

    @property
    def budget_bytes(self) -> float:
        """Memory of one PE that a plan may fill: usable_hbm_frac * hbm_bytes [B]."""
        return self.usable_hbm_frac * self.hbm_bytes

    @property
    def max_pes(self) -> float:
        """PEs of the outermost tier: more than this the machine does not have."""
        return self.tiers[-1].n_pes

    @cached_property
    def tier_pes(self) -> FloatArray:
        """PEs inside each tier, innermost first [n_tiers]."""
        return np.array([tier.n_pes for tier in self.tiers])

    @cached_property
    def slowest_latency_s(self) -> FloatArray:
        """Worst hop latency up to each tier [n_tiers]: a ring that spans a tier uses all inside it."""
        return np.maximum.accumulate([tier.hop_latency_s for tier in self.tiers])

    @cached_property
    def slowest_bytes_per_s(self) -> FloatArray:
        """Worst link bandwidth up to each tier [n_tiers]."""
        return np.minimum.accumulate([tier.link_bytes_per_s for tier in self.tiers])
