"""What breaks between a page and its server: an upload that is cut, a server that is killed."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from planner_core.preset_files import presets_dir
from tests.app.browser import go_to, no_traceback, settle, visit
from tests.app.conftest import Server

pytestmark = pytest.mark.browser

CONFIG = presets_dir() / "models" / "llama-3.1-8b.json"


def test_an_upload_that_is_cut_changes_nothing_and_can_be_tried_again(
    server: Server, page: Page, tmp_path: Path
) -> None:
    whole = tmp_path / "my-model.json"
    whole.write_bytes(CONFIG.read_bytes())
    visit(page, server.url)
    page.route("**/_stcore/upload_file/**", lambda route: route.abort("connectionreset"))
    page.get_by_role("button", name="Upload files").click()
    page.locator('input[type="file"]').set_input_files(whole)
    expect(page.get_by_text(re.compile("Error|failed|Failed")).first).to_be_visible()
    expect(page.locator(".planner-loaded")).to_contain_text("Granite 4.1 8B")
    no_traceback(page)
    page.unroute("**/_stcore/upload_file/**")
    cut = tmp_path / "cut.json"
    cut.write_bytes(CONFIG.read_bytes()[:200])
    page.locator('input[type="file"]').set_input_files(cut)
    expect(page.get_by_text("Nothing was loaded")).to_be_visible()
    expect(page.locator(".planner-loaded")).to_contain_text("Granite 4.1 8B")
    page.locator('input[type="file"]').set_input_files(whole)
    expect(page.locator(".planner-loaded")).to_contain_text("my-model")
    no_traceback(page)


def test_a_killed_server_comes_back_to_the_page_as_it_was(
    new_server: Callable[[], Server], page: Page
) -> None:
    server = new_server()
    visit(page, server.url)
    page.get_by_label("ITL ceiling [ms]", exact=True).fill("29")
    go_to(page, "Cell")
    page.get_by_label("Batch", exact=True).fill("37")
    page.get_by_label("Batch", exact=True).press("Enter")
    settle(page)
    os.killpg(server.process.pid, signal.SIGKILL)
    server.process.wait(timeout=10)
    server.start()
    expect(page.get_by_test_id("stApp")).to_have_attribute(
        "data-test-connection-state", "CONNECTED", timeout=60_000
    )
    settle(page)
    expect(page.get_by_role("heading", level=1, name="Cell")).to_be_visible()
    expect(page.get_by_label("Batch", exact=True)).to_have_value("37")
    expect(page.locator(".planner-loaded")).to_contain_text("29 ms")
    no_traceback(page)
