"""One self-contained HTML report a page, that opens offline and prints on A4 and Letter.

Owns: the report's text: interactive figures (Plotly inlined once), tables, the run-spec, the version.
Refuses: any reference to another file or server, and markup from outside.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from plotly.offline import get_plotlyjs

import planner_core
from planner_core.figures.frame import Drawn
from planner_core.figures.render import on_page
from ui import state, text, theme
from ui.assets import asset


@dataclass(frozen=True)
class Paragraph:
    """Plain text."""

    text: str
    title: str = ""


@dataclass(frozen=True)
class Table:
    """A table with its title."""

    title: str
    frame: pd.DataFrame


@dataclass(frozen=True)
class Figure:
    """A figure with its title, drawn with `theme.LIGHT`: the report is for paper too."""

    title: str
    drawn: Drawn


Section = Paragraph | Table | Figure

_STYLE = asset("report.css")
_SCRIPT = asset("report.js")


def build_report(
    *,
    title: str,
    summary: str,
    sections: Sequence[Section],
    documents: Mapping[str, Any],
    settings: Mapping[str, str],
) -> str:
    """Return the report as one HTML document.

    Parameters
    ----------
    title, summary : str
        Plain text: the page, and what is loaded.
    sections : sequence
        In the order of the page.
    documents : mapping of str to JSON value
        Run-specs to print in full, by title.
    settings : mapping of str to str
        What was set on the page: name to value.
    """
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    body = [
        f"<h1>{text.htm(title)}</h1>",
        f"<p>{text.htm(summary, limit=1000)}</p>",
        f'<p class="meta">planner {html.escape(planner_core.__version__)}, {made}</p>',
    ]
    if settings:
        rows = "; ".join(f"{text.htm(name)} {text.htm(value)}" for name, value in settings.items())
        body.append(f'<p class="meta">Settings: {rows}</p>')
    has_figure = False
    for section in sections:
        if section.title:
            body.append(f"<h2>{text.htm(section.title)}</h2>")
        if isinstance(section, Paragraph):
            body.append(f"<p>{text.htm(section.text, limit=5000)}</p>")
        elif isinstance(section, Table):
            body.append(f'<div class="wide">{_table(section.frame)}</div>')
        else:
            has_figure = has_figure or not section.drawn.empty
            body.append(_figure(section.drawn))
    for name, document in documents.items():
        printed = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
        body.append(f"<h2>{text.htm(name)}</h2><pre>{html.escape(printed)}</pre>")
    library = f"<script>{get_plotlyjs()}</script>" if has_figure else ""
    script = f"<script>{_SCRIPT}</script>" if has_figure else ""
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(text.visible(title))}</title><style>{_STYLE}</style>{library}</head>"
        f"<body>{''.join(body)}{script}</body></html>"
    )


def _figure(drawn: Drawn) -> str:
    """Return one figure as HTML without the library; plotly escapes `<` inside its JSON."""
    if drawn.empty:
        return f"<p>Nothing to draw. {text.htm(drawn.empty)}</p>"
    figure = on_page(drawn.figure, theme=theme.LIGHT).update_layout(height=drawn.layout.get("height"))
    part = figure.to_html(
        full_html=False, include_plotlyjs=False, include_mathjax=False, config={"displaylogo": False}
    )
    return f'<div class="figure" role="img" aria-label="{html.escape(drawn.alt, quote=True)}">{part}</div>'


def _table(frame: pd.DataFrame) -> str:
    numeric = [
        pd.api.types.is_numeric_dtype(frame[name]) and not pd.api.types.is_bool_dtype(frame[name])
        for name in frame.columns
    ]
    kinds = [' class="number"' if flag else "" for flag in numeric]
    head = "".join(
        f"<th{kind}>{text.htm(str(name))}</th>" for kind, name in zip(kinds, frame.columns, strict=True)
    )
    rows = "".join(
        "<tr>"
        + "".join(f"<td{kind}>{_cell(value)}</td>" for kind, value in zip(kinds, row, strict=True))
        + "</tr>"
        for row in frame.itertuples(index=False, name=None)
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _cell(value: object) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if value is None or value is pd.NA or (isinstance(value, Real) and value != value):
        return ""
    if isinstance(value, Integral):
        return f"{int(value):,}"
    if isinstance(value, Real):
        return text.sig(float(value), digits=4)
    return text.htm(str(value))


def export_button(
    *,
    page: str,
    summary: str,
    sections: Callable[[], Sequence[Section]],
    name: Sequence[object],
    settings: Mapping[str, str] | None = None,
    documents: Mapping[str, Any] | None = None,
) -> None:
    """Show *Export*: it writes the page's report when clicked, and costs nothing before.

    Parameters
    ----------
    page, summary : str
        As `title` and `summary` of `build_report`.
    sections : callable
        Returns the sections; called on the click only.
    name : sequence
        Parts of the file name: model, machine, phase, context, page.
    settings : mapping, optional
        As for `build_report`.
    documents : mapping, optional
        As for `build_report`; the loaded run-spec by default.
    """
    now = state.current()
    if now.review:
        return
    shown = documents if documents is not None else {"Run-spec": now.spec}

    def report() -> bytes:
        with state.held(now):
            made = build_report(
                title=page, summary=summary, sections=sections(), documents=shown, settings=settings or {}
            )
        return made.encode("utf-8", "replace")

    st.download_button(
        "Export",
        data=report,
        file_name=text.file_name(*name, extension="html"),
        mime="text/html",
        key=f"export_{page}",
        on_click="ignore",
        help="One HTML file with this page's tables, figures and run-spec; opens offline and prints",
    )
