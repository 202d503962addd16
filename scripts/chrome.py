"""Find the Chrome that drives browser tests and screenshots, and say how to start it."""

import os
import shutil
import subprocess
import sys
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

_ASK_PLAYWRIGHT = (
    "from playwright.sync_api import sync_playwright\n"
    "with sync_playwright() as playwright: print(playwright.chromium.executable_path)"
)


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
    # In a process of its own: Playwright's sync interface doesn't nest, and a test may have one open.
    ask = [sys.executable, "-c", _ASK_PLAYWRIGHT]
    done = subprocess.run(ask, capture_output=True, text=True, check=False)
    path = Path(done.stdout.strip())
    return str(path) if path.is_file() else None
