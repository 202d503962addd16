"""The app in a real browser: from start to a usable page, and from a slider to the redrawn figure."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from bench.measure import Spent, cpu_of, percentile
from bench.table import Figure, duration, print_figures, print_head, timed
from scripts.app_server import Server, free_port
from scripts.chrome import CHROME_ARGS, find_chrome
from ui import link, loaded
from ui.app_state import AppState, ExploreSettings

STARTS = 5
CHANGES = 20
LIMIT_MS = 60_000
SHORT_TOKENS = (1024, 2048)  # short, so that every batch of the slider fits, and each change is drawn
READY = '[data-testid="stApp"][data-test-script-state="notRunning"]'
SIZE = {"width": 1600, "height": 900}

# Notes when the figure has been redrawn with other data than before the key was pressed.
_WATCH = """
(box) => {
  const host = document.querySelector(`.st-key-${box} .js-plotly-plot`);
  const look = () => JSON.stringify([host.data, host.layout.shapes, host.layout.annotations]);
  let before = look();
  window.bench = { pressed: 0, drawn: [] };
  document.addEventListener("keydown", () => { window.bench.pressed = performance.now(); }, true);
  host.on("plotly_afterplot", () => {
    const at = performance.now();
    requestAnimationFrame(() => {
      const now = look();
      if (now === before) return;
      before = now;
      window.bench.drawn.push(at - window.bench.pressed);
    });
  });
}
"""


@dataclass(frozen=True, kw_only=True)
class Slider:
    """A slider, the figure that follows it, and the settings it is moved under: each place is a new one."""

    name: str
    page: str
    settings: tuple[ExploreSettings, ...]
    label: str
    figure: str
    key: str
    target_s: float


SLIDERS = (
    Slider(
        name="Serving plan, ITL ceiling to the frontier",
        page="serving_plan",
        settings=(ExploreSettings(),),
        label="ITL ceiling",
        figure="plan_frontier",
        key="ArrowLeft",
        target_s=0.3,
    ),
    Slider(
        name="Sensitivity, batch to the panel",
        page="auto_explore",
        settings=tuple(ExploreSettings(tab="Sensitivity", context_tokens=tokens) for tokens in SHORT_TOKENS),
        label="Batch of a replica",
        figure="explore_panel",
        key="ArrowRight",
        target_s=0.3,
    ),
    Slider(
        name="Pareto (28,800 configs), batch to the projections",
        page="auto_explore",
        settings=tuple(ExploreSettings(context_tokens=tokens) for tokens in SHORT_TOKENS),
        label="Batch of a replica",
        figure="explore_projections",
        key="ArrowRight",
        target_s=0.5,
    ),
)


@contextmanager
def _server(folder: Path) -> Iterator[Server]:
    server = Server(port=free_port(), log=folder / "server.log")
    server.start()
    try:
        yield server
    finally:
        server.stop()


def _ready(page: Page) -> None:
    page.wait_for_selector(".planner-loaded", timeout=LIMIT_MS)
    page.wait_for_selector(READY, timeout=LIMIT_MS)


def _start(browser: Browser, folder: Path) -> Spent:
    """Return the time from `streamlit run` to a page that can be used; the browser is up already."""
    page = browser.new_context(viewport=SIZE).new_page()
    begun_s = time.perf_counter()
    with _server(folder) as server:
        page.goto(server.url)
        _ready(page)
        spent = Spent(time.perf_counter() - begun_s, cpu_of(server.process.pid))
        page.context.close()
    return spent


def _slide(
    browser: Browser, server: Server, slider: Slider, query: str, n_changes: int
) -> tuple[list[float], float]:
    """Return the time of each change [s], and the server's CPU time of all [s]; one more is made first."""
    page = browser.new_context(viewport=SIZE).new_page()
    page.goto(f"{server.url}/{slider.page}?{query}")
    _ready(page)
    page.wait_for_selector(f".st-key-{slider.figure} .js-plotly-plot .main-svg", timeout=LIMIT_MS)
    page.wait_for_timeout(1000)
    page.evaluate(_WATCH, slider.figure)
    page.get_by_role("slider", name=slider.label).first.focus()
    waits_s: list[float] = []
    cpu_s = []
    for _ in range(n_changes + 1):
        before_s = cpu_of(server.process.pid)
        page.evaluate("window.bench.drawn = []")
        page.keyboard.press(slider.key)
        page.wait_for_function("window.bench.drawn.length > 0", timeout=LIMIT_MS, polling=20)
        waits_s.append(page.evaluate("window.bench.drawn[0]") / 1e3)
        page.wait_for_timeout(400)
        page.wait_for_selector(READY, timeout=LIMIT_MS)
        cpu_s.append(cpu_of(server.process.pid) - before_s)
    page.context.close()
    return waits_s[1:], sum(cpu_s[1:])


def _query(explore: ExploreSettings, model: str) -> str:
    spec = {**loaded.default_spec(), "hf_config": model, "model": model}
    return f"{link.PARAMETER}={link.encode(AppState(spec=spec, explore=explore))}"


def main() -> None:
    """Measure and print."""
    chrome = find_chrome()
    if chrome is None:
        print("\nbrowser: no Chrome or Chromium was found; install one, or set BROWSER_PATH to it")
        return
    print_head("browser: the app in Chromium at 1600x900")
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        browser = playwright.chromium.launch(executable_path=chrome, args=list(CHROME_ARGS))
        starts = [_start(browser, folder) for _ in range(STARTS)]
        starts_s = [one.wall_s for one in starts]
        figures.append(
            timed(
                "streamlit run to a usable first page",
                statistics.median(starts_s),
                below_s=3.0,
                cpu_s=statistics.median(one.cpu_s for one in starts),
                note=f"median of {STARTS}, {duration(min(starts_s))} to {duration(max(starts_s))}",
            )
        )
        with _server(folder) as server:
            for number, slider in enumerate(SLIDERS):
                model = ("granite-4.1-8b", "llama-3.1-8b", "qwen3-8b")[number]
                waits_s: list[float] = []
                cpu_s = 0.0
                for explore in slider.settings:
                    share = CHANGES // len(slider.settings)
                    found_s, spent_s = _slide(browser, server, slider, _query(explore, model), share)
                    waits_s += found_s
                    cpu_s += spent_s
                figures.append(
                    timed(
                        slider.name,
                        statistics.median(waits_s),
                        below_s=slider.target_s,
                        note=f"median of {len(waits_s)}, p95 {duration(percentile(waits_s, 0.95))}; "
                        f"server's CPU a key {duration(cpu_s / len(waits_s))}",
                    )
                )
        browser.close()
    print_figures(figures)
