"""Run-specs: what they default to, what they refuse and how, and where their files may come from."""

import copy
import math

import pytest

from planner_core.errors import InvalidSpec, UnsupportedModel
from planner_core.hardware_file import load_preset, preset_hardware_json
from planner_core.legal_degrees import legal_tp_degrees
from planner_core.model_arch import WeightWidths
from planner_core.preset_files import preset_names, presets_dir
from planner_core.run_spec import (
    file_resolver,
    load_run_spec,
    parse_run_spec,
    run_spec_to_json,
    uploads_resolver,
)
from planner_core.strict_json import dumps, load_json

RUN_SPECS = presets_dir() / "run_specs"

LLAMA_70B = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}

SPEC = {
    "model": "Llama 3.1 70B",
    "hardware_name": "trn2",
    "hf_config": "model.json",
    "hardware": "trn2",
    "serving": "colocated",
    "decode_itl_ceiling_ms": 50,
    "prefill_itps_floor": 30000,
}

POINT = {"label": "TP=8", "regime": "decode_heavy", "TP": 8, "PP": 1, "CP": 1, "bucket": 8192, "bs": 8}

resolve = uploads_resolver({"model.json": LLAMA_70B})


def parsed(**changes):
    return parse_run_spec({**SPEC, **changes}, resolve=resolve)


def refusal(source):
    with pytest.raises(InvalidSpec) as caught:
        parse_run_spec(source, resolve=resolve)
    for fault in caught.value.faults:
        assert "\n" not in fault.line()
        assert fault.allowed
        assert fault.fix
    return caught.value


class TestReading:
    def test_defaults(self):
        spec = parsed()
        assert spec.model_label == spec.model.name == "Llama 3.1 70B"
        assert spec.machine == load_preset("trn2")
        assert spec.decode_itl_ceiling_s == 0.05
        assert spec.prefill_tokens_per_s_floor == 30000
        assert spec.objective is None
        assert spec.widths == spec.model.widths == WeightWidths()
        assert (spec.kv_dtype_bytes, spec.activation_dtype_bytes, spec.precision) == (2.0, 2.0, "bf16")
        assert spec.configs == ()
        assert spec.warnings == ()

    def test_widths_as_asked_for(self):
        spec = parsed(
            weight_dtype_bytes=1, kv_dtype_bytes=1.0, activation_dtype_bytes=1, compute_precision="fp8"
        )
        assert spec.widths == WeightWidths.uniform(1.0)
        assert (spec.kv_dtype_bytes, spec.activation_dtype_bytes, spec.precision) == (1.0, 1.0, "fp8")

    def test_named_points(self):
        (point,) = parsed(configs=[{**POINT, "CP": 2}]).configs
        assert (point.label, point.regime) == ("TP=8", "decode_heavy")
        assert (point.tp, point.pp, point.cp, point.context_tokens, point.batch) == (8, 1, 2, 8192, 8)

    @pytest.mark.parametrize(
        "targets",
        [
            {"decode_itl_ceiling_ms": 50},
            {"prefill_itps_floor": 1e4},
            {"objective": "lowest_ttft"},
            {"objective": "highest_throughput", "decode_itl_ceiling_ms": None},
        ],
    )
    def test_one_target_is_enough(self, targets):
        bare = {
            key: value
            for key, value in SPEC.items()
            if key not in ("decode_itl_ceiling_ms", "prefill_itps_floor")
        }
        assert parse_run_spec({**bare, **targets}, resolve=resolve)

    def test_inline_model_and_machine(self):
        spec = parsed(hf_config=LLAMA_70B, hardware=preset_hardware_json("h200"), hardware_name="")
        assert spec.machine == load_preset("h200")
        assert spec.hardware_name == "h200"

    def test_label_from_the_file_name(self):
        assert parsed(model="").model_label == "model"
        assert parsed(model="", hf_config="llama-3.1-8b").model_label == "llama-3.1-8b"

    def test_names_are_one_printable_line(self):
        assert parsed(model="<b>\n\x1b[1m").model_label == "<b> \ufffd[1m"

    def test_odd_points_are_answered_with_a_warning(self):
        spec = parsed(configs=[{**POINT, "bucket": 200_000, "bs": 3}])
        context, batch = spec.warnings
        assert "200,000 tokens is above the 131,072 that the model is made for" in context
        assert "3 is not a multiple of 2, which trn2 asks for" in batch


class TestRefusing:
    @pytest.mark.parametrize(
        ("changes", "where", "match"),
        [
            ({"serving": "disaggregated"}, "serving", r"disaggregated serving is out of scope of"),
            ({"serving": "multi_node"}, "serving", r"multi-node serving is out of scope of"),
            ({"serving": "Multi-Node"}, "serving", r"multi-node serving is out of scope"),
            ({"serving": "magic"}, "serving", r"got 'magic'; allowed: colocated"),
            ({"decode_itl_ceiling_ms": 0}, "decode_itl_ceiling_ms", r"from 1e-06 to 1e\+09 ms"),
            ({"decode_itl_ceiling_ms": "50"}, "decode_itl_ceiling_ms", r"got '50'; .*without quotes or unit"),
            ({"decode_itl_ceiling_ms": True}, "decode_itl_ceiling_ms", r"got True"),
            ({"prefill_itps_floor": -1}, "prefill_itps_floor", r"from 1e-06 to 1e\+15 tokens/s"),
            ({"prefill_itps_floor": math.inf}, "prefill_itps_floor", r"got inf"),
            ({"objective": "fast"}, "objective", r"one of lowest_ttft, highest_throughput"),
            ({"objective": "lowest_ttft"}, "objective", r"beside decode_itl_ceiling_ms and prefill_itps"),
            ({"weight_dtype_bytes": 0}, "weight_dtype_bytes", r"an element, or null for the checkpoint"),
            ({"kv_dtype_bytes": 17}, "kv_dtype_bytes", r"from 0.001 to 16 bytes an element"),
            ({"compute_precision": "fp4"}, "compute_precision", r"trn2 has a peak for: bf16, fp8"),
            ({"compute_precision": 8}, "compute_precision", r"got 8"),
            ({"decode_itl_ceiling": 50}, "decode_itl_ceiling", r"key; .*mean 'decode_itl_ceiling_ms'"),
            ({"hf_config": 3}, "hf_config", r"the path of a JSON file, or the JSON object itself"),
            ({"hardware": []}, "hardware", r"the path of a JSON file, or the JSON object itself"),
            ({"hardware": {**preset_hardware_json("trn2"), "hbm_bytes": 0}}, "hardware.hbm_bytes", r"bytes;"),
            ({"configs": {}}, "configs", r"an array of 0 to 256 named operating points"),
            ({"configs": [{**POINT, "TP": 128}]}, "configs[0].TP", r"evenly on the 64 PEs of a node: 1, 2"),
            ({"configs": [{**POINT, "TP": 3}]}, "configs[0].TP", r"64 query.*: 1, 2, 4, 8, 16, 32, 64;"),
            ({"configs": [POINT, {**POINT, "TP": 0}]}, "configs[1].TP", r"a whole number of ranks from 1"),
            ({"configs": [{**POINT, "PP": 16}]}, "configs[0].PP", r"TP\*PP up to the 64 PEs"),
            ({"configs": [{**POINT, "CP": 16}]}, "configs[0].CP", r"at most TP, which is 8"),
            ({"configs": [{**POINT, "bs": 0}]}, "configs[0].bs", r"a whole number of sequences from 1"),
            ({"configs": [{**POINT, "bs": 1.5}]}, "configs[0].bs", r"got 1\.5"),
            ({"configs": [{**POINT, "bucket": 0}]}, "configs[0].bucket", r"a whole number of tokens from 1"),
            ({"configs": [{**POINT, "DP": 2}]}, "configs[0].DP", r"an unknown key; .*TP, PP, CP"),
            ({"configs": [7]}, "configs[0]", r"a JSON object"),
        ],
    )  # fmt: skip
    def test_one_fault(self, changes, where, match):
        error = refusal({**SPEC, **changes})
        assert [fault.where for fault in error.faults] == [where]
        with pytest.raises(InvalidSpec, match=match):
            raise error

    def test_both_targets_missing(self):
        source = {key: SPEC[key] for key in ("model", "hf_config", "hardware")}
        error = refusal(source)
        with pytest.raises(
            InvalidSpec,
            match=r"got neither; .*fix: give decode_itl_ceiling_ms \(ms a token\), prefill_itps_floor "
            r"\(tokens/s\), or objective 'lowest_ttft' or 'highest_throughput'",
        ):
            raise error

    def test_missing_model_and_machine(self):
        error = refusal({"objective": "lowest_ttft"})
        assert [fault.where for fault in error.faults] == ["hf_config", "hardware"]
        assert "the path of a JSON file" in error.faults[0].allowed

    def test_every_fault_of_every_file_at_once(self):
        model = {**LLAMA_70B, "num_attention_heads": 63}
        machine = {**preset_hardware_json("trn2"), "node_pes": -1}
        source = {**SPEC, "hf_config": model, "hardware": machine, "serving": "x", "typo": 1}
        places = {fault.where.split(".")[0] for fault in refusal(source).faults}
        assert places == {"hf_config", "hardware", "serving", "typo"}

    def test_points_are_checked_whatever_else_is_wrong(self):
        source = {**SPEC, "serving": "x", "compute_precision": "int3", "configs": [{**POINT, "TP": 128}, 3]}
        places = {fault.where for fault in refusal(source).faults}
        assert places == {"serving", "compute_precision", "configs[0].TP", "configs[1]"}

    def test_degrees_of_a_point_are_checked_beside_its_other_faults(self):
        points = [{**POINT, "TP": 128, "bs": 0, "typo": 1}, 3, {**POINT, "CP": 16, "bucket": 0}]
        places = {fault.where for fault in refusal({**SPEC, "configs": points}).faults}
        assert places == {
            "configs[0].TP", "configs[0].bs", "configs[0].typo", "configs[1]", "configs[2].CP",
            "configs[2].bucket",
        }  # fmt: skip

    def test_a_point_is_held_to_the_node_beside_a_faulty_model(self):
        model = {**LLAMA_70B, "num_hidden_layers": -3}
        error = refusal({**SPEC, "hf_config": model, "configs": [{**POINT, "TP": 128, "CP": 256}]})
        found = {fault.where: fault.allowed for fault in error.faults}
        assert found["configs[0].TP"] == "at most the 64 PEs of a node"
        assert found["configs[0].CP"].startswith("at most TP, which is 128")

    def test_a_fault_of_the_model_names_its_key(self):
        error = refusal({**SPEC, "hf_config": {**LLAMA_70B, "num_hidden_layers": -3}})
        assert [fault.where for fault in error.faults] == ["hf_config.num_hidden_layers"]

    @pytest.mark.parametrize("source", [None, 3, [], "text"])
    def test_not_an_object(self, source):
        assert refusal(source).faults[0].allowed == "a JSON object"

    def test_a_model_that_is_not_modelled(self):
        state_space = {"architectures": ["MambaForCausalLM"], "model_type": "mamba", "num_hidden_layers": 64}
        with pytest.raises(UnsupportedModel):
            parsed(hf_config=state_space)
        error = refusal({**SPEC, "hf_config": state_space, "serving": "x"})
        assert [fault.where.split(".")[0] for fault in error.faults] == ["serving", "hf_config"]


class TestLegalDegrees:
    def test_llama_70b(self):
        model = parsed().model
        assert legal_tp_degrees(model, load_preset("trn2")) == (1, 2, 4, 8, 16, 32, 64)
        assert legal_tp_degrees(model, load_preset("h200")) == (1, 2, 4, 8)
        assert legal_tp_degrees(model, load_preset("trn3")) == (1, 2, 4, 8, 16, 32, 64, 128, 192, 256)

    def test_heads_that_are_not_a_power_of_two(self):
        model = parsed(
            hf_config={**LLAMA_70B, "num_attention_heads": 28, "num_key_value_heads": 4, "hidden_size": 3584}
        ).model
        assert legal_tp_degrees(model, load_preset("trn2")) == (1, 2, 4, 28, 56)


class TestFiles:
    @pytest.fixture
    def folder(self, tmp_path):
        (tmp_path / "specs").mkdir()
        (tmp_path / "models").mkdir()
        (tmp_path / "models" / "m.json").write_text(dumps(LLAMA_70B))
        (tmp_path / "specs" / "m.json").write_text(dumps(LLAMA_70B))
        return tmp_path

    def write(self, folder, **changes):
        path = folder / "specs" / "spec.json"
        path.write_text(dumps({**SPEC, "hf_config": "m.json", **changes}))
        return path

    @pytest.mark.parametrize("name", ["m.json", "./m.json", "../models/m.json"])
    def test_paths_are_relative_to_the_spec(self, folder, name, monkeypatch):
        monkeypatch.chdir("/")
        assert load_run_spec(self.write(folder, hf_config=name)).model.n_layers == 80

    def test_absolute_path(self, folder):
        path = self.write(folder, hf_config=str(folder / "models" / "m.json"))
        assert load_run_spec(path).model.n_layers == 80

    def test_preset_by_bare_name(self, folder):
        assert load_run_spec(self.write(folder, hardware="h200.json")).machine.name == "h200"

    def test_a_file_comes_before_a_preset_of_its_name(self, folder):
        (folder / "specs" / "trn2").write_text(dumps({**preset_hardware_json("trn2"), "name": "mine"}))
        assert load_run_spec(self.write(folder)).machine.name == "mine"

    @pytest.mark.parametrize(
        ("name", "match"),
        [
            ("none.json", r"hf_config \(none\.json\): got a path that does not exist"),
            (
                "../../../none/x.json",
                r"hf_config \(\.\./\.\./\.\./none/x\.json\): got a path that does not exist",
            ),
            ("..", r"hf_config \(\.\.\): got a directory"),
            ("a\x00b", r"hf_config"),
            ("x" * 3000, r"hf_config"),
        ],
    )
    def test_path_that_cannot_be_read(self, folder, name, match):
        with pytest.raises(InvalidSpec, match=match) as caught:
            load_run_spec(self.write(folder, hf_config=name))
        assert len(caught.value.faults) == 1

    def test_both_files_missing_are_two_faults(self, folder):
        with pytest.raises(InvalidSpec) as caught:
            load_run_spec(self.write(folder, hf_config="a.json", hardware="b.json"))
        assert [fault.where for fault in caught.value.faults] == ["hf_config (a.json)", "hardware (b.json)"]

    @pytest.mark.parametrize(
        ("text", "match"), [("[1]", r"spec\.json: got an array at top level"), ("{", r"not JSON at line 1")]
    )
    def test_the_spec_itself(self, folder, text, match):
        path = folder / "specs" / "spec.json"
        path.write_text(text)
        with pytest.raises(InvalidSpec, match=match):
            load_run_spec(path)

    def test_infinity_in_a_key_of_the_model_that_is_not_read(self, folder):
        (folder / "specs" / "m.json").write_text(dumps(LLAMA_70B)[:-2] + ', "odd": {"x": [1, Infinity]}}')
        spec = load_run_spec(self.write(folder))
        written = run_spec_to_json(spec)
        assert written["hf_config"] == {**LLAMA_70B, "odd": {}}
        dumps(written)


class TestUploads:
    def test_uploads_then_presets(self):
        mine = {**preset_hardware_json("trn2"), "title": "mine"}
        resolve = uploads_resolver({"trn2": mine})
        assert resolve("hardware", "trn2") == mine
        assert resolve("hardware", "h200")["name"] == "h200"
        assert resolve("hf_config", "../models/llama-3.1-8b.json")["hidden_size"] == 4096
        assert resolve("hardware", "../hardware/h200.json")["name"] == "h200"

    @pytest.mark.parametrize("name", preset_names("run_specs"))
    def test_a_preset_spec_can_be_uploaded(self, name):
        source = load_json((RUN_SPECS / f"{name}.json").read_bytes(), where=name)
        assert parse_run_spec(source, resolve=uploads_resolver({})) == load_run_spec(
            RUN_SPECS / f"{name}.json"
        )

    @pytest.mark.parametrize(
        "name",
        [
            "/etc/passwd",
            "/etc/hostname",
            "../../../../etc/hostname",
            "../hardware/../hardware/h200.json",
            "../hardware/../run_specs/granite-4.1-8b-trn2.json",
            "..\\h200.json",
            "~/h200.json",
        ],
    )
    def test_never_a_file_of_the_server(self, name, monkeypatch):
        monkeypatch.setattr("planner_core.spec_files.read_json_file", None)
        with pytest.raises(
            InvalidSpec,
            match=r"which leads outside the uploads; allowed: an uploaded file or a preset: mine, ",
        ):
            uploads_resolver({"mine": {}})("hardware", name)

    @pytest.mark.parametrize(
        "name", ["pyproject.toml", "presets/hardware/h200.json", "h300", "models/llama-3.1-8b.json"]
    )
    def test_unknown_name(self, name):
        with pytest.raises(InvalidSpec, match=r"fix: upload the file too, or pick a preset"):
            uploads_resolver({})("hardware", name)


class TestWriting:
    @pytest.mark.parametrize("name", preset_names("run_specs"))
    def test_round_trip(self, name, tmp_path):
        spec = load_run_spec(RUN_SPECS / f"{name}.json")
        path = tmp_path / "downloaded.json"
        path.write_text(dumps(run_spec_to_json(spec)))
        again = load_run_spec(path)
        assert again == spec
        assert run_spec_to_json(again) == run_spec_to_json(spec)

    @pytest.mark.parametrize("ceiling_ms", [50, 30.1, 0.1, 33.333333333333336, 7e-5, 1e9])
    def test_milliseconds_come_back(self, ceiling_ms):
        spec = parsed(decode_itl_ceiling_ms=ceiling_ms)
        written = run_spec_to_json(spec)
        assert written["decode_itl_ceiling_ms"] == pytest.approx(ceiling_ms, rel=1e-15)
        assert parse_run_spec(written, resolve=resolve).decode_itl_ceiling_s == spec.decode_itl_ceiling_s

    def test_an_objective_and_widths_are_kept(self):
        source = copy.deepcopy(SPEC) | {
            "objective": "lowest_ttft",
            "weight_dtype_bytes": 0.5,
            "configs": [POINT],
        }
        del source["decode_itl_ceiling_ms"], source["prefill_itps_floor"]
        written = run_spec_to_json(parse_run_spec(source, resolve=resolve))
        assert written["objective"] == "lowest_ttft"
        assert "decode_itl_ceiling_ms" not in written
        assert written["weight_dtype_bytes"] == 0.5
        assert written["configs"] == [POINT]


class TestPresets:
    @pytest.mark.parametrize("model", ["granite-4.1-8b", "llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b"])
    @pytest.mark.parametrize("machine", ["trn2", "h100", "h200"])
    def test_there_for_every_pair(self, model, machine):
        assert f"{model}-{machine}" in preset_names("run_specs")

    @pytest.mark.parametrize("name", preset_names("run_specs"))
    def test_loads_without_a_warning(self, name):
        spec = load_run_spec(RUN_SPECS / f"{name}.json")
        assert spec.warnings == ()
        assert spec.configs
        assert name.endswith(spec.hardware_name)
        assert spec.decode_itl_ceiling_s is not None
        assert spec.prefill_tokens_per_s_floor is not None

    def test_the_reference(self):
        spec = load_run_spec(RUN_SPECS / "granite-4.1-8b-trn2.json")
        assert (spec.decode_itl_ceiling_s, spec.prefill_tokens_per_s_floor) == (0.05, 30000)
        assert spec.machine == load_preset("trn2")
        assert spec.model.max_position_tokens == 131072

    def test_weights_of_a_preset_leave_room_on_its_node(self):
        for name in preset_names("run_specs"):
            spec = load_run_spec(RUN_SPECS / f"{name}.json")
            width = spec.weight_dtype_bytes
            n_bytes = spec.model.weight_bytes if width is None else width * spec.model.n_params
            pes = min(max(spec.machine.tp_grid), spec.machine.node_pes)
            assert n_bytes < 0.95 * pes * spec.machine.budget_bytes, name


def test_file_resolver_reads_only_what_it_is_asked_for(tmp_path):
    (tmp_path / "a.json").write_text('{"a": 1}')
    assert file_resolver(tmp_path / "spec.json")("hardware", "a.json") == {"a": 1}
