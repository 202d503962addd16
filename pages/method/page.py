"""Method: the formulas, the loaded machine's constants and their sources, what is left out, how far off."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from planner_core.figures.accuracy import predicted_against_measured
from planner_core.hardware import Machine
from planner_core.hardware_file import constant_paths
from planner_core.measurements import METRIC_WORDS, shipped_comparisons, summarize
from ui import charts, export, layout, loaded, method_text, state, tables, text, theme

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


def measurements_table() -> pd.DataFrame:
    """Return the published measurements with the planner's time at the same point."""
    rows = []
    for item in shipped_comparisons():
        measured = item.measurement
        rows.append(
            {
                "Machine": text.plain(measured.machine.name, limit=40),
                "Model": text.plain(measured.model_title, limit=60),
                "Point": measured.point(),
                "Metric": METRIC_WORDS[measured.metric],
                "Measured [ms]": item.measured_s * 1e3,
                "Predicted [ms]": item.predicted_s * 1e3,
                "Predicted / measured": item.ratio,
                "Without communication": item.compute_ratio,
                "Source": text.plain(measured.source_title, limit=200),
                "Address": text.plain(measured.url, limit=400),
                "Read": text.plain(measured.read, limit=40),
                "Note": text.plain(measured.note, limit=400),
            }
        )
    return pd.DataFrame(rows)


def accuracy_table() -> pd.DataFrame:
    """Return how far predictions are from measurements, by machine and metric."""
    return pd.DataFrame(
        {
            "Machine": text.plain(item.machine, limit=40),
            "Metric": METRIC_WORDS[item.metric],
            "Points": item.count,
            "Lowest": item.lowest,
            "Geometric mean": item.geometric_mean,
            "Highest": item.highest,
        }
        for item in summarize(shipped_comparisons())
    )


def _sections(machine: Machine) -> list[export.Section]:
    formulas = [export.Paragraph("\n".join(part.blocks), part.title) for part in method_text.PARTS]
    return [
        export.Table(f"Constants of {machine.title}", constants_table(machine)),
        export.Paragraph(" ".join(method_text.NOT_MODELLED), "What is not modelled"),
        export.Figure(
            "Against published measurements",
            predicted_against_measured(comparisons=shipped_comparisons(), theme=theme.LIGHT),
        ),
        export.Table("Predicted over measured, by machine", accuracy_table()),
        export.Table("Published measurements", measurements_table()),
        *formulas,
    ]


def _accuracy() -> None:
    st.subheader("Against published measurements", anchor=False)
    st.html(
        '<div class="planner-quiet">Compute and memory times are floors, so a ratio under 1 is what to '
        "expect. A ratio over 1 comes from collectives, whose constants may be fitted (on Trainium they are) "
        "and are no floor. No constant was changed to bring a ratio nearer to 1.</div>"
    )
    drawn = predicted_against_measured(comparisons=shipped_comparisons(), theme=theme.current())
    charts.show_figure(drawn, key="method_accuracy", name=("predicted-against-measured",))
    tables.show_table(
        accuracy_table(),
        key="method_by_machine",
        title="Predicted over measured, by machine",
        name=("accuracy",),
        height="content",
    )
    tables.show_table(
        measurements_table(),
        key="method_measurements",
        title="Each measurement",
        name=("measurements",),
        columns={"Address": st.column_config.LinkColumn("Address", width="small")},
    )


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
    head, actions = st.columns([3, 1], vertical_alignment="bottom")
    with head:
        layout.page_head("Method", "What is computed and how, from which constants, and what is left out.")
    with (
        actions,
        layout.controls("method"),
        st.container(horizontal=True, horizontal_alignment="right", gap="small"),
    ):
        export.export_button(
            page="Method",
            summary=f"{spec.model_label} on {machine.title}",
            sections=lambda: _sections(machine),
            name=(spec.model.name, machine.name, "method"),
        )
    if machine.illustrative:
        layout.empty(
            "This machine does not exist", "Its constants are made up, for studies of an architecture."
        )
    tables.show_wrapped(
        constants_table(machine),
        key="method_constants",
        title="Constants of the loaded machine",
        name=(machine.name, "constants"),
    )
    left, right = st.columns([1, 1], gap="large")
    with left:
        _formulas()
    with right:
        st.subheader("What is not modelled", anchor=False)
        layout.lines(method_text.NOT_MODELLED, none="")
        _accuracy()


main()
