"""What comes in as JSON is bounded and strict; each refusal is one line that says what to change."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from planner_core.errors import InvalidSpec
from planner_core.strict_json import clean_text, dumps, load_json, read_json_file, require_object

ROOT = Path(__file__).resolve().parents[2]


def refused(data, match, **options):
    with pytest.raises(InvalidSpec, match=match) as caught:
        load_json(data, where="here", **options)
    for fault in caught.value.faults:
        assert "\n" not in fault.line()
        assert fault.where == "here"
        assert fault.fix
    return caught.value


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ('{"a": [1, 2.5, "x", true, null]}', {"a": [1, 2.5, "x", True, None]}),
        (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
        ('\ufeff{"a": 1}', {"a": 1}),
        ('{\r\n"a": 1\r\n}', {"a": 1}),
        ('{"caf\u00e9": "\u5f20"}'.encode(), {"caf\u00e9": "\u5f20"}),
        ("1e308", 1e308),
        ("1000000000000000019884624838656", 1000000000000000019884624838656),
        ('"brackets [[{{ in a \\" string"', 'brackets [[{{ in a " string'),
    ],
)
def test_accepts(data, value):
    assert load_json(data, where="here") == value


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"", r"an empty text; allowed: JSON"),
        (b" \n", r"an empty text"),
        ('{"a": 1 2}', r"not JSON at line 1, column 9: Expecting ',' delimiter"),
        ('{\n  "a": 1\n  "b": 2\n}', r"not JSON at line 3, column 3: Expecting ',' delimiter"),
        ("{'a': 1}", r"not JSON at line 1, column 2"),
        ('"open', r"not JSON at line 1, column 1: Unterminated string"),
        ('{"a": "tab\tin a string"}', r"Invalid control character"),
        ('{"a": 1, "b": 2, "a": 3}', r"key 'a' more than once in one object; .*fix: keep one of them"),
        ('{"a": NaN}', r"got NaN; allowed: finite numbers"),
        ('{"a": -Infinity}', r"got -Infinity; allowed: finite numbers"),
        ('{"a": 1e400}', r"got 1e400; allowed: numbers up to 1\.8e308"),
        ('{"a": ' + "9" * 5000 + "}", r"an integer of 5,000 digits; allowed: integers of up to 100 digits"),
        ('{"a": 1}'.encode("utf-16"), r"got UTF-16 text; allowed: UTF-8 text"),
        ('{"a": 1}'.encode("utf-16-le"), r"a zero byte at offset 1 .*allowed: UTF-8 text"),
        ('{"a": 1}'.encode("utf-32"), r"got UTF-32 text"),
        ('{"a": "\xe9"}'.encode("latin-1"), r"byte 0xe9 at offset 7, which is not UTF-8"),
        ("[" * 65 + "]" * 65, r"65 levels of nesting; allowed: at most 64"),
    ],
)
def test_refuses(data, match):
    refused(data, match)


def test_every_fault_of_a_text_at_once():
    error = refused('{"a": NaN, "b": 1e999, "c": 1, "c": 2}', r"NaN")
    assert [fault.given for fault in error.faults] == ["NaN", "1e999", "key 'c' more than once in one object"]


def test_a_flood_of_faults_is_cut():
    error = refused("{" + ",".join(['"k": 1'] * 50_000) + "}", r"more than once")
    assert len(error.faults) == 20


def test_non_finite_where_asked_for():
    value = load_json('{"a": Infinity, "b": -Infinity}', where="here", allow_non_finite=True)
    assert value == {"a": float("inf"), "b": float("-inf")}
    refused('{"a": 1e400}', r"1e400", allow_non_finite=True)


@pytest.mark.parametrize(
    "data",
    [
        "[" * 10_000 + "]" * 10_000,
        "[" * 500_000,
        '{"a":' * 100_000,
        '"' + '\\"' * 490_000,
        '"\\' * 333_000,
        "[" + "9" * 999_000 + "]",
        "[" + "1," * 499_000 + "]",
        "[" + "{}," * 333_000 + "0",
        '{"a": "' + "\\u0000" * 160_000 + "x",
        "\ud800" * 300_000,
    ],
    ids=lambda data: f"{data[:6]!a} x{len(data)}",
)
def test_hostile_texts_are_refused_fast(data):
    start = time.process_time()
    refused(data, r".")
    assert time.process_time() - start < 1.0


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_hostile_texts_stay_in_memory():
    # In a process of its own: the peak of this one counts every test before.
    code = (
        "from pathlib import Path; from planner_core.strict_json import load_json;"
        "load_json('[' + '[],{},' * 160_000 + '0]', where='here');"
        "print(Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) * 1024 < 200e6


def test_size_limit_counts_bytes_of_text():
    refused('"' + "\u5f20" * 400_000 + '"', r"1,200,002 bytes; allowed: at most 1,000,000 bytes")
    refused(b" " * 101, r"101 bytes; allowed: at most 100 bytes", max_bytes=100)


def test_strings_are_safe_to_print():
    value = load_json(r'{"a\u0000": "\ud800 \u001b[2J \u009b ok \b"}', where="here")
    assert value == {"a\ufffd": "\ufffd \ufffd[2J \ufffd ok \ufffd"}
    raw = load_json('{"a": "\x7f\x9b\ud83d"}', where="here")
    assert raw == {"a": "\ufffd\ufffd\ufffd"}
    json.dumps(raw).encode("utf-8")


def test_pairs_of_surrogates_are_kept():
    assert load_json(r'"\ud83d\ude00"', where="here") == "\U0001f600"


def test_clean_text_is_one_line():
    assert clean_text("a\r\nb\tc\x1b\u2028d\ud800") == "a  b c\ufffd d\ufffd"


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("[1]", r"an array at top level; allowed: a JSON object"),
        ('"x"', r"a text at top level"),
        ("3", r"a number at top level"),
        ("true", r"true or false at top level"),
        ("null", r"null at top level"),
    ],
)
def test_only_an_object_at_top_level(text, match):
    with pytest.raises(InvalidSpec, match=match):
        require_object(load_json(text, where="here"), where="here")


class TestFiles:
    def refused(self, path, match, **options):
        start = time.perf_counter()
        with pytest.raises(InvalidSpec, match=match) as caught:
            read_json_file(path, **options)
        assert time.perf_counter() - start < 1.0
        assert "\n" not in str(caught.value)

    def test_reads(self, tmp_path):
        path = tmp_path / "a.json"
        path.write_bytes(b'\xef\xbb\xbf{"a": 1}\r\n')
        assert read_json_file(path) == {"a": 1}
        assert read_json_file(path, root=tmp_path) == {"a": 1}

    def test_missing(self, tmp_path):
        self.refused(tmp_path / "none.json", r"none\.json: got a path that does not exist")
        self.refused(tmp_path / "none" / "a.json", r"a path that does not exist")

    def test_where_takes_the_place_of_the_path(self, tmp_path):
        self.refused(tmp_path / "none.json", r"^hardware: got a path", where="hardware")

    def test_directory(self, tmp_path):
        self.refused(tmp_path, r"got a directory; allowed: a regular file")

    def test_pipe_is_not_waited_for(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        self.refused(tmp_path / "pipe", r"got a pipe; allowed: a regular file")

    def test_socket(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("s")
            self.refused(tmp_path / "s", r"got a socket")

    @pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no device files here")
    def test_device(self, tmp_path):
        (tmp_path / "link").symlink_to("/dev/zero")
        self.refused(tmp_path / "link", r"got a device; allowed: a regular file")

    def test_50_megabytes_are_not_read(self, tmp_path):
        path = tmp_path / "big.json"
        with path.open("wb") as file:
            file.truncate(50_000_000)
        self.refused(path, r"a file of 50,000,000 bytes; allowed: at most 1,000,000 bytes of JSON")

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read any file")
    def test_permission(self, tmp_path):
        path = tmp_path / "a.json"
        path.write_text("{}")
        path.chmod(0)
        self.refused(path, r"a file that may not be read; .*fix: give read permission")

    def test_links_in_a_circle(self, tmp_path):
        (tmp_path / "a").symlink_to("b")
        (tmp_path / "b").symlink_to("a")
        self.refused(tmp_path / "a", r"symbolic links that go round in a circle")
        self.refused(tmp_path / "a", r".", root=tmp_path)

    def test_links_must_stay_under_the_root(self, tmp_path):
        root = tmp_path / "root"
        root.mkdir()
        (tmp_path / "secret.json").write_text("{}")
        (root / "link.json").symlink_to(tmp_path / "secret.json")
        (root / "fine.json").write_text("{}")
        (root / "inner.json").symlink_to("fine.json")
        self.refused(root / "link.json", r"which leads outside; allowed: a file inside", root=root)
        self.refused(root / ".." / "secret.json", r"which leads outside", root=root)
        assert read_json_file(root / "inner.json", root=root) == {}

    @pytest.mark.parametrize("name", ["a\x00b", "x" * 5000, "y" * 300, "bad\udcff name", "two\nlines"])
    def test_odd_paths(self, tmp_path, name):
        self.refused(tmp_path / name, r"a path")


def test_dumps_is_strict():
    assert dumps({"a": [1, 0.5, None]}, indent=None) == '{"a":[1,0.5,null]}'
    assert dumps({"a": "\u5f20\ud800"}, indent=None).encode() == '{"a":"\u5f20?"}'.encode()
    for bad in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="not JSON compliant"):
            dumps({"a": bad})


def test_dumps_round_trips():
    value = {"a": [1e-6, 716e9, 2**53, "x"], "b": {}}
    assert load_json(dumps(value), where="here") == value
