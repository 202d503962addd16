"""Number inputs in a real browser: emptied where that means something, and read as they were typed."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.app.browser import no_traceback, settle, visit
from tests.app.conftest import Server
from ui import link, loaded
from ui.app_state import AppState, ExploreSettings

pytestmark = pytest.mark.browser


def put(page: Page, label: str, typed: str) -> None:
    box = page.get_by_label(label, exact=True)
    box.fill(typed)
    box.press("Enter")
    settle(page)


def state_in_link(page: Page) -> AppState:
    return link.decode(page.url.partition(f"{link.PARAMETER}=")[2].partition("&")[0])


def test_a_budget_can_be_emptied_again_also_one_that_came_by_link(server: Server, page: Page) -> None:
    state = AppState(spec=loaded.default_spec(), explore=ExploreSettings(max_pes=16))
    visit(page, f"{server.url}/auto_explore?{link.PARAMETER}={link.encode(state)}")
    expect(page.get_by_label("PE budget", exact=True)).to_have_value("16")
    for typed in ("", "2", ""):
        put(page, "PE budget", typed)
        expect(page.get_by_label("PE budget", exact=True)).to_have_value(typed)
        assert state_in_link(page).explore.max_pes == (int(typed) if typed else None)
    no_traceback(page)


@pytest.mark.parametrize(("typed", "taken"), [("1e5", 100_000), ("65536.0", 65_536), ("8191.7", 8192)])
def test_a_whole_number_is_read_as_a_number_not_up_to_the_first_letter(
    server: Server, page: Page, typed: str, taken: int
) -> None:
    visit(page, f"{server.url}/cell")
    put(page, "Context [tokens]", "77")
    put(page, "Context [tokens]", typed)
    expect(page.get_by_label("Context [tokens]", exact=True)).to_have_value(str(taken))
    assert state_in_link(page).cell.context_tokens == taken
    no_traceback(page)


@pytest.mark.parametrize("typed", ["0", "-5", "9" * 31])
def test_a_number_out_of_range_stays_in_the_field_with_the_reason(
    server: Server, page: Page, typed: str
) -> None:
    visit(page, f"{server.url}/cell")
    put(page, "Batch", typed)
    field = page.get_by_label("Batch", exact=True)
    expect(field).to_have_value(typed)
    expect(field).to_have_attribute("aria-invalid", "true")
    inputs = page.get_by_test_id("stNumberInput").filter(has=field)
    expect(inputs).to_contain_text("Please enter a value between 1 and 1000000000")
    assert state_in_link(page).cell.batch == 16
