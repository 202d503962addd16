"""The look of every figure and of the app: colours, marks and the type scale, in light and dark.

Owns: `Theme`, `LIGHT`, `DARK`, the Plotly template of a theme, and which colour and marker a binding has.
Refuses: the content of a figure.

The palette keeps the hues of Okabe and Ito ("Color universal design", 2008), which readers with any common
colour deficiency can tell apart; on a white page the light ones are darkened until they reach 3:1. Meaning
never rests on colour alone: series differ in marker, dash or hatching too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal

Mode = Literal["light", "dark"]

FONT: Final = '"Source Sans", "Source Sans 3", "Source Sans Pro", "Helvetica Neue", Arial, sans-serif'
# One type scale [px]: note, text (ticks, legend, hover), label (axis titles), heading, title.
SIZE_NOTE: Final = 11
SIZE_TEXT: Final = 12
SIZE_LABEL: Final = 13
SIZE_HEADING: Final = 14
SIZE_TITLE: Final = 17

MARKERS: Final = (
    "circle",
    "square",
    "diamond",
    "triangle-up",
    "cross",
    "triangle-down",
    "pentagon",
    "hexagon",
    "star-square",
    "bowtie",
)
DASHES: Final = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
HATCHES: Final = ("", "/", ".", "x", "-", "\\", "+", "|")
CLEAR: Final = "rgba(0,0,0,0)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """Colours of one mode.

    Parameters
    ----------
    mode : {"light", "dark"}
        Which.
    series : tuple of str
        Ten colours in the order in which series take them.
    accent : str
        The one colour that says "this one": selection, front, frontier.
    text, muted, grid, paper : str
        Text, secondary text, grid lines, and the page that figures lie on.
    good, bad : str
        Meets a target; misses it or does not fit.
    region : str
        Fill of a shaded region.
    """

    mode: Mode
    series: tuple[str, ...]
    accent: str
    text: str
    muted: str
    grid: str
    paper: str
    good: str
    bad: str
    region: str


LIGHT: Final = Theme(
    mode="light",
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
DARK: Final = Theme(
    mode="dark",
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

# What binds keeps its colour and marker on every page, whichever bindings a figure happens to show.
_BINDING_MARKS: Final = {
    "attention:kv_load": (0, "circle"),
    "ffn:weight_load": (1, "square"),
    "communication": (2, "triangle-up"),
    "attention:weight_load": (3, "diamond"),
    "ffn:flop": (4, "cross"),
    "attention:flop": (5, "triangle-down"),
    "lm_head:weight_load": (6, "pentagon"),
    "lm_head:flop": (7, "hexagon"),
}
_OTHER_BINDING: Final = (8, "bowtie")


# Components keep theirs too; a second kind of attention or FFN takes the second slot of its family.
_COMPONENT_SLOTS: Final = {
    "attention": (5, 8, 9),
    "ffn": (3, 4),
    "lm_head": (6,),
    "communication": (2,),
}


def component_slots(names: Sequence[str]) -> dict[str, int]:
    """Return the place in `Theme.series` of each component of a step.

    Parameters
    ----------
    names : sequence of str
        "attention/global", "ffn/dense", "lm_head", "communication".

    Returns
    -------
    dict of str to int

    Examples
    --------
    >>> component_slots(["attention/global", "attention/sliding", "ffn/moe"])
    {'attention/global': 5, 'attention/sliding': 8, 'ffn/moe': 3}
    """
    found: dict[str, int] = {}
    seen: dict[str, int] = {}
    for name in names:
        family = name.split("/")[0]
        slots = _COMPONENT_SLOTS.get(family, (7,))
        found[name] = slots[seen.get(family, 0) % len(slots)]
        seen[family] = seen.get(family, 0) + 1
    return found


@dataclass(frozen=True, slots=True)
class Mark:
    """How a series is drawn: a colour, and a marker that tells it apart without the colour."""

    colour: str
    marker: str


def binding_mark(binding: str, *, theme: Theme) -> Mark:
    """Return the colour and marker of what binds.

    Parameters
    ----------
    binding : str
        "attention:kv_load", "communication".
    theme : Theme
        Light or dark.

    Returns
    -------
    Mark
    """
    slot, marker = _BINDING_MARKS.get(binding, _OTHER_BINDING)
    return Mark(theme.series[slot], marker)


@cache
def template(theme: Theme) -> dict[str, Any]:
    """Return the Plotly template of a theme: transparent, so that a figure sits on any page.

    Parameters
    ----------
    theme : Theme
        Light or dark.

    Returns
    -------
    dict
        Made once a theme: not to be changed.
    """
    axis = {
        "gridcolor": theme.grid,
        "linecolor": theme.muted,
        "showline": True,
        "zeroline": False,
        "ticks": "outside",
        "ticklen": 4,
        "tickcolor": theme.muted,
        "tickfont": {"size": SIZE_TEXT, "color": theme.muted},
        "automargin": True,
        "title": {"standoff": 8, "font": {"size": SIZE_LABEL}},
    }
    scene_axis = {
        "gridcolor": theme.grid,
        "linecolor": theme.muted,
        "showbackground": False,
        "zeroline": False,
        "tickfont": {"size": SIZE_TEXT, "color": theme.muted},
        "title": {"font": {"size": SIZE_LABEL}},
    }
    return {
        "layout": {
            "colorway": list(theme.series),
            "font": {"family": FONT, "size": SIZE_LABEL, "color": theme.text},
            "title": {
                "font": {"size": SIZE_TITLE},
                "x": 0,
                "xref": "container",
                "xanchor": "left",
                "y": 1,
                "yref": "container",
                "yanchor": "top",
                "pad": {"l": 8, "t": 24},
            },
            "paper_bgcolor": CLEAR,
            "plot_bgcolor": CLEAR,
            "xaxis": axis,
            "yaxis": axis,
            "scene": {"xaxis": scene_axis, "yaxis": scene_axis, "zaxis": scene_axis, "bgcolor": CLEAR},
            "legend": {"bgcolor": CLEAR, "font": {"size": SIZE_TEXT}},
            "hoverlabel": {
                "bgcolor": theme.paper,
                "bordercolor": theme.muted,
                "font": {"family": FONT, "size": SIZE_TEXT, "color": theme.text},
                "align": "left",
            },
            "modebar": {"bgcolor": CLEAR, "color": theme.muted, "activecolor": theme.accent},
            "margin": {"l": 72, "r": 24, "t": 72, "b": 56},
        }
    }
