"""Method: the formulas, the loaded machine's constants and their sources, what is left out, how far off."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from planner_core.hardware import Machine
from planner_core.hardware_file import constant_paths
from planner_core.preset_files import presets_dir
from planner_core.strict_json import read_json_file
from ui import export, layout, loaded, method_text, state, tables, text

_UNITS = (
    ("peak_flops_per_s", lambda value: text.rate(value, unit="FLOP/s")),
    ("bytes_per_s", lambda value: text.rate(value, unit="B/s")),
    ("latency_s", text.seconds),
    ("bytes", text.n_bytes),
    ("frac", lambda value: f"{value:.0%}"),
    ("pes", lambda value: f"{text.count(value)}{text.NBSP}PEs"),
    ("batch", text.count),
)


def _value(machine: Machine, path: str) -> float:
    """Return a constant by its path."""
    if path.startswith("peak_flops_per_s."):
        return machine.peak_flops_per_s[path.partition(".")[2]]
    if path.startswith("tiers["):
        index, _, field = path.removeprefix("tiers[").partition("].")
        return float(getattr(machine.tiers[int(index)], field))
    return float(getattr(machine, path))


def _shown(path: str, value: float) -> str:
    """Return a constant with its unit, which its path tells."""
    for mark, form in _UNITS:
        if mark in path:
            return form(value)
    return text.sig(value)


def _label(machine: Machine, path: str) -> str:
    if path.startswith("tiers["):
        index, _, field = path.removeprefix("tiers[").partition("].")
        return f"{text.plain(machine.tiers[int(index)].name, limit=30)}: {field}"
    return text.plain(path, limit=60)


def constants_table(machine: Machine) -> pd.DataFrame:
    """Return each constant with its value and where it comes from."""
    rows = []
    for path in constant_paths(machine):
        source = machine.sources.get(path)
        rows.append(
            {
                "Constant": _label(machine, path),
                "Value": _shown(path, _value(machine, path)),
                "Kind": source.kind if source else "not given",
                "Source": text.plain(source.cite, limit=400) if source else "",
                "Read": text.plain(source.date, limit=40) if source else "",
            }
        )
    return pd.DataFrame(rows)


@st.cache_data(show_spinner=False)
def measurements() -> pd.DataFrame:
    """Return the published measurements that the model was compared with; empty where there are none."""
    path = presets_dir() / "measurements.json"
    if not path.is_file():
        return pd.DataFrame()
    document: Any = read_json_file(path, where="presets/measurements.json")
    rows = document.get("measurements", []) if isinstance(document, dict) else document
    return pd.DataFrame(rows)


def _sections(machine: Machine) -> list[export.Section]:
    formulas = [export.Paragraph("\n".join(part.blocks), part.title) for part in method_text.PARTS]
    sections: list[export.Section] = [
        export.Table(f"Constants of {machine.title}", constants_table(machine)),
        *formulas,
    ]
    sections.append(export.Paragraph(" ".join(method_text.NOT_MODELLED), "What is not modelled"))
    if not measurements().empty:
        sections.append(export.Table("Against published measurements", measurements()))
    return sections


def _formulas() -> None:
    for part in method_text.PARTS:
        st.subheader(part.title, anchor=False)
        for block in part.blocks:
            if block.startswith("$$"):
                st.latex(block.strip("$"))
            else:
                st.markdown(block)


def main() -> None:
    spec = loaded.run_spec(state.current().spec)
    machine = spec.machine
    layout.page_head("Method", "What is computed and how, from which constants, and what is left out.")
    with layout.controls("method"):
        export.export_button(
            page="Method",
            summary=f"{spec.model_label} on {machine.title}",
            sections=lambda: _sections(machine),
            name=(spec.model.name, machine.name, "method"),
        )
    left, right = st.columns([1, 1], gap="large")
    with left:
        _formulas()
    with right:
        if machine.illustrative:
            layout.empty(
                "This machine does not exist", "Its constants are made up, for studies of an architecture."
            )
        tables.show_table(
            constants_table(machine),
            key="method_constants",
            title="Constants of the loaded machine",
            name=(machine.name, "constants"),
            height="content",
            columns={
                "Value": st.column_config.TextColumn("Value", alignment="right"),
                "Source": st.column_config.TextColumn("Source", width="large"),
            },
        )
        st.subheader("What is not modelled", anchor=False)
        layout.lines(method_text.NOT_MODELLED, none="")
        if measurements().empty:
            st.subheader("Against published measurements", anchor=False)
            layout.empty(
                "No published measurements come with this version",
                "Every time here is a floor from the formulas and the constants; compare with your own runs.",
            )
        else:
            tables.show_table(
                measurements(),
                key="method_measurements",
                title="Against published measurements",
                name=("measurements",),
                height="content",
            )


main()
