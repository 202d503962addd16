"""Text from outside stays text, wherever it is shown; numbers have three significant digits."""

import doctest

import pytest

from ui import text

HOSTILE = (
    "<script>alert(1)</script>",
    "**x**",
    ":smile: :red[x] :material/home:",
    "$x^2$ `code` [a](http://x)",
    "a -> b <- c -- d >= e",
    "\u202eevil\u202c",
    "bell\x07 null\x00 esc\x1b[31m",
    "=cmd|' /C calc'!A0",
)


def test_doctests() -> None:
    assert doctest.testmod(text).failed == 0


@pytest.mark.parametrize("name", HOSTILE)
def test_html_has_no_tag_and_no_control_character(name: str) -> None:
    shown = text.htm(name).removeprefix("<bdi>").removesuffix("</bdi>")
    assert "<" not in shown
    assert all(ord(char) >= 0x20 for char in shown)


@pytest.mark.parametrize("name", HOSTILE)
def test_markdown_escapes_every_punctuation_mark(name: str) -> None:
    shown = text.md(name)
    for index, char in enumerate(shown):
        if char in "<>*_`$[]()#!|~:=-&":
            assert shown[index - 1] == "\\", (char, shown)


def test_markdown_breaks_what_streamlit_replaces_in_plain_text() -> None:
    bare = text.md(":smile: -> <- -- >=").replace("\\", "")
    for pattern in (":smile:", "->", "<-", "--", ">="):
        assert pattern not in bare


def test_direction_marks_stay_inside() -> None:
    for shown in (text.md(HOSTILE[5]), text.plain(HOSTILE[5])):
        assert (shown[0], shown[-1]) == ("\u2068", "\u2069")
    assert text.plain("plain") == "plain"


def test_long_text_is_cut() -> None:
    assert len(text.plain("x" * 400, limit=120)) == 120
    assert text.plain("x" * 400, limit=120).endswith("\u2026")


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        (("../../etc/passwd", "trn2"), "etc-passwd_trn2.csv"),
        (("<b>", "\u202e"), "b.csv"),
        (("\u6a21\u578b",), "planner.csv"),
        (("x" * 400,), "x" * 40 + ".csv"),
        (("CON\x00", "a/b\\c"), "CON_a-b-c.csv"),
    ],
)
def test_file_names_are_safe(parts: tuple[str, ...], name: str) -> None:
    assert text.file_name(*parts, extension="csv") == name


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (28089.4, "28,100"),
        (999.6, "1,000"),
        (0.99996, "1.00"),
        (1e-7, "1.00e-07"),
        (float("nan"), "n/a"),
        (float("inf"), "n/a"),
        (-12.345, "-12.3"),
    ],
)
def test_three_significant_digits(value: float, shown: str) -> None:
    assert text.sig(value) == shown


def test_units() -> None:
    assert text.seconds(0.0085691) == "8.57\u00a0ms"
    assert text.n_bytes(16.76e9) == "16.8\u00a0GB"
    assert text.rate(158e12, unit="FLOP/s") == "158\u00a0TFLOP/s"
