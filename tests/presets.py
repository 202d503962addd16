"""The shipped presets, parsed once."""

import json
from functools import cache

from planner_core.hardware import Machine
from planner_core.hardware_file import load_preset
from planner_core.hf_config import parse_config
from planner_core.model_arch import ModelArch
from planner_core.preset_files import presets_dir


@cache
def preset_model(name: str) -> ModelArch:
    text = (presets_dir() / "models" / f"{name}.json").read_text(encoding="utf-8")
    return parse_config(json.loads(text), name=name)


@cache
def preset_machine(name: str) -> Machine:
    return load_preset(name)
