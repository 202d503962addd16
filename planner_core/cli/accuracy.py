"""`planner accuracy`.

Owns: the order of things: choose, compare, print; and the words of the text form.
Refuses: comparing (see `measurements`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from planner_core.artifacts import write_file
from planner_core.cli.arguments import Arguments
from planner_core.cli.terminal import print_json, say, table
from planner_core.csv_text import csv_text
from planner_core.figures.words import NBSP, seconds, sig
from planner_core.measurements import METRIC_WORDS, Comparison, shipped_comparisons, summarize
from planner_core.reports import accuracy_document

READING: Final = (
    "Ratio is predicted over measured. Compute and memory times are floors, so under 1 is what to expect. A",
    "ratio over 1 comes from the machine's collectives, which may be fitted and are no floor; the column",
    "'without comm.' leaves them out. See docs/accuracy.md.",
)


def run_accuracy(*, machine: str | None, csv: str | None, as_json: bool) -> int:
    """Compare with published measurements, write the CSV, print."""
    every = shipped_comparisons()
    arguments = Arguments()
    known = tuple(dict.fromkeys(item.measurement.machine.name for item in every))
    wanted = arguments.choice("--machine", machine, known)
    arguments.raise_faults()
    chosen = [item for item in every if wanted in (None, item.measurement.machine.name)]
    document = accuracy_document(chosen, summarize(chosen))
    if csv is not None:
        rows = document["measurements"]
        write_file(Path(csv), csv_text(rows, columns=tuple(rows[0])))
    if as_json:
        print_json(document)
    else:
        say(*accuracy_lines(chosen))
        say(*([] if csv is None else [f"wrote {csv}"]))
    return 0


def accuracy_lines(comparisons: Sequence[Comparison]) -> list[str]:
    """Return the comparisons, the ratios by machine and metric, and the sources, as lines."""
    sources = tuple(dict.fromkeys(_source(item) for item in comparisons))
    rows = [
        [
            item.measurement.machine.name,
            item.measurement.model_title,
            METRIC_WORDS[item.measurement.metric],
            item.measurement.point(),
            _time(item.measured_s),
            _time(item.predicted_s),
            sig(item.ratio),
            sig(item.compute_ratio),
            f"[{sources.index(_source(item)) + 1}]",
        ]
        for item in comparisons
    ]
    header = ["machine", "model", "metric", "at", "measured", "predicted", "ratio", "without comm.", "source"]
    summary = [
        [
            group.machine,
            METRIC_WORDS[group.metric],
            str(group.count),
            sig(group.geometric_mean),
            sig(group.lowest),
            sig(group.highest),
        ]
        for group in summarize(comparisons)
    ]
    head = ["machine", "metric", "count", "ratio, geometric mean", "lowest", "highest"]
    return [
        *table(rows, header=header, left=("machine", "model", "metric", "at", "source")),
        "",
        *table(summary, header=head, left=("machine", "metric")),
        "",
        *READING,
        "",
        *(f"[{number}] {title}, read {read}: {url}" for number, (title, url, read) in enumerate(sources, 1)),
    ]


def _source(item: Comparison) -> tuple[str, str, str]:
    measurement = item.measurement
    return measurement.source_title, measurement.url, measurement.read


def _time(time_s: float) -> str:
    return seconds(time_s).replace(NBSP, " ")
