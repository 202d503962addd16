"""Points to compare: made from a page, told apart, and laid side by side.

Owns: `point_of`, the short names that tell points apart, moving and removing them.
Refuses: numbers (see `cell_core`) and drawing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from ui import cell_core, guard, state, text
from ui.app_state import CellPoint, ComparePoint
from ui.cell_core import Cell

_SAID = "_compare_said"


def point_of(document: Mapping[str, Any], cell: CellPoint, *, label: str = "") -> ComparePoint:
    """Return a point with the whole run-spec that it belongs to."""
    name = label or cell_core.config_label(cell.config)
    return ComparePoint(label=name, spec=cell_core.document_in_force(document, cell), cell=cell)


@guard.callback
def add(point: ComparePoint) -> None:
    """Add a point to Compare; `say` tells what happened."""
    st.session_state[_SAID] = state.add_to_compare(point)


def say() -> None:
    """Tell once what the last addition did."""
    said = st.session_state.pop(_SAID, None)
    if said:
        st.toast(said)


@guard.callback
def move(position: int, by: int) -> None:
    """Move a point; the first is what the others are measured against."""
    points = list(state.current().compare)
    target = position + by
    if 0 <= position < len(points) and 0 <= target < len(points):
        points[position], points[target] = points[target], points[position]
        state.update(compare=tuple(points))


@guard.callback
def remove(position: int) -> None:
    """Take a point out."""
    points = state.current().compare
    state.update(compare=points[:position] + points[position + 1 :])


@guard.callback
def clear() -> None:
    """Take all points out."""
    state.update(compare=())


def facets(point: ComparePoint, found: Cell) -> dict[str, str]:
    """Return what a point is, facet by facet."""
    spec = found.spec
    widths = sorted({spec.widths.attention, spec.widths.ffn, spec.widths.experts})
    return {
        "Model": spec.model_label,
        "Machine": spec.hardware_name,
        "Weights": "/".join(f"{width:g}" for width in widths) + " B",
        "KV cache": f"{spec.kv_dtype_bytes:g} B",
        "Computes in": spec.precision,
        "Collectives": spec.machine.collective_model,
        "Phase": point.cell.phase,
        "Context": text.context(point.cell.context_tokens),
        "Batch": f"{point.cell.batch:,}",
        "Config": found.label,
    }


def short_names(described: Sequence[Mapping[str, str]]) -> list[str]:
    """Return what tells the points apart: the facets that differ, or the config where none does.

    Examples
    --------
    >>> short_names([{"Model": "A", "Config": "TP8"}, {"Model": "B", "Config": "TP8"}])
    ['A', 'B']
    """
    if not described:
        return []
    varied = [name for name in described[0] if len({facet[name] for facet in described}) > 1]
    shown = varied or ["Config"]
    return [", ".join(_named(name, facet[name]) for name in shown) for facet in described]


def _named(name: str, value: str) -> str:
    """Return a facet's value so that it says by itself what it is."""
    words = {"Weights": "weights {}", "KV cache": "KV {}", "Batch": "batch {}"}
    return words.get(name, "{}").format(text.shortened(value, limit=32))
