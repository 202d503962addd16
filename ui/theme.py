"""The look of the page: the theme that the browser shows, and the style sheet.

Owns: which of the two themes is in force, and the page's CSS.
Refuses: colours of its own: they are those of `planner_core.figures.theme`, offered here too.
"""

from __future__ import annotations

from typing import Final

import streamlit as st

from planner_core.figures.theme import DARK, DASHES, LIGHT, MARKERS, Theme, binding_mark
from ui.assets import asset

__all__ = ["DARK", "DASHES", "LIGHT", "MARKERS", "Theme", "apply_style", "binding_mark", "current"]

_STYLE: Final = asset("app.css")
_REVIEW_STYLE: Final = asset("review.css")


def current() -> Theme:
    """Return the theme that the browser shows."""
    return DARK if st.context.theme.type == "dark" else LIGHT


def apply_style(*, review: bool) -> None:
    """Put the style sheet on the page; review mode hides the sidebar and the controls."""
    colours = f":root {{ --planner-bad: {current().bad}; --planner-accent: {current().accent}; }}"
    st.html(f"<style>{_STYLE}{colours}{_REVIEW_STYLE if review else ''}</style>")
