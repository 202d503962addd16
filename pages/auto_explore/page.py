"""Auto Explore: sweep the nine axes, read the front, and see what each knob does around a baseline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import streamlit as st

from planner_core.auto_explore import Config, ExploreResult, ParallelismSensitivityRow
from planner_core.errors import PlannerError
from planner_core.figures.frame import Drawn, FigureContext
from planner_core.figures.pareto import pareto_3d, pareto_projections
from planner_core.figures.sensitivity import sensitivity_panel
from ui import (
    explore_controls,
    explore_core,
    explore_job,
    explore_tables,
    explore_words,
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
from ui.explore_core import Question

_PROJECTIONS_HEIGHT = 460
_SCENE_HEIGHT = 500
_PANEL_HEIGHT = 575
_REVIEW_HEIGHT = 715
_POLL_S = 0.5


def _name(asked: Question, what: str) -> tuple[object, ...]:
    spec = asked.spec
    return (spec.model.name, spec.machine.name, asked.phase, text.context(asked.context_tokens), what)


def _about(asked: Question) -> FigureContext:
    spec = asked.spec
    budget = "" if asked.max_pes is None else f", at most {asked.max_pes:,} PEs"
    return FigureContext(
        model=spec.model_label,
        machine=spec.machine.title,
        phase=asked.phase,
        context_tokens=asked.context_tokens,
        extra=f"batch {asked.batch:,}, {asked.machine.collective_model}{budget}",
    )


def _revision(asked: Question) -> str:
    """Zoom is kept as long as the same model and machine are looked at in the same phase."""
    return f"{asked.document} {asked.phase}"


def _pareto_figure(
    asked: Question, result: ExploreResult, row: int | None, look: theme.Theme, *, n_columns: int = 3
) -> Drawn:
    is_scene = state.current().explore.view == "3-D"
    draw = pareto_3d if is_scene else partial(pareto_projections, n_columns=n_columns)
    return draw(
        front=result.pareto,
        cloud=explore_core.cloud(asked, result),
        about=_about(asked),
        theme=look,
        baseline_row=row,
    )


def _panel_figure(
    asked: Question,
    config: Config,
    rows: Sequence[ParallelismSensitivityRow],
    look: theme.Theme,
    *,
    summary: bool = True,
    n_columns: int = 3,
) -> Drawn:
    return sensitivity_panel(
        rows=rows,
        baseline=config,
        about=_about(asked),
        theme=look,
        budget_bytes=asked.machine.budget_bytes,
        summary=summary,
        n_columns=n_columns,
        is_moe=asked.spec.model.is_moe,
    )


@guard.callback
def _start(asked: Question) -> None:
    explore_job.start(asked)


@guard.callback
def _stop() -> None:
    explore_job.stop()


@guard.callback
def _forget() -> None:
    explore_job.forget()


@st.fragment(run_every=_POLL_S)
def _watch(asked: Question) -> None:
    """Show how far a long sweep is, until there is a result."""
    job = explore_job.current(asked)
    if job is None or not job.running:
        st.rerun()
    if job.waiting:
        st.progress(0.0, text="Waiting for another sweep on this server to end")
    else:
        said = f"{text.count(job.n_done)} of {text.count(job.n_cells)} configs"
        st.progress(job.n_done / job.n_cells, text=said)
    st.button("Stop", key="explore_stop", on_click=_stop, help="What has been swept so far is then shown")


def _dense_sweep(asked: Question) -> ExploreResult | None:
    """Return the result of a long sweep, or show its start, its progress or why it failed."""
    result = explore_job.kept(asked)
    if result is not None:
        return result
    job = explore_job.current(asked)
    if job is None:
        layout.empty(
            f"A dense grid of {text.count(asked.axes.n_cells)} combinations is ready to be swept",
            "Each million takes up to a quarter of a second. It runs beside your session: progress is shown, "
            "it can be stopped, and it ends when this tab is closed.",
        )
        st.button("Start the sweep", key="explore_start", type="primary", on_click=_start, args=(asked,))
        return None
    if job.failed:
        layout.empty("The sweep failed", "The fault was written to the server's log. Start it again.")
        st.button("Start again", key="explore_start", on_click=_start, args=(asked,))
        return None
    if job.running:
        _watch(asked)
        return None
    stopped = job.result
    if stopped is not None and stopped.stopped:
        st.warning(
            f"Stopped after {text.count(job.n_done)} of {text.count(job.n_cells)} combinations: "
            "the counts and the front are of those alone."
        )
        st.button("Sweep again", key="explore_start", on_click=_start, args=(asked,))
    return stopped


def _sweep(asked: Question) -> ExploreResult | None:
    """Return the sweep, or show why there is none."""
    try:
        if state.current().explore.dense:
            return _dense_sweep(asked)
        return explore_core.sweep(asked)
    except PlannerError as error:
        layout.faults("This grid can't be searched", loaded.faults_of(error))
        return None


def _said(*sentences: str) -> None:
    """Show sentences of ours, small, a line each."""
    shown = "<br>".join(text.htm(said, limit=900) for said in sentences if said)
    st.html(f'<div class="planner-quiet">{shown}</div>')


def _context_note(asked: Question) -> None:
    longest = asked.spec.model.max_position_tokens
    if longest and asked.context_tokens > longest:
        _said(
            f"The context is longer than the {text.context(longest)} tokens that this model was made for; "
            "its cost is counted all the same."
        )


def _collectives_note(asked: Question) -> str:
    if state.current().explore.dense:
        return ""
    return explore_words.how_far_it_moves(
        explore_core.fastest_by_model(asked),
        chosen=asked.machine.collective_model,
        machine_own=asked.spec.machine.collective_model,
    )


def _pareto_tab(asked: Question, result: ExploreResult) -> None:
    layout.facts(explore_words.count_facts(result))
    if not result.pareto:
        _said(explore_words.why_not(result))
        _nothing_fits(asked, result)
        return
    config = explore_controls.baseline_of(result.pareto)
    if config is None:
        return
    row = explore_core.row_on_front(result.pareto, config)
    with _toolbar():
        widgets.segmented("View", at="explore.view", options=("Projections", "3-D"), width="content")
        explore_controls.baseline_bar(
            asked, baseline=explore_core.score(asked, config), row=row, n_rows=len(result.pareto)
        )
    is_scene = state.current().explore.view == "3-D"
    live_figure.show_live_figure(
        _pareto_figure(asked, result, row, theme.current()),
        key="explore_scene" if is_scene else "explore_projections",
        name=_name(asked, "pareto"),
        height=_SCENE_HEIGHT if is_scene else _PROJECTIONS_HEIGHT,
        revision=_revision(asked),
        on_pick=explore_controls.pick_row,
        narrow=None if is_scene else _pareto_figure(asked, result, row, theme.current(), n_columns=1),
    )
    _said(explore_words.why_not(result), _collectives_note(asked))
    explore_controls.put_table_selection(row)
    tables.show_table(
        explore_tables.front_table(result.pareto),
        key=explore_controls.TABLE_KEY,
        title="Pareto front",
        name=_name(asked, "front"),
        height="content" if len(result.pareto) <= 12 else "auto",
        on_select=explore_controls.picked_table_row,
        selection_mode="single-row",
    )


@contextmanager
def _toolbar() -> Iterator[None]:
    """Lay controls in one row over a figure."""
    with (
        layout.controls("explore_toolbar"),
        st.container(horizontal=True, vertical_alignment="bottom", gap="medium"),
    ):
        yield


def _nothing_fits(asked: Question, result: ExploreResult) -> None:
    said = explore_words.nothing_fits(result, machine=asked.machine, pe_limit=asked.pe_limit)
    if not state.current().explore.dense:
        said += " " + explore_words.what_to_change(explore_core.would_fit(asked))
    layout.empty("No config fits", said)


def _sensitivity_tab(asked: Question, result: ExploreResult) -> None:
    config = explore_controls.baseline_of(result.pareto)
    if config is None:
        _nothing_fits(asked, result)
        return
    row = explore_core.row_on_front(result.pareto, config)
    baseline = explore_core.score(asked, config)
    rows = explore_core.sensitivity(asked, config)
    with _toolbar():
        explore_controls.baseline_bar(asked, baseline=baseline, row=row, n_rows=len(result.pareto))
    live_figure.show_live_figure(
        _panel_figure(asked, config, rows, theme.current(), summary=state.current().review),
        key="explore_panel",
        name=_name(asked, "sensitivity"),
        height=_REVIEW_HEIGHT if state.current().review else _PANEL_HEIGHT,
        revision=_revision(asked),
        narrow=_panel_figure(asked, config, rows, theme.current(), n_columns=1),
    )
    sentences = explore_words.knob_sentences(rows, baseline=config, baseline_latency_s=baseline.latency_s)
    layout.lines(list(sentences.values()), none="")
    tables.show_table(
        explore_tables.sensitivity_table(rows),
        key="explore_sensitivity",
        title="Each knob alone",
        name=_name(asked, "sensitivity"),
    )


def _settings(asked: Question) -> dict[str, str]:
    return {
        "Phase": asked.phase,
        "Context": f"{asked.context_tokens:,} tokens",
        "Batch": f"{asked.batch:,}",
        "PE budget": "none" if asked.max_pes is None else f"{asked.max_pes:,}",
        "Collective model": asked.machine.collective_model,
        "Grid": "dense" if state.current().explore.dense else "chosen values",
    }


def _sections(asked: Question, result: ExploreResult) -> list[export.Section]:
    """Return both tabs for the report."""
    sections: list[export.Section] = [
        export.Paragraph(
            " ".join(
                f"{label}: {value} ({note})." for label, value, note in explore_words.count_facts(result)
            )
            + " "
            + explore_words.why_not(result),
            "The sweep",
        )
    ]
    if result.pareto:
        row = None
        config = explore_controls.baseline_of(result.pareto)
        if config is not None:
            row = explore_core.row_on_front(result.pareto, config)
        sections += [
            export.Figure("Pareto front", _pareto_figure(asked, result, row, theme.LIGHT, n_columns=1)),
            export.Table("Rows of the front", explore_tables.front_table(result.pareto)),
        ]
    else:
        said = explore_words.nothing_fits(result, machine=asked.machine, pe_limit=asked.pe_limit)
        sections.append(export.Paragraph(said, "No config fits"))
    config = explore_controls.baseline_of(result.pareto)
    if config is not None:
        rows = explore_core.sensitivity(asked, config)
        latency_s = explore_core.score(asked, config).latency_s
        said = explore_words.knob_sentences(rows, baseline=config, baseline_latency_s=latency_s)
        sections += [
            export.Figure("Sensitivity", _panel_figure(asked, config, rows, theme.LIGHT)),
            export.Paragraph(" ".join(said.values()), "What each knob does"),
            export.Table("Each knob alone", explore_tables.sensitivity_table(rows)),
        ]
    return sections


@guard.fragment
def body() -> None:
    """Draw the whole page: a setting changes all of it, and only it."""
    spec = loaded.run_spec(state.current().spec)
    head, actions = st.columns([3, 2], vertical_alignment="bottom")
    with head:
        layout.page_head(
            "Auto Explore", "Sweep the nine axes; read the front; turn each knob around a baseline."
        )
    with actions, layout.controls("explore_head"):
        corner = st.container(horizontal=True, horizontal_alignment="right", vertical_alignment="bottom")
        with corner:
            widgets.segmented(
                "Tab",
                at="explore.tab",
                options=("Pareto", "Sensitivity"),
                label_visibility="collapsed",
                width="content",
            )
    with layout.controls("explore"):
        explore_controls.workload_controls(spec)
    asked = explore_core.question(state.current())
    _context_note(asked)
    result = _sweep(asked)
    if result is None:
        return
    with corner:
        export.export_button(
            page="Auto Explore",
            summary=f"{spec.model_label} on {spec.machine.title}",
            sections=lambda: _sections(asked, result),
            name=_name(asked, "explore"),
            settings=_settings(asked),
        )
    if state.current().explore.tab == "Sensitivity":
        _sensitivity_tab(asked, result)
    else:
        _pareto_tab(asked, result)


body()
