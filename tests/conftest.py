"""What every test may ask for: the real model configs beside the repository, and a Chrome."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from scripts.chrome import CHROME_ARGS, find_chrome

REPO_ROOT = Path(__file__).resolve().parents[1]

# The default run draws the same examples every time; HYPOTHESIS_PROFILE=search draws new and more of them.
settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=100)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


@pytest.fixture(scope="session")
def repo_root() -> Path:
    """The checkout's root."""
    return REPO_ROOT


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder ``../shared/data`` beside the repository; tests that read it skip where it is missing."""
    folder = REPO_ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real model configs are not here: no folder ../shared/data beside the repository")
    return folder


@pytest.fixture(scope="session")
def chrome_path() -> str:
    """The path of a Chrome. Without one a browser test skips, but fails in CI, where one must be."""
    path = find_chrome()
    if path is None:
        message = "no Chrome or Chromium found: install one, or set BROWSER_PATH to it"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return path


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any], chrome_path: str) -> dict[str, Any]:
    """Playwright starts the Chrome that was found instead of a download of its own."""
    return {**browser_type_launch_args, "executable_path": chrome_path, "args": list(CHROME_ARGS)}
