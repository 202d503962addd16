"""Run spec: form and JSON in step, faults beside their fields, the last valid spec in force."""

import json

import pytest

from planner_core.errors import InvalidSpec
from planner_core.hardware_file import preset_hardware_json
from planner_core.run_spec import parse_run_spec, uploads_resolver
from tests.app.apptest import check_no_fault, html_of, open_app, state_of
from ui import loaded, spec_editor, text, uploads

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": True,
}


def shown_json(at) -> dict:
    return json.loads(at.text_area(key="spec_json").value)


def test_a_field_changes_the_json_and_the_spec_in_force() -> None:
    at = open_app()
    at.text_input(key="spec_decode_itl_ceiling_ms").set_value("30").run()
    check_no_fault(at)
    assert shown_json(at)["decode_itl_ceiling_ms"] == 30
    assert state_of(at).spec["decode_itl_ceiling_ms"] == 30
    assert "ITL at most 30" in html_of(at)


def test_the_json_changes_the_form() -> None:
    at = open_app()
    document = {**loaded.default_spec(), "hf_config": "llama-3.1-8b", "prefill_itps_floor": 12345}
    at.text_area(key="spec_json").set_value(json.dumps(document)).run()
    check_no_fault(at)
    assert at.selectbox(key="spec_model_preset").value == "llama-3.1-8b"
    assert at.text_input(key="spec_prefill_itps_floor").value == "12345"


def test_a_model_preset_changes_what_was_understood() -> None:
    at = open_app()
    at.selectbox(key="spec_model_preset").set_value("llama-3.1-70b").run()
    check_no_fault(at)
    assert state_of(at).spec["model"] == "Llama 3.1 70B"
    assert "exactly as published: 70,553,706,496" in html_of(at)


def test_faults_show_all_at_once_and_the_last_valid_spec_stays_in_force() -> None:
    at = open_app()
    at.text_input(key="spec_decode_itl_ceiling_ms").set_value("-5").run()
    at.text_input(key="spec_compute_precision").set_value("int3").run()
    check_no_fault(at)
    html = html_of(at)
    assert "2 faults: the last valid run-spec stays in force" in html
    assert "got <bdi>-5</bdi>" in html
    assert "int3" in html
    assert state_of(at).spec == loaded.default_spec()
    assert shown_json(at)["decode_itl_ceiling_ms"] == -5
    at.text_input(key="spec_compute_precision").set_value("fp8").run()
    at.text_input(key="spec_decode_itl_ceiling_ms").set_value("5").run()
    assert state_of(at).draft is None
    assert state_of(at).spec["compute_precision"] == "fp8"


def test_text_that_is_no_json_is_kept_and_can_be_discarded() -> None:
    at = open_app()
    at.text_area(key="spec_json").set_value('{"model": ').run()
    check_no_fault(at)
    assert at.text_area(key="spec_json").value == '{"model": '
    assert "the form has nothing to show" in html_of(at)
    at.button(key="spec_discard").click().run()
    assert shown_json(at) == loaded.default_spec()


def test_a_machine_is_edited_by_its_constants_and_loses_the_source_of_what_was_changed() -> None:
    at = open_app()
    at.button(key="spec_edit_machine").click().run()
    at.text_input(key="spec_hardware.peak_flops_per_s.bf16").set_value("200e12").run()
    check_no_fault(at)
    machine = state_of(at).spec["hardware"]
    assert machine["peak_flops_per_s"]["bf16"] == 200e12
    assert machine["sources"]["peak_flops_per_s.bf16"]["kind"] == "assumed"
    assert machine["sources"]["hbm_bytes"]["kind"] == "vendor"
    at.text_input(key="spec_hardware.tiers[0].n_pes").set_value("64").run()
    assert "more than the 64 PEs of the tier inside it" in html_of(at)
    assert state_of(at).spec["hardware"]["tiers"][0]["n_pes"] == 4


@pytest.mark.parametrize("typed", ["9007199254740993", "18014398509481985"])
def test_a_large_byte_count_is_exact_or_refused(typed: str) -> None:
    at = open_app()
    at.button(key="spec_edit_machine").click().run()
    at.text_input(key="spec_hardware.hbm_bytes").set_value(typed).run()
    check_no_fault(at)
    assert at.text_input(key="spec_hardware.hbm_bytes").value == typed
    assert shown_json(at)["hardware"]["hbm_bytes"] == int(typed)


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ("", None),
        ("50", 50),
        ("0.5", 0.5),
        ("158e12", 158 * 10**12),
        ("1e17", 10.0**17),
        ("9007199254740993", 9007199254740993),
        ("9007199254740993.0", "9007199254740993.0"),
        ("1e400", "1e400"),
        ("nan", "nan"),
        ("0x10", "0x10"),
        ("1" * 101, "1" * 101),
    ],
)
def test_numbers_typed_are_exact_or_stay_text(typed: str, value: object) -> None:
    read = spec_editor.number_or_text(typed)
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(
    "value", [50, 0.5, 158e12, 1.5e-6, 25769803776, 716e9, 0.1 + 0.2, 1e-300, 12345678.9]
)
def test_the_text_of_a_number_reads_back_as_the_same_number(value: float) -> None:
    assert spec_editor.number_or_text(spec_editor.number_text(value)) == value


def test_uploads_make_a_spec_that_stands_on_its_own() -> None:
    machine = loaded.preset_hardware_json("sip128")
    spec = {**loaded.default_spec(), "hf_config": "some/where/config.json", "hardware": "..\\x\\machine.json"}
    files = [
        uploads.read_upload("run.json", json.dumps(spec)),
        uploads.read_upload("config.json", json.dumps(CONFIG)),
        uploads.read_upload("machine.json", json.dumps(machine)),
    ]
    document = uploads.merged({}, files)
    assert document["hf_config"] == CONFIG
    assert document["hardware"] == machine
    assert parse_run_spec(document, resolve=uploads_resolver({})).model.n_layers == 16


def test_a_config_alone_takes_the_place_of_the_model() -> None:
    document = uploads.merged(loaded.default_spec(), [uploads.read_upload("tiny.json", json.dumps(CONFIG))])
    assert document["model"] == "tiny"
    assert document["hardware"] == "trn2"


@pytest.mark.parametrize(
    ("name", "data", "match"),
    [
        ("a.json", b"", "empty"),
        ("a.json", b"[]", "JSON object"),
        ("a.json", b'{"a": 1, "a": 2}', "more than once"),
        ("a.json", b'{"x": 1}', "run-spec, a hardware file"),
        ("../../a.json", b"\xff\xfe", "a.json"),
        ("a.json", b"[" * 10_000 + b"]" * 10_000, "levels"),
        ("a.json", b'{"x": "' + b"y" * 1_100_000 + b'"}', "1,000,000 bytes"),
    ],
)
def test_a_bad_upload_is_refused_with_a_reason(name: str, data: bytes, match: str) -> None:
    with pytest.raises(InvalidSpec, match=match):
        uploads.read_upload(name, data)


def test_two_files_of_a_kind_are_refused_unless_the_spec_names_one() -> None:
    files = [uploads.read_upload(name, json.dumps(CONFIG)) for name in ("a.json", "b.json")]
    with pytest.raises(InvalidSpec, match="2 files of the kind model"):
        uploads.merged(loaded.default_spec(), files)
    document = uploads.merged({**loaded.default_spec(), "hf_config": "b.json"}, files)
    assert document["hf_config"] == CONFIG


def test_a_pasted_config_is_loaded() -> None:
    at = open_app()
    at.text_area(key="spec_paste").set_value(json.dumps(CONFIG)).run()
    at.button(key="spec_paste_use").click().run()
    check_no_fault(at)
    assert "Read the model." in html_of(at)
    assert state_of(at).spec["hf_config"] == CONFIG


def test_what_became_of_a_paste_is_told_until_the_spec_is_changed_in_another_way() -> None:
    at = open_app()
    at.text_area(key="spec_paste").set_value('{"model_type": "mamba"}').run()
    at.button(key="spec_paste_use").click().run()
    assert "it has faults" in html_of(at)
    assert "an unsupported model: its layers are state space (Mamba)" in html_of(at)
    at.button(key="spec_discard").click().run()
    check_no_fault(at)
    assert "faults" not in html_of(at)


def test_a_machine_that_is_edited_no_longer_goes_by_its_makers_name() -> None:
    at = open_app()
    title = loaded.machine_title("trn2")
    assert title in html_of(at)
    at.button(key="spec_edit_machine").click().run()
    assert title in html_of(at)
    at.text_input(key="spec_hardware.hbm_bytes_per_s").set_value("1e12").run()
    check_no_fault(at)
    assert title not in html_of(at)
    assert "trn2, edited" in html_of(at)
    at.text_input(key="spec_hardware_name").set_value("trn2 with faster HBM").run()
    check_no_fault(at)
    assert "trn2 with faster HBM" in html_of(at)
    assert state_of(at).spec["hardware"]["title"] == title


def test_an_uploaded_file_is_loaded_and_a_bad_one_is_told() -> None:
    at = open_app()
    at.file_uploader[0].upload("config.json", json.dumps(CONFIG).encode()).run()
    check_no_fault(at)
    assert state_of(at).spec["hf_config"] == CONFIG
    at.file_uploader[0].upload("bad.json", b"{").run()
    check_no_fault(at)
    assert "Nothing was loaded" in html_of(at)
    assert state_of(at).spec["hf_config"] == CONFIG


def test_the_text_that_is_downloaded_is_read_as_it_is() -> None:
    text = spec_editor.text_of(loaded.default_spec())
    assert parse_run_spec(json.loads(text), resolve=uploads_resolver({})).machine.name == "trn2"


@pytest.mark.parametrize(
    "changes",
    [
        {"hardware.tiers": {"a": 1}},
        {"hardware.tiers": ["x", {"name": 5, "link_bytes_per_s": -1}], "hardware.serving_grid": 5},
        {"hardware.peak_flops_per_s": [1], "hardware.sources": 7, "hardware.name": ""},
        {"hardware.pe_name": [], "objective": "lowest_ttft", "decode_itl_ceiling_ms": "x"},
        {"hf_config": {"hidden_size": 0}, "hardware": 5, "configs": [{"label": 1}], "unknown": None},
    ],
)
def test_every_fault_is_on_the_page_whether_or_not_it_has_a_field(changes) -> None:
    document = {**loaded.default_spec(), "hardware": preset_hardware_json("trn2")}
    for path, value in changes.items():
        place, _, name = path.rpartition(".")
        (document[place] if place else document)[name] = value
    at = open_app()
    at.text_area(key="spec_json").set_value(json.dumps(document)).run()
    check_no_fault(at)
    with pytest.raises(InvalidSpec) as refused:
        parse_run_spec(document, resolve=uploads_resolver({}))
    for fault in refused.value.faults:
        shown = (text.htm(part) for part in (fault.given, fault.allowed, fault.fix))
        assert all(part in html_of(at) for part in shown), fault


def test_a_peak_that_was_emptied_keeps_its_field_and_can_be_given_again() -> None:
    at = open_app()
    at.button(key="spec_edit_machine").click().run()
    field = "spec_hardware.peak_flops_per_s.fp8"
    before = at.text_input(key=field).value
    at.text_input(key=field).set_value("").run()
    check_no_fault(at)
    assert "fp8" not in state_of(at).spec["hardware"]["peak_flops_per_s"]
    at.text_input(key=field).set_value(before).run()
    check_no_fault(at)
    assert state_of(at).spec["hardware"]["peak_flops_per_s"]["fp8"] == float(before)
