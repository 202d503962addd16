"""Hostile files at every door: each command, each reference of a run-spec, each upload. Refused in a line."""

import csv
import io
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from planner_core.errors import InvalidSpec
from planner_core.preset_files import presets_dir
from planner_core.run_spec import parse_run_spec
from planner_core.spec_files import uploads_resolver
from planner_core.strict_json import load_json
from tests.contracts.cli_runs import LLAMA, ROOT, run
from ui import export, tables, uploads

CONFIG = (presets_dir() / "models" / "granite-4.1-8b.json").read_bytes()
MACHINE = (presets_dir() / "hardware" / "trn2.json").read_bytes()
SPEC = {"hf_config": "granite-4.1-8b", "hardware": "trn2", "decode_itl_ceiling_ms": 50}
LAYER = b'{"attention":{"n_heads_in_group":4},"ffn":{"ffn_mult":3.5}},'


def with_key(key: bytes, value: bytes) -> bytes:
    return CONFIG.rstrip().removesuffix(b"}") + b"," + key + b":" + value + b"}"


# What is in the file, and what the refusal names.
HOSTILE = {
    "50 MB": (b'{"a":"' + b"x" * 50_000_000 + b'"}', "50,000,008 bytes"),
    "10,000 levels": (b'{"a":' + b"[" * 10_000 + b"]" * 10_000 + b"}", "10,001 levels"),
    "10,000 open braces": (b'{"a":' * 10_000, "10,000 levels"),
    "the same key twice": (with_key(b'"hidden_size"', b"1"), "'hidden_size' more than once"),
    "UTF-16": (CONFIG.decode().encode("utf-16"), "UTF-16 text"),
    "UTF-16 without a mark": (CONFIG.decode().encode("utf-16-le"), "a zero byte"),
    "UTF-32": (CONFIG.decode().encode("utf-32"), "UTF-32 text"),
    "Latin-1": (with_key(b'"a"', '"é"'.encode("latin-1")), "0xe9"),
    "EBCDIC": (CONFIG.decode().encode("cp037"), "not UTF-8|not JSON"),
    "gzip": (b"\x1f\x8b\x08\x00" + bytes(range(256)), "zero byte|not UTF-8"),
    "nothing": (b"", "an empty text"),
    "a text": (b'"hello"', "a text at top level"),
    "two documents": (b"{} {}", "not JSON"),
    "Python": (b"{'a': __import__('os').system('true')}", "not JSON"),
    "YAML": (b"a: !!python/object/apply:os.system ['true']", "not JSON"),
    "a pickle": (b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00", "zero byte|not UTF-8"),
    "a number too large": (with_key(b'"a"', b"1e400"), "1e400"),
    "an integer too long": (with_key(b'"a"', b"9" * 5000), "5,000 digits"),
}
DOORS = ("plan", "parse", "hardware", "spec.hf_config", "spec.hardware")


def through(capsys, tmp_path, door, path):
    """Run the command that reads a file by a door, as text and as a document."""
    command, _, key = door.partition(".")
    if key:
        spec = tmp_path / "spec.json"
        values = {
            "hf_config": "granite-4.1-8b",
            "hardware": "trn2",
            "decode_itl_ceiling_ms": 50,
            key: str(path),
        }
        spec.write_text(json.dumps(values))
        arguments = ["plan", str(spec), "--project-root", str(tmp_path / "out")]
    else:
        arguments = [command, str(path)]
        arguments += ["--project-root", str(tmp_path / "out")] if command == "plan" else []
    started_s = time.process_time()
    text = run(capsys, *arguments)
    took_s = time.process_time() - started_s
    assert took_s < 1.0, f"{door} took {took_s:.2f} s"
    assert not (tmp_path / "out").exists() or text.code == 0
    return text, run(capsys, *arguments, "--json")


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_is_refused_at_every_door(capsys, tmp_path, name, door):
    data, match = HOSTILE[name]
    path = tmp_path / "hostile.json"
    path.write_bytes(data)
    text, document = through(capsys, tmp_path, door, path)
    assert (text.code, text.out) == (2, "")
    (fault,) = document.faults()
    assert re.search(match, fault["given"])
    assert len(text.err.splitlines()) == 1
    assert len(text.err) < 1000


def other_kinds(folder):
    """Paths that are no regular file, and what the refusal calls each."""
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    (folder / "round").symlink_to("round")
    (folder / "to a device").symlink_to("/dev/zero")
    (folder / "to a pipe").symlink_to("pipe")
    (folder / "to nothing").symlink_to("nowhere")
    return {
        folder / "folder": "a directory",
        folder / "pipe": "a pipe",
        folder / "round": "go round in a circle",
        folder / "to a device": "a device",
        folder / "to a pipe": "a pipe",
        folder / "to nothing": "does not exist",
        folder / "nul\0": "nul",
        folder / ("n" * 300): "too long",
        folder / "folder" / ".." / ".." / "nowhere": "does not exist",
    }


@pytest.mark.parametrize("door", DOORS)
def test_what_is_no_file_is_refused_at_every_door(capsys, tmp_path, door):
    for path, words in other_kinds(tmp_path).items():
        text, document = through(capsys, tmp_path, door, path)
        (fault,) = document.faults()
        assert words in fault["given"] + fault["where"], path
        assert text.code == 2


@pytest.mark.parametrize("change", ["a mark", "CRLF", "CR", "a link", "a link to a link"])
def test_what_is_odd_and_yet_fine_is_read(capsys, tmp_path, change):
    path = tmp_path / "config.json"
    ends = {"CRLF": b"\r\n", "CR": b"\r"}
    path.write_bytes(
        (b"\xef\xbb\xbf" if change == "a mark" else b"") + CONFIG.replace(b"\n", ends.get(change, b"\n"))
    )
    for at in range(change.count("link")):
        link = tmp_path / f"link-{at}.json"
        link.symlink_to(path)
        path = link
    plain = run(capsys, "parse", "granite-4.1-8b", "--json").document()
    assert run(capsys, "parse", str(path), "--json").document()["n_params"] == plain["n_params"]


@pytest.mark.parametrize(
    ("name", "data", "match"),
    [
        ("a million layers", CONFIG.replace(b": 40,", b": 1000000,"), "num_hidden_layers"),
        ("blocks", with_key(b'"block_configs"', b"[" + LAYER * 16_000 + b"{}]"), "block_configs"),
        ("kinds of layers", with_key(b'"layer_types"', b"[" + b'"a",' * 200_000 + b'"b"]'), "layer_types"),
    ],
)  # fmt: skip
def test_a_config_of_too_many_layers_is_refused_by_its_key(capsys, tmp_path, name, data, match):
    path = tmp_path / "config.json"
    path.write_bytes(data)
    _, document = through(capsys, tmp_path, "parse", path)
    assert any(re.search(match, fault["where"]) for fault in document.faults())


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_the_largest_files_take_neither_time_nor_memory(tmp_path):
    (tmp_path / "blocks.json").write_bytes(with_key(b'"block_configs"', b"[" + LAYER * 10**6 + b"{}]"))
    (tmp_path / "deep.json").write_bytes(b'{"a":' + b"[" * 10**6)
    (tmp_path / "full.json").write_bytes(b'{"a":[' + b"[],{}," * 160_000 + b"0]}")
    code = (
        "import sys, time; from pathlib import Path; from planner_core.cli import main; "
        "commands = ('plan', 'parse', 'hardware'); "
        "codes = [main([command, path]) for path in sys.argv[1:] for command in commands]; "
        "peak = Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0]; "
        "print(set(codes), peak, time.process_time())"
    )
    paths = sorted(str(path) for path in tmp_path.iterdir())
    done = subprocess.run(
        [sys.executable, "-c", code, *paths], cwd=ROOT, capture_output=True, text=True, check=False
    )
    codes, kilobytes, seconds = done.stdout.split()
    assert codes == "{2}", done.stderr
    assert int(kilobytes) * 1024 < 200e6
    assert float(seconds) < 9 * 1.0
    assert "Traceback" not in done.stderr


# What an upload may say


@pytest.mark.parametrize("whole", [CONFIG, MACHINE], ids=["config", "machine"])
def test_an_upload_cut_anywhere_is_refused(whole):
    whole = whole.rstrip()
    for length in range(0, len(whole), 7):
        with pytest.raises(InvalidSpec, match=r"not JSON|an empty text"):
            uploads.read_upload("cut.json", whole[:length])


@pytest.mark.parametrize("key", ["hf_config", "hardware"])
@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd", "../../../../../etc/passwd", "..\\..\\x", "C:\\x.json", "~/x.json", "file:///etc/passwd",
        "http://localhost/x.json", "\\\\server\\share", "trn2/../trn2", "/proc/self/environ", "trn2\0.json",
        ".", "presets/hardware/trn2.json", "x" * 100_000,
    ],
)  # fmt: skip
def test_an_uploaded_spec_opens_no_file(monkeypatch, key, path):
    opened = []
    real = os.open

    def noting(name, *given, **named):
        opened.append(str(name))
        return real(name, *given, **named)

    monkeypatch.setattr(os, "open", noting)
    upload = uploads.read_upload("spec.json", json.dumps(SPEC | {key: path}).encode())
    with pytest.raises(InvalidSpec) as caught:
        parse_run_spec(uploads.merged({}, [upload]), resolve=uploads_resolver({}))
    monkeypatch.undo()
    assert {fault.where for fault in caught.value.faults} == {key}
    assert len(str(caught.value)) < 3000
    assert opened  # the preset beside it
    assert all(name.startswith(str(presets_dir())) for name in opened)


NAMES = (
    "<img src=x onerror=alert(1)>", "**bold** [a](javascript:alert(1)) `x`", ":red[x] $x^2$",
    "\x1b[31m\x07\x00", "\u202eevil\u202c", "\u2066\u2069\u200b", "=cmd|' /C calc'!A0", "@SUM(1)", "+1",
    "-1+1", "\t=1", "a\r\n=1", "\uff1d1", '"quoted","cell"', "%s %n {0} ${x}", "../../x", "\ud800", "é" * 400,
)  # fmt: skip
FORMULA = re.compile(r"^[\s\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]")


@pytest.mark.parametrize("name", NAMES)
def test_no_name_becomes_a_formula_or_markup(capsys, tmp_path, name):
    spec = json.loads((presets_dir() / "run_specs" / f"{LLAMA}.json").read_text())
    machine = json.loads(MACHINE) | {"title": name if name.strip() else "x", "pe_name": name}
    machine["tiers"][0]["name"] = name
    spec |= {"model": name, "hardware_name": name, "hf_config": "llama-3.1-70b", "hardware": machine}
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(spec))
    for command, extra in (("explore", []), ("sensitivity", ["--config", "tp=16"])):
        table = tmp_path / f"{command}.csv"
        ran = run(capsys, command, str(path), "--context", "8192", *extra, "--csv", str(table))
        assert ran.code == 0, ran.err
        check_cells(table.read_text(encoding="utf-8"))
    name = load_json(json.dumps(name), where="name")
    frame = pd.DataFrame({name or "x": [name, "plain"], "n": [-1.5, 2.0]})
    check_cells(tables.csv_bytes(frame).decode("utf-8"))
    report = export.build_report(
        title=name,
        summary=name,
        sections=[export.Paragraph(name, title=name), export.Table(name, frame)],
        documents={name: {name: name}},
        settings={name: name},
    )
    assert "<img" not in report
    report.encode("utf-8")
    upload = uploads.read_upload(f"{name}.json", CONFIG)
    label = uploads.merged({}, [upload])["model"]
    assert isinstance(label, str)
    assert label.strip()


def check_cells(text):
    """No cell is a formula; numbers may be negative."""
    for row in csv.reader(io.StringIO(text)):
        for cell in row:
            if not re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?", cell):
                assert not FORMULA.match(cell), cell
