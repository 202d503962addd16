"""The way from page to page: links that carry the state, and never lose an edit.

Owns: the sidebar, and the registration of the pages.
"""

from __future__ import annotations

import streamlit as st

from ui import pages, state
from ui.assets import asset

_frame_script = st.components.v2.component("planner_frame", js=asset("frame.js"))


def navigation(entries: tuple[pages.PageEntry, ...]) -> st.Page:
    """Register the pages, draw their links, and return the page to run."""
    made = [
        st.Page(entry.file, title=entry.title, url_path=entry.name, default=index == 0)
        for index, entry in enumerate(entries)
    ]
    chosen = st.navigation(made, position="hidden")
    with st.sidebar:
        st.html('<div class="planner-brand">Inference planner</div>')
        for page, entry in zip(made, entries, strict=True):
            st.page_link(page, label=entry.title, query_params=state.query(), width="stretch")
        _frame_script(key="frame_script", height=1, data={"found": bool(chosen.url_path)})
    return chosen
