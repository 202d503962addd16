"""Run spec: choose the model, the machine and the targets, as a form and as JSON."""

from __future__ import annotations

from typing import Any

import streamlit as st

from planner_core.errors import Fault, PlannerError
from planner_core.hardware_file import preset_hardware_json
from ui import guard, layout, loaded, plan_core, spec_editor, spec_summary, state, text, uploads, widgets
from ui.spec_editor import PlacedFaults

_INLINE = "(given in the run-spec)"
_JSON_HEIGHT = 400
_NONCE = "_run_spec_upload_nonce"
_UPLOAD_RESULT = "_run_spec_upload_result"
_EDITING = "_run_spec_editing_machine"
_PASTING = "spec_paste_open"
_GOALS = {
    "Latency targets": None,
    "Lowest TTFT": "lowest_ttft",
    "Highest throughput": "highest_throughput",
}
_DEFAULTS = {"weight_dtype_bytes": "as stored", "kv_dtype_bytes": "as stored", "compute_precision": "bf16"}
_MACHINE_FIELDS = (
    ("hbm_bytes", "HBM of a PE [B]"),
    ("hbm_bytes_per_s", "HBM bandwidth of a PE [B/s]"),
    ("usable_hbm_frac", "Share of HBM that a plan may fill"),
    ("reserved_bytes", "Reserved by the runtime [B]"),
    ("node_pes", "PEs of a node"),
    ("batch_multiple", "A batch is a multiple of"),
    ("kv_merge_bytes_per_s", "KV merge bandwidth [B/s]"),
)
_PRECISIONS = ("bf16", "fp8")  # have a field also where the machine has no peak for them: it can be given
_TIER_FIELDS = (
    ("n_pes", "PEs"),
    ("hop_latency_s", "Hop latency [s]"),
    ("link_bytes_per_s", "Link [B/s]"),
)


def _show_faults(path: str, found: PlacedFaults, *, exact: bool = False) -> None:
    """Show the faults of a field under it."""
    for fault in found.take(path, exact=exact):
        st.html(layout.fault_line(fault, with_place=fault.where != path))


@guard.callback
def _commit_field(path: str, key: str, is_number: bool) -> None:
    typed = st.session_state[key]
    value = spec_editor.number_or_text(typed) if is_number else (typed or None)
    if path.startswith("hardware."):
        spec_editor.put_constant(path.removeprefix("hardware."), value)
    else:
        spec_editor.put_fields({path: value})


def _field(
    document: dict[str, Any],
    path: str,
    label: str,
    found: PlacedFaults,
    *,
    number: bool = True,
    **more: Any,
) -> None:
    """Show one field of the document as a line of text, with its faults."""
    key = f"spec_{path}"
    shown = spec_editor.number_text(spec_editor.value_at(document, path))
    widgets.mirrored(
        st.text_input, label, key=key, shown=shown, commit=_commit_field, args=(path, key, number), **more
    )
    _show_faults(path, found)


@guard.callback
def _pick_model(key: str) -> None:
    name = st.session_state[key]
    if name != _INLINE:
        spec_editor.put_fields({"hf_config": name, "model": str(loaded.model_index()[name]["title"])})


@guard.callback
def _pick_machine(key: str) -> None:
    name = st.session_state[key]
    if name != _INLINE:
        spec_editor.put_fields({"hardware": name, "hardware_name": name})


def _preset_select(
    label: str, *, key: str, named: object, options: tuple[str, ...], titles: Any, on_change: Any
) -> None:
    """Show the presets, and one more entry where the document has a file of its own."""
    preset = loaded.preset_named(named, known=options)
    choices = list(options) if preset else [_INLINE, *options]
    shown = preset or _INLINE
    widgets.mirrored(
        st.selectbox,
        label,
        key=key,
        shown=shown,
        commit=on_change,
        args=(key,),
        options=choices,
        format_func=lambda name: (
            "From a file, as in the JSON" if name == _INLINE else text.plain(titles(name))
        ),
    )


def _model_part(document: dict[str, Any], found: PlacedFaults) -> None:
    left, right = st.columns(2)
    with left:
        _preset_select(
            "Model",
            key="spec_model_preset",
            named=document.get("hf_config"),
            options=loaded.model_presets(),
            titles=lambda name: str(loaded.model_index()[name]["title"]),
            on_change=_pick_model,
        )
        _show_faults("hf_config", found)
    with right:
        _field(document, "model", "Model shown as", found, number=False)


@guard.callback
def _edit_machine() -> None:
    document = spec_editor.shown_document() or {}
    preset = loaded.preset_named(document.get("hardware"), known=loaded.machine_presets())
    if preset:
        spec_editor.put_fields({"hardware": spec_editor.plain_numbers(preset_hardware_json(preset))})
        st.session_state[_EDITING] = True


@guard.callback
def _pick_collectives(key: str) -> None:
    spec_editor.put_fields({"hardware.collective_model": st.session_state[key]})


def _machine_constants(document: dict[str, Any], found: PlacedFaults) -> None:
    """Show the constants of a machine that the document holds itself."""
    machine = document["hardware"]
    peaks = machine.get("peak_flops_per_s")
    precisions = list(dict.fromkeys((*peaks, *_PRECISIONS))) if isinstance(peaks, dict) else []
    fields = [(f"peak_flops_per_s.{name}", f"Peak, {text.md(name)} [FLOP/s]") for name in precisions]
    fields += _MACHINE_FIELDS
    for start in range(0, len(fields), 2):
        for column, (path, label) in zip(st.columns(2), fields[start : start + 2], strict=False):
            with column:
                _field(document, f"hardware.{path}", label, found, placeholder="none")
    models = ["hierarchical", "flat", "flat-all-pes"]
    chosen = machine.get("collective_model")
    widgets.mirrored(
        st.selectbox,
        "Collective model",
        key="spec_collectives",
        shown=chosen if chosen in models else None,
        commit=_pick_collectives,
        args=("spec_collectives",),
        options=models,
        help="How an all-reduce that spans several tiers is charged; see Method",
    )
    tiers = machine.get("tiers")
    for index, tier in enumerate(tiers if isinstance(tiers, list) else ()):
        name = tier.get("name", index) if isinstance(tier, dict) else index
        st.html(f'<div class="planner-quiet">Tier {text.htm(str(name), limit=60)}</div>')
        for column, (field, label) in zip(st.columns(3), _TIER_FIELDS, strict=True):
            with column:
                _field(document, f"hardware.tiers[{index}].{field}", label, found)


def _machine_part(document: dict[str, Any], found: PlacedFaults) -> None:
    left, right = st.columns(2)
    with left:
        _preset_select(
            "Machine",
            key="spec_machine_preset",
            named=document.get("hardware"),
            options=loaded.machine_presets(),
            titles=loaded.machine_title,
            on_change=_pick_machine,
        )
        _show_faults("hardware", found, exact=True)
    with right:
        _field(document, "hardware_name", "Machine shown as", found, number=False)
    if isinstance(document.get("hardware"), dict):
        wanted = st.session_state.get(_EDITING, False) or bool(found.at("hardware"))
        with st.expander("Machine constants", expanded=wanted):
            _machine_constants(document, found)
    elif loaded.preset_named(document.get("hardware"), known=loaded.machine_presets()):
        st.button(
            "Edit the machine's constants", on_click=_edit_machine, type="tertiary", key="spec_edit_machine"
        )


@guard.callback
def _pick_goal(key: str) -> None:
    objective = _GOALS[st.session_state[key]]
    if objective is not None:
        changes = {"objective": objective, "decode_itl_ceiling_ms": None, "prefill_itps_floor": None}
    else:
        default = loaded.default_spec()
        changes = {
            "objective": None,
            "decode_itl_ceiling_ms": default["decode_itl_ceiling_ms"],
            "prefill_itps_floor": default["prefill_itps_floor"],
        }
    spec_editor.put_fields(changes)


def _targets_part(document: dict[str, Any], found: PlacedFaults) -> None:
    goal = next(
        (name for name, value in _GOALS.items() if value == document.get("objective")), "Latency targets"
    )
    widgets.mirrored(
        st.segmented_control,
        "Plan for",
        key="spec_goal",
        shown=goal,
        commit=_pick_goal,
        args=("spec_goal",),
        options=list(_GOALS),
        required=True,
        wrap=True,
    )
    _show_faults("objective", found)
    if document.get("objective") is None:
        left, right = st.columns(2)
        with left:
            _field(document, "decode_itl_ceiling_ms", "ITL ceiling [ms]", found)
        with right:
            _field(
                document,
                "prefill_itps_floor",
                "Prefill floor [tok/s]",
                found,
                help="F means a TTFT of at most S/F seconds at a context of S tokens",
            )
            _ttft_note(found)


def _ttft_note(found: PlacedFaults) -> None:
    """Say which TTFT the floor in force allows, at the shortest and the longest context of a plan."""
    spec = loaded.run_spec(state.current().spec)
    floor = spec.prefill_tokens_per_s_floor
    if floor is None or found.faults:
        return
    lengths = plan_core.buckets_of(spec)
    ends = dict.fromkeys((lengths[0], lengths[-1]))
    said = ", ".join(f"{text.seconds(tokens / floor)} at {text.context(tokens)}" for tokens in ends)
    st.html(f'<div class="planner-quiet">TTFT at most {text.htm(said)}</div>')


def _precision_part(document: dict[str, Any], found: PlacedFaults) -> None:
    columns = st.columns(3)
    fields = (
        ("weight_dtype_bytes", "Weight [B]", True, "Bytes of a weight; empty: as the checkpoint stores it"),
        (
            "kv_dtype_bytes",
            "Cached element [B]",
            True,
            "Bytes of a cached element; empty: as the checkpoint says",
        ),
        (
            "compute_precision",
            "Compute precision",
            False,
            "Which of the machine's peaks computes; empty: bf16",
        ),
    )
    for column, (path, label, number, note) in zip(columns, fields, strict=True):
        with column:
            _field(document, path, label, found, number=number, help=note, placeholder=_DEFAULTS[path])


@guard.callback
def _take_uploads(key: str) -> None:
    _take([(file.name, file.getvalue()) for file in st.session_state[key] or []])
    st.session_state[_NONCE] = st.session_state.get(_NONCE, 0) + 1


@guard.callback
def _take_pasted(key: str) -> None:
    _take([("pasted.json", st.session_state[key])])
    st.session_state[_PASTING] = False


def _take(files: list[tuple[str, str | bytes]]) -> None:
    """Read what came in, all of it, and put it in force where it is whole."""
    read: list[uploads.Upload] = []
    found: list[Fault] = []
    for name, data in files:
        try:
            read.append(uploads.read_upload(name, data))
        except PlannerError as error:
            found.extend(loaded.faults_of(error))
    message = ""
    if read and not found:
        try:
            valid = spec_editor.put_document(
                uploads.merged(spec_editor.shown_document() or state.current().spec, read)
            )
            kinds = " and ".join(sorted({upload.kind for upload in read}))
            message = (
                f"Read the {kinds}."
                if valid
                else f"Read the {kinds}; it has faults, shown beside the fields."
            )
        except PlannerError as error:
            found.extend(loaded.faults_of(error))
    st.session_state[_UPLOAD_RESULT] = (message, tuple(found), spec_editor.shown_text())


def _files_part() -> None:
    key = f"spec_upload_{st.session_state.get(_NONCE, 0)}"
    with st.popover("Upload files"):
        st.file_uploader(
            "A run-spec, a config.json, a machine: together or one at a time",
            type="json",
            accept_multiple_files=True,
            key=key,
            on_change=_take_uploads,
            args=(key,),
            help="A path in a run-spec is looked up among the uploads and the presets only.",
        )
    with st.popover("Paste config.json", key=_PASTING, on_change="rerun"):
        st.text_area("Content of the config.json", key="spec_paste", height=240, max_chars=1_000_000)
        st.button("Use it", key="spec_paste_use", on_click=_take_pasted, args=("spec_paste",))


def _files_result() -> None:
    """Say what became of the last files, until the run-spec is changed in another way."""
    message, found, result = st.session_state.get(_UPLOAD_RESULT, ("", (), ""))
    if result != spec_editor.shown_text():
        return
    if message:
        st.html(f'<div class="planner-quiet" role="status">{text.htm(message)}</div>')
    if found:
        layout.faults("Nothing was loaded", found)


@guard.callback
def _commit_json(key: str) -> None:
    spec_editor.put_text(st.session_state[key])


def _download_part() -> None:
    now = state.current()
    spec = loaded.run_spec(now.spec)
    st.download_button(
        "Download run-spec",
        data=lambda: spec_editor.text_of(now.spec) + "\n",
        file_name=text.file_name("run-spec", spec.model.name, spec.machine.name, extension="json"),
        mime="application/json",
        key="spec_download",
        on_click="ignore",
        help="The run-spec in force; the command line takes it as it is",
    )


def _json_part(found: PlacedFaults) -> None:
    now = state.current()
    if now.draft is not None:
        n_faults = len(found.faults)
        title = f"{n_faults} fault{'s' if n_faults != 1 else ''}: the last valid run-spec stays in force"
        if elsewhere := found.not_taken():
            layout.faults(title, elsewhere)
        else:
            st.html(f'<div class="planner-fault" role="alert"><span class="w">{title}</span></div>')
        st.button("Discard the changes", key="spec_discard", on_click=spec_editor.discard)
    widgets.mirrored(
        st.text_area,
        "Run-spec as JSON",
        key="spec_json",
        shown=spec_editor.shown_text(),
        commit=_commit_json,
        args=("spec_json",),
        height=_JSON_HEIGHT,
        max_chars=1_000_000,
    )


def main() -> None:
    now = state.current()
    spec = loaded.run_spec(now.spec)
    found = PlacedFaults(spec_editor.faults())
    head, actions = st.columns([3, 4], vertical_alignment="bottom")
    with head:
        layout.page_head("Run spec", "The model, the machine and the targets that every other page works on.")
    with (
        actions,
        layout.controls("run_spec_files"),
        st.container(horizontal=True, horizontal_alignment="right", gap="small"),
    ):
        _files_part()
        _download_part()
        spec_summary.export_report(spec, document=now.spec)
    with layout.controls("run_spec"):
        _files_result()
        form, right = st.columns([1, 1], gap="large")
        with form:
            document = spec_editor.shown_document()
            if document is None:
                layout.empty(
                    "The JSON can't be read, so the form has nothing to show",
                    "Correct it on the right, or discard the changes to go back to the last valid run-spec.",
                )
            else:
                _model_part(document, found)
                _machine_part(document, found)
                _targets_part(document, found)
                _precision_part(document, found)
        with right:
            _json_part(found)
    spec_summary.show(spec, document=now.spec)


main()
