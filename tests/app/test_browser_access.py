"""Every page in light and dark: no serious accessibility violation, no error on the console, no overflow."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from tests.app.browser import no_traceback, quiet_console, visit
from tests.app.conftest import Server
from ui import pages

pytestmark = pytest.mark.browser
SIZES = ((1600, 900), (1280, 800), (390, 844))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("entry", pages.available(), ids=lambda entry: entry.name)
def test_a_page_is_accessible_and_fits(
    server: Server, browser: Browser, entry: pages.PageEntry, scheme: str
) -> None:
    address = server.url if entry == pages.available()[0] else f"{server.url}/{entry.name}"
    context = browser.new_context(viewport={"width": 1600, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    with quiet_console(page):
        visit(page, address)
        page.wait_for_timeout(1500)
        no_traceback(page)
        found = Axe().run(page).response["violations"]
        for width, height in SIZES:
            page.set_viewport_size({"width": width, "height": height})
            page.wait_for_timeout(300)
            assert page.evaluate(
                "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
            ), f"wider than {width} px"
    serious = [item for item in found if item["impact"] in ("serious", "critical")]
    assert not serious, [
        (item["id"], [node["target"] for node in item["nodes"]][:4], item["nodes"][0]["failureSummary"])
        for item in serious
    ]
    context.close()
