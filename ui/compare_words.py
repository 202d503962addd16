"""Compared points as a grid: what each is, its numbers, and the differences from the first.

Owns: which numbers, their order, the grid's HTML and the table to download.
Refuses: numbers of its own, and saying which point is better.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from planner_core.figures.step import LabelledStep
from planner_core.units import GB, MS
from ui import text
from ui.cell_core import Cell
from ui.differences import change

_Number = Callable[[Cell], float | None]


def _duration(value_s: float) -> str:
    return text.seconds(value_s) if value_s else "none"


def _latency(found: Cell) -> float | None:
    return None if found.step is None else float(found.step.latency_s)


def _communication(found: Cell) -> float | None:
    return None if found.step is None else float(found.step.communication_s)


def _memory(found: Cell) -> float | None:
    return None if found.memory is None else float(found.memory.total_bytes)


def _budget(found: Cell) -> float | None:
    return None if found.memory is None else float(found.memory.budget_bytes)


def _largest_batch(found: Cell) -> float | None:
    return None if found.limits is None else float(found.limits.largest_batch)


def _rate(found: Cell) -> float | None:
    return None if found.step is None else found.tokens_per_s


def _rate_in_all(found: Cell) -> float | None:
    return None if found.step is None else found.tokens_per_s_in_all


def _rate_a_pe(found: Cell) -> float | None:
    """Return the throughput of one PE; the copies of a serving config are whole replicas."""
    if found.step is None:
        return None
    n_pes = found.n_pes * found.n_copies if found.is_serving else found.n_pes
    return found.tokens_per_s_in_all / n_pes if n_pes else None


# (name, unit of the table, size of that unit, form on the page, the number)
_NUMBERS: tuple[tuple[str, str, float, Callable[[float], str], _Number], ...] = (
    ("Step", "ms", MS, _duration, _latency),
    ("Communication", "ms", MS, _duration, _communication),
    ("Throughput of a replica", "tok/s", 1.0, text.tokens_per_s, _rate),
    ("Throughput in all", "tok/s", 1.0, text.tokens_per_s, _rate_in_all),
    ("Throughput of a PE", "tok/s", 1.0, text.tokens_per_s, _rate_a_pe),
    ("Memory of a PE", "GB", GB, text.n_bytes, _memory),
    ("Memory budget", "GB", GB, text.n_bytes, _budget),
    ("Largest batch that fits", "", 1.0, text.count, _largest_batch),
)


def _copies(found: Cell) -> str:
    if found.step is None:
        return ""
    many = "s" if found.n_copies != 1 else ""
    if found.is_serving:
        return f"{found.n_copies} replica{many} of {found.n_pes:,} PEs, a node"
    return f"{found.n_pes:,} PEs, {found.n_copies} data-parallel replica{many}"


def _fits(found: Cell) -> str:
    if found.faults:
        return "can't run"
    return "yes" if found.fits else f"no, lacks {found.lacks}"


def _binds(found: Cell) -> str:
    return "" if found.step is None else text.binding(found.step.binding)


def _in_words(found: Sequence[Cell]) -> dict[str, list[str]]:
    return {
        "PEs": [_copies(one) for one in found],
        "Fits": [_fits(one) for one in found],
        "Binds": [_binds(one) for one in found],
    }


def grid_html(names: Sequence[str], facets: Sequence[Mapping[str, str]], found: Sequence[Cell]) -> str:
    """Return the grid: a column a point, facets that differ in bold, each number with its difference."""
    head = "".join(
        f'<th scope="col">{at}. {text.htm(name, limit=60)}</th>' for at, name in enumerate(names, start=1)
    )
    rows = []
    for name in facets[0]:
        values = [facet[name] for facet in facets]
        rows.append(_words_row(name, values, differs=len(set(values)) > 1))
    for name, values in _in_words(found).items():
        rows.append(_words_row(name, values, differs=len(set(values)) > 1))
    for name, _, _, form, number in _NUMBERS:
        rows.append(_numbers_row(name, [number(one) for one in found], form))
    for at, one in enumerate(found, start=1):
        for fault in one.faults:
            said = f"{at}. {fault.where}: got {fault.given}. Allowed: {fault.allowed}. To fix: {fault.fix}."
            rows.append(f'<tr><td class="bad" colspan="{len(found) + 1}">{text.htm(said)}</td></tr>')
    return (
        '<div class="planner-wide"><table class="planner-grid"><thead><tr><th></th>'
        f"{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _words_row(name: str, values: Sequence[str], *, differs: bool) -> str:
    kind = ' class="differs"' if differs else ""
    cells = "".join(f"<td{kind}>{text.htm(value, limit=80)}</td>" for value in values)
    return f'<tr><th scope="row">{name}</th>{cells}</tr>'


def _numbers_row(name: str, values: Sequence[float | None], form: Callable[[float], str]) -> str:
    cells = []
    for at, value in enumerate(values):
        shown = "n/a" if value is None else form(value)
        difference = change(value, values[0]) if at else ""
        cells.append(f'<td class="number">{text.htm(shown)}<span>{difference}</span></td>')
    return f'<tr><th scope="row">{name}</th>{"".join(cells)}</tr>'


def table(names: Sequence[str], facets: Sequence[Mapping[str, str]], found: Sequence[Cell]) -> pd.DataFrame:
    """Return a row a point, with the differences from the first in per cent."""
    words = _in_words(found)
    rows = []
    for at, one in enumerate(found):
        row: dict[str, object] = {"Point": f"{at + 1}. {names[at]}"}
        row |= {name: text.plain(value) for name, value in facets[at].items()}
        row |= {name: values[at] for name, values in words.items()}
        for name, unit, size, _, number in _NUMBERS:
            value, base = number(one), number(found[0])
            row[f"{name} [{unit}]" if unit else name] = None if value is None else value / size
            row[f"{name}, difference [%]"] = (
                None if value is None or not base else 100.0 * (value / base - 1.0)
            )
        rows.append(row)
    return pd.DataFrame(rows)


def caution(found: Sequence[Cell]) -> str:
    """Return why the numbers of these points can't be set against each other as they are; often empty."""
    said = []
    if len({one.point.phase for one in found}) > 1:
        said.append("The points are of different phases: a decode step makes one token, a prefill a prompt.")
    if len({one.is_serving for one in found}) > 1:
        said.append(
            "Throughput in all is a node's for a serving config, and that of the PEs in use for one of all "
            "nine axes: compare the throughput of a PE."
        )
    return " ".join(said)


def steps(names: Sequence[str], found: Sequence[Cell]) -> list[LabelledStep]:
    """Return the steps of the points that can run, with their names."""
    return [
        LabelledStep(label=name, step=one.step)
        for name, one in zip(names, found, strict=True)
        if one.step is not None
    ]


def report_table(
    names: Sequence[str], facets: Sequence[Mapping[str, str]], found: Sequence[Cell]
) -> pd.DataFrame:
    """Return the grid as text, a column a point, for a page of paper."""
    heads = [f"{at}. {name}" for at, name in enumerate(names, start=1)]
    rows = [{"": name, **dict(zip(heads, [f[name] for f in facets], strict=True))} for name in facets[0]]
    rows += [{"": name, **dict(zip(heads, values, strict=True))} for name, values in _in_words(found).items()]
    for name, _, _, form, number in _NUMBERS:
        values = [number(one) for one in found]
        shown = [
            "n/a" if value is None else form(value) + (f" ({change(value, values[0])})" if at else "")
            for at, value in enumerate(values)
        ]
        rows.append({"": name, **dict(zip(heads, shown, strict=True))})
    return pd.DataFrame(rows)
