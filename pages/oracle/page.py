"""Oracle: the planner's counts against the model's own code, run by torch without weights."""

from __future__ import annotations

import time

import streamlit as st

from planner_core.oracle import OracleReport, default_context_tokens
from planner_core.run_spec import RunSpec
from ui import export, guard, layout, loaded, oracle_job, oracle_words, state, tables, text, widgets
from ui.oracle_job import Job, Question
from ui.oracle_worker import STEPS

_MAX_BATCH = 4096
_POLL_S = 0.5
_INSTALL = (
    "The check runs the model's own code and needs torch. Install it in the checkout of this server, with "
    ".venv/bin/pip install -r requirements-torch.txt (the CPU build of torch is enough), and start the "
    "server again. All other pages work without it."
)
_COLUMNS = {
    "Oracle [GFLOP]": st.column_config.NumberColumn("Oracle [GFLOP]", format="%,.3f"),
    "Planner [GFLOP]": st.column_config.NumberColumn("Planner [GFLOP]", format="%,.3f"),
    "Explained [GFLOP]": st.column_config.NumberColumn("Explained [GFLOP]", format="%,.3f"),
    "Unexplained [FLOP]": st.column_config.NumberColumn("Unexplained [FLOP]", format="%,.0f"),
    "Oracle weights [MB]": st.column_config.NumberColumn("Oracle weights [MB]", format="%,.1f"),
    "Planner weights [MB]": st.column_config.NumberColumn("Planner weights [MB]", format="%,.1f"),
    "Explained weights [MB]": st.column_config.NumberColumn("Explained weights [MB]", format="%,.1f"),
    "Unexplained weights [B]": st.column_config.NumberColumn("Unexplained weights [B]", format="%,.0f"),
    "Explained by": None,  # long text: it is under the table, in the CSV and in the report
}


def _name(asked: Question, phase: str, what: str) -> tuple[object, ...]:
    return (asked.name, "torch", phase, text.context(asked.context_tokens), what)


@guard.callback
def _start(asked: Question) -> None:
    oracle_job.start(asked)


@guard.callback
def _stop() -> None:
    oracle_job.stop()


def _controls(spec: RunSpec) -> Question:
    """Show context and batch, and return what is asked."""
    context, batch, button = st.columns([1.5, 1.5, 5], gap="small", vertical_alignment="bottom")
    longest = max(spec.model.max_position_tokens, 2)
    with context:
        context_tokens = widgets.number(
            "Context [tokens]",
            at="oracle.context_tokens",
            min_value=2,
            max_value=longest,
            fallback=default_context_tokens(model=spec.model),
            step=1024,
            help=f"2 to {longest:,} tokens, what this model is made for",
        )
    with batch:
        sequences = widgets.number(
            "Batch",
            at="oracle.batch",
            min_value=1,
            max_value=_MAX_BATCH,
            step=1,
            help="Sequences in the step",
        )
    asked = oracle_job.question(spec, context_tokens=context_tokens, batch=sequences)
    with button:
        _run_button(asked)
    return asked


def _run_button(asked: Question) -> None:
    if oracle_job.kept(asked) is not None or not oracle_job.torch_is_installed():
        return
    job = oracle_job.current(asked)
    if job is None or not job.running:
        label = "Run the check" if job is None else "Run it again"
        st.button(label, key="oracle_start", type="primary", on_click=_start, args=(asked,))


@st.fragment(run_every=_POLL_S)
def _watch(asked: Question) -> None:
    """Show how far the run is, until it has ended."""
    job = oracle_job.current(asked)
    if job is None or not job.running:
        st.rerun()
    if job.waiting:
        st.progress(0.0, text="Waiting for another check on this server to end")
    else:
        elapsed_s = time.monotonic() - job.started_s
        said = f"Step {job.step + 1} of {len(STEPS)}: {STEPS[job.step]}, {elapsed_s:.0f} s so far"
        st.progress(job.step / len(STEPS), text=said)
    st.button("Stop", key="oracle_stop", on_click=_stop)


def _no_result(asked: Question, job: Job | None) -> None:
    """Say why there is no report yet, and what to do."""
    if not oracle_job.torch_is_installed():
        layout.empty("torch is not installed here", _INSTALL)
    elif job is None:
        layout.empty(
            "Not run yet for this model, context and batch",
            "The check builds the model from its config.json without weights, lets torch count the FLOP and "
            "the weights of a decode and a prefill step, and sets them beside the planner's. It takes some "
            "seconds in a process of its own; other sessions go on. Press Run the check.",
        )
    elif job.running:
        _watch(asked)
    elif job.faults:
        layout.faults("This step can't be checked", job.faults)
    elif job.unavailable:
        layout.empty("The oracle can't run here", job.unavailable)
    else:
        layout.empty("The check failed", f"{job.failed} Run it again, or with a smaller batch or context.")


def _sections(report: OracleReport, *, model: str) -> list[export.Section]:
    sections: list[export.Section] = [
        export.Paragraph(oracle_words.verdict(report, model=model), "Verdict"),
        export.Paragraph(" ".join([oracle_words.who_spoke(report), *report.notes])),
    ]
    for phase in report.phases:
        title = f"{phase.phase.capitalize()}, whole model"
        sections.append(export.Table(title, oracle_words.phase_table(phase)))
    return sections


def _result(asked: Question, report: OracleReport, *, model: str) -> None:
    st.html(f'<p class="planner-lead">{text.htm(oracle_words.verdict(report, model=model), limit=1000)}</p>')
    layout.facts(oracle_words.facts(report))
    layout.lines([oracle_words.who_spoke(report), *report.notes], none="")
    for phase in report.phases:
        tables.show_table(
            oracle_words.phase_table(phase),
            key=f"oracle_{phase.phase}",
            title=f"{phase.phase.capitalize()}, whole model at 2 bytes a weight",
            name=_name(asked, phase.phase, "oracle"),
            height="content",
            columns=_COLUMNS,
        )
        layout.lines(oracle_words.reasons(phase), none="Both sides count the same: nothing to explain.")


@guard.fragment
def body() -> None:
    """Draw the whole page: a setting changes all of it, and only it."""
    spec = loaded.run_spec(state.current().spec)
    head, corner = st.columns([3, 2], vertical_alignment="bottom")
    with head:
        layout.page_head(
            "Oracle", "The planner's FLOP and weight bytes against the model's own code, run by torch."
        )
    with layout.controls("oracle"):
        asked = _controls(spec)
    report = oracle_job.kept(asked)
    if report is None:
        _no_result(asked, oracle_job.current(asked))
        return
    with corner, layout.controls("oracle_head"), st.container(horizontal=True, horizontal_alignment="right"):
        export.export_button(
            page="Oracle",
            summary=f"{spec.model_label}, {report.spoke}",
            sections=lambda: _sections(report, model=spec.model_label),
            name=_name(asked, "decode-and-prefill", "oracle"),
            settings={"Context": f"{asked.context_tokens:,} tokens", "Batch": f"{asked.batch:,}"},
        )
    _result(asked, report, model=spec.model_label)


body()
