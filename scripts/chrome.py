"""Find the Chrome that drives browser tests and screenshots, and say how to start it."""

import os
import shutil
from pathlib import Path

# Off: the sandbox, which needs a user other than root, and everything that calls home.
CHROME_ARGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def find_chrome() -> str | None:
    """Return the path of a Chrome: ``BROWSER_PATH``, then the search path, then Playwright's own, or none."""
    named = os.environ.get("BROWSER_PATH")
    if named:
        return named if os.access(named, os.X_OK) else None
    for name in _NAMES:
        found = shutil.which(name)
        if found:
            return found
    return _playwright_chrome()


def _playwright_chrome() -> str | None:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    with sync_playwright() as playwright:
        path = Path(playwright.chromium.executable_path)
    return str(path) if path.exists() else None
