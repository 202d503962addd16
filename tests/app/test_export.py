"""The report stands on its own, and text from outside stays text in it; a table's CSV is safe to open."""

import re

import numpy as np
import pandas as pd

from planner_core.figures.frame import Drawn, FigureContext, empty_figure, new_sheet, trace
from ui import export, tables, theme

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"
ABOUT = FigureContext(model=HOSTILE, machine="trn2", phase="decode", context_tokens=8192)


def report(*sections: export.Section) -> str:
    return export.build_report(
        title=f"Plan {HOSTILE}",
        summary=HOSTILE,
        sections=sections,
        documents={HOSTILE: {"model": HOSTILE}},
        settings={"Bucket": HOSTILE},
    )


def drawn() -> Drawn:
    sheet = new_sheet(title="Latency", about=ABOUT, theme=theme.LIGHT)
    sheet.add(trace("scatter", x=[1, 2], y=[3, 4], name=HOSTILE, customdata=[HOSTILE, HOSTILE]))
    return sheet.drawn(alt=HOSTILE)


def test_a_report_refers_to_nothing_outside_itself() -> None:
    text = report(export.Figure("Figure", drawn()), export.Table("T", pd.DataFrame({"a": [1.0]})))
    own = re.sub(r"<script>/\*\*.*?</script>", "", text, flags=re.S)  # the library
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", own)
    assert "@import" not in own


def test_the_library_is_in_it_once_and_only_for_figures() -> None:
    assert report(export.Figure("A", drawn()), export.Figure("B", drawn())).count("plotly.js v") == 1
    assert "plotly.js v" not in report(export.Paragraph("text", "Title"))


def test_text_from_outside_is_text() -> None:
    frame = pd.DataFrame({HOSTILE: [HOSTILE], "n": [1]})
    text = report(export.Figure(HOSTILE, drawn()), export.Table(HOSTILE, frame), export.Paragraph(HOSTILE))
    assert "<script>alert(1)" not in text
    assert "<img src=x" not in text


def test_a_figure_keeps_the_height_it_is_laid_out_for() -> None:
    sheet = new_sheet(title="Tall", about=ABOUT, theme=theme.LIGHT, height=787)
    sheet.add(trace("scatter", x=[1, 2], y=[3, 4]))
    assert "height:787px" in report(export.Figure("Tall", sheet.drawn(alt="")))


def test_an_empty_figure_says_why() -> None:
    empty = empty_figure(title="Front", about=ABOUT, theme=theme.LIGHT, reason="Nothing fits: raise the PEs.")
    text = report(export.Figure("Front", empty))
    assert "Nothing to draw. <bdi>Nothing fits: raise the PEs.</bdi>" in text
    assert "plotly.js v" not in text


def test_a_cell_is_readable_whatever_it_holds() -> None:
    frame = pd.DataFrame(
        {
            "whole": pd.Series([1234567, None], dtype="Int64"),
            "real": [0.00123456, float("nan")],
            "flag": [True, False],
            "text": ["a", None],
            "single": np.array([1.5, 2.5], dtype=np.float32),
        }
    )
    text = report(export.Table("T", frame))
    for shown in ("1,234,567", "0.001235", ">yes<", ">no<", "1.500"):
        assert shown in text
    assert "nan" not in text.lower().split("<table>")[1].split("</table>")[0]


def test_a_csv_has_full_precision_and_no_formula() -> None:
    frame = pd.DataFrame(
        {
            "=head": ["=cmd|' /C calc'!A0", "-x", None],
            "v": [0.1 + 0.2, -1.0, float("nan")],
            "n": pd.Series([-5, None, 7], dtype="Int64"),
        }
    )
    lines = tables.csv_bytes(frame).decode().split("\r\n")
    assert lines == [
        "'=head,v,n",
        "'=cmd|' /C calc'!A0,0.30000000000000004,-5",
        "'-x,-1.0,",
        ",,7",
        "",
    ]
