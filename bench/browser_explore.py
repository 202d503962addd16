"""A slider of Auto Explore to the redrawn figure, in a real browser: `python -m bench.browser_explore`.

The clock runs in the page, from the key that moves the slider to the frame after Plotly has drawn.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Mapping
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from bench import measure
from scripts.app_server import Server, free_port
from scripts.chrome import CHROME_ARGS, find_chrome
from ui import link, loaded
from ui.app_state import AppState, ExploreSettings

READY = '[data-testid="stApp"][data-test-script-state="notRunning"]'
LIMIT_MS = 30_000
N_MOVES = 20
TARGETS_MS = {"Sensitivity": 300.0, "Pareto": 500.0, "Pareto, 3-D": 500.0}
_WATCH = """() => {
    const plot = document.querySelector(".js-plotly-plot");
    window.__drawn_ms = null;
    plot.once("plotly_afterplot", () => requestAnimationFrame(() => setTimeout(() => {
        window.__drawn_ms = performance.now() - window.__pressed_ms; }, 0)));
    addEventListener("keydown", () => { window.__pressed_ms = performance.now(); },
        { once: true, capture: true }); }"""


def _states() -> Mapping[str, AppState]:
    spec = {
        **loaded.default_spec(),
        "hf_config": "llama-3.1-70b",
        "model": "Llama 3.1 70B",
        "hardware": "sip128",
        "hardware_name": "sip128",
    }
    settings = {
        "Sensitivity": ExploreSettings(tab="Sensitivity"),
        "Pareto": ExploreSettings(),
        "Pareto, 3-D": ExploreSettings(view="3-D"),
    }
    return {name: AppState(spec=spec, explore=chosen) for name, chosen in settings.items()}


def slider_ms(page: Page, url: str, state: AppState) -> list[float]:
    """Return the time of each move of the context slider [ms], every one to a context not seen lately."""
    page.goto(f"{url}/auto_explore?{link.PARAMETER}={link.encode(state)}")
    page.wait_for_selector(".js-plotly-plot .main-svg", timeout=LIMIT_MS)
    page.wait_for_timeout(2000)
    page.get_by_role("slider", name="Context [tokens]").focus()
    found = []
    for move in range(N_MOVES):
        page.evaluate(_WATCH)
        page.keyboard.press("ArrowLeft" if move % 10 < 5 else "ArrowRight")
        page.wait_for_function("window.__drawn_ms !== null", timeout=LIMIT_MS)
        found.append(float(page.evaluate("window.__drawn_ms")))
        page.wait_for_selector(READY, timeout=LIMIT_MS)
        page.wait_for_timeout(200)
    return found


def main() -> None:
    """Print the medians, and the server's CPU time a rerun."""
    chrome = find_chrome()
    if chrome is None:
        raise SystemExit("no Chrome found: install one, or set BROWSER_PATH to it")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        server = Server(port=free_port(), log=Path(folder) / "server.log")
        server.start()
        browser = playwright.chromium.launch(executable_path=chrome, args=list(CHROME_ARGS))
        try:
            page = browser.new_context(viewport={"width": 1600, "height": 900}).new_page()
            page.goto(server.url)
            page.wait_for_selector(READY, timeout=LIMIT_MS)
            for name, state in _states().items():
                cpu_s = measure.cpu_of(server.process.pid)
                found = slider_ms(page, server.url, state)
                cpu_ms = (measure.cpu_of(server.process.pid) - cpu_s) / (N_MOVES + 1) * 1e3
                print(
                    f"{name:12} median {statistics.median(found):4.0f} ms (target {TARGETS_MS[name]:.0f}), "
                    f"max {max(found):4.0f} ms, server CPU {cpu_ms:3.0f} ms a rerun"
                )
        finally:
            browser.close()
            server.stop()


if __name__ == "__main__":
    main()
