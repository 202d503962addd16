"""Compare: two to four points side by side, with differences against the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from ui import (
    cell_core,
    cell_figures,
    compare_core,
    compare_figures,
    compare_words,
    export,
    guard,
    layout,
    live_figure,
    state,
    tables,
    text,
    theme,
)
from ui.app_state import MAX_COMPARED, ComparePoint
from ui.cell_core import Cell

_HOW_TO_ADD = (
    "Press Add to compare on Serving plan (for the row picked in the table, or its FP8 variant), on Cell, or "
    "on Auto Explore (for the baseline). A point keeps its own model, machine and precision, so change the "
    f"run-spec between two additions to compare machines. Up to {MAX_COMPARED} points."
)
_ROOFLINE_HEIGHT = 440


def _file_name(found: Sequence[Cell], what: str) -> tuple[object, ...]:
    def joined(values: Sequence[str]) -> str:
        return "-".join(dict.fromkeys(values))

    return (
        joined([one.spec.model.name for one in found]),
        joined([one.spec.machine.name for one in found]),
        joined([one.point.phase for one in found]),
        joined([text.context(one.point.context_tokens) for one in found]),
        what,
    )


def _point_head(at: int, n_points: int, point: ComparePoint, found: Cell, name: str) -> None:
    """Show a point's name, and the buttons that move it and take it out."""
    with st.container(border=True, key=f"compare_point_{at}"):
        lines = (
            f"{text.htm(found.spec.model_label, limit=60)}, {text.htm(found.spec.machine.title, limit=60)}",
            f"{text.htm(found.label, limit=60)}, {text.htm(cell_core.described(found))}",
        )
        st.html(
            f'<div class="planner-point"><b>{at + 1}. {text.htm(name, limit=90)}</b>'
            f"<div>{lines[0]}</div><div>{lines[1]}</div></div>"
        )
        with layout.controls(f"compare_{at}"), st.container(horizontal=True, gap="small"):
            who = f"point {at + 1}"
            st.button(
                "Earlier",
                key=f"compare_earlier_{at}",
                on_click=compare_core.move,
                args=(at, -1),
                disabled=at == 0,
                type="tertiary",
                help=f"Move {who} one place earlier; the others are measured against the first",
            )
            st.button(
                "Later",
                key=f"compare_later_{at}",
                on_click=compare_core.move,
                args=(at, 1),
                disabled=at == n_points - 1,
                type="tertiary",
                help=f"Move {who} one place later",
            )
            st.button(
                "Remove",
                key=f"compare_remove_{at}",
                on_click=compare_core.remove,
                args=(at,),
                type="tertiary",
                help=f"Take {who} out of the comparison",
            )
            if st.button(
                "Open",
                key=f"compare_open_{at}",
                type="tertiary",
                help=f"Open {who} as a cell; its run-spec is then the one in force",
            ):
                state.update(spec=dict(point.spec), draft=None, cell=point.cell)
                st.switch_page("pages/cell/page.py", query_params=state.query())


def _sections(
    names: Sequence[str], facets: Sequence[Mapping[str, str]], found: Sequence[Cell]
) -> list[export.Section]:
    drawn = compare_figures.shared(names, facets, found, look=theme.LIGHT)
    sections: list[export.Section] = [
        export.Table(
            "Points and differences against the first", compare_words.report_table(names, facets, found)
        ),
        export.Figure("Where the time of a step goes", drawn["steps"]),
        export.Figure("Memory of the most loaded PE", drawn["memory"]),
    ]
    if said := compare_words.caution(found):
        sections.insert(0, export.Paragraph(said, "Before you compare"))
    runnable = [name for name, one in zip(names, found, strict=True) if one.step is not None]
    sections += [
        export.Figure(f"Roofline: {name}", figure)
        for name, figure in zip(runnable, compare_figures.rooflines(found, look=theme.LIGHT), strict=True)
    ]
    return sections


def _charts(names: Sequence[str], facets: Sequence[Mapping[str, str]], found: Sequence[Cell]) -> None:
    if not any(one.step is not None for one in found):
        return
    for what, drawn in compare_figures.shared(names, facets, found, look=theme.current()).items():
        live_figure.show_live_figure(
            drawn,
            key=f"compare_{what}",
            name=_file_name(found, what),
            height=int(drawn.layout.get("height") or 400),
        )
    st.subheader("Rooflines on the same axes", anchor=False)
    runnable = [one for one in found if one.step is not None]
    figures = compare_figures.rooflines(found, look=theme.current())
    columns = st.columns(2, gap="large")
    for at, (one, drawn) in enumerate(zip(runnable, figures, strict=True)):
        with columns[at % 2]:
            live_figure.show_live_figure(
                drawn,
                key=f"compare_roofline_{at}",
                name=(*_file_name([one], "roofline"), at + 1),
                height=_ROOFLINE_HEIGHT,
                revision=cell_figures.about(one).line(),
            )


@guard.fragment
def body() -> None:
    """Draw the whole page."""
    points = state.current().compare
    head, corner = st.columns([3, 2], vertical_alignment="bottom")
    with head:
        layout.page_head("Compare", "Two to four points side by side; differences are against the first.")
    if not points:
        layout.empty("Nothing to compare yet", _HOW_TO_ADD)
        return
    found = [cell_core.cell(point.spec, point.cell) for point in points]
    facets = [compare_core.facets(point, one) for point, one in zip(points, found, strict=True)]
    names = compare_core.short_names(facets)
    with corner, layout.controls("compare_head"), st.container(horizontal=True, horizontal_alignment="right"):
        export.export_button(
            page="Compare",
            summary="; ".join(f"{at}. {name}" for at, name in enumerate(names, start=1)),
            sections=lambda: _sections(names, facets, found),
            name=_file_name(found, "compare"),
            documents={
                f"Run-spec of point {at}": dict(point.spec) for at, point in enumerate(points, start=1)
            },
        )
        st.button("Remove all", key="compare_clear", on_click=compare_core.clear)
    for column, at in zip(st.columns(max(len(points), 2)), range(len(points)), strict=False):
        with column:
            _point_head(at, len(points), points[at], found[at], names[at])
    if len(points) == 1:
        layout.empty("One point so far: add another", _HOW_TO_ADD)
    if said := compare_words.caution(found):
        st.html(f'<div class="planner-quiet">{text.htm(said)}</div>')
    st.html(compare_words.grid_html(names, facets, found))
    frame = compare_words.table(names, facets, found)
    with layout.controls("compare_table"):
        st.download_button(
            "CSV",
            data=lambda: tables.csv_bytes(frame),
            file_name=text.file_name(*_file_name(found, "compare"), extension="csv"),
            mime="text/csv",
            key="compare_csv",
            type="tertiary",
            on_click="ignore",
            help="Download this table as CSV: a row a point, with differences in per cent",
        )
    _charts(names, facets, found)


body()
