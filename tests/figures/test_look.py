"""Colours that can be read and told apart, and text that is shown as typed."""

import html
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner_core.figures.theme import CLEAR, DARK, LIGHT, Theme, binding_mark, component_slots, template
from planner_core.figures.words import as_typed, plain

each_theme = pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.mode)
BINDINGS = (
    "attention:kv_load",
    "attention:weight_load",
    "attention:flop",
    "ffn:weight_load",
    "ffn:flop",
    "lm_head:weight_load",
    "lm_head:flop",
    "communication",
)


def contrast(one: str, other: str) -> float:
    """WCAG 2.1 contrast ratio."""

    def luminance(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255.0 for at in (1, 3, 5)]
        red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@each_theme
def test_contrast_on_the_page(theme: Theme) -> None:
    for colour in (theme.text, theme.muted, theme.accent, theme.bad):
        assert contrast(colour, theme.paper) >= 4.5, colour
    for colour in (*theme.series, theme.good):
        assert contrast(colour, theme.paper) >= 3.0, colour


@each_theme
def test_bindings_differ_in_colour_and_in_shape(theme: Theme) -> None:
    marks = {name: binding_mark(name, theme=theme) for name in BINDINGS}
    for one, other in combinations(BINDINGS, 2):
        assert marks[one].colour != marks[other].colour
        assert marks[one].marker != marks[other].marker
    assert binding_mark("something:new", theme=theme).marker not in {mark.marker for mark in marks.values()}


@each_theme
def test_figures_are_transparent(theme: Theme) -> None:
    layout = template(theme)["layout"]
    assert layout["paper_bgcolor"] == layout["plot_bgcolor"] == layout["scene"]["bgcolor"] == CLEAR


def test_components_of_a_step_differ_in_colour() -> None:
    slots = component_slots(
        ["attention/global", "attention/sliding", "ffn/dense", "ffn/moe", "lm_head", "communication"]
    )
    assert len(set(slots.values())) == len(slots)


@given(st.text(max_size=60))
def test_text_without_controls_survives_the_round_trip(text: str) -> None:
    if any(ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 or char in "\u2028\u2029" for char in text):
        return
    shown = as_typed(text, limit=100)
    assert "<" not in shown
    assert html.unescape(shown).strip("\u2068\u2069") == text.strip("\u2068\u2069")


def test_controls_become_visible_and_long_text_is_cut() -> None:
    assert as_typed("a\x00b\nc\x7f\ud800") == "a␀b␊c␡\ufffd"
    assert len(as_typed("y" * 400)) == 40
    assert as_typed("y" * 400).endswith("…")


def test_right_to_left_text_is_kept_apart() -> None:
    assert as_typed("\u05d0\u05d1 1") == "\u2068\u05d0\u05d1 1\u2069"
    assert as_typed("a\u202eb").startswith("\u2068")


def test_plain_text_for_a_reader_keeps_what_was_typed() -> None:
    assert plain(f"<b>row</b> {as_typed('<b>x</b> & y')}") == "row <b>x</b> & y"
