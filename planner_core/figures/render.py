"""Figures to files: HTML that needs nothing else, and PNG or SVG through a Chrome.

Owns: `to_html`, `to_images`, `find_chrome`, `ImagesUnavailable`.
Refuses: writing files (see `artifacts`), and the content of a figure.

HTML always works. An image needs a Chrome or Chromium, found by `BROWSER_PATH` or on the search path; where
it is missing or fails there is one plain line to show, and the HTML is there all the same.
"""

from __future__ import annotations

import asyncio
import html
import logging
import os
import shutil
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, Literal

import plotly.graph_objects as go

from planner_core.errors import PlannerError, shorten
from planner_core.figures.theme import Theme

ImageFormat = Literal["png", "svg"]

WIDTH_PX: Final = 1600
HEIGHT_PX: Final = 900
START_TIMEOUT_S: Final = 15.0
IMAGE_TIMEOUT_S: Final = 30.0
CLOSE_TIMEOUT_S: Final = 15.0  # the driver kills after 10 s a Chrome that does not end by itself
_DRIVER_LOGS: Final = ("kaleido", "choreographer")
_NO_TERMINAL: Final = logging.NullHandler()
_CHROME_NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


class ImagesUnavailable(PlannerError):
    """No image could be drawn: no Chrome, or one that failed. One plain line says so."""

    kind = "images_unavailable"


def find_chrome(*, environment: Mapping[str, str] | None = None) -> str:
    """Return the path of a Chrome: `BROWSER_PATH` where it is set, else one on the search path.

    Parameters
    ----------
    environment : mapping of str to str, optional
        Variables to read; the process's own by default.

    Returns
    -------
    str

    Raises
    ------
    ImagesUnavailable
        Where there is none.
    """
    variables = os.environ if environment is None else environment
    named = variables.get("BROWSER_PATH", "")
    if named:
        if os.path.isfile(named) and os.access(named, os.X_OK):  # noqa: PTH113  # as `os.access` takes it
            return named
        raise ImagesUnavailable(
            f"no PNG or SVG: BROWSER_PATH is {shorten(named)}, which is no program; set it to a Chrome"
        )
    for name in _CHROME_NAMES:
        found = shutil.which(name, path=variables.get("PATH"))
        if found:
            return found
    raise ImagesUnavailable(
        "no PNG or SVG: no Chrome or Chromium on the search path; install one, or set BROWSER_PATH to it"
    )


def on_page(figure: go.Figure, *, theme: Theme) -> go.Figure:
    """Return a copy on the theme's page colour, as tall as its page: a file has nothing behind it.

    Parameters
    ----------
    figure : Figure
        With a clear background.
    theme : Theme
        The theme it was drawn in.

    Returns
    -------
    Figure
    """
    return go.Figure(figure).update_layout(paper_bgcolor=theme.paper, height=None)


def to_html(figure: go.Figure, *, theme: Theme, alt: str = "") -> str:
    """Return one HTML document that opens offline: the figure, interactive, with all it needs inside.

    Parameters
    ----------
    figure : Figure
        What to show.
    theme : Theme
        For the page's colour.
    alt : str
        What it shows, for a reader who does not see it.

    Returns
    -------
    str
    """
    return _document(
        body=on_page(figure, theme=theme).to_html(
            include_plotlyjs=True,
            include_mathjax=False,
            full_html=False,
            default_width="100%",
            default_height="100vh",
            config={"displaylogo": False, "responsive": True},
        ),
        theme=theme,
        alt=alt,
    )


def _document(*, body: str, theme: Theme, alt: str) -> str:
    label = html.escape(alt, quote=True)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Planner figure</title>'
        f"<style>body {{ margin: 0; background: {theme.paper}; }}</style></head>\n"
        f'<body><div role="img" aria-label="{label}">{body}</div></body></html>\n'
    )


def to_images(
    figures: Sequence[go.Figure],
    *,
    theme: Theme,
    image_format: ImageFormat = "png",
    width_px: int = WIDTH_PX,
    height_px: int = HEIGHT_PX,
    scale: float = 1.0,
) -> list[bytes]:
    """Draw figures with one Chrome, started once for all of them.

    Parameters
    ----------
    figures : sequence of Figure
        What to draw.
    theme : Theme
        For the page's colour.
    image_format : {"png", "svg"}
        Which.
    width_px, height_px : int
        Size.
    scale : float
        Pixels of the image per pixel of the figure.

    Returns
    -------
    list of bytes
        In the order given.

    Raises
    ------
    ImagesUnavailable
        Where there is no Chrome, or it fails or does not answer.
    """
    if not figures:
        return []
    chrome = find_chrome()
    pages = [on_page(figure, theme=theme) for figure in figures]
    options = {"format": image_format, "width": width_px, "height": height_px, "scale": scale}
    found: list[list[bytes]] = []
    failed: list[BaseException] = []

    def draw() -> None:
        limit_s = START_TIMEOUT_S + IMAGE_TIMEOUT_S * len(pages)
        try:
            found.append(asyncio.run(asyncio.wait_for(_drawn(pages, options, chrome), limit_s)))
        except BaseException as error:
            failed.append(error)

    # A thread of its own: the caller may run an event loop already.
    thread = threading.Thread(target=draw, name="figure-images", daemon=True)
    thread.start()
    thread.join()
    if failed:
        raise ImagesUnavailable(
            f"no PNG or SVG: {chrome} failed: {_reason(failed[0])}; set BROWSER_PATH to a Chrome that runs"
        ) from failed[0]
    return found[0]


def _reason(error: BaseException) -> str:
    """Say why in a few words: the first line of the error, or its kind."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    first = str(error.args[0] if error.args else "").strip().partition("\n")[0].rstrip(".")
    return first[:120] or type(error).__name__


async def _drawn(pages: Sequence[go.Figure], options: Mapping[str, object], chrome: str) -> list[bytes]:
    # kaleido starts Chrome without a sandbox, so it runs for root too; no MathJax: it would ask a server.
    import kaleido  # loads a browser driver: not for a figure shown in the app

    for name in _DRIVER_LOGS:  # what it logs goes to a server's log, and not to a terminal without one
        logging.getLogger(name).addHandler(_NO_TERMINAL)
    browser = kaleido.Kaleido(n=1, timeout=IMAGE_TIMEOUT_S, mathjax=False, path=chrome)
    started_s = time.monotonic()
    try:
        await asyncio.wait_for(browser.open(), START_TIMEOUT_S)
        return [await browser.calc_fig(page, opts=dict(options)) for page in pages]
    except Exception as error:
        if time.monotonic() - started_s >= START_TIMEOUT_S:  # the driver takes its own end for Chrome's
            raise TimeoutError from error
        raise
    finally:
        with suppress(Exception):  # what went wrong before is what to say
            await asyncio.wait_for(browser.close(), CLOSE_TIMEOUT_S)
