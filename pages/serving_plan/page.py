"""Serving plan: which config to serve with, why, and what the targets cost."""

from __future__ import annotations

import json

import streamlit as st

from planner_core.measurements import measured_line
from planner_core.reports import plan_document
from planner_core.run_spec import RunSpec
from planner_core.serving_plan import BucketPlan, PlanRow
from planner_core.strict_json import dumps
from ui import (
    compare_core,
    export,
    guard,
    layout,
    live_figure,
    live_slider,
    loaded,
    pages,
    plan_core,
    plan_figures,
    plan_words,
    state,
    tables,
    text,
    theme,
    widgets,
)
from ui.app_state import CellPoint
from ui.plan_core import Question

_TABLE = "plan_rows"
_FRONTIER_HEIGHT = 470
_SELECTION_HEIGHT = 460
_CEILINGS_MS = live_slider.nice_steps(2, 500)
_FLOORS = live_slider.nice_steps(500, 500_000)

_COLUMNS = {
    "ITL [ms]": st.column_config.NumberColumn("ITL [ms]", format="%.1f"),
    "TTFT [s]": st.column_config.NumberColumn("TTFT [s]", format="%.3f"),
    "Node [tok/s]": st.column_config.NumberColumn("Node [tok/s]", format="%.0f"),
    "Memory [GB/PE]": st.column_config.NumberColumn("Memory [GB/PE]", format="%.1f"),
    "Verdict": st.column_config.TextColumn("Verdict", width="large"),
}


def _name(
    spec: RunSpec, what: str, *, phase: str = "decode", tokens: int | None = None
) -> tuple[object, ...]:
    length = "all-contexts" if tokens is None else text.context(tokens)
    return (spec.model.name, spec.machine.name, phase, length, what)


@guard.callback
def _use_own_targets() -> None:
    settings = state.current().plan
    state.update(plan=settings.model_copy(update={"itl_ceiling_ms": None, "prefill_itps_floor": None}))


def _controls(spec: RunSpec) -> Question:
    """Show bucket, targets and FP8, and return what is asked."""
    settings = state.current().plan
    lengths = plan_core.buckets_of(spec)
    with layout.controls("plan"):
        bucket, ceiling, floor, precision = st.columns([3.1, 2, 2, 2], gap="medium")
        with bucket:
            widgets.segmented(
                "Context [tokens]",
                at="plan.bucket_tokens",
                options=lengths,
                fallback=plan_core.bucket_in_force(spec, settings),
                format_func=text.context,
            )
        itl_ceiling_ms: float | None = None
        prefill_floor: float | None = None
        if spec.objective is None:
            own_ms = None if spec.decode_itl_ceiling_s is None else spec.decode_itl_ceiling_s * 1e3
            with ceiling:
                itl_ceiling_ms = live_slider.live_slider(
                    "ITL ceiling",
                    at="plan.itl_ceiling_ms",
                    steps=_CEILINGS_MS,
                    unit="ms",
                    fallback=own_ms,
                    none="no ceiling",
                )
            with floor:
                prefill_floor = live_slider.live_slider(
                    "Prefill floor",
                    at="plan.prefill_itps_floor",
                    steps=_FLOORS,
                    unit="tok/s",
                    fallback=spec.prefill_tokens_per_s_floor,
                    none="no floor",
                )
        else:
            with ceiling:
                layout.lines(
                    [f"The run-spec asks for an objective, {loaded.targets_line(spec)}: no targets to move."],
                    none="",
                )
        with precision:
            possible = plan_core.overlays(spec)
            options = ("none", *possible)
            labels = {"none": "Off", **plan_core.OVERLAYS}
            if possible:
                widgets.select(
                    "FP8 beside the run-spec",
                    at="plan.overlay",
                    options=options,
                    fallback="none",
                    format_func=labels.__getitem__,
                )
    return Question(
        document=loaded.canonical(state.current().spec),
        itl_ceiling_ms=itl_ceiling_ms,
        prefill_itps_floor=prefill_floor,
    )


def _other(asked: Question) -> tuple[Question, str] | None:
    """Return the FP8 variant that is modelled beside, and its name."""
    overlay = state.current().plan.overlay
    if overlay not in plan_core.overlays(asked.spec):
        return None
    document = loaded.canonical(plan_core.overlaid(state.current().spec, overlay))
    other = Question(
        document=document,
        itl_ceiling_ms=asked.itl_ceiling_ms,
        prefill_itps_floor=asked.prefill_itps_floor,
    )
    return other, plan_core.OVERLAYS[overlay]


def _recommendation(asked: Question, bucket: BucketPlan, other: tuple[Question, str] | None) -> None:
    """Show the sentence and the four numbers, and the FP8 variant's under them."""
    if bucket.selected is None:
        layout.empty(plan_words.recommendation(bucket), " ".join([bucket.why, *bucket.advice]))
    else:
        st.html(f'<p class="planner-lead">{text.htm(plan_words.recommendation(bucket))}</p>')
        said = f"Targets in force: {plan_words.targets(asked.spec, bucket.context_tokens)}."
        st.html(f'<div class="planner-quiet">{text.htm(said)}</div>')
        layout.facts(plan_words.facts(bucket, bucket.selected))
        _measured(asked.spec)
    if other is None:
        return
    question, name = other
    beside = plan_core.bucket_plan(question, bucket.context_tokens)
    st.html(f'<div class="planner-quiet planner-beside">With {text.htm(name)}</div>')
    entries = plan_words.overlay_facts(beside, bucket)
    if entries:
        layout.facts(entries)
    else:
        layout.lines([f"{plan_words.recommendation(beside)} {beside.why}"], none="")


def _measured(spec: RunSpec) -> None:
    """Show how far the machine's published measurements are from the predictions, with the way to them."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        said = text.htm(measured_line(spec.machine))
        st.html(f'<div class="planner-quiet">{said}</div>', width="content")
        if "method" in {page.name for page in pages.available()}:
            st.page_link("pages/method/page.py", label="Method", query_params=state.query())


def _why(bucket: BucketPlan) -> None:
    """Show why this one, what the runners-up miss, and what would meet the targets or give more."""
    if bucket.selected is None:
        return
    st.subheader("Why this one", anchor=False)
    st.html(f'<div class="planner-text">{text.htm(_in_words(bucket), limit=1000)}</div>')
    if bucket.advice:
        would = "give more" if bucket.sla_met else "meet the targets"
        st.subheader(f"What would {would}", anchor=False)
        layout.lines(list(bucket.advice), none="")
    st.subheader("The next in throughput", anchor=False)
    layout.lines(plan_words.runners_up(bucket), none="There is no other config that fits.")


def _in_words(bucket: BucketPlan) -> str:
    """Return the reason with what binds in words."""
    row = bucket.selected
    return bucket.why if row is None else bucket.why.replace(row.binding, text.binding(row.binding))


@guard.callback
def _picked_row() -> None:
    """Take the table's row as the one to open or compare; a row deselected is the selected config again."""
    rows = st.session_state[_TABLE]["selection"]["rows"]
    bucket = _bucket_in_force()
    chosen = bucket.rows[rows[0]] if rows and rows[0] < len(bucket.rows) else None
    state.set_at("plan.selected", None if chosen is None else plan_core.config_of(chosen))


def _bucket_in_force() -> BucketPlan:
    """Return the bucket as a callback sees it: targets only change verdicts, not rows."""
    now = state.current()
    spec = loaded.run_spec(now.spec)
    asked = Question(document=loaded.canonical(now.spec), itl_ceiling_ms=None, prefill_itps_floor=None)
    return plan_core.bucket_plan(asked, plan_core.bucket_in_force(spec, now.plan))


def _put_selection(bucket: BucketPlan) -> None:
    """Set the table's selection from the state, before the table is drawn."""
    chosen = plan_core.row_in_force(bucket, state.current().plan.selected)
    wanted = [] if chosen is None else [bucket.rows.index(chosen)]
    shown = st.session_state.get(_TABLE)
    if shown is None or list(shown["selection"]["rows"]) != wanted:
        st.session_state[_TABLE] = {"selection": {"rows": wanted, "columns": [], "cells": []}}


def _table(asked: Question, bucket: BucketPlan, other: tuple[Question, str] | None) -> None:
    if not bucket.rows:
        return
    _put_selection(bucket)
    tables.show_table(
        plan_words.bucket_table(bucket),
        key=_TABLE,
        title=f"Every config at {text.context(bucket.context_tokens)}, at its largest batch",
        name=_name(asked.spec, "plan", tokens=bucket.context_tokens),
        height="content",
        columns=_COLUMNS,
        on_select=_picked_row,
        selection_mode="single-row",
    )
    row = plan_core.row_in_force(bucket, state.current().plan.selected)
    if row is not None:
        _row_actions(row, other)


def _point(row: PlanRow) -> CellPoint:
    return CellPoint(
        phase="decode",
        context_tokens=row.context_tokens,
        batch=max(row.batch, 1),
        config=plan_core.config_of(row),
    )


def _row_actions(row: PlanRow, other: tuple[Question, str] | None) -> None:
    """Offer what can be done with the row that is picked in the table."""
    point = _point(row)
    document = state.current().spec
    with (
        layout.controls("plan_row"),
        st.container(horizontal=True, vertical_alignment="center", gap="small"),
    ):
        st.html(f'<span class="planner-quiet">Row picked: <b>{row.label()}</b></span>', width="content")
        st.button(
            "Add to compare",
            key="plan_compare",
            on_click=compare_core.add,
            args=(compare_core.point_of(document, point),),
            disabled=not row.fits,
        )
        if other is not None:
            question, name = other
            beside = plan_core.bucket_plan(question, row.context_tokens)
            same = plan_core.row_in_force(beside, plan_core.config_of(row)) or row
            st.button(
                f"Add with {name}",
                key="plan_compare_fp8",
                on_click=compare_core.add,
                args=(compare_core.point_of(json.loads(question.document), _point(same)),),
                disabled=not same.fits,
                help="The same config in FP8, at its own largest batch",
            )
        opens = "cell" in {page.name for page in pages.available()}
        if opens and st.button("Open as cell", key="plan_cell", help="Where the time of this step goes"):
            state.update(cell=point)
            st.switch_page("pages/cell/page.py", query_params=state.query())
    compare_core.say()


def _sections(asked: Question, other: tuple[Question, str] | None, tokens: int) -> list[export.Section]:
    """Return the page for the report, every context length included."""
    bucket = plan_core.bucket_plan(asked, tokens)
    plan = plan_core.whole_plan(asked)
    frontier = plan_figures.frontier(
        asked,
        bucket,
        look=theme.LIGHT,
        other=other[0] if other else None,
        other_name=other[1] if other else "",
    )
    sections: list[export.Section] = [
        export.Paragraph(plan_words.recommendation(bucket), "Recommendation"),
        export.Paragraph(measured_line(asked.spec.machine), "Against published measurements"),
        export.Paragraph(" ".join([_in_words(bucket), *bucket.advice]), "Why this one"),
    ]
    if other:
        beside = plan_core.bucket_plan(other[0], tokens)
        said = "; ".join(f"{k}: {v} ({n})" for k, v, n in plan_words.overlay_facts(beside, bucket))
        sections.append(export.Paragraph(said or plan_words.recommendation(beside), f"With {other[1]}"))
    if bucket.rows:
        title = f"Every config at {text.context(tokens)}, at its largest batch"
        sections.append(export.Table(title, plan_words.bucket_table(bucket)))
    sections += [
        export.Figure("Interactivity frontier", frontier),
        export.Figure("Selected config by context length", plan_figures.selection(asked, look=theme.LIGHT)),
    ]
    if any(part.rows for part in plan.buckets):
        sections.append(export.Table("Every config at every context", plan_words.plan_table(plan)))
    return sections


def _settings(asked: Question, tokens: int, other: tuple[Question, str] | None) -> dict[str, str]:
    return {
        "Context": f"{tokens:,} tokens",
        "Targets": loaded.targets_line(asked.spec),
        "FP8 beside": other[1] if other else "off",
    }


def _actions(asked: Question, other: tuple[Question, str] | None, tokens: int) -> None:
    spec = asked.spec
    export.export_button(
        page="Serving plan",
        summary=f"{spec.model_label} on {spec.machine.title}",
        sections=lambda: _sections(asked, other, tokens),
        name=_name(spec, "serving-plan", tokens=tokens),
        settings=_settings(asked, tokens, other),
        documents={"Run-spec with the targets in force": asked.fields()},
    )
    st.download_button(
        "Plan as JSON",
        data=lambda: dumps(plan_document(plan_core.whole_plan(asked)), indent=1).encode(),
        file_name=text.file_name(*_name(spec, "plan"), extension="json"),
        mime="application/json",
        key="plan_json",
        on_click="ignore",
        help="What planner plan --json prints for these targets",
    )


@guard.fragment
def body() -> None:
    """Draw the whole page: a moving slider redraws all of it, and only it."""
    spec = loaded.run_spec(state.current().spec)
    tokens = plan_core.bucket_in_force(spec, state.current().plan)
    head, corner = st.columns([3, 2], vertical_alignment="bottom")
    with head:
        layout.page_head("Serving plan", "One node, colocated: which config to serve with, and why.")
    asked = _controls(spec)
    layout.refresh_loaded_line(asked.spec)
    other = _other(asked)
    with corner, layout.controls("plan_head"):
        row = st.container(horizontal=True, horizontal_alignment="right", vertical_alignment="bottom")
        with row:
            settings = state.current().plan
            if settings.itl_ceiling_ms is not None or settings.prefill_itps_floor is not None:
                st.button(
                    "Run-spec's targets",
                    key="plan_own_targets",
                    type="tertiary",
                    on_click=_use_own_targets,
                    help="Go back to the targets that the run-spec gives",
                )
            _actions(asked, other, tokens)
    bucket = plan_core.bucket_plan(asked, tokens)
    _recommendation(asked, bucket, other)
    left, right = st.columns([5, 3], gap="large")
    with left:
        live_figure.show_live_figure(
            plan_figures.frontier(
                asked,
                bucket,
                look=theme.current(),
                other=other[0] if other else None,
                other_name=other[1] if other else "",
            ),
            key="plan_frontier",
            name=_name(spec, "frontier", tokens=tokens),
            height=_FRONTIER_HEIGHT,
            revision=f"{asked.fingerprint} {tokens}",
        )
    with right:
        _why(bucket)
    _table(asked, bucket, other)
    with st.container(key="wide_plan_selection"):
        live_figure.show_live_figure(
            plan_figures.selection(asked, look=theme.current()),
            key="plan_selection",
            name=_name(spec, "selection", phase="decode-and-prefill"),
            height=_SELECTION_HEIGHT,
            revision=asked.fingerprint,
            on_pick=lambda picked: state.set_at("plan.bucket_tokens", picked),
        )


body()
