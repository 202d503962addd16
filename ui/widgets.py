"""Widgets that are fed from the state and write to it.

Owns: the mirrored keys, so that a value survives a page switch, a reload and a link.
Refuses: values of its own: what a widget shows is `state.at(path)`.

Each takes `at`, the dotted path of a field of `AppState`, and the arguments of the Streamlit widget that it
wraps; it returns the value in force. `fallback` is shown where the field is None. A value that the widget's
range does not hold is shown at the nearest bound and left as it is in the state until the user moves it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import streamlit as st

from ui import guard, state

_Value = TypeVar("_Value")
_UNSEEN = "_planner_unseen"
_FIRST, _SECOND = "_planner_first", "_planner_second"


def key_of(at: str) -> str:
    """Return the widget key of a field."""
    return f"field_{at.replace('.', '_')}"


def mirrored(
    widget: Callable[..., Any],
    label: str,
    *,
    key: str,
    shown: Any,
    commit: Callable[..., None],
    args: tuple[Any, ...],
    can_be_emptied: bool = False,
    **options: Any,
) -> None:
    """Show a widget that always has the value `shown`, and calls `commit(*args)` where the user sets another.

    `shown` is given as the default too: that is what a browser shows that has no value of the widget, on a
    page that is opened or come back to. Setting the value each time would do that too, and overwrite what
    is being typed. A browser whose server was started again still has values that this session never saw; see
    `take_unseen`. An input that has a default can't be emptied in the browser, so one that
    `can_be_emptied` has it in the first run only; a second one follows, in which it is set instead.
    """
    known = key in st.session_state
    if known and (st.session_state[key] != shown or key in st.session_state.get(_SECOND, ())):
        st.session_state[key] = shown
    kind = widget.__name__
    if kind == "selectbox":
        choices = list(options["options"])
        options["index"] = choices.index(shown) if shown in choices else None
    elif can_be_emptied and known:
        options["value"] = None
    else:
        options["default" if kind in ("segmented_control", "multiselect") else "value"] = shown
    returned = widget(label, key=key, on_change=commit, args=args, **options)
    if not known and returned != shown:
        st.session_state[_UNSEEN] = (*st.session_state.get(_UNSEEN, ()), (commit, args))
    if not known and can_be_emptied and shown is not None:
        st.session_state[_FIRST] = (*st.session_state.get(_FIRST, ()), key)


def take_unseen() -> None:
    """Take what the user set while there was no session: call it at the end of a full run.

    Runs once more where there was any, or where an input that can be emptied was shown for the first time.
    After the server was started again the link restores the state, and the first edit comes as a value that
    no callback saw. It is committed after the run, when every widget has been compared with the same state.
    """
    unseen = st.session_state.pop(_UNSEEN, ())
    for commit, args in unseen:
        commit(*args)
    st.session_state[_SECOND] = st.session_state.pop(_FIRST, ())
    if unseen or st.session_state[_SECOND]:
        st.rerun()


@guard.callback
def _commit(at: str, key: str, convert: Callable[[Any], Any] | None) -> None:
    """Write what the user set to the state."""
    value = st.session_state.get(key)
    if value is None and not _accepts_none(at):
        return
    state.set_at(at, convert(value) if convert and value is not None else value)


def _accepts_none(at: str) -> bool:
    """Tell whether the field may be None: an emptied input then means "as the run-spec says"."""
    parent, _, name = at.rpartition(".")
    owner = state.at(parent) if parent else state.current()
    annotation = type(owner).model_fields[name].annotation
    return type(None) in getattr(annotation, "__args__", ())


def _field(
    widget: Callable[..., Any],
    label: str,
    *,
    at: str,
    shown: Any,
    convert: Callable[[Any], Any] | None = None,
    **options: Any,
) -> None:
    """Show a widget for a field of the state."""
    key = key_of(at)
    mirrored(widget, label, key=key, shown=shown, commit=_commit, args=(at, key, convert), **options)


def _value(at: str, fallback: Any) -> Any:
    value = state.at(at)
    return fallback if value is None else value


def slider(
    label: str, *, at: str, min_value: float, max_value: float, fallback: float | None = None, **options: Any
) -> Any:
    """Show a slider; ints if both bounds are."""
    kind = int if isinstance(min_value, int) and isinstance(max_value, int) else float
    value = _value(at, fallback if fallback is not None else min_value)
    shown = kind(min(max(value, min_value), max_value))
    _field(st.slider, label, at=at, shown=shown, min_value=min_value, max_value=max_value, **options)
    return shown


def select_slider(label: str, *, at: str, options: Sequence[_Value], fallback: _Value, **more: Any) -> _Value:
    """Show a slider over listed values; a value off the list is shown at the nearest of them."""
    value = _value(at, fallback)
    shown = value if value in options else min(options, key=lambda option: abs(option - value))  # type: ignore[operator]
    _field(st.select_slider, label, at=at, shown=shown, options=options, **more)
    result: _Value = value
    return result


def _whole(value: float) -> float:
    """Return the nearest whole number; NaN, which only a forged message holds, is the state's to refuse."""
    return round(value) if math.isfinite(value) else value


def number(
    label: str,
    *,
    at: str,
    min_value: int,
    max_value: int,
    step: int = 1,
    fallback: int | None = None,
    **options: Any,
) -> Any:
    """Show an input for a whole number, and return what it shows.

    An emptied one means None where the field takes it. The browser reads a float, and it is rounded here:
    of "1e6" its own reader of whole numbers keeps the 1.
    """
    value = _value(at, fallback)
    shown = None if value is None else min(max(value, min_value), max_value)
    _field(
        st.number_input,
        label,
        at=at,
        shown=None if shown is None else float(shown),
        convert=_whole,
        min_value=float(min_value),
        max_value=float(max_value),
        step=float(step),
        format="%.0f",
        can_be_emptied=fallback is None and _accepts_none(at),
        **options,
    )
    return shown


def select(
    label: str, *, at: str, options: Sequence[_Value], fallback: _Value | None = None, **more: Any
) -> Any:
    """Show a select box; a value off the list shows `fallback`, or the first option."""
    return _choice(st.selectbox, label, at=at, options=options, fallback=fallback, more=more)


def segmented(
    label: str, *, at: str, options: Sequence[_Value], fallback: _Value | None = None, **more: Any
) -> Any:
    """Show a row of buttons of which one is on."""
    more.setdefault("required", True)
    more.setdefault("wrap", True)  # on a narrow page a button would be cut off otherwise
    return _choice(st.segmented_control, label, at=at, options=options, fallback=fallback, more=more)


def _choice(
    widget: Callable[..., Any],
    label: str,
    *,
    at: str,
    options: Sequence[Any],
    fallback: Any,
    more: dict[str, Any],
) -> Any:
    value = _value(at, fallback)
    if value not in options:
        value = fallback if fallback in options else options[0]
    _field(widget, label, at=at, shown=value, options=options, **more)
    return value


def multiselect(label: str, *, at: str, options: Sequence[_Value], **more: Any) -> tuple[_Value, ...]:
    """Show a list of which several may be chosen; kept in the order of `options`."""
    chosen = state.at(at)
    shown = [option for option in options if option in chosen]

    def ordered(values: Sequence[_Value]) -> tuple[_Value, ...]:
        return tuple(option for option in options if option in values)

    _field(st.multiselect, label, at=at, shown=shown, convert=ordered, options=options, **more)
    return tuple(shown)


def toggle(label: str, *, at: str, **options: Any) -> bool:
    """Show a switch."""
    value = bool(state.at(at))
    _field(st.toggle, label, at=at, shown=value, **options)
    return value


def text_input(label: str, *, at: str, **options: Any) -> str:
    """Show a line of text."""
    value = _value(at, "")
    _field(st.text_input, label, at=at, shown=value, **options)
    return str(value)
