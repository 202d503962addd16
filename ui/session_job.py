"""A session's long work of one kind: a sweep, an oracle's run.

Owns: which job the session holds, and that one of another question ends.
Refuses: what a job does; see `explore_job` and `oracle_job`.
"""

from __future__ import annotations

from typing import Any

import streamlit as st


def current(*, key: str, asked: object) -> Any:
    """Return this session's job where it is of this question; one of another question is stopped.

    Parameters
    ----------
    key : str
        Where the session keeps the job, which has `asked` and `stop()`.
    asked : object
        The question, compared by value.
    """
    job = st.session_state.get(key)
    if job is not None and job.asked != asked:
        job.stop()
        del st.session_state[key]
        return None
    return job
