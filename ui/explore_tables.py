"""The tables of Auto Explore: the front, and the sensitivity rows.

Owns: their columns and units.
Refuses: rounding; what is shown rounded is downloaded in full.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pandas as pd

from planner_core.auto_explore import ConfigScore, ParallelismSensitivityRow
from planner_core.units import GB, MS
from ui import text

FRONT_COLUMNS: Final = (
    "Row",
    "Config",
    "Latency [ms]",
    "PEs",
    "Efficiency [%]",
    "Throughput [tok/s]",
    "Memory [GB/PE]",
    "HBM [%]",
    "Binds",
    "CP",
    "TP",
    "PP",
    "DP",
    "KV",
    "FFN cut over",
    "TP at",
    "CP at",
    "Ring",
    "Ties",
)


def front_table(front: Sequence[ConfigScore]) -> pd.DataFrame:
    """Return one row for each row of the front."""
    rows = [
        (
            at,
            row.label(),
            row.latency_s / MS,
            row.pes_used,
            row.efficiency * 100.0,
            row.throughput_tokens_per_s,
            row.memory_bytes_per_pe / GB,
            row.hbm_frac * 100.0,
            text.binding(row.binding),
            row.cp,
            row.tp,
            row.pp,
            row.dp,
            row.kv_shard_mode,
            row.ffn_shard_scope,
            row.tp_placement,
            row.cp_placement,
            row.cp_ring_variant if row.cp > 1 else "none",
            row.n_tied,
        )
        for at, row in enumerate(front)
    ]
    return pd.DataFrame(rows, columns=list(FRONT_COLUMNS))


def sensitivity_table(rows: Sequence[ParallelismSensitivityRow]) -> pd.DataFrame:
    """Return one row for each value of each knob."""
    return pd.DataFrame(
        {
            "Knob": [row.knob.upper() for row in rows],
            "Value": [row.value for row in rows],
            "Latency [ms]": [row.latency_s / MS for row in rows],
            "Memory [GB/PE]": [row.memory_bytes_per_pe / GB for row in rows],
            "PEs": [row.pes_used for row in rows],
            "Fits": ["yes" if row.fits else "no" for row in rows],
            "Why not": [row.reason for row in rows],
            "FFN weights [ms]": [row.ffn_weight_s / MS for row in rows],
            "Binds": [text.binding(row.binding) for row in rows],
            "Baseline": ["baseline" if row.is_baseline else "" for row in rows],
            "Collectives land on": [
                text.plain(
                    "; ".join(f"{text.operator(name)}: {tier}" for name, tier in row.tiers.items()), limit=400
                )
                for row in rows
            ],
            "Step": [text.plain(row.step_note, limit=400) for row in rows],
        }
    )
