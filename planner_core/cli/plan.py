"""`planner plan` and `planner cell`: from arguments to an answer.

Owns: the order of things: check, compute, write, print.
Refuses: formulas, choices and words (see `plan_text`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, cast

from planner_core.artifacts import ARTIFACTS_FOLDER, refuse_package, write_files
from planner_core.cli.arguments import MAX_CONTEXT_TOKENS, Arguments, context_warnings, require_extra
from planner_core.cli.plan_text import cell_lines, plan_lines
from planner_core.cli.terminal import print_json, say, warn
from planner_core.errors import shorten
from planner_core.fit_limits import fit_limits
from planner_core.legal_degrees import degree_faults
from planner_core.plan_artifacts import plan_files
from planner_core.reports import cell_document, plan_document
from planner_core.run_spec import NamedConfig, RunSpec
from planner_core.serving_plan import operating_point, plan_serving
from planner_core.workload import PHASES, Phase

_DEGREE_OPTIONS: Final = {"tp": "--tp", "cp": "--cp", "pp": "--pp"}


def run_plan(
    spec_text: str,
    *,
    overrides: Mapping[str, str | None],
    collective_model: str | None,
    emit: bool,
    visualize: bool,
    project_root: str,
    as_json: bool,
) -> int:
    """Plan, print, and write the files."""
    arguments = Arguments()
    spec = arguments.spec(spec_text, overrides=overrides, collective_model=collective_model)
    if not project_root:
        arguments.add("--project-root", project_root, allowed="a directory", fix="name one")
    arguments.raise_faults()
    assert spec is not None  # else a fault was raised
    folder = Path(project_root) / ARTIFACTS_FOLDER
    refuse_package(folder)
    if visualize:
        require_extra("plotly", extra="figures", what="--visualize")
    plan = plan_serving(spec)
    warn(*(f"warning: {text}" for text in plan.warnings))
    if not as_json:
        say(*plan_lines(spec, plan))
    files: dict[str, bytes | str] = dict(plan_files(spec, plan, emit=emit))
    notes: list[str] = []
    if visualize:
        from planner_core.cli.visualize import figure_files

        figures, notes = figure_files(spec, plan)
        files |= figures
    paths = write_files(folder, files)
    if as_json:
        print_json(plan_document(plan))
    else:
        say("", *(f"wrote {path}" for path in paths))
    warn(*notes)
    return 0


def run_cell(
    spec_text: str,
    *,
    overrides: Mapping[str, str | None],
    collective_model: str | None,
    sizes: Mapping[str, str | None],
    label: str | None,
    phase: str,
    as_json: bool,
) -> int:
    """Open one operating point."""
    arguments = Arguments()
    spec = arguments.spec(spec_text, overrides=overrides, collective_model=collective_model)
    named = None if spec is None or label is None else _named_config(arguments, spec, label)
    missing = {} if label is None else {"--tp": "1", "--bs": "1", "--ctx": "1"}
    if named is not None:
        missing = {
            "--tp": str(named.tp),
            "--cp": str(named.cp),
            "--pp": str(named.pp),
            "--bs": str(named.batch),
            "--ctx": str(named.context_tokens),
        }
    given = {option: missing.get(option) if text is None else text for option, text in sizes.items()}
    tp = arguments.required_whole("--tp", given["--tp"], unit="ranks")
    batch = arguments.required_whole("--bs", given["--bs"], unit="sequences")
    context = arguments.required_whole("--ctx", given["--ctx"], unit="tokens", high=MAX_CONTEXT_TOKENS)
    cp = arguments.whole("--cp", given["--cp"], unit="ranks") or 1
    pp = arguments.whole("--pp", given["--pp"], unit="stages") or 1
    arguments.choice("--phase", phase, PHASES)
    if spec is not None:
        arguments.faults += degree_faults(
            model=spec.model, machine=spec.machine, tp=tp, cp=cp, pp=pp, places=_DEGREE_OPTIONS
        )
    arguments.raise_faults()
    assert spec is not None  # else a fault was raised
    point = operating_point(
        spec, tp=tp, cp=cp, pp=pp, batch=batch, context_tokens=context, phase=cast(Phase, phase)
    )
    warnings = context_warnings(spec, context_tokens=context, option="--ctx")
    if batch % spec.machine.batch_multiple:
        warnings.append(
            f"warning: --bs: {batch} is not a multiple of {spec.machine.batch_multiple}, which "
            f"{spec.machine.name} asks for"
        )
    warn(*warnings)
    limits = fit_limits(spec, point)
    if as_json:
        print_json(
            cell_document(point, machine=spec.machine)
            | {
                "model": spec.model_label,
                "hardware": spec.hardware_name,
                "limits": {
                    "largest_batch": limits.largest_batch,
                    "longest_context_tokens": limits.longest_context_tokens,
                },
                "warnings": warnings,
            }
        )
    else:
        say(*cell_lines(spec, point, limits))
    return 0


def _named_config(arguments: Arguments, spec: RunSpec, label: str) -> NamedConfig | None:
    for config in spec.configs:
        if config.label == label:
            return config
    known = ", ".join(shorten(config.label) for config in spec.configs) or "none: the spec has no configs"
    arguments.add("--label", label, allowed=f"a config of the spec: {known}", fix="pick one of these")
    return None
