"""What every page is laid out with: its head, facts, faults, and the states that are not a result.

Owns: the line that says what is loaded, notices, big numbers, faults, empty and infeasible states.
Refuses: any text from outside that has not gone through `text`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import streamlit as st

from planner_core.errors import Fault
from planner_core.run_spec import RunSpec
from ui import loaded, plan_core, state, text

_LOADED = "_planner_loaded_line"


def page_head(title: str, summary: str = "") -> None:
    """Show a page's title and one line under it."""
    st.title(title, anchor=False)
    if summary:
        st.html(f'<div class="planner-quiet">{text.htm(summary)}</div>')


def loaded_line() -> None:
    """Show which model, machine and targets are loaded, with the way in and out of review mode."""
    left, right = st.columns([7, 1], vertical_alignment="center")
    st.session_state[_LOADED] = left.empty()
    refresh_loaded_line()
    with right.container(horizontal=True, horizontal_alignment="right"):
        st.button(
            "Leave review" if state.current().review else "Review mode",
            key="review_switch",
            type="tertiary",
            on_click=_toggle_review,
        )


def refresh_loaded_line(targets: RunSpec | None = None) -> None:
    """Write the line again: a target that moves redraws its page alone, and the line is outside of the page.

    Parameters
    ----------
    targets : RunSpec, optional
        With the targets in force; those of the state by default.
    """
    now = state.current()
    run_spec = loaded.run_spec(now.spec)
    entries = [
        ("Model", run_spec.model.name),
        ("Machine", run_spec.machine.title + (" (illustrative)" if run_spec.machine.illustrative else "")),
        ("Targets", _targets_in_force(run_spec, targets or plan_core.in_force(now).spec)),
    ]
    if now.draft is not None:
        entries.append(("Draft", "has faults, not in force"))
    cells = "".join(
        f'<div><span class="k">{name}</span><span class="v" title="{text.title_attribute(value)}">'
        f"{text.htm(value)}</span></div>"
        for name, value in entries
    )
    line = f'<div class="planner-loaded" role="status" aria-label="Loaded run-spec">{cells}</div>'
    st.session_state[_LOADED].html(line)


def _targets_in_force(own: RunSpec, moved: RunSpec) -> str:
    """Return the targets in force, and whether they were moved from what the run-spec says."""
    said = loaded.targets_line(moved)
    return said if said == loaded.targets_line(own) else f"{said} (moved)"


def _toggle_review() -> None:
    state.set_at("review", not state.current().review)


def show_notices() -> None:
    """Show what was not yet dismissed."""
    for notice in state.notices():
        if notice.faults:
            faults(notice.text, notice.faults)
        else:
            box = {"error": st.error, "warning": st.warning, "info": st.info}[notice.kind]
            box(text.md(notice.text, limit=600))
    if state.notices():
        st.button("Dismiss", key="dismiss_notices", type="tertiary", on_click=state.dismiss_notices)
    if state.link_too_long():
        st.html(
            '<div class="planner-quiet">This run-spec is too large for a link: the address bar lacks it. '
            "Download the run-spec to keep or share it.</div>"
        )


def facts(entries: Sequence[tuple[str, str, str]]) -> None:
    """Show big numbers: (label, value with unit, note)."""
    cells = "".join(
        f'<div><div class="k">{text.htm(label)}</div><div class="v">{text.htm(value)}</div>'
        f'<div class="n">{text.htm(note)}</div></div>'
        for label, value, note in entries
    )
    st.html(f'<div class="planner-facts">{cells}</div>')


def fault_line(fault: Fault, *, with_place: bool = True) -> str:
    """Return one fault as HTML."""
    place = f'<span class="w">{text.htm(fault.where)}</span>: ' if with_place else ""
    return (
        f'<div class="planner-fault" role="alert">{place}got {text.htm(fault.given)}. '
        f"Allowed: {text.htm(fault.allowed)}. To fix: {text.htm(fault.fix)}.</div>"
    )


def faults(title: str, found: Iterable[Fault]) -> None:
    """Show every fault at once, under a title."""
    lines = "".join(fault_line(fault) for fault in found)
    st.html(f'<div class="planner-empty"><b>{text.htm(title)}</b>{lines}</div>')


def empty(title: str, what_to_change: str) -> None:
    """Show why there is no result, and what to change."""
    st.html(
        f'<div class="planner-empty" role="status"><b>{text.htm(title)}</b>'
        f"{text.htm(what_to_change, limit=800)}</div>"
    )


def lines(entries: Sequence[str], *, none: str) -> None:
    """Show a short list of plain sentences from outside, or `none`."""
    if not entries:
        st.html(f'<div class="planner-quiet">{text.htm(none)}</div>')
        return
    items = "".join(f"<li>{text.htm(entry)}</li>" for entry in entries)
    st.html(f'<ul class="planner-lines">{items}</ul>')


def controls(page: str) -> Any:
    """Return a container for a page's controls; review mode hides it (the settings stay in force)."""
    return st.container(key=f"controls_{page}")
