"""No traceback ever reaches the screen.

Owns: the last net under a page and under a fragment: the fault is logged for whoever runs the server, and the
user reads what happened and how to go on.
Refuses: hiding a fault from the log.
"""

from __future__ import annotations

import functools
import logging
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

import streamlit as st

from planner_core.errors import PlannerError
from ui import layout, loaded, state

_LOG = logging.getLogger("planner.app")
_Function = TypeVar("_Function", bound=Callable[..., Any])


def _reset() -> None:
    state.reset()
    state.dismiss_notices()


def _show(error: Exception, *, place: str) -> None:
    """Say what happened in place of the part that failed."""
    if isinstance(error, PlannerError):
        layout.faults("This can't be computed", loaded.faults_of(error))
    else:
        _LOG.error("unexpected fault in %s\n%s", place, "".join(traceback.format_exception(error)))
        layout.empty(
            "Something went wrong in this part of the page",
            "The fault was written to the server's log. Nothing you typed is lost: change a setting or "
            "reload the page to try again, or open the default run-spec.",
        )
    st.button("Open the default run-spec", key=f"reset_{place}", on_click=_reset)


def run(function: Callable[[], Any], *, place: str) -> None:
    """Call `function`, and show a plain message where it fails."""
    try:
        function()
    except Exception as error:
        _show(error, place=place)


def fragment(function: _Function) -> _Function:
    """Make a fragment that is guarded too: a fragment reruns without the guard of `app.py`.

    Use it instead of `st.fragment`.
    """

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            _show(error, place=function.__qualname__)
            return None

    wrapped: _Function = st.fragment(guarded)
    return wrapped


def callback(function: _Function) -> _Function:
    """Guard a widget's callback, which runs outside of the page's own guard."""

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception:
            _LOG.exception("unexpected fault in a callback")
            state.notify("error", "That change could not be applied. Nothing else was lost.")
            return None

    return guarded  # type: ignore[return-value]
