"""Draw every page of the app, in the light and the dark theme, into docs/screenshots/.

    python -m scripts.screenshots [PAGE ...]

Each page is shown as it opens, at 1600x900; Auto Explore with its Sensitivity tab too.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

from scripts.app_server import ROOT, Server, free_port
from scripts.chrome import CHROME_ARGS, find_chrome
from ui.pages import PageEntry, available

FOLDER = ROOT / "docs" / "screenshots"
SIZE = {"width": 1600, "height": 900}
RUN_ENDED = '[data-testid="stApp"][data-test-script-state="notRunning"]'
LIMIT_MS = 60_000


def settle(page: Page) -> None:
    """Wait until the run has ended and the figures are drawn."""
    page.wait_for_timeout(500)
    page.wait_for_selector(RUN_ENDED, timeout=LIMIT_MS)
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0, timeout=LIMIT_MS)
    page.wait_for_timeout(1000)


def draw(page: Page, *, entry: PageEntry, url: str, theme: str) -> list[Path]:
    """Save one page's pictures and return their paths."""
    page.goto(url)
    page.get_by_test_id("stSidebar").get_by_role("link", name=entry.title, exact=True).click(timeout=LIMIT_MS)
    expect(page.get_by_role("heading", level=1, name=entry.title)).to_be_visible(timeout=LIMIT_MS)
    page.mouse.move(0, 0)
    settle(page)
    drawn = [FOLDER / f"{entry.name}-{theme}.png"]
    page.screenshot(path=drawn[0])
    tab = page.get_by_role("tab", name="Sensitivity")
    if tab.count():
        tab.click()
        settle(page)
        drawn.append(FOLDER / f"{entry.name}-sensitivity-{theme}.png")
        page.screenshot(path=drawn[-1])
    return drawn


def main() -> int:
    """Draw the pages named on the command line, or all."""
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    names = [entry.name for entry in available()]
    parser.add_argument("page", nargs="*", metavar="PAGE", help=f"any of: {', '.join(names)}")
    chosen = parser.parse_args().page or names
    if unknown := sorted(set(chosen) - set(names)):
        parser.error(f"no page {', '.join(unknown)}; there are {', '.join(names)}")
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
            for theme in ("light", "dark"):
                context = browser.new_context(viewport=SIZE, color_scheme=theme)
                page = context.new_page()
                for entry in available():
                    if entry.name in chosen:
                        for path in draw(page, entry=entry, url=server.url, theme=theme):
                            print(path.relative_to(ROOT))
                context.close()
            browser.close()
        finally:
            server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
