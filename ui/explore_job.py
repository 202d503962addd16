"""A sweep that takes long: it runs beside the session, can be watched and stopped, and ends with its tab.

Owns: `Job`, the one job of a session, and how many run at once on the server.
Refuses: drawing, and the sweep itself (see `planner_core.auto_explore`).

A slab takes some milliseconds, most of them in numpy without the interpreter's lock. Between slabs the thread
steps aside, so other sessions go on as before. One sweep runs at a time; the others wait for their turn.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import streamlit as st
from streamlit.runtime import Runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from planner_core.auto_explore import ExploreResult, explore
from ui import session_job
from ui.explore_core import Question

_LOG = logging.getLogger("planner.app")
_JOB: Final = "_explore_job"
_PAUSE_S: Final = 0.0005
_WATCH_S: Final = 0.5
_MAX_KEPT: Final = 8

_turn = threading.Lock()
_kept: OrderedDict[Question, ExploreResult] = OrderedDict()
_kept_lock = threading.Lock()


def _keep(asked: Question, result: ExploreResult) -> None:
    with _kept_lock:
        _kept[asked] = result
        _kept.move_to_end(asked)
        while len(_kept) > _MAX_KEPT:
            _kept.popitem(last=False)


def kept(asked: Question) -> ExploreResult | None:
    """Return the whole sweep, where some session has finished it."""
    with _kept_lock:
        return _kept.get(asked)


class Job:
    """One sweep in a thread of its own.

    Parameters
    ----------
    asked : Question
        What is swept.
    alive : callable
        Whether anybody still looks; False ends the sweep.
    """

    def __init__(self, asked: Question, *, alive: Callable[[], bool]) -> None:
        self.asked = asked
        self.n_cells = asked.axes.n_cells
        self.n_done = 0
        self.waiting = True
        self.failed = False
        self.result: ExploreResult | None = None
        self._alive = alive
        self._asked_to_stop = threading.Event()
        self._next_look_s = 0.0
        self._thread = threading.Thread(target=self._run, name="sweep", daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        """True until there is a result, whole or not."""
        return self.result is None and not self.failed

    def stop(self) -> None:
        """End the sweep after the slab in hand; its result is then of what was done."""
        self._asked_to_stop.set()

    def join(self, timeout_s: float) -> None:
        """Wait for the thread to end."""
        self._thread.join(timeout_s)

    def _should_stop(self) -> bool:
        now_s = time.monotonic()
        if now_s >= self._next_look_s:
            self._next_look_s = now_s + _WATCH_S
            if not self._alive():
                self.stop()
        return self._asked_to_stop.is_set()

    def _progress(self, n_done: int, _: int) -> None:
        self.n_done = n_done
        time.sleep(_PAUSE_S)

    def _run(self) -> None:
        try:
            while not _turn.acquire(timeout=_WATCH_S):
                if self._should_stop():
                    break
            else:
                try:
                    self.waiting = False
                    self.result = self._swept()
                finally:
                    _turn.release()
                return
            self.result = self._swept()  # stopped before its turn: nothing done, and said so
        except Exception:
            _LOG.exception("unexpected fault in a sweep")
            self.failed = True

    def _swept(self) -> ExploreResult:
        asked = self.asked
        result = explore(
            model=asked.spec.model,
            machine=asked.machine,
            workload=asked.workload,
            axes=asked.axes,
            max_pes=asked.max_pes,
            progress=self._progress,
            should_stop=self._should_stop,
        )
        if not result.stopped:
            _keep(asked, result)
        return result


def _session_is_open() -> Callable[[], bool]:
    """Return a test of whether this session's tab is still there."""
    context = get_script_run_ctx()
    session_id = context.session_id if context is not None else ""

    def is_open() -> bool:
        return not Runtime.exists() or Runtime.instance().is_active_session(session_id)

    return is_open


def current(asked: Question) -> Job | None:
    """Return this session's job where it is of this question; one of another question is stopped."""
    return session_job.current(key=_JOB, asked=asked)


def start(asked: Question) -> Job:
    """Start this session's job."""
    stop()
    job = Job(asked, alive=_session_is_open())
    st.session_state[_JOB] = job
    return job


def stop() -> None:
    """Stop this session's job, if there is one."""
    job: Job | None = st.session_state.get(_JOB)
    if job is not None:
        job.stop()


def forget() -> None:
    """Stop this session's job and drop its result."""
    stop()
    st.session_state.pop(_JOB, None)
