"""A slider whose page answers while it moves, with a number box beside it.

Owns: the component, the value while it is being moved, and its writing to the state once it is let go.
Refuses: what depends on the value.

Why not `st.slider`: in Streamlit 1.67 it tells the server when it is let go, and not before. The value on the
way is kept beside the state, so that a drag leaves one entry in the browser's history and not fifty.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import streamlit as st

from ui import guard, state, widgets
from ui.assets import asset

_MOVING: Final = "_planner_moving"
LOWEST, HIGHEST = 1e-6, 1e12
# The stops of one decade: finer at its low end, so that the steps look alike on a log scale.
_MARKS: Final = (*range(10, 20), *range(20, 32, 2), 32, 35, 38, 40, *range(45, 100, 5))

_slider = st.components.v2.component(
    "planner_live_slider",
    html='<div class="live"><div class="top"><span class="name"></span><label>'
    '<input type="number" step="any"><span class="unit"></span></label></div>'
    '<input type="range" min="0" step="1"></div>',
    css=asset("live_slider.css"),
    js=asset("live_slider.js"),
)


def nice_steps(low: float, high: float) -> tuple[float, ...]:
    """Return round numbers from `low` to `high`, about 31 a decade.

    Examples
    --------
    >>> nice_steps(8, 12)
    (8, 8.5, 9, 9.5, 10, 11, 12)
    """
    found = []
    for power in range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1):
        found += [float(f"{mark * 10.0**power:.6g}") for mark in _MARKS]
    kept = sorted(step for step in found if low <= step <= high)
    return tuple(int(step) if step.is_integer() else step for step in kept)


def live_slider(
    label: str, *, at: str, steps: Sequence[float], unit: str, fallback: float | None, none: str = "none"
) -> float | None:
    """Show the slider and return the value in force: the one being moved to, or the state's.

    Parameters
    ----------
    label : str
        What it sets.
    at : str
        Dotted path of a field of `AppState`.
    steps : sequence of float
        Its stops, ascending; the number box takes any value.
    unit : str
        Of the number.
    fallback : float, optional
        What holds where the field is None; None where nothing does.
    none : str
        What to show then.

    Returns
    -------
    float or None
    """
    key = f"{widgets.key_of(at)}_live"
    moving: dict[str, float] = st.session_state.get(_MOVING, {})
    value = moving.get(at, state.at(at))
    in_force = fallback if value is None else value
    _slider(
        key=key,
        data={
            "label": label,
            "unit": unit,
            "steps": list(steps),
            "value": in_force,
            "none": none,
            "none_at": len(steps) - 1,
            "lowest": LOWEST,
            "highest": HIGHEST,
        },
        on_moved_change=guard.callback(lambda: _moved(at, key)),
        on_settled_change=guard.callback(lambda: _settled(at, key)),
    )
    return in_force


def _number(key: str, name: str) -> float | None:
    """Return the number that the component sent: a finite one in bounds, or None for "as the run-spec"."""
    sent: Any = (st.session_state.get(key) or {}).get(name)
    value = sent.get("value") if isinstance(sent, dict) or hasattr(sent, "get") else None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not LOWEST <= value <= HIGHEST:
        return None
    return value


def _moved(at: str, key: str) -> None:
    value = _number(key, "moved")
    if value is not None:
        st.session_state[_MOVING] = {**st.session_state.get(_MOVING, {}), at: value}


def _settled(at: str, key: str) -> None:
    """Write the value to the state; an emptied box means "as the run-spec says"."""
    st.session_state[_MOVING] = {
        path: value for path, value in st.session_state.get(_MOVING, {}).items() if path != at
    }
    value = _number(key, "settled")
    if state.at(at) != value:
        state.set_at(at, value)
