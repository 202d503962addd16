"""Helpers for driving the app in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import ConsoleMessage, Page, expect

READY = '[data-testid="stApp"][data-test-script-state="notRunning"]'
LIMIT_MS = 30_000


def wait_ready(page: Page) -> None:
    """Wait until the run has ended and the head of the app is there."""
    page.wait_for_selector(READY, timeout=LIMIT_MS)
    page.wait_for_selector(".planner-loaded", timeout=LIMIT_MS)


def settle(page: Page) -> None:
    """Wait for the rerun that the last action asked for: it starts within a moment, or there is none."""
    page.wait_for_timeout(250)
    page.wait_for_selector(READY, timeout=LIMIT_MS)


def visit(page: Page, address: str) -> None:
    """Open an address and wait for the page."""
    page.goto(address)
    wait_ready(page)


def go_to(page: Page, title: str) -> None:
    """Change page by the sidebar."""
    page.get_by_test_id("stSidebar").get_by_role("link", name=title, exact=True).click()
    expect(page.get_by_role("heading", level=1, name=title)).to_be_visible(timeout=LIMIT_MS)
    settle(page)


def no_traceback(page: Page) -> None:
    """Check that no fault of ours or of Streamlit's is on the screen."""
    assert page.get_by_test_id("stException").count() == 0
    assert page.get_by_text("Something went wrong").count() == 0
    assert "Traceback" not in page.inner_text("body")


@contextmanager
def quiet_console(page: Page) -> Iterator[list[str]]:
    """Collect errors of the console and of the page, and fail at the end where there is one."""
    errors: list[str] = []

    def note(message: ConsoleMessage) -> None:
        # Two of Streamlit's own: on a deep link it looks for its endpoints under the page's path first, with
        # a 404; and a server's first visitor by deep link is told that the page is not there (see frame.js).
        known = "/_stcore/" in message.location["url"] or "requested does not seem to exist" in message.text
        if message.type == "error" and not known:
            errors.append(f"{message.text} ({message.location['url']})")

    page.on("console", note)
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield errors
    assert not errors, errors
