"""A cell in words and tables.

Owns: the big numbers of an operating point, its tables, what to change where it does not fit.
Refuses: numbers of its own.
"""

from __future__ import annotations

import pandas as pd

from planner_core.reports import stage_document
from planner_core.stage_latencies import COMMUNICATION
from planner_core.units import GIGA, MB, MS
from ui import text
from ui.cell_core import Cell

_SHORTAGES = {
    "weights": "the weights alone are more than the budget",
    "KV": "the KV cache does not fit beside the weights",
    "activations": "the activations do not fit beside weights and KV cache",
}


def facts(found: Cell) -> list[tuple[str, str, str]]:
    """Return the big numbers."""
    step, memory = found.step, found.memory
    assert step is not None  # a cell with faults has no facts
    assert memory is not None
    total, budget = float(memory.total_bytes), memory.budget_bytes
    latency_s, waits_s = float(step.latency_s), float(step.communication_s)
    what = "a token each" if found.point.phase == "decode" else "a prompt each"
    copies = f"{found.n_copies} replica{'s' if found.n_copies != 1 else ''} a node"
    if not found.is_serving:
        copies = f"{found.n_copies} data-parallel replica{'s' if found.n_copies != 1 else ''}"
    return [
        (f"Step, {what}", text.seconds(latency_s), f"binds: {text.binding(step.binding)}"),
        ("Communication", text.seconds(waits_s), f"{text.percent(waits_s / latency_s)} of the step"),
        (
            "Throughput of a replica",
            text.tokens_per_s(found.tokens_per_s),
            f"{found.n_pes:,} PEs a replica" if found.is_serving else f"{found.n_pes:,} PEs in all",
        ),
        (
            f"Throughput of {'a node' if found.is_serving else 'all'}",
            text.tokens_per_s(found.tokens_per_s_in_all),
            copies,
        ),
        (
            "Memory of a PE",
            text.n_bytes(total),
            f"{text.percent(total / budget)} of {text.n_bytes(budget)}"
            + ("" if found.fits else ", does not fit"),
        ),
    ]


def limits_line(found: Cell) -> str:
    """Return how far batch and context could go."""
    limits = found.limits
    if limits is None:
        return ""
    batch = (
        f"the largest batch that fits is {limits.largest_batch:,}"
        if limits.largest_batch
        else "no batch fits"
    )
    longest = limits.longest_context_tokens
    context = f"the longest context that fits is {longest:,} tokens" if longest else "no context fits"
    return f"At this context {batch}; at this batch {context}."


def shortage(found: Cell) -> str:
    """Return why a cell does not fit, and what to change."""
    memory = found.memory
    assert memory is not None  # a cell with faults has no memory
    over = float(memory.total_bytes) - memory.budget_bytes
    reason = _SHORTAGES[found.lacks]
    return (
        f"A PE is short of {text.n_bytes(over)}: {reason}. {limits_line(found)} More ranks, narrower weights "
        "or KV (FP8), or a machine with more memory help too. The times below are what the step would take."
    )


def component_table(found: Cell) -> pd.DataFrame:
    """Return the component table of `planner cell`, with its total."""
    step = found.step
    assert step is not None  # a cell with faults has no step
    rows: list[dict[str, object]] = [
        {
            "Component": part.name,
            "Layers": part.n_layers,
            "Weights [MB]": float(part.weight_bytes) / MB,
            "KV [MB]": float(part.kv_bytes) / MB,
            "Activations [MB]": float(part.activation_bytes) / MB,
            "Work [GFLOP]": float(part.flops) / GIGA,
            "Load [ms]": float(part.load_s) / MS,
            "Compute [ms]": float(part.flop_s) / MS,
            "Time [ms]": float(part.time_s) / MS,
            "Binds": part.bind,
        }
        for part in step.components
    ]
    summed = ("Weights [MB]", "KV [MB]", "Activations [MB]", "Work [GFLOP]", "Time [ms]")
    total: dict[str, object] = {name: sum(float(str(row[name])) for row in rows) for name in summed}
    waits_ms = float(step.communication_s) / MS
    rows.append({"Component": "model total", **total})
    rows.append({"Component": COMMUNICATION, "Time [ms]": waits_ms})
    rows.append({"Component": "step", "Time [ms]": float(step.latency_s) / MS, "Binds": step.binding})
    frame = pd.DataFrame(rows)
    frame["Layers"] = frame["Layers"].astype("Int64")
    return frame


def stage_table(found: Cell) -> pd.DataFrame:
    """Return the floor of every operator that takes time, the longest first."""
    step = found.step
    assert step is not None  # a cell with faults has no step
    documents = [stage_document(stage, machine=found.spec.machine) for stage in step.stages]
    latency_s = float(step.latency_s)
    rows = [
        {
            "Operator": text.operator(stage["name"]),
            "Of": text.operator(stage["component"]),
            "Layers": stage["n_layers"],
            "Weights [MB]": _unless_zero(stage["weight_bytes"] / MB),
            "KV [MB]": _unless_zero(stage["kv_bytes"] / MB),
            "Activations [MB]": _unless_zero(stage["activation_bytes"] / MB),
            "Work [GFLOP]": _unless_zero(stage["flops"] / GIGA),
            "On the link [MB/layer]": _unless_zero(stage["link_bytes"] / MB),
            "Tier": text.plain(stage["tier"] or "", limit=30),
            "Floor [ms]": stage["time_s"] / MS,
            "Share [%]": 100.0 * stage["time_s"] / latency_s,
        }
        for stage in sorted(documents, key=lambda stage: -stage["time_s"])
        if stage["time_s"] > 0.0
    ]
    return pd.DataFrame(rows)


def _unless_zero(value: float) -> float | None:
    """Return None for what an operator has nothing of: an empty cell."""
    return value or None
