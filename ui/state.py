"""The one place that reads and writes the app's state, and keeps the address bar in step with it.

Owns: the state of this session (`current`, `update`, `set_at`), its mirror in the URL, what a session opens
with, notices, and the list of compared points.
Refuses: drawing (see `layout` and `widgets`), and the text form of a link (see `link`).

How it moves: a widget's callback calls `set_at`; that validates, stores and writes the URL parameter. `sync`
runs first in every full run: it opens the link of a new session, follows the browser's Back and Forward, and
writes the parameter again where Streamlit dropped it (it does on a page switch). A link is read at these two
moments only, since a rerun asked for before the browser saw the last change still carries the old address.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal

import streamlit as st
from pydantic import ValidationError
from streamlit.runtime.scriptrunner import get_script_run_ctx

from planner_core.errors import Fault, PlannerError, shorten
from ui import link, loaded
from ui.app_state import MAX_COMPARED, AppState, ComparePoint, get_at, replaced_at

_STATE = "_planner_state"
_NOTICES = "_planner_notices"
_TOO_LONG = "_planner_link_too_long"
_HELD: ContextVar[AppState | None] = ContextVar("held_state", default=None)


@dataclass(frozen=True)
class Notice:
    """Something to tell the user once, at the top of the page, until it is dismissed."""

    kind: Literal["error", "warning", "info"]
    text: str
    faults: tuple[Fault, ...] = ()


def sync() -> None:
    """Make session and URL agree; call it first in every full run."""
    if _STATE not in st.session_state:
        st.session_state[_STATE] = _opened(st.query_params.get(link.PARAMETER), first=True)
    elif getattr(get_script_run_ctx(), "is_history_navigation", False):
        parameter = st.query_params.get(link.PARAMETER)
        if parameter:
            st.session_state[_STATE] = _opened(parameter, first=False)
    _mirror()


@contextmanager
def held(state: AppState) -> Iterator[None]:
    """Make `current` return a state inside the block, whatever the session.

    A file that is made on the click is made outside its session, where `current` would be the default.
    """
    token = _HELD.set(state)
    try:
        yield
    finally:
        _HELD.reset(token)


def current() -> AppState:
    """Return the state of this session, or the one that is held."""
    kept = _HELD.get()
    if kept is not None:
        return kept
    if _STATE not in st.session_state:
        sync()
    state: AppState = st.session_state[_STATE]
    return state


def replace(state: AppState) -> None:
    """Store a whole state, and mirror it."""
    st.session_state[_STATE] = state
    _mirror()


def update(**fields: Any) -> None:
    """Replace top-level fields: `update(baseline=config)`."""
    state = current()
    values = {name: getattr(state, name) for name in AppState.model_fields}
    replace(AppState.model_validate({**values, **fields}))


def set_at(path: str, value: object) -> bool:
    """Replace the field at a dotted path ("explore.batch"); False, with a notice, where it is refused."""
    try:
        replace(replaced_at(current(), path, value))
    except ValidationError as error:
        reason = error.errors(include_url=False)[0]["msg"]
        notify("error", f"{path} was left as it was: {shorten(value)} is not allowed ({reason}).")
        return False
    return True


def at(path: str) -> Any:
    """Return the value at a dotted path."""
    return get_at(current(), path)


def reset() -> None:
    """Open the default run-spec with default settings."""
    replace(default_state())


def default_state() -> AppState:
    """Return what a first visit opens."""
    return AppState(spec=loaded.default_spec())


def add_to_compare(point: ComparePoint) -> str:
    """Add a point to Compare, and return one sentence that says what happened."""
    state = current()
    if point in state.compare:
        return "This point is already in Compare."
    if len(state.compare) >= MAX_COMPARED:
        return f"Compare holds {MAX_COMPARED} points. Remove one there first."
    update(compare=(*state.compare, point))
    return f"Added to Compare ({len(state.compare) + 1} of {MAX_COMPARED})."


def notify(kind: Literal["error", "warning", "info"], text: str, faults: tuple[Fault, ...] = ()) -> None:
    """Show a notice at the top of the page until it is dismissed."""
    notice = Notice(kind, text, faults)
    if notice not in notices():
        st.session_state[_NOTICES] = (*notices(), notice)


def notices() -> tuple[Notice, ...]:
    """Return the notices not yet dismissed."""
    shown: tuple[Notice, ...] = st.session_state.get(_NOTICES, ())
    return shown


def dismiss_notices() -> None:
    """Forget the notices."""
    st.session_state[_NOTICES] = ()


def link_too_long() -> bool:
    """Return True where the state does not fit a link (a very large run-spec)."""
    return bool(st.session_state.get(_TOO_LONG, False))


def query() -> dict[str, str]:
    """Return the URL parameters that reopen this state on another page, for `st.page_link`."""
    parameter = link.encode(current())
    return {link.PARAMETER: parameter} if parameter else {}


def _opened(parameter: str | None, *, first: bool) -> AppState:
    """Return the state of a link, or else the default (on Back: the session's own) with a notice."""
    fallback = default_state() if first else current()
    if not parameter:
        return fallback
    try:
        state = link.decode(parameter)
        for document in (state.spec, *(point.spec for point in state.compare)):
            loaded.run_spec(document)
    except PlannerError as error:
        opened = "The default run-spec is open instead." if first else "The page was left as it was."
        notify("error", f"This link can't be read. {opened}", loaded.faults_of(error))
        return fallback
    return state


def _mirror() -> None:
    """Write the URL parameter where it differs from the state."""
    parameter = link.encode(current())
    st.session_state[_TOO_LONG] = parameter is None
    if parameter is None:
        st.query_params.pop(link.PARAMETER, None)
    elif st.query_params.get(link.PARAMETER) != parameter:
        st.query_params[link.PARAMETER] = parameter
