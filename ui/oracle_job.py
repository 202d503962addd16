"""A run of the oracle: beside the sessions, watched, stopped at once, and kept by value.

Owns: the question, the worker process and its limits, the one run of a session, the answers that are kept.
Refuses: drawing, and torch itself (see `oracle_worker`).

One run at a time on the server: the others wait for their turn. An answer is the same for everybody who asks
about the same config, so it is kept for all sessions.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import streamlit as st

from planner_core.errors import Fault
from planner_core.oracle import Explanation, OraclePhase, OracleReport, OracleSegment
from planner_core.run_spec import RunSpec
from ui import pages, session_job

_LOG = logging.getLogger("planner.app")
_JOB: Final = "_oracle_job"
_WATCH_S: Final = 0.5
_MAX_KEPT: Final = 16
LIMIT_S: Final = 180.0

_turn = threading.Lock()
_kept: OrderedDict[Question, OracleReport] = OrderedDict()
_kept_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Question:
    """What is checked: a config.json as text, the model's name, and the step."""

    config: str
    name: str
    context_tokens: int
    batch: int


def question(spec: RunSpec, *, context_tokens: int, batch: int) -> Question:
    """Return the question about a run-spec's model; equal configs give equal questions."""
    config = json.dumps(spec.hf_config, sort_keys=True, separators=(",", ":"))
    return Question(config, spec.model.name, context_tokens, batch)


def torch_is_installed() -> bool:
    """Tell whether torch could be imported, without importing it."""
    return importlib.util.find_spec("torch") is not None


def kept(asked: Question) -> OracleReport | None:
    """Return the report, where some session has asked the same."""
    with _kept_lock:
        return _kept.get(asked)


def _keep(asked: Question, report: OracleReport) -> None:
    with _kept_lock:
        _kept[asked] = report
        _kept.move_to_end(asked)
        while len(_kept) > _MAX_KEPT:
            _kept.popitem(last=False)


class Job:
    """One run in a process of its own, followed by a thread.

    Attributes
    ----------
    waiting : bool
        True until it is its turn.
    step : int
        Position in `oracle_worker.STEPS` of what is being done.
    faults : tuple of Fault
        Why the question can't be answered.
    unavailable : str
        What is missing on this server.
    failed : str
        What went wrong, in a sentence.
    """

    def __init__(self, asked: Question) -> None:
        self.asked = asked
        self.waiting = True
        self.step = 0
        self.faults: tuple[Fault, ...] = ()
        self.unavailable = ""
        self.failed = ""
        self.started_s = time.monotonic()
        self._asked_to_stop = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._run, name="oracle", daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        """True until there is an answer, a fault, or nothing because it was stopped."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """End it now."""
        self._asked_to_stop.set()
        if self._process is not None:
            self._process.kill()

    def join(self, timeout_s: float) -> None:
        """Wait for the thread to end."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        try:
            while not _turn.acquire(timeout=_WATCH_S):
                if self._asked_to_stop.is_set():
                    return
            try:
                self.waiting = False
                self.started_s = time.monotonic()
                if kept(self.asked) is None:  # another session may have asked it meanwhile
                    self._ask()
            finally:
                _turn.release()
        except Exception:
            _LOG.exception("unexpected fault in a run of the oracle")
            self.failed = "The fault was written to the server's log."

    def _ask(self) -> None:
        """Start the worker and follow it to its end."""
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "ui.oracle_worker"],
                cwd=pages.ROOT,
                env=_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
            self._process = process
            if self._asked_to_stop.is_set():
                process.kill()
            clock = threading.Timer(LIMIT_S, process.kill)
            clock.daemon = True
            clock.start()
            try:
                with process:
                    answered = self._follow(process)
            finally:
                clock.cancel()
            if answered or self._asked_to_stop.is_set():
                return
            if time.monotonic() - self.started_s >= LIMIT_S:
                self.failed = f"It took more than {LIMIT_S:.0f} s and was ended."
                return
            log.seek(0)
            _LOG.error("the oracle's process ended with %s\n%s", process.returncode, log.read()[-4000:])
            self.failed = "Its process ended without an answer. The fault was written to the server's log."

    def _follow(self, process: subprocess.Popen[str]) -> bool:
        """Put the question and take what comes back; True where an answer came."""
        assert process.stdin is not None
        assert process.stdout is not None
        asked = self.asked
        document = {
            "config": asked.config,
            "name": asked.name,
            "context_tokens": asked.context_tokens,
            "batch": asked.batch,
        }
        try:
            process.stdin.write(json.dumps(document))
            process.stdin.close()
        except BrokenPipeError:
            return False
        answered = False
        for line in process.stdout:
            message = json.loads(line)
            answered = answered or "step" not in message
            self._take(message)
        return answered

    def _take(self, message: Mapping[str, Any]) -> None:
        if "step" in message:
            self.step = message["step"]
        elif "report" in message:
            _keep(self.asked, report_of(message["report"]))
        elif "faults" in message:
            self.faults = tuple(
                Fault(where=where, given=given, allowed=allowed, fix=fix)
                for where, given, allowed, fix in message["faults"]
            )
        else:
            self.unavailable = message["unavailable"]


def _environment() -> dict[str, str]:
    """Return the worker's environment: this one, with our packages on the path and one thread."""
    paths = [str(pages.ROOT), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
    }


def report_of(document: Mapping[str, Any]) -> OracleReport:
    """Return the report whose `to_json` is `document`."""
    return OracleReport(
        phases=tuple(
            OraclePhase(
                phase=phase["phase"],
                context_tokens=phase["context_tokens"],
                batch=phase["batch"],
                segments=tuple(_segment_of(segment) for segment in phase["segments"]),
            )
            for phase in document["phases"]
        ),
        spoke=document["spoke"],
        notes=tuple(document["notes"]),
    )


def _segment_of(document: Mapping[str, Any]) -> OracleSegment:
    return OracleSegment(
        name=document["name"],
        oracle_flops=document["oracle_flops"],
        planner_flops=float(document["planner_flops"]),
        oracle_weight_bytes=float(document["oracle_weight_bytes"]),
        planner_weight_bytes=float(document["planner_weight_bytes"]),
        explanations=tuple(Explanation(**explanation) for explanation in document["explanations"]),
    )


def current(asked: Question) -> Job | None:
    """Return this session's run where it is of this question; one of another question is stopped."""
    return session_job.current(key=_JOB, asked=asked)


def start(asked: Question) -> Job:
    """Start this session's run."""
    stop()
    job = Job(asked)
    st.session_state[_JOB] = job
    return job


def stop() -> None:
    """Stop this session's run, if there is one, and forget it."""
    job: Job | None = st.session_state.pop(_JOB, None)
    if job is not None:
        job.stop()
