"""The controls of Auto Explore, and the baseline: number input, table row and chart click in step.

Owns: which settings there are and their options, and the three ways to pick the baseline.
Refuses: results.

The baseline lives in the state alone. Each run the number input and the table's selection are set from it
before they are drawn; setting a widget does not call it back, so there is no loop.
"""

from __future__ import annotations

from typing import Final

import streamlit as st

from planner_core.auto_explore import Config, ConfigScore
from planner_core.run_spec import RunSpec
from ui import explore_core, explore_job, explore_words, guard, pages, state, text, widgets
from ui.app_state import CellPoint, ComparePoint
from ui.explore_core import Question

TABLE_KEY: Final = "explore_front"
_ROW_KEY: Final = "explore_baseline_row"
_SAID_KEY: Final = "_explore_said"
_MAX_PES: Final = 1 << 20
_CONTEXT_POWERS: Final = (10, 20)
_BATCHES: Final = tuple(1 << power for power in range(13))
_DEGREE_OPTIONS: Final = {"cp": 256, "tp": 256, "pp": 32, "dp": 64}
_MODE_OPTIONS: Final = {
    "kv_shard_mode": ("KV shard mode", ("split", "replicate")),
    "ffn_shard_scope": ("FFN cut over", ("TP", "TP+CP", "TP+DP", "TP+CP+DP")),
    "tp_placement": ("TP placement", ("inner", "outer")),
    "cp_placement": ("CP placement", ("inner", "outer")),
    "cp_ring_variant": ("CP ring", ("qoml", "kv")),
}


def _with_own(options: tuple[int, ...], own: int) -> list[int]:
    """Return the options and, where it is not one of them, the value in force: a link may hold any."""
    return sorted({*options, own})


def workload_controls(spec: RunSpec) -> None:
    """Show phase, context, batch, PE budget, collective model, and what is searched."""
    settings = state.current().explore
    phase, context, batch, budget, collectives, grid = st.columns(
        [1.95, 2, 2, 1.4, 1.9, 1.2], gap="medium", vertical_alignment="bottom"
    )
    with phase:
        widgets.segmented("Phase", at="explore.phase", options=("decode", "prefill"))
    longest = max(spec.model.max_position_tokens or 0, 1 << _CONTEXT_POWERS[1])
    powers = tuple(1 << power for power in range(_CONTEXT_POWERS[0], longest.bit_length()))
    default = explore_core.default_context(spec)
    with context:
        widgets.select_slider(
            "Context [tokens]",
            at="explore.context_tokens",
            options=_with_own(powers, settings.context_tokens or default),
            fallback=default,
            format_func=text.context,
        )
    with batch:
        widgets.select_slider(
            "Batch of a replica",
            at="explore.batch",
            options=_with_own(_BATCHES, settings.batch),
            fallback=1,
            format_func=text.count,
        )
    limit = spec.machine.max_pes
    with budget:
        widgets.number(
            "PE budget",
            at="explore.max_pes",
            min_value=1,
            max_value=_MAX_PES,
            step=1,
            placeholder="no limit" if limit == float("inf") else f"all {limit:,.0f}",
            help="Most PEs that a config may use; empty: as many as the machine has",
        )
    own = spec.machine.collective_model
    with collectives:
        widgets.select(
            "Collective model",
            at="explore.collective_model",
            options=("own", *(name for name in explore_core.COLLECTIVE_MODELS if name != own)),
            format_func=lambda name: f"{own} (own)" if name == "own" else name,
            help="How a collective that spans several tiers is charged; see Method. Own: as the machine says",
        )
    with grid:
        _axes_controls()


def _axes_controls() -> None:
    """Show the values of each axis, and the dense grid."""
    settings = state.current().explore
    with st.popover("Dense" if settings.dense else "Axes", width="stretch"), st.container(width=640):
        widgets.toggle(
            "Dense grid: 1 and every even degree, CP to 256, TP to 64, PP to 32, DP to 64",
            at="explore.dense",
            help="Millions of configs: it is started by hand, shows its progress and can be stopped",
        )
        left, right = st.columns(2)
        with left:
            for name, most in _DEGREE_OPTIONS.items():
                own = getattr(settings.axes, name)
                options = tuple(sorted({*(1 << power for power in range(most.bit_length())), *own}))
                widgets.multiselect(
                    f"{name.upper()} degrees",
                    at=f"explore.axes.{name}",
                    options=options,
                    disabled=settings.dense,
                )
        with right:
            for name, (label, choices) in _MODE_OPTIONS.items():
                widgets.multiselect(label, at=f"explore.axes.{name}", options=choices)


def front_of(asked: Question) -> tuple[ConfigScore, ...]:
    """Return the front that the page shows for a question; empty where there is none yet."""
    if not state.current().explore.dense:
        return explore_core.sweep(asked).pareto
    whole = explore_job.kept(asked)
    if whole is not None:
        return whole.pareto
    job = explore_job.current(asked)
    return () if job is None or job.result is None else job.result.pareto


def baseline_of(front: tuple[ConfigScore, ...]) -> Config | None:
    """Return the baseline in force: the chosen config or else row 0; None where there is neither."""
    chosen = state.current().baseline
    if chosen is not None:
        return explore_core.config_of(chosen)
    return front[0].config if front else None


def pick_row(row: int) -> None:
    """Make a row of the front the baseline; a number that is no row is left alone."""
    front = front_of(explore_core.question(state.current()))
    if 0 <= row < len(front):
        state.update(baseline=explore_core.chosen_of(front[row].config))


@guard.callback
def _picked_number() -> None:
    row = st.session_state.get(_ROW_KEY)
    if row is not None:
        pick_row(int(row))


@guard.callback
def picked_table_row() -> None:
    """Take the row that was selected in the table; a row deselected stays the baseline."""
    rows = st.session_state[TABLE_KEY]["selection"]["rows"]
    if rows:
        pick_row(int(rows[0]))


def put_table_selection(row: int | None) -> None:
    """Set the table's selection from the state, before the table is drawn."""
    wanted = [] if row is None else [row]
    shown = st.session_state.get(TABLE_KEY)
    if shown is None or list(shown["selection"]["rows"]) != wanted:
        st.session_state[TABLE_KEY] = {"selection": {"rows": wanted, "columns": [], "cells": []}}


@guard.callback
def _first_row() -> None:
    state.update(baseline=None)


def _cell_point(asked: Question, baseline: ConfigScore) -> CellPoint:
    return CellPoint(
        phase=asked.phase,
        context_tokens=asked.context_tokens,
        batch=asked.batch,
        config=explore_core.chosen_of(baseline.config),
        collective_model=asked.collective_model,
    )


@guard.callback
def _compare(asked: Question, baseline: ConfigScore) -> None:
    st.session_state[_SAID_KEY] = state.add_to_compare(
        ComparePoint(
            label=baseline.label(), spec=dict(state.current().spec), cell=_cell_point(asked, baseline)
        )
    )


def baseline_bar(asked: Question, *, baseline: ConfigScore, row: int | None, n_rows: int) -> None:
    """Show the baseline, its number input, and where it can go from here."""
    if st.session_state.get(_ROW_KEY, -1) != row:
        st.session_state[_ROW_KEY] = row
    st.number_input(
        "Baseline row",
        min_value=0,
        max_value=max(n_rows - 1, 0),
        step=1,
        key=_ROW_KEY,
        on_change=_picked_number,
        placeholder="none",
        disabled=n_rows == 0,
        width=150,
        help="A row of the front; a row of the table or a point of a chart does the same",
    )
    if row is None and n_rows:
        st.button("Back to row 0", key="explore_first_row", on_click=_first_row)
    st.button("Add to compare", key="explore_compare", on_click=_compare, args=(asked, baseline))
    if "cell" in {page.name for page in pages.available()} and st.button(
        "Open as cell",
        key="explore_cell",
        help="What this config spends its time and memory on, component by component",
    ):
        _open_cell(asked, baseline)
    said = text.htm(explore_words.baseline_line(baseline, row=row))
    st.html(f'<div class="planner-quiet" style="padding-bottom: 0.5rem">{said}</div>', width="content")
    toast = st.session_state.pop(_SAID_KEY, None)
    if toast:
        st.toast(toast)


def _open_cell(asked: Question, baseline: ConfigScore) -> None:
    state.update(cell=_cell_point(asked, baseline))
    st.switch_page("pages/cell/page.py", query_params=state.query())
