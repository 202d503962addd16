"""Auto Explore in a real browser: one baseline picked three ways, zoom kept, dense sweeps stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.app.browser import LIMIT_MS, go_to, no_traceback, quiet_console, settle, visit
from tests.app.conftest import Server
from ui import link, loaded
from ui.app_state import AppState, ExploreSettings, ParallelConfig

pytestmark = pytest.mark.browser

PLOT = ".js-plotly-plot"
SIP = {
    **loaded.default_spec(),
    "hf_config": "llama-3.1-70b",
    "model": "Llama 3.1 70B",
    "hardware": "sip128",
    "hardware_name": "sip128",
}


def opened(server: Server, page: Page, **settings: Any) -> None:
    settings = {"context_tokens": 131072, **settings}
    baseline = settings.pop("baseline", None)
    state = AppState(spec=SIP, explore=ExploreSettings(**settings), baseline=baseline)
    visit(page, f"{server.url}/auto_explore?{link.PARAMETER}={link.encode(state)}")
    expect(page.get_by_role("heading", level=1, name="Auto Explore")).to_be_visible()


def wait_plot(page: Page) -> None:
    page.wait_for_selector(f"{PLOT} .main-svg", timeout=LIMIT_MS)


def row_input(page: Page):
    return page.get_by_role("spinbutton", name="Baseline row")


def baseline_in_link(page: Page) -> ParallelConfig | None:
    parameter = page.url.partition(f"{link.PARAMETER}=")[2].partition("&")[0]
    return link.decode(parameter).baseline


def star_row(page: Page) -> int | None:
    """Return the row that the figure stars."""
    found: int | None = page.evaluate(
        f"""() => {{
        const plot = document.querySelector("{PLOT}");
        const star = plot.data.find((trace) => (trace.name || "").startsWith("Baseline"));
        return star ? star.customdata[0] : null; }}"""
    )
    return found


def check_baseline(page: Page, row: int) -> None:
    """Check that number input, chart and link say the same row, and that the table selects it."""
    expect(row_input(page)).to_have_value(str(row))
    page.wait_for_function(
        f"""(row) => {{
        const plot = document.querySelector("{PLOT}");
        const star = plot.data.find((trace) => (trace.name || "").startsWith("Baseline"));
        return star && star.customdata[0] === row; }}""",
        arg=row,
        timeout=LIMIT_MS,
    )
    assert star_row(page) == row
    selected = page.locator('[data-testid="stDataFrame"] tr[aria-selected="true"] [role="gridcell"]')
    expect(selected.first).to_have_text(str(row))


def x_range(page: Page) -> list[float]:
    """Return the range of the first subplot's x axis."""
    found: list[float] = page.evaluate(f"() => document.querySelector('{PLOT}')._fullLayout.xaxis.range")
    return found


def check_runs(page: Page, count: int) -> None:
    """Check how many runs of the script have ended since the count was started: so many, and no more."""
    page.wait_for_function("(count) => window.__runs >= count", arg=count, timeout=LIMIT_MS)
    settle(page)
    assert page.evaluate("() => window.__runs") == count


def count_runs(page: Page) -> None:
    page.evaluate(
        """() => {
        const app = document.querySelector('[data-testid="stApp"]');
        window.__runs = 0;
        new MutationObserver(() => {
            if (app.dataset.testScriptState === "notRunning") window.__runs += 1;
        }).observe(app, { attributes: true, attributeFilter: ["data-test-script-state"] }); }"""
    )


def click_point(page: Page, row: int) -> None:
    """Click the front's point of a row in the first projection, where the mouse would."""
    place = page.evaluate(
        f"""(row) => {{
        const plot = document.querySelector("{PLOT}");
        const front = plot.data.find((trace) => (trace.name || "").startsWith("Pareto front"));
        const at = front.customdata.indexOf(row);
        const {{ xaxis, yaxis }} = plot._fullLayout;
        const box = plot.getBoundingClientRect();
        const [x, y] = [xaxis._offset + xaxis.d2p(front.x[at]), yaxis._offset + yaxis.d2p(front.y[at])];
        return [box.left + x, box.top + y];
        }}""",
        row,
    )
    page.mouse.move(*place)
    page.wait_for_timeout(150)
    page.mouse.click(*place)


def test_number_row_and_click_pick_one_baseline_in_one_rerun(server: Server, page: Page) -> None:
    visit(page, server.url)  # a fresh server tells the console about a deep link that comes first
    with quiet_console(page):
        opened(server, page)
        wait_plot(page)
        check_baseline(page, 0)
        count_runs(page)
        row_input(page).fill("2")
        row_input(page).press("Enter")
        settle(page)
        check_baseline(page, 2)
        check_runs(page, 1)
        chosen = baseline_in_link(page)
        page.locator(PLOT).scroll_into_view_if_needed()
        click_point(page, 3)
        settle(page)
        check_baseline(page, 3)
        check_runs(page, 2)
        table = page.get_by_test_id("stDataFrame")
        table.scroll_into_view_if_needed()
        box = table.bounding_box()
        assert box is not None
        page.mouse.click(box["x"] + 17, box["y"] + 35 * 1.5)  # the first row's box to tick
        settle(page)
        check_baseline(page, 0)
        check_runs(page, 3)
        assert baseline_in_link(page) != chosen
        no_traceback(page)


def test_zoom_is_kept_while_the_baseline_changes(server: Server, page: Page) -> None:
    opened(server, page)
    wait_plot(page)
    before = x_range(page)
    box = page.locator(f"{PLOT} .nsewdrag").first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 0.2 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.8 * box["width"], box["y"] + 0.8 * box["height"], steps=5)
    page.mouse.up()
    page.wait_for_timeout(500)
    zoomed = x_range(page)
    assert zoomed[1] - zoomed[0] < 0.7 * (before[1] - before[0])
    row_input(page).fill("1")
    row_input(page).press("Enter")
    settle(page)
    check_baseline(page, 1)
    assert x_range(page) == zoomed


def test_the_slider_redraws_the_panel_in_place(server: Server, page: Page) -> None:
    with quiet_console(page):
        baseline = ParallelConfig(cp=8, tp=16, ffn_shard_scope="TP+CP")
        opened(server, page, tab="Sensitivity", baseline=baseline)
        wait_plot(page)
        page.evaluate(f"() => {{ document.querySelector('{PLOT}').dataset.mark = 'same'; }}")
        before = page.evaluate(f"() => document.querySelector('{PLOT}').data[0].y[0]")
        page.get_by_role("slider", name="Context [tokens]").press("ArrowLeft")
        settle(page)
        page.wait_for_function(
            f"(before) => document.querySelector('{PLOT}').data[0].y[0] !== before",
            arg=before,
            timeout=LIMIT_MS,
        )
        assert page.locator(PLOT).get_attribute("data-mark") == "same"
        assert baseline_in_link(page) == baseline


def test_a_page_switch_loses_nothing(server: Server, page: Page) -> None:
    opened(server, page, tab="Sensitivity")
    wait_plot(page)
    row_input(page).fill("1")
    row_input(page).press("Enter")
    settle(page)
    go_to(page, "Method")
    go_to(page, "Auto Explore")
    wait_plot(page)
    expect(row_input(page)).to_have_value("1")
    page.reload()
    wait_plot(page)
    expect(row_input(page)).to_have_value("1")


def test_figures_are_downloaded_as_png_and_svg(server: Server, page: Page) -> None:
    opened(server, page)
    wait_plot(page)
    for kind in ("PNG", "SVG"):
        with page.expect_download(timeout=LIMIT_MS) as found:
            page.get_by_role("button", name=f"Download figure as {kind}").click()
        assert found.value.suggested_filename == f"Llama-3.1-70B_sip128_decode_128k_pareto.{kind.lower()}"


def test_the_three_objectives_are_drawn_on_demand(server: Server, page: Page) -> None:
    opened(server, page)
    wait_plot(page)
    page.get_by_role("radio", name="3-D").click()
    page.wait_for_selector(f"{PLOT} .gl-container canvas", timeout=LIMIT_MS)
    no_traceback(page)


def test_a_dense_sweep_shows_a_count_and_stops(server: Server, page: Page) -> None:
    opened(server, page, dense=True)
    page.get_by_role("button", name="Start the sweep").click()
    progress = page.get_by_test_id("stProgress")
    expect(progress).to_contain_text("of 152,843,328 configs", timeout=LIMIT_MS)
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.get_by_text("Stopped after")).to_be_visible(timeout=LIMIT_MS)
    wait_plot(page)
    no_traceback(page)


def test_the_report_opens_offline_with_both_tabs(server: Server, page: Page, tmp_path: Path) -> None:
    opened(server, page)
    wait_plot(page)
    with page.expect_download(timeout=LIMIT_MS) as found:
        page.get_by_role("button", name="Export").click()
    file = tmp_path / found.value.suggested_filename
    found.value.save_as(file)
    assert file.name == "Llama-3.1-70B_sip128_decode_128k_explore.html"
    page.context.set_offline(True)
    page.goto(file.as_uri())
    page.wait_for_selector(f"{PLOT} .main-svg", timeout=LIMIT_MS)
    assert page.locator(PLOT).count() == 2
    for words in ("Rows of the front", "TP32 CP2 FFN TP+CP TP outer", "Each knob alone", "flat-all-pes"):
        expect(page.get_by_text(words).first).to_be_attached()
    page.context.set_offline(False)


def test_a_narrow_screen_stacks_the_projections_and_a_wide_one_sets_them_apart(
    server: Server, page: Page
) -> None:
    lefts = f"""() => {{ const sheet = document.querySelector("{PLOT}")._fullLayout;
        return [sheet.xaxis, sheet.xaxis2, sheet.xaxis3].map((axis) => axis.domain[0]); }}"""
    page.set_viewport_size({"width": 390, "height": 844})
    opened(server, page)
    wait_plot(page)
    assert page.evaluate(lefts) == [0, 0, 0]
    assert page.locator(f"{PLOT} .modebar-btn").count() == 0
    page.set_viewport_size({"width": 1600, "height": 900})
    page.wait_for_function(
        f"document.querySelector('{PLOT}')._fullLayout.xaxis2.domain[0] > 0.2", timeout=LIMIT_MS
    )
    first, second, third = page.evaluate(lefts)
    assert first < second < third
    assert page.locator(f"{PLOT} .modebar-btn").count() > 0
