"""What the command line refuses and how: a line a fault, exit 2, a document with --json, no traceback."""

import copy
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from planner_core.preset_files import presets_dir
from tests.contracts.cli_runs import GRANITE, LLAMA, ROOT, run, start

CELL = ["cell", GRANITE, "--tp", "8", "--bs", "8", "--ctx", "8192"]
SENSITIVITY = ["sensitivity", LLAMA, "--context", "8192"]
BAD_COUNTS = [
    "0",
    "-1",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "1e3",
    "8.5",
    "true",
    "",
    "8 8",
    "9" * 500,
    "٣",
    "8\x1b[31m",
]


def refused(capsys, *arguments):
    """The faults of a command line, the same in lines and as a document."""
    text = run(capsys, *arguments)
    document = run(capsys, *arguments, "--json")
    faults = document.faults()
    assert (text.code, text.out) == (2, "")
    lines = text.err.splitlines()
    assert len(lines) == len(faults)
    for line, fault in zip(lines, faults, strict=True):
        assert line.startswith(f"{fault['where']}: got ")
        assert "; allowed: " in line
        assert "; fix: " in line
    assert "\x1b" not in text.err + document.out
    return faults


@pytest.mark.parametrize("bad", BAD_COUNTS)
@pytest.mark.parametrize(
    ("option", "command"),
    [
        ("--tp", ["cell", GRANITE, "--bs", "8", "--ctx", "8192"]),
        ("--bs", ["cell", GRANITE, "--tp", "8", "--ctx", "8192"]),
        ("--ctx", ["cell", GRANITE, "--tp", "8", "--bs", "8"]),
        ("--cp", CELL),
        ("--pp", CELL),
        ("--context", ["explore", LLAMA]),
        ("--batch", ["explore", LLAMA]),
        ("--max-pes", ["explore", LLAMA]),
        ("--cp", ["explore", LLAMA]),
        ("--context", ["sensitivity", LLAMA]),
        ("--batch", SENSITIVITY),
    ],
)
def test_a_bad_count_is_refused_by_its_option(capsys, option, command, bad):
    (fault,) = refused(capsys, *command, f"{option}={bad}")
    assert fault["where"] == option
    assert "whole number" in fault["allowed"]


@pytest.mark.parametrize("bad", ["-1", "nan", "inf", "1e400", "0", "fast", "", "9" * 500])
@pytest.mark.parametrize(
    "option", ["--decode-itl-ceiling-ms", "--prefill-itps-floor", "--weight-dtype-bytes", "--kv-dtype-bytes"]
)
def test_a_bad_target_or_width_is_refused_by_its_option(capsys, tmp_path, option, bad):
    (fault,) = refused(capsys, "plan", GRANITE, f"{option}={bad}", "--project-root", str(tmp_path))
    assert fault["where"] == option
    assert "null" not in fault["allowed"]
    assert not list(tmp_path.iterdir())


def test_every_fault_at_once(capsys):
    faults = refused(
        capsys, "explore", LLAMA, "--context", "0", "--batch", "-3", "--phase", "train", "--cp", "1,two",
        "--tp", "2,2", "--ffn-shard-scope", "EP", "--compute-precision", "int3",
        "--collective-model", "magic",
    )  # fmt: skip
    assert sorted(fault["where"] for fault in faults) == [
        "--batch", "--collective-model", "--compute-precision", "--context", "--cp", "--ffn-shard-scope",
        "--phase", "--tp",
    ]  # fmt: skip


def test_tp_above_the_node_names_the_legal_degrees(capsys):
    for degree in ("128", "3"):
        (fault,) = refused(capsys, "cell", GRANITE, "--tp", degree, "--bs", "8", "--ctx", "8192")
        assert (fault["where"], fault["given"]) == ("--tp", degree)
        assert fault["allowed"].endswith(
            "32 query heads and 8 KV heads evenly on the 64 PEs of a node: 1, 2, 4, 8, 16, 32, 64"
        )
    (fault,) = refused(capsys, "cell", "llama-3.1-70b-trn2", "--tp", "65", "--bs", "8", "--ctx", "8192")
    assert "64 query heads and 8 KV heads" in fault["allowed"]


def test_other_degrees_that_a_cell_cannot_have(capsys):
    (fault,) = refused(capsys, *CELL, "--cp", "16")
    assert (fault["where"], "at most TP, which is 8" in fault["allowed"]) == ("--cp", True)
    (fault,) = refused(capsys, *CELL, "--pp", "9")
    assert fault["fix"] == "with TP 8 use at most PP 8"
    faults = refused(capsys, "cell", GRANITE, "--tp", "1", "--pp", "41", "--bs", "8", "--ctx", "8192")
    assert [(fault["where"], fault["given"]) for fault in faults] == [("--pp", "41")]
    faults = refused(capsys, "cell", GRANITE)
    assert [fault["where"] for fault in faults] == ["--tp", "--bs", "--ctx"]
    (fault,) = refused(capsys, "cell", GRANITE, "--label", "no such")
    assert "'TP=8, batch 8'" in fault["allowed"]


def test_rows_and_configs_of_a_sensitivity(capsys):
    (fault,) = refused(capsys, *SENSITIVITY, "--row", "999")
    assert re.fullmatch(r"a row of the front, 0 to \d", fault["allowed"])
    (fault,) = refused(capsys, *SENSITIVITY, "--row", "0", "--config", "cp=8")
    assert fault["allowed"] == "--row or --config, not both"
    (fault,) = refused(capsys, "sensitivity", LLAMA, "--context", "131072", "--max-pes", "1")
    assert fault["fix"] == "give a baseline with --config"
    faults = refused(capsys, *SENSITIVITY, "--config", "cp=0,tp=1e9,colour=red,ffn_shard_scope=EP")
    assert [fault["where"] for fault in faults] == [
        "--config.cp", "--config.tp", "--config.colour", "--config.ffn_shard_scope",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "where", "given"),
    [
        (["paln"], "command", "no such command 'paln'"),
        (["plan"], "SPEC", "nothing"),
        (["plan", GRANITE, "extra"], "planner plan", "unexpected extra argument(s) (extra)"),
        (["cell", GRANITE, "--tpp", "8"], "--tpp", "an option that there is not"),
        (["plan", "nowhere.json"], "nowhere.json", "a path that does not exist"),
        (["plan", ""], ".", "a directory"),
        (["plan", "/dev/zero"], "/dev/zero", "a device"),
        (["parse", "no-such-model"], "no-such-model", "a path that does not exist"),
        (["hardware", "no-such-machine"], "hardware", "'no-such-machine'"),
        (["oracle", GRANITE, "--context", "1"], "--context", "'1'"),
        (["oracle", GRANITE, "--phase", "train"], "--phase", "'train'"),
        (["plan", GRANITE, "--project-root", ""], "--project-root", "''"),
    ],
)
def test_usage_is_told_in_the_same_form(capsys, arguments, where, given):
    (fault,) = refused(capsys, *arguments)
    assert (fault["where"], fault["given"]) == (where, given)


def test_an_option_without_its_value(capsys):
    ran = run(capsys, "cell", GRANITE, "--tp")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("--tp: got no value; ")
    ran = run(capsys, "app", "--port", "70000")
    assert ran.err.startswith("--port: got '70000'; allowed: a whole number from 1 to 65,535; ")


def test_a_close_option_is_suggested(capsys):
    (fault,) = refused(capsys, "explore", LLAMA, "--contxt", "8192")
    assert fault["fix"] == "did you mean --context?"
    (fault,) = refused(capsys, "sensitivty", LLAMA)
    assert fault["fix"] == "did you mean sensitivity?"


def spec_file(tmp_path, **changes):
    presets = presets_dir()
    spec = json.loads((presets / "run_specs" / f"{GRANITE}.json").read_text(encoding="utf-8"))
    for key in ("hf_config", "hardware"):
        spec[key] = json.loads((presets / "run_specs" / spec[key]).read_text(encoding="utf-8"))
    spec = copy.deepcopy(spec) | changes
    path = tmp_path / "spec.json"
    path.write_text(
        json.dumps({key: value for key, value in spec.items() if value is not ...}), encoding="utf-8"
    )
    return str(path)


def test_faults_of_the_spec_and_of_the_options_come_together(capsys, tmp_path):
    path = spec_file(tmp_path, serving="disaggregated", colour="red")
    faults = refused(capsys, "explore", path, "--context", "0", "--kv-dtype-bytes", "-1")
    assert {fault["where"] for fault in faults} == {"serving", "colour", "--context", "--kv-dtype-bytes"}


def test_a_target_on_the_command_line_makes_up_for_a_spec_without(capsys, tmp_path):
    path = spec_file(tmp_path, decode_itl_ceiling_ms=..., prefill_itps_floor=...)
    (fault,) = refused(capsys, "plan", path, "--project-root", str(tmp_path))
    assert fault["where"] == "decode_itl_ceiling_ms, prefill_itps_floor"
    ran = run(capsys, "plan", path, "--decode-itl-ceiling-ms", "50", "--project-root", str(tmp_path))
    assert ran.code == 0
    (fault,) = refused(
        capsys,
        "plan",
        path,
        "--objective",
        "lowest_ttft",
        "--prefill-itps-floor",
        "3",
        "--project-root",
        str(tmp_path),
    )
    assert "either latency targets or an objective" in fault["allowed"]


HOSTILE = "\x1b[31mred\x1b]0;title\x07 \u202eevil\u202c \u200b\n\rforged: got ok \x9b2J <b>**x**</b>"


def test_nothing_from_outside_steers_the_terminal(capsys, tmp_path):
    machine = json.loads((presets_dir() / "hardware" / "trn2.json").read_text(encoding="utf-8"))
    machine |= {"title": HOSTILE, "pe_name": HOSTILE}
    machine["sources"]["hbm_bytes"]["cite"] = HOSTILE
    configs = [{"label": HOSTILE, "TP": 8, "bucket": 8192, "bs": 8}]
    path = spec_file(tmp_path, model=HOSTILE, hardware_name=HOSTILE, hardware=machine, configs=configs)
    (tmp_path / "machine.json").write_text(json.dumps(machine), encoding="utf-8")
    for arguments in (
        ["plan", path, "--project-root", str(tmp_path)],
        ["cell", path, "--tp", "8", "--bs", "8", "--ctx", "8192"],
        ["cell", path, "--label", HOSTILE.replace("\n", "")],
        ["explore", path],
        ["explore", path, "--phase", HOSTILE],
        ["hardware", str(tmp_path / "machine.json")],
        ["hardware", HOSTILE],
        ["parse", HOSTILE],
        ["sensitivity", path, "--config", HOSTILE],
        [HOSTILE],
        ["plan", path, f"--{HOSTILE}"],
        ["plan", path, "--project-root", str(tmp_path / "machine.json" / HOSTILE)],
    ):
        for tail in ([], ["--json"]):
            ran = run(capsys, *arguments, *tail)
            assert ran.code in (0, 2)
            assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", ran.out + ran.err)
            if not tail:
                assert not re.search("[\u200b\u202a-\u202e]", ran.out + ran.err)
                assert not re.search("^forged", ran.out + ran.err, re.MULTILINE)
            else:
                ran.document()


def test_a_name_that_the_terminal_cannot_show_is_escaped_and_json_stays_utf8(tmp_path):
    path = spec_file(tmp_path, model="Granité 模型")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    arguments = ["cell", path, "--tp", "8", "--bs", "8", "--ctx", "8192"]
    text = start(*arguments, env=environment)
    assert (text.code, "Granit\\xe9" in text.out) == (0, True)
    assert start(*arguments, "--json", env=environment).document()["model"] == "Granité 模型"


# what a shell does to it


def test_a_reader_that_goes_away_is_no_fault():
    command = [sys.executable, "-m", "planner_core", *SENSITIVITY, "--json"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        err = process.stderr.read()
        assert (process.wait(timeout=60), err) == (0, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")  # noqa: PTH110
def test_a_full_disk_under_the_output_is_one_line():
    command = [sys.executable, "-m", "planner_core", "hardware"]
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, check=False, timeout=60)
    assert done.returncode == 2
    assert done.stderr == b"the output could not be written: No space left on device\n"


def test_an_interrupt_exits_130_without_a_traceback():
    command = [sys.executable, "-m", "planner_core", "explore", LLAMA, "--dense"]
    options = {"cwd": ROOT, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, start_new_session=True, **options) as process:
        time.sleep(4.0)  # the dense sweep takes far longer
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"interrupted\n")


def test_a_fault_of_the_planner_itself_is_one_line_too(capsys, monkeypatch):
    from planner_core.cli import describe

    def broken(_):
        raise ZeroDivisionError("two\nlines")

    monkeypatch.setattr(describe, "list_presets", lambda: broken(None))
    ran = run(capsys, "hardware")
    assert (ran.code, ran.out) == (70, "")
    assert len(ran.err.splitlines()) == 1
    assert "ZeroDivisionError" in ran.err
    document = run(capsys, "hardware", "--json").document()
    assert document["error"]["kind"] == "internal"


def test_torch_missing_is_said_with_what_to_install(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    ran = run(capsys, "oracle", GRANITE, "--json")
    assert (ran.code, ran.document()["error"]["kind"]) == (2, "oracle_unavailable")
    assert "pip install" in run(capsys, "oracle", GRANITE).err


def test_streamlit_or_plotly_missing_is_said_with_what_to_install(capsys, monkeypatch, tmp_path):
    from planner_core.cli import arguments

    monkeypatch.setattr(arguments.importlib.util, "find_spec", lambda _: None)
    for command in (["app"], ["plan", GRANITE, "--visualize", "--project-root", str(tmp_path)]):
        ran = run(capsys, *command)
        assert (ran.code, ran.out) == (2, "")
        assert "pip install 'inference-planner[" in ran.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("command", "file", "given"),
    [
        (("plan",), "hardware/trn2.json", "a machine, not a run-spec"),
        (("explore", "--context", "8192"), "models/qwen3-8b.json", "a model config, not a run-spec"),
        (("parse",), "hardware/trn2.json", "a machine, not a model config"),
        (("parse",), "run_specs/granite-4.1-8b-trn2.json", "a run-spec, not a model config"),
        (("hardware",), "models/qwen3-8b.json", "a model config, not a machine"),
        (("oracle",), "hardware/trn2.json", "a machine, not a model config"),
    ],
)
def test_a_file_of_another_kind_is_one_fault_not_one_a_key(capsys, command, file, given):
    ran = run(capsys, command[0], str(presets_dir() / file), *command[1:])
    assert ran.code == 2
    assert len(ran.err.splitlines()) == 1
    assert f"got {given}" in ran.err


def test_a_model_and_a_machine_in_each_others_place_are_one_fault_each(capsys, tmp_path):
    spec = {"hf_config": "machine.json", "hardware": "config.json", "decode_itl_ceiling_ms": 50}
    (tmp_path / "machine.json").write_bytes((presets_dir() / "hardware" / "trn2.json").read_bytes())
    (tmp_path / "config.json").write_bytes((presets_dir() / "models" / "qwen3-8b.json").read_bytes())
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    ran = run(capsys, "plan", str(tmp_path / "spec.json"))
    assert ran.code == 2
    assert [line.split("; ")[0] for line in ran.err.splitlines()] == [
        "hf_config: got a machine, not a model config",
        "hardware: got a model config, not a machine",
    ]
