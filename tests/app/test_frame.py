"""The frame: what is loaded, links good and bad, every page by default, review mode, no traceback."""

import json
import random
from pathlib import Path

import pytest

from tests.app.apptest import check_no_fault, html_of, open_app, open_page, state_of
from ui import guard, link, loaded, pages, state
from ui.app_state import AppState, ExploreSettings

ROOT = Path(__file__).resolve().parents[2]
PAGE_NAMES = [page.name for page in pages.available()]
NAME = ("<script>alert(1)</script> **x** \u202e" + "y" * 400)[:400]


def other_state() -> AppState:
    spec = {
        **loaded.default_spec(),
        "hf_config": "llama-3.1-70b",
        "model": "Llama 3.1 70B",
        "hardware": "sip128",
    }
    return AppState(spec=spec, explore=ExploreSettings(context_tokens=65536))


def test_no_script_lies_directly_in_the_pages_folder() -> None:
    assert not list((ROOT / "pages").glob("*.py"))


def test_every_page_of_the_list_is_a_file_and_every_file_is_listed() -> None:
    found = {path.parent.name for path in (ROOT / "pages").glob("*/page.py")}
    assert found == set(PAGE_NAMES)


@pytest.mark.parametrize("name", PAGE_NAMES)
def test_a_page_opens_by_default(name: str) -> None:
    at = open_page(name)
    check_no_fault(at)
    assert at.title[0].value == next(page.title for page in pages.PAGES if page.name == name)
    assert "Granite 4.1 8B" in html_of(at)


@pytest.mark.parametrize("name", PAGE_NAMES)
def test_a_page_opens_by_a_link(name: str) -> None:
    at = open_page(name, other_state())
    check_no_fault(at)
    assert "Llama 3.1 70B" in html_of(at)
    assert state_of(at) == other_state()


@pytest.mark.parametrize("name", PAGE_NAMES)
@pytest.mark.parametrize("parameter", ["nonsense", "1.eJw", "9.abc"])
def test_a_broken_link_says_so_and_opens_the_default(name: str, parameter: str) -> None:
    at = open_page(name, parameter=parameter)
    check_no_fault(at)
    assert "This link can&#x27;t be read. The default run-spec is open instead." in html_of(at)
    assert state_of(at) == state.default_state()


def test_a_link_with_a_faulty_run_spec_names_every_fault() -> None:
    spec = {**loaded.default_spec(), "decode_itl_ceiling_ms": -1, "hf_config": "/etc/passwd"}
    html = html_of(open_app(AppState(spec=spec)))
    assert "decode_itl_ceiling_ms" in html
    assert "outside the uploads" in html


def test_a_notice_stays_until_it_is_dismissed() -> None:
    at = open_app(parameter="nonsense").run()
    assert "This link can&#x27;t be read" in html_of(at)
    at.button(key="dismiss_notices").click().run()
    assert "This link can&#x27;t be read" not in html_of(at)


def test_the_address_holds_the_state() -> None:
    at = open_app()
    at.button(key="review_switch").click().run()
    assert link.decode(at.query_params[link.PARAMETER]) == state_of(at)
    assert state_of(at).review


def test_a_name_from_outside_is_shown_as_typed() -> None:
    at = open_app(AppState(spec={**loaded.default_spec(), "model": NAME}))
    check_no_fault(at)
    assert "<script>" not in html_of(at)
    assert "&lt;script&gt;alert(1)&lt;/script&gt; **x**" in html_of(at)


def test_a_spec_too_large_for_a_link_is_said_and_kept() -> None:
    config = json.loads((ROOT / "presets" / "models" / "granite-4.1-8b.json").read_text())
    config["ignored_by_the_planner"] = random.Random(0).randbytes(30_000).hex()
    at = open_app()
    at.text_area(key="spec_json").set_value(json.dumps({**loaded.default_spec(), "hf_config": config})).run()
    check_no_fault(at)
    assert "too large for a link" in html_of(at)
    assert link.PARAMETER not in at.query_params
    assert state_of(at).spec["hf_config"] == config


def test_a_fault_of_ours_shows_a_plain_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(**_: object) -> None:
        raise RuntimeError("secret detail /etc/passwd")

    monkeypatch.setattr("ui.layout.page_head", broken)
    at = open_page("method")
    assert not at.exception
    html = html_of(at)
    assert "Something went wrong in this part of the page" in html
    assert "secret detail" not in html
    monkeypatch.undo()
    at.button(key="reset_method").click().run()
    check_no_fault(at)


def test_a_callback_that_fails_is_told_at_the_top(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(state, "notify", lambda kind, text: told.append(text))
    assert guard.callback(lambda: 1 / 0)() is None
    assert told == ["That change could not be applied. Nothing else was lost."]
