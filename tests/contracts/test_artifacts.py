"""Files are written whole or not at all: full disks, read-only places, links, and the package itself."""

import csv
import errno
import io
import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import planner_core
from planner_core import artifacts
from planner_core.artifacts import write_file, write_files
from planner_core.csv_text import csv_text
from planner_core.errors import ArtifactError, InvalidSpec
from tests.contracts.cli_runs import GRANITE, LLAMA, ROOT, run

PACKAGE = Path(planner_core.__file__).resolve().parent


def snapshot(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_files_are_written_and_replaced_and_nothing_else_is_left(tmp_path):
    folder = tmp_path / "a" / "b"
    paths = write_files(folder, {"one.json": "{}\n", "two.png": b"\x89PNG"})
    assert paths == (folder / "one.json", folder / "two.png")
    write_files(folder, {"one.json": "new é\n"})
    assert snapshot(folder) == {"one.json": "new é\n".encode(), "two.png": b"\x89PNG"}


def test_a_file_gets_the_mode_that_the_umask_gives(tmp_path):
    write_files(tmp_path, {"one.json": "{}"})
    (tmp_path / "plain").write_text("{}")
    assert (tmp_path / "one.json").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("failing", ["_write_and_sync", "os.replace", "_keep_aside"])
@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_failure_at_any_point_leaves_everything_as_it_was(tmp_path, monkeypatch, failing, at):
    folder = tmp_path / "out"
    write_files(folder, {"one": "old 1", "three": "old 3"})
    before = snapshot(folder)
    owner = os if failing.startswith("os.") else artifacts
    name = failing.removeprefix("os.")
    real = getattr(owner, name)
    calls = []

    def fails(*arguments, **options):
        calls.append(arguments)
        if len(calls) == at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*arguments, **options)

    monkeypatch.setattr(owner, name, fails)
    with pytest.raises(ArtifactError, match="not written: the disk is full"):
        write_files(folder, {"one": "new 1", "two": "new 2", "three": "new 3"})
    assert snapshot(folder) == before


def test_an_interrupt_leaves_nothing_half_written(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_files(tmp_path / "new", {"one": "1"})
    assert not list(tmp_path.iterdir())


def test_folders_that_were_made_for_it_go_again(tmp_path):
    with pytest.raises(ArtifactError, match="the path is too long"):
        write_files(tmp_path / "a" / "b", {"fine": "1", "n" * 300: "2"})
    assert not list(tmp_path.iterdir())


def test_the_planner_never_writes_into_its_own_package(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(PACKAGE, target_is_directory=True)
    for folder in (PACKAGE, PACKAGE / "cli", PACKAGE / "new", link, link / "x", PACKAGE / "cli" / ".." / "y"):
        with pytest.raises(InvalidSpec, match="inside the planner's own package"):
            write_files(folder, {"x.json": "{}"})
    assert not (PACKAGE / "new").exists()
    assert not (PACKAGE / "x.json").exists()


def test_only_regular_files_are_replaced(tmp_path):
    target = tmp_path / "precious"
    target.write_text("keep")
    (tmp_path / "link").symlink_to(target)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("link", "pipe", "folder"):
        with pytest.raises(ArtifactError, match="not a regular file"):
            write_file(tmp_path / name, "x")
    assert target.read_text() == "keep"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "link", "pipe", "precious"]


def test_paths_that_are_none(tmp_path):
    (tmp_path / "file").write_text("x")
    for path, reason in (
        (tmp_path / "file" / "x", "a part of the path is a file"),
        (tmp_path / ("n" * 300), "the path is too long"),
        (Path("/"), "no file name"),
        (tmp_path / "nul\0" / "x", "not a path"),
    ):
        with pytest.raises(ArtifactError, match=reason):
            write_file(path, "x")
    (tmp_path / "round").symlink_to(tmp_path / "round")
    with pytest.raises(ArtifactError):
        write_file(tmp_path / "round" / "x", "x")


def test_plan_into_the_package_is_refused_before_anything_is_said(capsys):
    for tail, stream in ((["--json"], "out"), ([], "err")):
        ran = run(capsys, "plan", GRANITE, "--project-root", str(PACKAGE), *tail)
        assert ran.code == 2
        assert "inside the planner's own package" in getattr(ran, stream)
        if tail:
            (fault,) = ran.faults()
            assert fault["where"] == "the directory to write in"
            assert str(PACKAGE)[:20] in fault["given"]
        else:
            assert (ran.out, len(ran.err.splitlines())) == ("", 1)
    ran = run(capsys, "explore", LLAMA, "--csv", str(PACKAGE / "front.csv"))
    assert (ran.code, (PACKAGE / "front.csv").exists()) == (2, False)


def planner(*arguments, **options):
    command = [sys.executable, "-m", "planner_core", *arguments]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120, **options
    )


def on_a_disk_of_its_own(place, options, command):
    """Run a command with a disk mounted at `place` for it alone; skips where that is not allowed."""
    mount = f"mount -t tmpfs -o {options} x {place}"
    in_room = ["unshare", "-rm", "sh", "-c"]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*in_room, mount], capture_output=True, check=False).returncode
    ):
        pytest.skip("no file system may be mounted here")
    script = f"{mount} && {sys.executable} -m planner_core {command}; echo code $?; find {place} -mindepth 1"
    return subprocess.run(
        [*in_room, script], cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
    )


def test_a_read_only_disk(tmp_path):
    done = on_a_disk_of_its_own(tmp_path, "ro", f"plan {GRANITE} --json --project-root {tmp_path}")
    document, _, rest = done.stdout.rpartition("code ")
    assert (rest, done.stderr) == ("2\n", "")
    assert "not written: the file system is read-only" in json.loads(document)["error"]["message"]


def test_a_full_disk(tmp_path):
    done = on_a_disk_of_its_own(tmp_path, "size=64k", f"plan {GRANITE} --emit --project-root {tmp_path}")
    assert done.stdout.endswith("code 2\n")  # and the disk is empty again
    assert "not written: the disk is full" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission(tmp_path):
    tmp_path.chmod(0o555)
    with pytest.raises(ArtifactError, match="permission is denied"):
        write_files(tmp_path / "planner_artifacts", {"one": "1"})


def test_a_limit_on_the_size_of_files(tmp_path):
    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    place = tmp_path / "planner_artifacts"
    write_files(place, {"target_config.json": "old\n"})
    done = planner("plan", GRANITE, "--emit", "--project-root", str(tmp_path), preexec_fn=limited)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "not written: the file would be larger than is allowed here" in done.stderr
    assert snapshot(place) == {"target_config.json": b"old\n"}


# CSV


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=cmd|' /C calc'!A0", "  =1", "\r=1", "\uff1d1"]
)
def test_no_text_becomes_a_formula(text):
    ((_, cell),) = [
        tuple(row) for row in csv.reader(io.StringIO(csv_text([{"a": 1, "b": text}], columns="ab")))
    ][1:]
    assert cell.startswith("'")


def test_numbers_and_plain_text_are_left_alone():
    rows = [{"n": -1.5e-7, "t": 'a "quoted", text', "b": True, "none": None}, {"n": 3}]
    text = csv_text(rows, columns=("n", "t", "b", "none"))
    assert text == 'n,t,b,none\r\n-1.5e-07,"a ""quoted"", text",true,\r\n3,,,\r\n'
