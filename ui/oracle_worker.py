"""The oracle in a process of its own: `python -m ui.oracle_worker`, started by `oracle_job`.

Owns: what goes in (a question as JSON on stdin) and out (JSON lines on stdout: steps begun, then one answer).
Refuses: Streamlit, the state, and any file.

Apart from the app's server because importing torch holds the interpreter for seconds, its memory is then
given back, and a run can be ended at any moment.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from planner_core.errors import InvalidSpec, PlannerError
from planner_core.hf_config import parse_config
from planner_core.oracle import OracleUnavailable, run_oracle

STEPS = ("importing torch", "importing transformers", "running both phases without weights")

# A foreign config may ask for a model of any size; its module objects must not take the machine's memory.
_MAX_ADDRESS_SPACE_BYTES = 8 << 30


def answer(question: dict[str, Any], *, tell: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Return the answer to a question; `tell` hears of each step that begins.

    Parameters
    ----------
    question : dict
        "config" (a config.json as text), "name" of the model, "context_tokens", "batch".
    tell : callable
        Gets {"step": 0 to 2}.

    Returns
    -------
    dict
        One of "report" (as `OracleReport.to_json`), "faults" (where, given, allowed, fix of each),
        "unavailable" (how to install what is missing).
    """
    config = json.loads(question["config"])
    try:
        model = parse_config(config, name=question["name"])
        for step, library in enumerate(("torch", "transformers")):
            tell({"step": step})
            with contextlib.suppress(ImportError):  # run_oracle says what is missing
                importlib.import_module(library)
        tell({"step": 2})
        report = run_oracle(
            model=model,
            config=config,
            context_tokens=question["context_tokens"],
            batch=question["batch"],
        )
    except OracleUnavailable as error:
        return {"unavailable": str(error)}
    except InvalidSpec as error:
        return {"faults": [[f.where, f.given, f.allowed, f.fix] for f in error.faults]}
    except PlannerError as error:
        allowed = "a model that the planner knows"
        return {"faults": [["config.json", str(error), allowed, "pick another model"]]}
    return {"report": report.to_json()}


def _stand_back() -> None:
    """Let the server and its sessions go first, in time and in memory."""
    with contextlib.suppress(OSError):
        os.nice(10)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    with contextlib.suppress(ImportError, ValueError, OSError):
        resource = importlib.import_module("resource")  # not on every system
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (_MAX_ADDRESS_SPACE_BYTES, hard))


def main() -> None:
    """Answer one question."""
    _stand_back()
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # whatever a library prints goes to the log

    def tell(message: dict[str, Any]) -> None:
        out.write(json.dumps(message) + "\n")

    tell(answer(json.load(sys.stdin), tell=tell))


if __name__ == "__main__":
    main()
