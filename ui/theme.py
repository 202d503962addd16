"""The look: one accent colour, one type scale, one palette for figures in light and dark.

Owns: colours, the Plotly templates, the style sheet of the page.
Refuses: layout of a page, and the content of a figure.

The palette keeps the hues of Okabe and Ito ("Color universal design", 2008), which readers with any common
colour deficiency can tell apart; on a white page the light ones are darkened until they reach 3:1. Series
differ in marker and dash too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import plotly.graph_objects as go
import streamlit as st

from ui.assets import asset

Mode = Literal["light", "dark"]
FONT: Final = '"Source Sans", "Source Sans Pro", "Helvetica Neue", Arial, sans-serif'
MARKERS: Final = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down", "pentagon", "star")
DASHES: Final = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


@dataclass(frozen=True)
class Palette:
    """Colours of one mode: series in order, the accent, and what carries meaning on its own."""

    series: tuple[str, ...]
    accent: str
    text: str
    muted: str
    grid: str
    paper: str
    good: str
    bad: str
    region: str


LIGHT: Final = Palette(
    series=(
        "#0072B2",
        "#D55E00",
        "#00855F",
        "#B8578C",
        "#8F6400",
        "#332288",
        "#2590BE",
        "#882255",
        "#5B6770",
        "#7A8B00",
    ),
    accent="#0b5cad",
    text="#1b2733",
    muted="#566270",
    grid="#e2e6ea",
    paper="#ffffff",
    good="#00855F",
    bad="#C0182B",
    region="rgba(11,92,173,0.08)",
)
DARK: Final = Palette(
    series=(
        "#56B4E9",
        "#E69F00",
        "#2CC295",
        "#E58FBF",
        "#F0E442",
        "#9DA9FF",
        "#FF8066",
        "#B7C0C8",
        "#8FD0C0",
        "#C9A97A",
    ),
    accent="#7db8f5",
    text="#e6ebf0",
    muted="#a3b0bd",
    grid="#2b3743",
    paper="#11161c",
    good="#2CC295",
    bad="#FF7B72",
    region="rgba(125,184,245,0.12)",
)


def mode() -> Mode:
    """Return the theme that the browser shows."""
    return "dark" if st.context.theme.type == "dark" else "light"


def palette(name: Mode | None = None) -> Palette:
    """Return the colours of a mode, the browser's by default."""
    return DARK if (name or mode()) == "dark" else LIGHT


def template(name: Mode | None = None) -> go.layout.Template:
    """Return the Plotly template of a mode: transparent, so that it sits on any page."""
    colours = palette(name)
    axis = {
        "gridcolor": colours.grid,
        "linecolor": colours.muted,
        "zeroline": False,
        "ticks": "outside",
        "ticklen": 4,
        "tickcolor": colours.grid,
        "automargin": True,
        "title": {"standoff": 8, "font": {"size": 13}},
    }
    scene_axis = {
        "gridcolor": colours.grid,
        "linecolor": colours.muted,
        "showbackground": False,
        "zeroline": False,
    }
    return go.layout.Template(
        layout={
            "colorway": list(colours.series),
            "font": {"family": FONT, "size": 13, "color": colours.text},
            "title": {"font": {"size": 15}, "x": 0, "xref": "container", "xanchor": "left", "pad": {"l": 4}},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "xaxis": axis,
            "yaxis": axis,
            "scene": {"xaxis": scene_axis, "yaxis": scene_axis, "zaxis": scene_axis},
            "legend": {"bgcolor": "rgba(0,0,0,0)", "font": {"size": 12}},
            "hoverlabel": {
                "bgcolor": colours.paper,
                "bordercolor": colours.muted,
                "font": {"family": FONT, "size": 12, "color": colours.text},
                "align": "left",
            },
            "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": colours.muted, "activecolor": colours.accent},
            "margin": {"l": 64, "r": 16, "t": 48, "b": 48},
        }
    )


# Sizes in rem, one scale: 0.8 note, 0.9 table and label, 1 text, 1.15 section, 1.5 page.
_STYLE: Final = asset("app.css")
_REVIEW_STYLE: Final = asset("review.css")


def apply_style(*, review: bool) -> None:
    """Put the style sheet on the page; review mode hides the sidebar and the controls."""
    colours = f":root {{ --planner-bad: {palette().bad}; --planner-accent: {palette().accent}; }}"
    st.html(f"<style>{_STYLE}{colours}{_REVIEW_STYLE if review else ''}</style>")
