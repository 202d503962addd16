"""Helpers for pages in AppTest: the app as a whole, opened at one page, at one link."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from streamlit.testing.v1 import AppTest

from ui import link
from ui.app_state import AppState

APP = Path(__file__).resolve().parents[2] / "app.py"


def open_app(state: AppState | None = None, *, parameter: str | None = None) -> AppTest:
    """Return the app after its first run, opened by a link where one is given."""
    at = AppTest.from_file(str(APP), default_timeout=60)
    text = link.encode(state) if state is not None else parameter
    if text is not None:
        at.query_params[link.PARAMETER] = text
    return at.run()


def open_page(name: str, state: AppState | None = None, *, parameter: str | None = None) -> AppTest:
    """Return the app at a page. The page is run inside the frame, as in a browser."""
    at = open_app(state, parameter=parameter)
    return at.switch_page(f"pages/{name}/page.py").run()


def html_of(at: AppTest) -> str:
    """Return all HTML that the app put on the page, style sheets left out."""
    return "\n".join(body for body in _bodies(at) if not body.startswith("<style"))


def _bodies(at: AppTest) -> Iterable[str]:
    return (str(element.proto.body) for element in at.get("html"))


def state_of(at: AppTest) -> AppState:
    """Return the state of the app's session."""
    state: AppState = at.session_state["_planner_state"]
    return state


def check_no_fault(at: AppTest) -> None:
    """Check that neither Streamlit nor the guard shows an unexpected fault."""
    assert not at.exception, at.exception
    assert "Something went wrong" not in html_of(at)
    assert "Traceback" not in html_of(at)
