"""A Chrome that crashes, hangs or is none: the HTML figures, one line, bounded time, no process left."""

import os
import time
from pathlib import Path

import pytest

from planner_core.figures import render
from tests.contracts.cli_runs import GRANITE, run

SCRIPTS = {
    "ends at once": "exit 1",
    "crashes": "kill -SEGV $$",
    "is no program": None,
    "hangs, and so does its child": "head -c 1000000 /dev/zero; sleep 600 & echo $! >> $0.pids; wait",
}


@pytest.mark.parametrize("fault", SCRIPTS)
def test_a_faulty_chrome_costs_the_images_alone(capsys, tmp_path, monkeypatch, fault):
    chrome = tmp_path / "chrome"
    script = SCRIPTS[fault]
    chrome.write_text("\x7fELF" if script is None else f"#!/bin/sh\necho $$ >> $0.pids\n{script}\n")
    chrome.chmod(0o755)
    monkeypatch.setenv("BROWSER_PATH", str(chrome))
    monkeypatch.setattr(render, "START_TIMEOUT_S", 1.0)
    started_s = time.monotonic()
    ran = run(capsys, "plan", GRANITE, "--visualize", "--json", "--project-root", str(tmp_path))
    assert time.monotonic() - started_s < 60.0
    assert (ran.code, ran.document()["grid_size"]) == (0, 15)
    assert ran.err.count("\n") == 1
    assert ran.err.startswith(f"no PNG or SVG: {chrome} failed: ")
    assert ran.err.endswith("the HTML figures are written all the same\n")
    written = {path.suffix for path in (tmp_path / "planner_artifacts").iterdir()}
    assert written == {".json", ".html"}
    pids = Path(f"{chrome}.pids")
    for pid in pids.read_text().split() if pids.exists() else []:
        assert not alive(int(pid))


def alive(pid):
    """Whether a process runs; one that has ended and waits to be noticed does not."""
    try:
        os.kill(pid, 0)
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
