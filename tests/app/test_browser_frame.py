"""The frame in a real browser: what AppTest can't see (navigation, reload, two tabs, Back, deep links)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.app.browser import go_to, no_traceback, quiet_console, settle, visit, wait_ready
from tests.app.conftest import Server
from ui import link, loaded
from ui.app_state import AppState

pytestmark = pytest.mark.browser


def field(page: Page, label: str):
    return page.get_by_label(label, exact=True)


def test_a_deep_link_is_a_fresh_servers_first_visit(new_server: Callable[[], Server], page: Page) -> None:
    server = new_server()
    spec = {**loaded.default_spec(), "hf_config": "llama-3.1-8b", "model": "Llama 3.1 8B"}
    parameter = link.encode(AppState(spec=spec))
    visit(page, f"{server.url}/method?{link.PARAMETER}={parameter}")
    expect(page.get_by_role("heading", level=1, name="Method")).to_be_visible()
    expect(page.get_by_test_id("stDialog")).to_have_count(0)
    assert page.url.startswith(f"{server.url}/method")
    expect(page.locator(".planner-loaded")).to_contain_text("Llama 3.1 8B")
    expect(page.get_by_test_id("stSidebar").get_by_role("link", name="Run spec")).to_be_visible()
    no_traceback(page)


def test_a_broken_link_opens_the_default_and_says_so(server: Server, page: Page) -> None:
    visit(page, f"{server.url}/method?s=1.broken")
    expect(page.get_by_text("This link can't be read.")).to_be_visible()
    expect(page.locator(".planner-loaded")).to_contain_text("Granite 4.1 8B")
    page.locator(".st-key-dismiss_notices").get_by_role("button").click()
    expect(page.get_by_text("This link can't be read.")).to_have_count(0)


def test_an_edit_survives_page_switch_reload_and_another_browser(
    server: Server, page: Page, browser: Browser
) -> None:
    with quiet_console(page):
        visit(page, server.url)
        field(page, "ITL ceiling [ms]").fill("37")
        go_to(page, "Method")  # leaving the field commits it
        expect(page.locator(".planner-loaded")).to_contain_text("37 ms")
        go_to(page, "Run spec")
        expect(field(page, "ITL ceiling [ms]")).to_have_value("37")
        page.reload()
        wait_ready(page)
        expect(field(page, "ITL ceiling [ms]")).to_have_value("37")
    other = browser.new_context().new_page()
    visit(other, page.url)
    expect(field(other, "ITL ceiling [ms]")).to_have_value("37")
    other.context.close()


def test_a_faulty_draft_survives_page_switch_and_reload(server: Server, page: Page) -> None:
    visit(page, server.url)
    field(page, "ITL ceiling [ms]").fill("fast")
    field(page, "ITL ceiling [ms]").press("Enter")
    expect(page.get_by_text("1 fault: the last valid run-spec stays in force")).to_be_visible()
    go_to(page, "Method")
    expect(page.locator(".planner-loaded")).to_contain_text("has faults, not in force")
    page.reload()
    wait_ready(page)
    go_to(page, "Run spec")
    expect(field(page, "ITL ceiling [ms]")).to_have_value("fast")
    no_traceback(page)


def test_form_and_json_are_in_step(server: Server, page: Page) -> None:
    visit(page, server.url)
    text = field(page, "Run-spec as JSON")
    expect(text).to_have_value(re.compile('"decode_itl_ceiling_ms": 50'))
    document = json.loads(text.input_value())
    document["decode_itl_ceiling_ms"] = 21
    text.fill(json.dumps(document))
    text.press("Control+Enter")
    expect(field(page, "ITL ceiling [ms]")).to_have_value("21")
    field(page, "Prefill floor [tok/s]").fill("12000")
    field(page, "Prefill floor [tok/s]").press("Enter")
    expect(text).to_have_value(re.compile(r'"prefill_itps_floor": 12000\b'))
    expect(text).to_have_value(re.compile(r'"decode_itl_ceiling_ms": 21\b'))


def test_a_preset_is_picked_and_back_undoes_it(server: Server, page: Page) -> None:
    visit(page, server.url)
    field(page, "ITL ceiling [ms]").fill("44")
    field(page, "ITL ceiling [ms]").press("Enter")
    expect(page.locator(".planner-loaded")).to_contain_text("44 ms")
    field(page, "Model").click()
    page.get_by_role("option", name="Llama 3.1 70B").click()
    expect(page.locator(".planner-loaded")).to_contain_text("Llama 3.1 70B")
    settle(page)
    page.go_back()
    expect(page.locator(".planner-loaded")).to_contain_text("Granite 4.1 8B")
    expect(page.locator(".planner-loaded")).to_contain_text("44 ms")
    settle(page)
    expect(field(page, "Model shown as")).to_have_value("Granite 4.1 8B")
    page.go_forward()
    expect(page.locator(".planner-loaded")).to_contain_text("Llama 3.1 70B")


def test_two_tabs_do_not_disturb_each_other(server: Server, page: Page) -> None:
    visit(page, server.url)
    other = page.context.new_page()
    visit(other, server.url)
    field(page, "ITL ceiling [ms]").fill("11")
    field(page, "ITL ceiling [ms]").press("Enter")
    expect(page.locator(".planner-loaded")).to_contain_text("11 ms")
    field(other, "ITL ceiling [ms]").fill("99")
    field(other, "ITL ceiling [ms]").press("Enter")
    expect(other.locator(".planner-loaded")).to_contain_text("99 ms")
    settle(page)
    expect(page.locator(".planner-loaded")).to_contain_text("11 ms")


def test_a_bad_upload_is_told_and_changes_nothing(server: Server, page: Page, tmp_path: Path) -> None:
    bad = tmp_path / "config.json"
    bad.write_text('{"hidden_size": 1, "hidden_size": 2}')
    with quiet_console(page):
        visit(page, server.url)
        page.get_by_role("button", name="Upload files").click()
        page.locator('input[type="file"]').set_input_files(bad)
        expect(page.get_by_text("Nothing was loaded")).to_be_visible()
    expect(page.locator(".planner-loaded")).to_contain_text("Granite 4.1 8B")
    no_traceback(page)


def test_the_report_opens_offline(server: Server, page: Page, browser: Browser, tmp_path: Path) -> None:
    visit(page, server.url)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Export").click()
    assert waiting.value.suggested_filename == "Granite-4.1-8B_trn2_run-spec.html"
    report = tmp_path / "report.html"
    waiting.value.save_as(report)
    context = browser.new_context(offline=True)
    offline = context.new_page()
    with quiet_console(offline):
        offline.goto(report.as_uri())
    expect(offline.get_by_role("heading", level=1, name="Run spec")).to_be_visible()
    expect(offline.get_by_text("Global attention")).to_be_visible()
    context.close()


def test_the_run_spec_is_downloaded_as_the_command_line_takes_it(
    server: Server, page: Page, tmp_path: Path
) -> None:
    visit(page, server.url)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download run-spec").click()
    assert waiting.value.suggested_filename == "run-spec_Granite-4.1-8B_trn2.json"
    waiting.value.save_as(tmp_path / "spec.json")
    assert json.loads((tmp_path / "spec.json").read_text()) == loaded.default_spec()


def test_review_mode_hides_sidebar_and_controls(server: Server, page: Page) -> None:
    visit(page, server.url)
    page.get_by_role("button", name="Review mode").click()
    expect(page.get_by_test_id("stSidebar")).to_be_hidden()
    expect(field(page, "ITL ceiling [ms]")).to_be_hidden()
    expect(page.get_by_role("heading", name="What was understood")).to_be_visible()
    page.get_by_role("button", name="Leave review").click()
    expect(field(page, "ITL ceiling [ms]")).to_be_visible()
    expect(field(page, "ITL ceiling [ms]")).to_have_value("50")


def test_a_hostile_name_breaks_no_layout(server: Server, page: Page) -> None:
    name = ("<script>alert(1)</script>**x**:smile:" + "y" * 400)[:400]
    parameter = link.encode(AppState(spec={**loaded.default_spec(), "model": name}))
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    for width, height in ((1600, 900), (1280, 800), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        visit(page, f"{server.url}/?{link.PARAMETER}={parameter}")
        expect(page.locator(".planner-loaded")).to_contain_text("<script>alert(1)</script>**x**:smile:yyy")
        overflow = page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert overflow <= 0
    assert dialogs == []


def test_the_page_reconnects_with_its_state_after_the_server_restarts(
    new_server: Callable[[], Server], page: Page
) -> None:
    server = new_server()
    visit(page, server.url)
    field(page, "ITL ceiling [ms]").fill("23")
    field(page, "ITL ceiling [ms]").press("Enter")
    expect(page.locator(".planner-loaded")).to_contain_text("23 ms")
    server.stop()
    server.start()
    expect(page.get_by_test_id("stApp")).to_have_attribute(
        "data-test-connection-state", "CONNECTED", timeout=60_000
    )
    settle(page)
    field(page, "Prefill floor [tok/s]").fill("11000")
    field(page, "Prefill floor [tok/s]").press("Enter")
    expect(page.locator(".planner-loaded")).to_contain_text("11,000 tok/s", timeout=30_000)
    expect(page.locator(".planner-loaded")).to_contain_text("23 ms")


@pytest.mark.parametrize(("format_", "start"), [("PNG", b"\x89PNG"), ("SVG", b"<svg")])
def test_a_figure_downloads_from_its_own_menu(
    server: Server, page: Page, tmp_path: Path, format_: str, start: bytes
) -> None:
    visit(page, f"{server.url}/method")
    page.locator(".st-key-figure_method_accuracy .js-plotly-plot").wait_for(timeout=30_000)
    with page.expect_download(timeout=30_000) as waiting:
        page.get_by_role("button", name=f"Download figure as {format_}").click()
    assert waiting.value.suggested_filename == f"predicted-against-measured.{format_.lower()}"
    waiting.value.save_as(tmp_path / "figure")
    assert (tmp_path / "figure").read_bytes().startswith(start)


def test_the_report_of_a_page_with_a_figure_draws_offline_and_prints(
    server: Server, page: Page, browser: Browser, tmp_path: Path
) -> None:
    visit(page, f"{server.url}/method")
    with page.expect_download(timeout=30_000) as waiting:
        page.get_by_role("button", name="Export").click()
    report = tmp_path / "report.html"
    waiting.value.save_as(report)
    context = browser.new_context(offline=True)
    offline = context.new_page()
    with quiet_console(offline):
        offline.goto(report.as_uri())
        offline.locator(".js-plotly-plot .main-svg").first.wait_for()
    for paper in ("A4", "Letter"):
        assert offline.pdf(format=paper).startswith(b"%PDF")
    offline.emulate_media(media="print")
    offline.set_viewport_size({"width": 688, "height": 900})  # A4 inside its margins
    offline.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    wide = offline.evaluate(
        "[...document.querySelectorAll('.js-plotly-plot, table')].map(e => e.scrollWidth)"
    )
    assert max(wide) <= 700
    context.close()
