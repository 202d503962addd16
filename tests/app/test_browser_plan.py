"""Serving plan, Cell and Compare in a real browser: moving sliders, rows, links, downloads, small screens."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from planner_core.reports import plan_document
from planner_core.serving_plan import plan_serving
from tests.app.browser import LIMIT_MS, go_to, no_traceback, quiet_console, settle, visit, wait_ready
from tests.app.conftest import Server
from ui import compare_core, link, loaded
from ui.app_state import AppState, CellPoint, ParallelConfig, PlanSettings

pytestmark = pytest.mark.browser

# Sets the slider to a stop as a hand does: "input" while it moves, "change" where it is let go.
_MOVE = """(slider, [stop, events]) => {
  slider.value = stop;
  events.forEach((name) => slider.dispatchEvent(new Event(name, { bubbles: true })));
}"""


def address(server: Server, page: str, state: AppState | None = None) -> str:
    query = "" if state is None else f"?{link.PARAMETER}={link.encode(state)}"
    return f"{server.url}/{page}{query}"


def two_points() -> tuple:
    spec = loaded.default_spec()
    return (
        compare_core.point_of(spec, CellPoint(batch=124)),
        compare_core.point_of({**spec, "kv_dtype_bytes": 1}, CellPoint(batch=124)),
    )


def test_a_moving_slider_replans_and_only_letting_go_is_kept(server: Server, page: Page) -> None:
    visit(page, server.url)
    with quiet_console(page):
        go_to(page, "Serving plan")
        lead = page.locator(".planner-lead")
        expect(lead).to_contain_text("8 replicas of TP8")
        opened_at = page.url
        slider = page.get_by_role("slider", name="ITL ceiling")
        slider.evaluate(_MOVE, [0, ["input"]])
        expect(lead).to_contain_text("no config meets the targets")
        assert page.url == opened_at
        slider.evaluate(_MOVE, [0, ["input", "change"]])
        page.wait_for_url(lambda url: url != opened_at)
        expect(lead).to_contain_text("no config meets the targets")
        go_to(page, "Method")
        go_to(page, "Serving plan")
        expect(page.get_by_role("slider", name="ITL ceiling")).to_have_value("0")
        page.get_by_role("button", name="Run-spec's targets").click()
        expect(lead).to_contain_text("8 replicas of TP8")
        expect(page.get_by_label("ITL ceiling, as a number [ms]")).to_have_value("50")


def test_targets_are_typed_and_stepped_by_keyboard_and_survive_a_reload(server: Server, page: Page) -> None:
    visit(page, address(server, "serving_plan"))
    box = page.get_by_label("ITL ceiling, as a number [ms]")
    box.fill("37.5")
    box.press("Enter")
    expect(page.get_by_text("Targets in force: ITL at most 37.5")).to_be_visible()
    expect(page.locator(".planner-loaded")).to_contain_text("ITL at most 37.5\u00a0ms")
    slider = page.get_by_role("slider", name="Prefill floor")
    slider.focus()
    slider.press("ArrowRight")
    expect(slider).to_have_attribute("aria-valuetext", "32000 tok/s")
    settle(page)
    page.reload()
    wait_ready(page)
    expect(page.get_by_label("ITL ceiling, as a number [ms]")).to_have_value("37.5")
    expect(page.get_by_label("Prefill floor, as a number [tok/s]")).to_have_value("32000")
    box = page.get_by_label("ITL ceiling, as a number [ms]")
    box.fill("")
    box.press("Enter")
    expect(box).to_have_value("50")  # emptied: as the run-spec says


def test_zoom_is_kept_while_the_target_moves(server: Server, page: Page) -> None:
    visit(page, address(server, "serving_plan"))
    plot = page.locator('[role="figure"][aria-label^="Throughput of a node"]')
    expect(plot.locator(".scatterlayer .trace").first).to_be_attached(timeout=LIMIT_MS)
    area = plot.locator(".nsewdrag").first.bounding_box()
    assert area is not None
    left, top = area["x"] + area["width"] * 0.3, area["y"] + area["height"] * 0.2
    page.mouse.move(left, top)
    page.mouse.down()
    page.mouse.move(left + 120, top + 90, steps=5)
    page.mouse.up()
    span = "node => node._fullLayout.xaxis.range"
    page.wait_for_timeout(500)
    zoomed = plot.evaluate(span)
    page.get_by_role("slider", name="ITL ceiling").evaluate(_MOVE, [30, ["input", "change"]])
    settle(page)
    expect(page.get_by_label("ITL ceiling, as a number [ms]")).not_to_have_value("50")
    page.wait_for_timeout(500)
    assert plot.evaluate(span) == zoomed
    assert plot.evaluate("node => node._fullLayout.xaxis.autorange") is not True


def test_from_plan_to_cell_to_compare(server: Server, page: Page, browser: Browser) -> None:
    state = AppState(
        spec=loaded.default_spec(),
        plan=PlanSettings(selected=ParallelConfig(tp=16, kv_split=2), overlay="fp8_kv"),
    )
    with quiet_console(page):
        visit(page, address(server, "serving_plan", state))
        expect(page.get_by_text("Row picked: TP16 CP2")).to_be_visible()
        settle(page)
        page.get_by_role("button", name="Add to compare").click()
        expect(page.get_by_text("Added to Compare (1 of 4).")).to_be_visible(timeout=LIMIT_MS)
        page.get_by_role("button", name="Add with FP8 KV cache").click()
        expect(page.get_by_text("Added to Compare (2 of 4).")).to_be_visible(timeout=LIMIT_MS)
        page.get_by_role("button", name="Open as cell").click()
        expect(page.get_by_role("heading", level=1, name="Cell")).to_be_visible()
        settle(page)
        expect(page.locator(".planner-lead")).to_contain_text("TP16 CP2, decode, context 8k, batch 262")
        batch = page.get_by_label("Batch", exact=True)
        batch.fill("16")
        batch.press("Enter")
        expect(page.locator(".planner-lead")).to_contain_text("batch 16")
        page.get_by_role("button", name="Add to compare").click()
        expect(page.get_by_text("Added to Compare (3 of 4).")).to_be_visible(timeout=LIMIT_MS)
        go_to(page, "Compare")
        expect(page.locator(".planner-grid thead th")).to_have_count(4)
        expect(page.locator(".planner-grid")).to_contain_text("39.5")
    numbers = page.locator(".planner-grid").inner_text()
    other = browser.new_context(color_scheme="dark").new_page()
    visit(other, page.url)
    assert other.locator(".planner-grid").inner_text() == numbers
    other.context.close()


def test_a_row_of_the_table_is_picked_by_a_click(server: Server, page: Page) -> None:
    visit(page, address(server, "serving_plan"))
    expect(page.get_by_text("Row picked: TP8")).to_be_visible()
    table = page.get_by_test_id("stDataFrame").first
    table.scroll_into_view_if_needed()
    table.click(position={"x": 20, "y": 35 + 35 * 8 + 17})  # the ninth row's box
    expect(page.get_by_text("Row picked: TP16 CP2")).to_be_visible()
    no_traceback(page)


def test_the_plan_is_downloaded_as_the_command_line_prints_it(
    server: Server, page: Page, tmp_path: Path
) -> None:
    visit(page, address(server, "serving_plan"))
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Plan as JSON").click()
    assert waiting.value.suggested_filename == "Granite-4.1-8B_trn2_decode_all-contexts_plan.json"
    waiting.value.save_as(tmp_path / "plan.json")
    plan = plan_serving(loaded.run_spec(loaded.default_spec()))
    wanted = json.loads(json.dumps(plan_document(plan)))
    assert json.loads((tmp_path / "plan.json").read_text()) == wanted


@pytest.mark.parametrize(
    ("name", "title", "said"),
    [
        ("serving_plan", "Serving plan", "8 replicas of TP8"),
        ("cell", "Cell", "attention/global"),
        ("compare", "Compare", "Points and differences"),
    ],
)
def test_reports_open_offline(
    server: Server, page: Page, browser: Browser, tmp_path: Path, name: str, title: str, said: str
) -> None:
    visit(page, address(server, name, AppState(spec=loaded.default_spec(), compare=two_points())))
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Export").click()
    assert re.fullmatch(r"Granite-4\.1-8B_trn2_decode_8k_[a-z-]+\.html", waiting.value.suggested_filename)
    waiting.value.save_as(tmp_path / "report.html")
    context = browser.new_context(offline=True)
    offline = context.new_page()
    with quiet_console(offline):
        offline.goto((tmp_path / "report.html").as_uri())
        expect(offline.get_by_role("heading", level=1, name=title)).to_be_visible()
        expect(offline.locator(".js-plotly-plot .main-svg").first).to_be_visible()
    expect(offline.get_by_text(said).first).to_be_visible()
    context.close()


@pytest.mark.parametrize("name", ["serving_plan", "cell", "compare"])
def test_pages_fit_every_screen_and_review_hides_the_controls(server: Server, page: Page, name: str) -> None:
    state = AppState(spec=loaded.default_spec(), compare=two_points())
    with quiet_console(page):
        for width, height in ((1600, 900), (1280, 800), (390, 844)):
            page.set_viewport_size({"width": width, "height": height})
            visit(page, address(server, name, state))
            settle(page)
            overflow = page.evaluate(
                "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            assert overflow <= 0
        page.set_viewport_size({"width": 1600, "height": 900})
        visit(page, address(server, name, state.model_copy(update={"review": True})))
        expect(page.get_by_role("button", name="Export")).to_have_count(0)
        expect(page.get_by_test_id("stSidebar")).to_be_hidden()
        expect(page.get_by_role("slider")).to_have_count(0)
    no_traceback(page)
