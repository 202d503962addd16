"""Draw every page of the app, in the light and the dark theme, into docs/screenshots/.

    python -m scripts.screenshots [NAME ...]

Each picture is a link opened at 1600x900: the state it shows stands below.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Page, expect, sync_playwright

from scripts.app_server import ROOT, Server, free_port
from scripts.chrome import CHROME_ARGS, find_chrome
from ui import link, loaded
from ui.app_state import AppState, CellPoint, ComparePoint, ExploreSettings, ParallelConfig
from ui.pages import available

FOLDER = ROOT / "docs" / "screenshots"
SIZE = {"width": 1600, "height": 900}
RUN_ENDED = '[data-testid="stApp"][data-test-script-state="notRunning"]'
LIMIT_MS = 60_000


def _spec(model: str, title: str, machine: str) -> dict[str, Any]:
    return {
        **loaded.default_spec(),
        "model": title,
        "hf_config": model,
        "hardware_name": machine,
        "hardware": machine,
    }


CHIPLETS: Final = _spec("llama-3.1-70b", "Llama 3.1 70B", "sip128")
COMPARED: Final = tuple(
    ComparePoint(
        label=f"TP8 on {machine}",
        spec=_spec("llama-3.1-70b", "Llama 3.1 70B", machine),
        cell=CellPoint(batch=32, config=ParallelConfig(tp=8, kv_split=1)),
    )
    for machine in ("h100-sxm", "h200", "mi300x")
)
STATES: Final = {
    "run_spec": AppState(spec=loaded.default_spec()),
    "serving_plan": AppState(spec=loaded.default_spec()),
    "auto_explore": AppState(spec=CHIPLETS, explore=ExploreSettings(context_tokens=131072)),
    "auto_explore-sensitivity": AppState(
        spec=CHIPLETS,
        explore=ExploreSettings(context_tokens=131072, tab="Sensitivity"),
        baseline=ParallelConfig(cp=8, tp=16, ffn_shard_scope="TP+CP"),
    ),
    "cell": AppState(spec=loaded.default_spec()),
    "compare": AppState(spec=COMPARED[0].spec, compare=COMPARED),
    "oracle": AppState(spec=loaded.default_spec()),
    "method": AppState(spec=loaded.default_spec()),
}


def settle(page: Page) -> None:
    """Wait until the run has ended and the figures are drawn."""
    page.wait_for_timeout(500)
    page.wait_for_selector(RUN_ENDED, timeout=LIMIT_MS)
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0, timeout=LIMIT_MS)
    page.wait_for_timeout(1500)


def draw(page: Page, *, name: str, url: str, theme: str) -> Path:
    """Save one picture and return its path."""
    entry = next(entry for entry in available() if entry.name == name.split("-")[0])
    page.goto(f"{url}/{entry.name}?{link.PARAMETER}={link.encode(STATES[name])}")
    expect(page.get_by_role("heading", level=1, name=entry.title)).to_be_visible(timeout=LIMIT_MS)
    page.mouse.move(0, 0)
    settle(page)
    path = FOLDER / f"{name}-{theme}.png"
    page.screenshot(path=path)
    return path


def main() -> int:
    """Draw the pictures named on the command line, or all."""
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument("name", nargs="*", metavar="NAME", help=f"any of: {', '.join(STATES)}")
    chosen = parser.parse_args().name or list(STATES)
    if unknown := sorted(set(chosen) - set(STATES)):
        parser.error(f"no picture {', '.join(unknown)}; there are {', '.join(STATES)}")
    chrome = find_chrome()
    if chrome is None:
        print("No Chrome or Chromium was found: install one, or set BROWSER_PATH to it.", file=sys.stderr)
        return 2
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as logs, sync_playwright() as playwright:
        server = Server(port=free_port(), log=Path(logs) / "server.log")
        server.start()
        try:
            browser = playwright.chromium.launch(executable_path=chrome, args=list(CHROME_ARGS))
            browser.new_page().goto(server.url)
            for theme in ("light", "dark"):
                context = browser.new_context(viewport=SIZE, color_scheme=theme)
                page = context.new_page()
                for name in chosen:
                    print(draw(page, name=name, url=server.url, theme=theme).relative_to(ROOT))
                context.close()
            browser.close()
        finally:
            server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
