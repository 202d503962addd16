"""Cell: one operating point, component by component."""

from __future__ import annotations

import streamlit as st

from planner_core.figures.frame import Drawn
from planner_core.run_spec import NamedConfig, RunSpec
from planner_core.workload import MAX_BATCH
from ui import (
    cell_core,
    cell_figures,
    cell_words,
    compare_core,
    export,
    guard,
    layout,
    live_figure,
    loaded,
    state,
    tables,
    text,
    theme,
    widgets,
)
from ui.app_state import CellPoint, ParallelConfig
from ui.cell_core import Cell

_MAX = 1 << 20
_MAX_CONTEXT = 1 << 40
_KIND, _NAMED = "cell_kind", "cell_named"
_SERVING, _NINE = "Serving config", "All nine axes"
_MODES = (
    ("KV shard mode", "kv_shard_mode", ("split", "replicate")),
    ("FFN cut over", "ffn_shard_scope", ("TP", "TP+CP", "TP+DP", "TP+CP+DP")),
    ("TP placement", "tp_placement", ("inner", "outer")),
    ("CP placement", "cp_placement", ("inner", "outer")),
    ("CP ring", "cp_ring_variant", ("qoml", "kv")),
)
_FORMATS = {"Weights [MB]": "%.2f", "KV [MB]": "%.1f", "Activations [MB]": "%.1f", "Work [GFLOP]": "%.3f"}
_TIMES = {"Load [ms]": "%.3f", "Compute [ms]": "%.3f", "Time [ms]": "%.3f"}
_STAGES = {"On the link [MB/layer]": "%.3f", "Floor [ms]": "%.3f", "Share [%]": "%.1f"}


def _columns(formats: dict[str, str]) -> dict[str, object]:
    return {name: st.column_config.NumberColumn(name, format=form) for name, form in formats.items()}


def _name(found: Cell, what: str) -> tuple[object, ...]:
    spec, point = found.spec, found.point
    return (spec.model.name, spec.machine.name, point.phase, text.context(point.context_tokens), what)


@guard.callback
def _pick_kind() -> None:
    """Change between a serving config and all nine axes; what both have is kept."""
    config = state.current().cell.config
    if st.session_state[_KIND] == _SERVING:
        kept = ParallelConfig(tp=config.tp, pp=config.pp, kv_split=config.kv_split or 1)
    else:
        kept = config.model_copy(update={"kv_split": None})
    state.set_at("cell.config", kept)


@guard.callback
def _pick_named(named: tuple[NamedConfig, ...]) -> None:
    position = st.session_state[_NAMED]
    if position is not None and 0 <= position < len(named):
        chosen = named[position]
        point = CellPoint(
            phase=state.current().cell.phase,
            context_tokens=chosen.context_tokens,
            batch=chosen.batch,
            config=ParallelConfig(tp=chosen.tp, pp=chosen.pp, kv_split=chosen.cp),
        )
        state.update(cell=point)


def _degree(label: str, name: str, *, help: str | None = None) -> None:
    widgets.number(label, at=f"cell.config.{name}", min_value=1, max_value=_MAX, step=1, help=help)


def _named_select(spec: RunSpec) -> None:
    """Offer the operating points that the run-spec names."""
    now = state.current().cell
    here = next(
        (
            at
            for at, named in enumerate(spec.configs)
            if (named.tp, named.pp, named.cp, named.context_tokens, named.batch)
            == (now.config.tp, now.config.pp, now.config.kv_split, now.context_tokens, now.batch)
        ),
        None,
    )
    widgets.mirrored(
        st.selectbox,
        "Named in the run-spec",
        key=_NAMED,
        shown=here,
        commit=_pick_named,
        args=(spec.configs,),
        options=range(len(spec.configs)),
        format_func=lambda at: text.plain(spec.configs[at].label, limit=60),
        placeholder="pick one",
    )


def _controls(spec: RunSpec) -> None:
    serving = cell_core.is_serving(state.current().cell.config)
    with layout.controls("cell"):
        columns = st.columns([1.7, 2.2, 1, 1, 1, 1.2, 1.5], gap="small")
        with columns[0]:
            widgets.segmented("Phase", at="cell.phase", options=("decode", "prefill"))
        with columns[1]:
            kind = _SERVING if serving else _NINE
            widgets.mirrored(
                st.segmented_control,
                "Config",
                key=_KIND,
                shown=kind,
                commit=_pick_kind,
                args=(),
                options=(_SERVING, _NINE),
                required=True,
            )
        with columns[2]:
            legal = ", ".join(map(str, cell_core.legal_tps(spec)))
            _degree("TP", "tp", help=f"Tensor parallel ranks. Cutting the heads evenly: {legal}")
        with columns[3]:
            if serving:
                said = "Ranks of TP that share a KV head's sequence; no more PEs"
                widgets.number(
                    "CP",
                    at="cell.config.kv_split",
                    min_value=1,
                    max_value=_MAX,
                    step=1,
                    fallback=1,
                    help=said,
                )
            else:
                _degree("CP", "cp", help="Context parallel ranks, with PEs of their own")
        with columns[4]:
            _degree("PP", "pp", help="Pipeline stages")
        with columns[5]:
            widgets.number("Batch", at="cell.batch", min_value=1, max_value=MAX_BATCH, step=1)
        with columns[6]:
            widgets.number(
                "Context [tokens]", at="cell.context_tokens", min_value=1, max_value=_MAX_CONTEXT, step=1024
            )
        if not serving:
            columns = st.columns([1, 1, 2, 2, 1.5, 1.5, 1.5], gap="small")
            with columns[0]:
                _degree("DP", "dp", help="Data parallel replicas")
            with columns[1]:
                _degree("EP", "ep", help="Expert parallel ranks; they reuse PEs")
            for column, (label, name, options) in zip(columns[2:], _MODES, strict=True):
                with column:
                    widgets.select(label, at=f"cell.config.{name}", options=options)
        if spec.configs:
            _named_select(spec)


def _sections(found: Cell) -> list[export.Section]:
    if found.faults:
        said = " ".join(f"{f.where}: got {f.given}, allowed {f.allowed}; {f.fix}." for f in found.faults)
        return [export.Paragraph(said, "This config can't be served")]
    drawn = cell_figures.figures(found, look=theme.LIGHT)
    facts = "; ".join(f"{label}: {value} ({note})" for label, value, note in cell_words.facts(found))
    return [
        export.Paragraph(f"{found.label}, {cell_core.described(found)}. {facts}.", "Operating point"),
        export.Paragraph(cell_words.limits_line(found) if found.fits else cell_words.shortage(found)),
        export.Table("Components", cell_words.component_table(found)),
        export.Figure("Where the time of the step goes", drawn["waterfall"]),
        export.Figure("Roofline", drawn["roofline"]),
        export.Figure("Memory", drawn["memory"]),
        export.Figure("Operator floors", drawn["floors"]),
        export.Table("Operators", cell_words.stage_table(found)),
    ]


def _actions(found: Cell) -> None:
    export.export_button(
        page="Cell",
        summary=f"{found.spec.model_label} on {found.spec.machine.title}, {found.label}",
        sections=lambda: _sections(found),
        name=_name(found, "cell"),
        settings={"Config": found.label, "Point": cell_core.described(found)},
    )
    now = state.current()
    st.button(
        "Add to compare",
        key="cell_compare",
        on_click=compare_core.add,
        args=(compare_core.point_of(now.spec, now.cell),),
        disabled=bool(found.faults),
    )
    compare_core.say()


def _show(drawn: Drawn, found: Cell, what: str, *, height: int) -> None:
    live_figure.show_live_figure(
        drawn, key=f"cell_{what}", name=_name(found, what), height=height, revision=found.spec.model.name
    )


def _charts(found: Cell) -> None:
    drawn = cell_figures.figures(found, look=theme.current())
    left, right = st.columns([1, 1], gap="large")
    tall = max(int(drawn["waterfall"].layout.get("height") or 0), 420)
    with left:
        _show(drawn["waterfall"], found, "waterfall", height=tall)
    with right:
        _show(drawn["roofline"], found, "roofline", height=tall)
    tables.show_table(
        cell_words.component_table(found),
        key="cell_components",
        title="Components of the step, on the most loaded PE",
        name=_name(found, "components"),
        height="content",
        columns=_columns(_FORMATS | _TIMES),
    )
    left, right = st.columns([1, 1], gap="large")
    with left:
        _show(drawn["memory"], found, "memory", height=int(drawn["memory"].layout["height"]))
    with right:
        _show(drawn["floors"], found, "floors", height=int(drawn["floors"].layout.get("height") or 420))
    tables.show_table(
        cell_words.stage_table(found),
        key="cell_stages",
        title="Floor of every operator, all layers together",
        name=_name(found, "operators"),
        height="content",
        columns=_columns(_FORMATS | _STAGES),
    )


@guard.fragment
def body() -> None:
    """Draw the whole page: a setting changes all of it, and only it."""
    spec = loaded.run_spec(state.current().spec)
    head, corner = st.columns([3, 2], vertical_alignment="bottom")
    with head:
        layout.page_head("Cell", "One operating point: where the time of a step and the memory of a PE go.")
    _controls(spec)
    now = state.current()
    found = cell_core.cell(now.spec, now.cell)
    with corner, layout.controls("cell_head"), st.container(horizontal=True, horizontal_alignment="right"):
        _actions(found)
    st.html(f'<p class="planner-lead">{text.htm(found.label)}, {text.htm(cell_core.described(found))}</p>')
    if found.faults:
        layout.faults("This config can't run", found.faults)
        return
    layout.facts(cell_words.facts(found))
    if found.fits:
        layout.lines(list(found.warnings), none=cell_words.limits_line(found))
    else:
        layout.empty("This point does not fit", cell_words.shortage(found))
        if found.warnings:
            layout.lines(list(found.warnings), none="")
    _charts(found)


body()
