"""How the tests of the command line run it: in this process, or as a real process."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner_core.cli import main

ROOT = Path(__file__).resolve().parents[2]
GRANITE = "granite-4.1-8b-trn2"
LLAMA = "llama-3.1-70b-sip128"


@dataclass(frozen=True)
class Ran:
    """What a command line left behind."""

    code: int
    out: str
    err: str

    def document(self) -> Any:
        """The one strict JSON document on stdout."""

        def refuse(text: str) -> None:
            raise AssertionError(f"{text} is not strict JSON")

        return json.loads(self.out, parse_constant=refuse)

    def faults(self) -> list[dict[str, str]]:
        """The faults of an error document, whose form is checked."""
        assert self.code == 2
        assert self.document()["error"]["kind"] == "invalid_spec"
        faults = self.document()["error"]["faults"]
        assert faults
        for fault in faults:
            assert set(fault) == {"where", "given", "allowed", "fix"}
            assert all(isinstance(text, str) and text for text in fault.values())
        return faults


def run(capsys: Any, *arguments: str) -> Ran:
    """Run a command in this process."""
    capsys.readouterr()
    code = main(list(arguments))
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return Ran(code, captured.out, captured.err)


def start(*arguments: str, **options: Any) -> Ran:
    """Run a command as a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "planner_core", *arguments],
        cwd=ROOT,
        capture_output=True,
        check=False,
        timeout=120,
        **options,
    )
    out, err = done.stdout.decode("utf-8"), done.stderr.decode("utf-8")
    assert "Traceback" not in err, err
    return Ran(done.returncode, out, err)
