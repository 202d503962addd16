"""A model and a machine as text: `planner parse` and `planner hardware`.

Owns: words, columns and their digits.
Refuses: numbers of its own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields

from planner_core.cli.terminal import table
from planner_core.hardware import Machine
from planner_core.hardware_file import constant_paths, hardware_to_json
from planner_core.model_arch import FfnGroup, ModelArch, kv_bytes_per_token
from planner_core.units import BF16_BYTES, GB, GIGA, TERA


def _cache_line(model: ModelArch, width: float, name: str) -> str:
    full = kv_bytes_per_token(model, kv_dtype_bytes=width, windowed=False)
    windowed = kv_bytes_per_token(model, kv_dtype_bytes=width, windowed=True)
    return (
        f"KV cache {full:,} bytes a token in layers without a window, "
        f"{windowed:,} in layers with one ({name})"
    )


def model_lines(model: ModelArch) -> list[str]:
    """Return a model as text.

    Parameters
    ----------
    model : ModelArch
        The model.

    Returns
    -------
    list of str
    """
    widths_shown = [(BF16_BYTES, "in bf16")]
    if model.kv_dtype_bytes != BF16_BYTES:
        widths_shown.append((model.kv_dtype_bytes, f"as stored, {model.kv_dtype_bytes:g} bytes an element"))
    attention = [
        (
            group.kind,
            str(group.n_layers),
            str(group.n_q_heads),
            str(group.n_kv_heads),
            f"{group.head_dim_k}/{group.head_dim_v}",
            "" if group.window_tokens is None else f"{group.window_tokens:,}",
            f"{group.cached_elements_per_token:,}",
        )
        for group in model.attention
    ]
    widths = sorted({getattr(model.widths, item.name) for item in fields(model.widths)})
    lines = [
        f"{model.name} ({model.architecture})",
        f"{model.n_params:,} parameters, {model.n_layers} layers, hidden {model.hidden_size:,}, vocabulary "
        f"{model.vocab_size:,}, embeddings {'tied' if model.tied_embeddings else 'not tied'}, "
        f"up to {model.max_position_tokens:,} tokens",
        f"weights {model.weight_bytes / GB:.2f} GB (bytes a weight: {', '.join(f'{w:.6g}' for w in widths)})",
        *(_cache_line(model, width, name) for width, name in widths_shown),
        "",
        *table(
            attention,
            header=("attention", "layers", "heads", "KV heads", "dim K/V", "window", "cached/token"),
            left=("attention",),
        ),
        "",
        *table(
            [_ffn_cells(group) for group in model.ffn],
            header=("FFN", "layers", "width", "gated", "experts", "per token", "shared width"),
            left=("FFN", "gated"),
        ),
    ]
    for title, texts in (("assumed", model.assumed), ("note", model.notes), ("ignored", model.ignored)):
        lines += [""] if texts else []
        lines += [f"{title}: {text}" for text in texts]
    return lines


def _ffn_cells(group: FfnGroup) -> tuple[str, ...]:
    is_moe = group.kind == "moe"
    return (
        group.kind,
        str(group.n_layers),
        f"{group.intermediate_size:,}",
        "yes" if group.gated else "no",
        str(group.n_experts) if is_moe else "",
        str(group.n_experts_per_token) if is_moe else "",
        f"{group.shared_intermediate_size:,}" if group.shared_intermediate_size else "",
    )


def machines_lines(machines: Sequence[Machine]) -> list[str]:
    """Return the machines that come with the planner, one a line.

    Parameters
    ----------
    machines : sequence of Machine
        Which.

    Returns
    -------
    list of str
    """
    rows = []
    for machine in machines:
        kinds = Counter(source.kind for source in machine.sources.values())
        bf16 = machine.peak_flops_per_s.get("bf16")
        rows.append(
            (
                machine.name,
                machine.title,
                str(machine.node_pes),
                "" if bf16 is None else f"{bf16 / TERA:g}",
                f"{machine.hbm_bytes / GB:.1f}",
                f"{machine.hbm_bytes_per_s / GIGA:g}",
                machine.collective_model,
                ", ".join(f"{kind} {count}" for kind, count in kinds.most_common()),
            )
        )
    header = ("name", "machine", "PEs/node", "bf16 TFLOP/s", "HBM GB", "HBM GB/s", "collectives", "sources")
    return [
        *table(rows, header=header, left=("name", "machine", "collectives", "sources")),
        "",
        "All figures are per PE. `planner hardware NAME` shows every constant with its source.",
    ]


def _constant(document: dict[str, object], path: str) -> float:
    """Return the value at a path like "tiers[0].n_pes" of a machine's JSON."""
    at: object = document
    for part in path.replace("[", ".").replace("]", "").split("."):
        at = at[int(part)] if isinstance(at, list) else at[part]  # type: ignore[index]
    return float(at)  # type: ignore[arg-type]


def machine_lines(machine: Machine) -> list[str]:
    """Return a machine as text: each constant, its unit in its name, and where it comes from.

    Parameters
    ----------
    machine : Machine
        The machine.

    Returns
    -------
    list of str
    """
    document = hardware_to_json(machine)
    rows = []
    for path in constant_paths(machine):
        source = machine.sources.get(path)
        value = _constant(document, path)
        shown = f"{value:.0f}" if value.is_integer() and abs(value) < 1e7 else f"{value:.10g}"
        rows.append(
            (
                path,
                shown,
                *(("no source", "", "") if source is None else (source.kind, source.date, source.cite)),
            )
        )
    tiers = ", ".join(
        f"{tier.name} of {'any number of' if math.isinf(tier.n_pes) else f'{tier.n_pes:.0f}'} PEs"
        for tier in machine.tiers
    )
    grid = [", ".join(map(str, degrees)) for degrees in (machine.tp_grid, machine.cp_grid)]
    return [
        f"{machine.title} ({machine.name})" + (", illustrative" if machine.illustrative else ""),
        f"a PE is a {machine.pe_name}; tiers: {tiers}; collectives: {machine.collective_model}",
        f"serving grid: TP {grid[0]} x CP {grid[1]}",
        "",
        *table(
            rows,
            header=("constant", "value", "kind", "read", "source"),
            left=("constant", "kind", "read", "source"),
        ),
    ]
