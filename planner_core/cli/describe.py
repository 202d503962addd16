"""`planner parse`, `hardware`, `oracle` and `app`.

Owns: the order of things: check, read, print.
Refuses: formulas and words (see `model_text`).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

from planner_core.cli.arguments import (
    MAX_CONTEXT_TOKENS,
    Arguments,
    MissingExtra,
    preset_or_path,
    read_object,
    require_extra,
)
from planner_core.cli.model_text import machine_lines, machines_lines, model_lines
from planner_core.cli.terminal import print_json, say
from planner_core.file_kinds import require_kind
from planner_core.hardware import Machine
from planner_core.hardware_file import (
    hardware_to_json,
    list_presets,
    load_preset,
    parse_hardware,
)
from planner_core.hf_config import parse_config
from planner_core.model_arch import ModelArch
from planner_core.preset_files import preset_names
from planner_core.reports import model_document
from planner_core.run_spec import parse_run_spec
from planner_core.shipped_files import shipped_root
from planner_core.spec_files import file_resolver
from planner_core.strict_json import MAX_CONFIG_BYTES, clean_text
from planner_core.workload import PHASES


def _model_name(path: Path) -> str:
    """Return what to call a config.json: its folder's name where the file's says nothing."""
    return path.resolve().parent.name if path.stem == "config" else path.stem


def _shown(path: str) -> str:
    return clean_text(path)[:200]


def run_parse(config_text: str, *, as_json: bool) -> int:
    """Describe a config.json."""
    path = preset_or_path(config_text, kind="models")
    config = read_object(path, allow_non_finite=True, max_bytes=MAX_CONFIG_BYTES)
    require_kind(config, wanted="model", where=_shown(config_text))
    model = parse_config(config, name=_model_name(path))
    if as_json:
        print_json(model_document(model))
    else:
        say(*model_lines(model))
    return 0


def run_hardware(name: str | None, *, as_json: bool) -> int:
    """List the machines, or show one."""
    if name is None:
        machines = [load_preset(preset) for preset in list_presets()]
        if as_json:
            print_json({"machines": [hardware_to_json(machine) for machine in machines]})
        else:
            say(*machines_lines(machines))
        return 0
    machine = _machine(name)
    if as_json:
        print_json(hardware_to_json(machine))
    else:
        say(*machine_lines(machine))
    return 0


def _machine(name: str) -> Machine:
    path = preset_or_path(name, kind="hardware")
    if "/" not in name and not name.endswith(".json") and not path.exists():
        return load_preset(name)  # its refusal names the machines
    document = read_object(path)
    require_kind(document, wanted="machine", where=_shown(name))
    return parse_hardware(document)


def run_oracle_command(source: str, *, context: str | None, batch: str, phase: str, as_json: bool) -> int:
    """Compare with the model's own code; 1 where something is left unexplained."""
    from planner_core.oracle import run_oracle

    arguments = Arguments()
    tokens = arguments.whole("--context", context, unit="tokens", low=2, high=MAX_CONTEXT_TOKENS)
    sequences = arguments.whole("--batch", batch, unit="sequences", high=1_000_000) or 1
    phases = arguments.choices("--phase", phase, PHASES) or PHASES
    arguments.raise_faults()
    model, config = _model_and_config(source)
    report = run_oracle(
        model=model,
        config=config,
        context_tokens=tokens,
        batch=sequences,
        phases=[name for name in PHASES if name in phases],
    )
    if as_json:
        print_json(report.to_json())
    else:
        say(model.name, *report.lines())
    return 0 if report.agrees else 1


def _model_and_config(source: str) -> tuple[ModelArch, dict[str, object]]:
    """Read a run-spec or a config.json; a run-spec is known by its `hf_config`."""
    kind = "run_specs" if source.removesuffix(".json") in preset_names("run_specs") else "models"
    path = preset_or_path(source, kind=kind)
    found = read_object(path, allow_non_finite=True, max_bytes=MAX_CONFIG_BYTES)
    if "hf_config" not in found:
        require_kind(found, wanted="model", where=_shown(source))
        return parse_config(found, name=_model_name(path)), found
    spec = parse_run_spec(read_object(path), resolve=file_resolver(path))
    return spec.model, dict(spec.hf_config)


def run_app(*, port: str, headless: bool) -> NoReturn:
    """Become the app's server; signals go to it alone, and its exit code is the command's."""
    arguments = Arguments()
    number = arguments.whole("--port", port, unit="", high=65_535)
    arguments.raise_faults()
    entry = shipped_root() / "app.py"
    require_extra("streamlit", extra="app", what="the app")
    if not entry.is_file():
        raise MissingExtra(f"{entry} is missing; fix: install the planner again")
    command = [sys.executable, "-m", "streamlit", "run", str(entry), "--server.port", str(number)]
    if headless:
        command += ["--server.headless", "true"]
    # The app's settings (localhost only, upload limit, theme) lie beside it, and are read from where it runs.
    os.chdir(entry.parent)
    os.execv(command[0], command)
