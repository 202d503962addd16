"""Figures to files: HTML that opens offline, PNG and SVG by a real Chrome, one plain line without one."""

import asyncio
import re
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree as ET

import plotly.graph_objects as go
import pytest

from planner_core.figures.frame import FigureContext
from planner_core.figures.render import ImagesUnavailable, find_chrome, on_page, to_html, to_images
from planner_core.figures.theme import DARK, LIGHT

from .conftest import Draw


@pytest.fixture
def figure(figures: dict[str, Draw], about: FigureContext) -> go.Figure:
    return figures["sensitivity"](LIGHT, about).figure


def size_of(png: bytes) -> tuple[int, int]:
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def test_a_png_of_the_size_of_a_slide(
    figure: go.Figure, chrome_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROWSER_PATH", chrome_path)
    first, second = to_images([figure, go.Figure(figure).update_layout(title="other")], theme=LIGHT)
    assert size_of(first) == size_of(second) == (1600, 900)
    assert first != second
    assert len(first) > 20_000


def test_an_svg_has_its_text_even_inside_a_running_loop(
    figures: dict[str, Draw], chrome_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROWSER_PATH", chrome_path)
    hostile = FigureContext(model="<script>x</script>", machine="a & b", phase="decode")
    figure = figures["frontier_node"](DARK, hostile).figure

    async def inside() -> list[bytes]:
        return to_images([figure], theme=DARK, image_format="svg", width_px=1280, height_px=800)

    # In a thread of its own: a browser test before this one may have left a loop running in the main thread.
    with ThreadPoolExecutor(max_workers=1) as thread:
        (image,) = thread.submit(lambda: asyncio.run(inside())).result()
    drawn = ET.fromstring(image)
    assert drawn.tag.endswith("}svg")
    assert (drawn.get("width"), drawn.get("height")) == ("1280", "800")
    assert "<script>x</script> · a & b · decode" in "".join(drawn.itertext())
    assert not [element for element in drawn.iter() if element.tag.endswith("}script")]
    assert "rgb(17, 22, 28)" in image.decode()  # the dark page


def test_html_needs_nothing_else(figure: go.Figure) -> None:
    page = to_html(figure, theme=LIGHT, alt='a "quoted" <alt>')
    assert not re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=", page)
    assert "Plotly.newPlot" in page
    assert len(page) > 1_000_000  # the library itself
    assert 'aria-label="a &quot;quoted&quot; &lt;alt&gt;"' in page
    assert "mathjax" not in page.lower().split("plotly.newplot")[1]


def test_a_page_has_the_colour_of_its_theme_and_its_own_height(figure: go.Figure) -> None:
    page = on_page(figure, theme=DARK)
    assert page.layout.paper_bgcolor == DARK.paper
    assert page.layout.height is None
    assert figure.layout.height is not None
    assert figure.layout.paper_bgcolor is None


def test_no_figures_need_no_chrome(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROWSER_PATH", "/nowhere/chrome")
    assert to_images([], theme=LIGHT) == []


def test_a_missing_chrome_is_one_plain_line() -> None:
    with pytest.raises(
        ImagesUnavailable, match="BROWSER_PATH is '/nowhere/chrome', which is no program"
    ) as no:
        find_chrome(environment={"BROWSER_PATH": "/nowhere/chrome"})
    assert "\n" not in str(no.value)
    with pytest.raises(ImagesUnavailable, match="install one, or set BROWSER_PATH"):
        find_chrome(environment={"PATH": "/nowhere"})


def test_the_path_is_searched_where_nothing_is_named(tmp_path: Path) -> None:
    program = tmp_path / "chromium"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert find_chrome(environment={"PATH": str(tmp_path)}) == str(program)


def test_a_chrome_that_crashes_is_one_plain_line_and_html_still_comes(
    figure: go.Figure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "chrome"
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setenv("BROWSER_PATH", str(program))
    with pytest.raises(ImagesUnavailable, match=r"failed: .*; set BROWSER_PATH to a Chrome that runs") as no:
        to_images([figure], theme=LIGHT)
    assert "\n" not in str(no.value)
    assert to_html(figure, theme=LIGHT)
