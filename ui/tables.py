"""Tables on a page: one way to show them, with units in the heads and a CSV download.

Owns: the look of a table, its CSV (no cell of which a spreadsheet runs as a formula).
Refuses: computing or rounding the values in it: what is shown rounded is downloaded in full.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, Literal

import pandas as pd
import streamlit as st

from planner_core.csv_text import csv_text
from ui import state, text

_SHORT_CHARS: Final = 16


def csv_bytes(frame: pd.DataFrame) -> bytes:
    """Return a table as CSV: UTF-8, full precision, text that a spreadsheet would run made harmless."""
    columns = [str(name) for name in frame.columns]
    cells = [
        [None if missing else value for value, missing in zip(values.tolist(), values.isna(), strict=True)]
        for _, values in frame.items()
    ]
    rows = (dict(zip(columns, row, strict=True)) for row in zip(*cells, strict=True))
    return csv_text(rows, columns=columns).encode("utf-8", "replace")


def show_table(
    frame: pd.DataFrame,
    *,
    key: str,
    title: str,
    name: Sequence[object],
    columns: Mapping[str, Any] | None = None,
    height: int | Literal["auto", "content"] = "auto",
    on_select: Literal["ignore", "rerun"] | Callable[[], None] = "ignore",
    selection_mode: str = "single-row-required",
    selected_row: int | None = None,
) -> Any:
    """Show a table with its title and a CSV download.

    Parameters
    ----------
    frame : DataFrame
        One column a quantity, in the unit that its head says ("ITL [ms]").
    key : str
        Unique on the page.
    title : str
        What it shows; plain text of our own.
    name : sequence
        Parts of the file name: model, machine, phase, context, what it shows.
    columns : mapping, optional
        `st.column_config` by column, whose format gets the value in full; numbers without one show three
        significant digits.
    height, on_select, selection_mode
        As for `st.dataframe`.
    selected_row : int, optional
        Row shown as selected at first.

    Returns
    -------
    DataframeState or DeltaGenerator
        What `st.dataframe` returns.
    """
    settled = columns or {}
    frame = _in_64_bits(frame)
    settings = {column: _column(frame[column], column) for column in frame.columns if column not in settled}
    settings.update(settled)
    _head(frame, key=key, title=title, name=name)
    options: dict[str, Any] = {}
    if on_select != "ignore":
        options = {"on_select": on_select, "selection_mode": selection_mode}
        if selected_row is not None:
            options["selection_default"] = {"selection": {"rows": [selected_row]}}
    return st.dataframe(
        _rounded(frame, settled=settled),
        key=key,
        hide_index=True,
        column_config=settings,
        height=height,
        alt=title,
        placeholder="",
        **options,
    )


def _in_64_bits(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with the whole numbers of a column as floats where one is past 64 bits."""
    wide = [
        name
        for name, values in frame.items()
        if values.dtype == object and any(isinstance(value, int) and abs(value) >= 2**63 for value in values)
    ]
    return frame.astype(dict.fromkeys(wide, float)) if wide else frame


def show_wrapped(frame: pd.DataFrame, *, key: str, title: str, name: Sequence[object]) -> None:
    """Show a table of text with every cell in full, its long ones over several lines, and a CSV download.

    Parameters
    ----------
    frame : DataFrame
        Text alone; the first column names the row.
    key, title, name
        As for `show_table`.
    """
    _head(frame, key=key, title=title, name=name)
    head = "".join(f'<th scope="col">{text.htm(str(column))}</th>' for column in frame.columns)
    rows = "".join(
        f'<tr><th scope="row">{text.htm(str(first))}</th>'
        + "".join(f"<td{_kind(str(value))}>{text.htm(str(value))}</td>" for value in rest)
        + "</tr>"
        for first, *rest in frame.itertuples(index=False, name=None)
    )
    st.html(
        '<div class="planner-wide"><table class="planner-grid">'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _kind(value: str) -> str:
    """Return the class of a cell that stays on one line: a number with its unit, a date."""
    return ' class="short"' if len(value) <= _SHORT_CHARS else ""


def _head(frame: pd.DataFrame, *, key: str, title: str, name: Sequence[object]) -> None:
    """Show a table's title and its CSV download."""
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.subheader(title, anchor=False, width="content")
        if not state.current().review:
            st.download_button(
                "CSV",
                data=lambda: csv_bytes(frame),
                file_name=text.file_name(*name, extension="csv"),
                mime="text/csv",
                key=f"{key}_csv",
                type="tertiary",
                on_click="ignore",
                help=f"Download this table as CSV: {title}",
            )


def _rounded(frame: pd.DataFrame, *, settled: Collection[str]) -> pd.DataFrame:
    """Return the table as it is shown: three significant digits where the format does not fix the decimals.

    A column with its decimals fixed keeps its values: rounded first, 419.3 would read 419.0.
    """
    shown = frame.copy(deep=False)
    for name in frame.columns:
        is_float = name not in settled and pd.api.types.is_float_dtype(frame[name].dtype)
        if is_float and not _format(frame[name]).endswith("f"):
            shown[name] = [float(f"{value:.3g}") for value in frame[name].to_numpy(float)]
    return shown


def _column(values: pd.Series, name: str) -> Any:
    """Return how a column is shown: numbers to the right with three digits or more, text to the left."""
    if pd.api.types.is_bool_dtype(values):
        return st.column_config.CheckboxColumn(name, disabled=True)
    if pd.api.types.is_integer_dtype(values):
        return st.column_config.NumberColumn(name, format="localized")
    if pd.api.types.is_float_dtype(values):
        return st.column_config.NumberColumn(name, format=_format(values))
    return st.column_config.TextColumn(name)


def _format(values: pd.Series) -> str:
    """Return a format that lines the points up, with digits enough for the smallest."""
    sizes = [abs(value) for value in values.to_numpy(float).tolist() if 0.0 < abs(value) < math.inf]
    if not sizes:
        return "localized"
    least, most = min(sizes), max(sizes)
    if most >= 999.5 or least < 1e-3:
        return "localized" if least >= 1.0 else "%.3g"
    digits = 2 - math.floor(math.log10(max(least, most / 10.0)))
    return f"%.{max(0, digits)}f"
