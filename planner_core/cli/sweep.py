"""`planner explore` and `planner sensitivity`: from arguments to an answer.

Owns: the order of things: check, sweep, write, print.
Refuses: formulas and words (see `explore_text`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from planner_core.artifacts import write_file
from planner_core.auto_explore import (
    Config,
    ConfigScore,
    ExploreAxes,
    compute_parallelism_sensitivity,
    config_from_text,
    dense_axes,
    explore,
    score_configs,
)
from planner_core.auto_explore.config import MODES
from planner_core.cli.arguments import MAX_CONTEXT_TOKENS, Arguments, context_warnings
from planner_core.cli.explore_text import explore_lines, sensitivity_lines
from planner_core.cli.terminal import print_json, progress_printer, say, warn
from planner_core.csv_text import csv_text
from planner_core.errors import InvalidSpec
from planner_core.reports import SCORE_KEYS, SENSITIVITY_KEYS, explore_document, sensitivity_document
from planner_core.run_spec import RunSpec
from planner_core.serving_plan import spec_workload
from planner_core.workload import PHASES, Phase, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setting:
    """What is swept."""

    spec: RunSpec
    workload: Workload
    max_pes: int | None
    warnings: list[str]

    @property
    def given(self) -> dict[str, Any]:
        """The arguments that every sweep takes."""
        return {
            "model": self.spec.model,
            "machine": self.spec.machine,
            "workload": self.workload,
            "max_pes": self.max_pes,
        }

    @property
    def named(self) -> dict[str, Any]:
        """The same for a document."""
        return {**self.given, "model": self.spec.model_label, "warnings": self.warnings}


def _read_setting(
    arguments: Arguments,
    spec_text: str,
    *,
    overrides: Mapping[str, str | None],
    collective_model: str | None,
    setting: Mapping[str, str | None],
) -> _Setting:
    """Check what both commands take; faults of `arguments` so far are raised with these."""
    spec = arguments.spec(spec_text, overrides=overrides, collective_model=collective_model)
    context = arguments.whole("--context", setting["--context"], unit="tokens", high=MAX_CONTEXT_TOKENS)
    batch = arguments.whole("--batch", setting["--batch"], unit="sequences") or 1
    max_pes = arguments.whole("--max-pes", setting["--max-pes"], unit="PEs")
    phase = arguments.choice("--phase", setting["--phase"], PHASES) or "decode"
    arguments.raise_faults()
    assert spec is not None  # else a fault was raised
    tokens = spec.model.max_position_tokens if context is None else context
    return _Setting(
        spec=spec,
        workload=spec_workload(spec, phase=cast(Phase, phase), context_tokens=tokens, batch=batch),
        max_pes=max_pes,
        warnings=context_warnings(spec, context_tokens=tokens, option="--context"),
    )


def _read_axes(arguments: Arguments, axes: Mapping[str, str | None], *, dense: bool) -> ExploreAxes:
    """Return the default or the dense axes, with those given in place of theirs."""
    values: dict[str, Any] = {}
    for name, text in axes.items():
        option = f"--{name.replace('_', '-')}"
        found = (
            arguments.choices(option, text, MODES[name]) if name in MODES else arguments.wholes(option, text)
        )
        if found is not None and len(set(found)) < len(found):
            arguments.add(option, text, allowed="each value once", fix="take the repeated one out")
        elif found is not None:
            values[name] = found
    return replace(dense_axes() if dense else ExploreAxes(), **values)


def run_explore(
    spec_text: str,
    *,
    overrides: Mapping[str, str | None],
    collective_model: str | None,
    setting: Mapping[str, str | None],
    dense: bool,
    axes: Mapping[str, str | None],
    csv: str | None,
    as_json: bool,
) -> int:
    """Sweep, write the CSV, print."""
    arguments = Arguments()
    searched = _read_axes(arguments, axes, dense=dense)
    asked = _read_setting(
        arguments, spec_text, overrides=overrides, collective_model=collective_model, setting=setting
    )
    warn(*asked.warnings)
    result = explore(**asked.given, axes=searched, progress=progress_printer())
    if csv is not None:
        rows = [{name: getattr(score, name) for name in SCORE_KEYS} for score in result.pareto]
        write_file(Path(csv), csv_text(rows, columns=SCORE_KEYS))
    if as_json:
        print_json(explore_document(result, **asked.named))
    else:
        say(*explore_lines(asked.spec, asked.workload, result))
        say(*([] if csv is None else [f"wrote {csv}"]))
    return 0


def _row_of_front(arguments: Arguments, asked: _Setting, row: int) -> ConfigScore:
    front = explore(**asked.given).pareto
    if row < len(front):
        return front[row]
    arguments.add(
        "--row",
        row,
        allowed=f"a row of the front, 0 to {len(front) - 1}"
        if front
        else "a row of the front, and nothing fits",
        fix="see `planner explore` with the same options" if front else "give a baseline with --config",
    )
    arguments.raise_faults()
    raise AssertionError("unreachable: the fault was raised")


def run_sensitivity(
    spec_text: str,
    *,
    overrides: Mapping[str, str | None],
    collective_model: str | None,
    setting: Mapping[str, str | None],
    row: str | None,
    config: str | None,
    csv: str | None,
    as_json: bool,
) -> int:
    """Vary each knob around the baseline, write the CSV, print."""
    arguments = Arguments()
    baseline: Config | None = None
    at = arguments.whole("--row", row, unit="", low=0) or 0
    if row is not None and config is not None:
        arguments.add("--row", row, allowed="--row or --config, not both", fix="take one of them out")
    elif config is not None:
        try:
            baseline = config_from_text(config)
        except InvalidSpec as error:
            arguments.faults += error.faults
    asked = _read_setting(
        arguments, spec_text, overrides=overrides, collective_model=collective_model, setting=setting
    )
    warn(*asked.warnings)
    if baseline is None:
        score = _row_of_front(arguments, asked, at)
    else:
        (score,) = score_configs(configs=[baseline], **asked.given)
    rows = compute_parallelism_sensitivity(score.config, **asked.given)
    if csv is not None:
        table = [{name: getattr(item, name) for name in SENSITIVITY_KEYS} for item in rows]
        write_file(Path(csv), csv_text(table, columns=SENSITIVITY_KEYS))
    if as_json:
        print_json(sensitivity_document(rows, baseline=score, **asked.named))
    else:
        say(*sensitivity_lines(asked.spec, asked.workload, score, rows))
        say(*([] if csv is None else [f"wrote {csv}"]))
    return 0
