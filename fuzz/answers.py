"""The promise: an answer whose every number is finite and not negative, or a clear refusal; fast and small.

`answer` reads one document as the app reads an upload and computes everything that can be computed from it.
Whatever breaks the promise raises `Broken`.
"""

from __future__ import annotations

import json
import math
import re
import resource
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from functools import cache
from itertools import product
from types import FrameType
from typing import Any, Final, Literal, TypeVar

import numpy as np

from fuzz.seeds import Kind
from planner_core.auto_explore import (
    Config,
    ExploreAxes,
    compute_parallelism_sensitivity,
    explore,
    score_configs,
)
from planner_core.cli.explore_text import explore_lines, sensitivity_lines
from planner_core.cli.model_text import machine_lines, model_lines
from planner_core.cli.plan_text import cell_lines, plan_lines
from planner_core.errors import InvalidSpec, UnsupportedModel
from planner_core.fit_limits import fit_limits
from planner_core.hardware import Machine
from planner_core.hardware_file import hardware_to_json, load_preset, parse_hardware
from planner_core.hf_config import parse_config
from planner_core.legal_degrees import legal_tp_degrees
from planner_core.model_arch import ModelArch
from planner_core.plan_artifacts import plan_files
from planner_core.preset_files import presets_dir
from planner_core.reports import (
    cell_document,
    explore_document,
    model_document,
    plan_document,
    sensitivity_document,
)
from planner_core.run_spec import RunSpec, load_run_spec, parse_run_spec, run_spec_to_json
from planner_core.serving_plan import operating_point, plan_serving, spec_workload
from planner_core.spec_files import uploads_resolver
from planner_core.strict_json import dumps, load_json, require_object
from planner_core.workload import PHASES

LIMIT_S: Final = 1.0
LIMIT_BYTES: Final = 200_000_000
HANG_S: Final = 60
AXES: Final = ExploreAxes(cp=(1, 4), tp=(1, 2, 8, 96), pp=(1, 2), dp=(1, 2))
BASELINES: Final = (Config(tp=8, cp=2), Config(tp=1, ep=4, dp=4, ffn_shard_scope="TP+CP+DP"))
MAX_FAULT_CHARACTERS: Final = 20_000

Outcome = Literal["answered", "refused", "unsupported"]
_NO_NUMBER: Final = re.compile(r"(?<![\w.'])-?(?:nan|inf|infinity)(?![\w'])|(?<![^\s(=])-\d", re.IGNORECASE)
_Answer = TypeVar("_Answer")


class Broken(AssertionError):
    """The promise was broken; the message says how."""


@dataclass(slots=True)
class Spent:
    """The longest time and the most memory that a document took."""

    longest_s: float = 0.0
    longest_step: str = ""
    largest_growth_bytes: int = 0


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _hanging(_signal: int, _frame: FrameType | None) -> None:
    raise Broken(f"no answer in {HANG_S} s")


@contextmanager
def watched() -> Iterator[None]:
    """Turn a hang into `Broken`, and numpy's warnings into errors."""
    before = signal.signal(signal.SIGALRM, _hanging)
    signal.alarm(HANG_S)
    try:
        with warnings.catch_warnings(), np.errstate(divide="raise", over="raise", invalid="raise"):
            warnings.simplefilter("error")
            yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class Watch:
    """Times steps by the processor's clock, which a busy machine does not stretch."""

    def __init__(self, spent: Spent, *, limit_s: float = LIMIT_S) -> None:
        self.spent = spent
        self.limit_s = limit_s

    def step(self, name: str, work: Callable[..., _Answer], *given: Any, **named: Any) -> _Answer:
        """Do one step within the limit."""
        started_s = time.process_time()
        try:
            return work(*given, **named)
        finally:
            took_s = time.process_time() - started_s
            if took_s > self.spent.longest_s:
                self.spent.longest_s, self.spent.longest_step = took_s, name
            if took_s > self.limit_s:
                raise Broken(f"{name} took {took_s:.2f} s")


def check_numbers(value: Any, *, where: str) -> None:
    """Refuse NaN, Infinity and negative numbers anywhere in a document."""
    if isinstance(value, dict):
        for key, item in value.items():
            check_numbers(item, where=f"{where}.{key}")
    elif isinstance(value, (list, tuple)):
        for at, item in enumerate(value):
            check_numbers(item, where=f"{where}[{at}]")
    elif isinstance(value, (int, float)) and not (value >= 0 and math.isfinite(value)):
        raise Broken(f"{where} is {value!r}")


def check_document(document: Any, *, where: str) -> None:
    """A document is strict JSON without a number that is none."""
    check_numbers(document, where=where)
    try:
        json.dumps(document, allow_nan=False)
    except (ValueError, TypeError) as error:
        raise Broken(f"{where}: {error}") from error


def check_lines(lines: list[str], *, where: str) -> None:
    """No line of text shows a number that is none."""
    for line in lines:
        if _NO_NUMBER.search(line):
            raise Broken(f"{where}: {line!r}")


def check_refusal(error: InvalidSpec | UnsupportedModel) -> None:
    """A refusal says where, what was given, what is allowed and what to change, in a readable length."""
    if isinstance(error, UnsupportedModel):
        parts = [error.message, error.field]
    else:
        parts = [text for fault in error.faults for text in astuple(fault)]
    if not parts or not all(isinstance(text, str) and text.strip() for text in parts):
        raise Broken(f"a refusal with an empty part: {error!s:.200}")
    if len(str(error)) > MAX_FAULT_CHARACTERS:
        raise Broken(f"a refusal of {len(str(error)):,} characters")
    str(error).encode("utf-8")
    if re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", str(error)):
        raise Broken(f"a refusal with a control character: {error!r:.200}")


@cache
def _usual_spec(name: str) -> RunSpec:
    return load_run_spec(presets_dir() / "run_specs" / f"{name}.json")


def _named_plainly(spec: RunSpec) -> RunSpec:
    """Return the spec with names that hold no number, so that every number in a text is the planner's."""
    machine = replace(spec.machine, name="machine", title="machine", pe_name="PE")
    return replace(spec, model_label="model", hardware_name="machine", machine=machine)


def _check_plan(spec: RunSpec, watch: Watch, *, files: bool) -> None:
    plan = watch.step("plan", plan_serving, spec)
    check_document(plan_document(plan), where="plan")
    check_lines(plan_lines(spec, plan), where="plan text")
    if not files:
        return
    for name, text in watch.step("plan files", plan_files, spec, plan, emit=True).items():
        check_numbers(json.loads(text), where=name)


def _check_cells(spec: RunSpec, watch: Watch) -> None:
    legal = legal_tp_degrees(spec.model, spec.machine)
    points = [
        {
            "tp": item.tp,
            "cp": item.cp,
            "pp": item.pp,
            "batch": item.batch,
            "context_tokens": item.context_tokens,
        }
        for item in spec.configs[:2]
    ]
    points.append({"tp": legal[-1], "batch": 1, "context_tokens": spec.model.max_position_tokens})
    points.append({"tp": legal[0], "batch": 4096, "context_tokens": 8192})
    for given, phase in product(points, PHASES):
        where = f"cell {phase}"
        point = watch.step(where, operating_point, spec, **given, phase=phase)
        check_document(cell_document(point, machine=spec.machine), where=where)
    limits = watch.step("limits", fit_limits, spec, point)
    check_numbers([limits.largest_batch, limits.longest_context_tokens], where="limits")
    check_lines(cell_lines(spec, point, limits), where="cell text")


def _check_sweeps(spec: RunSpec, watch: Watch, *, batch: int, phase: Any) -> None:
    tokens = min(spec.model.max_position_tokens, 100_000_000)
    workload = spec_workload(spec, phase=phase, context_tokens=tokens, batch=batch)
    given = {"model": spec.model, "machine": spec.machine, "workload": workload}
    found = watch.step("explore", explore, **given, axes=AXES)
    document = explore_document(found, **{**given, "model": "model"})
    check_document(document, where="explore")
    check_lines(explore_lines(spec, workload, found), where="explore text")
    baseline = found.pareto[0].config if found.pareto else BASELINES[batch % 2]
    (score,) = score_configs(configs=[baseline], **given)
    rows = watch.step("sensitivity", compute_parallelism_sensitivity, baseline, **given)
    document = sensitivity_document(rows, baseline=score, **{**given, "model": "model"})
    check_document(document, where="sensitivity")
    check_lines(sensitivity_lines(spec, workload, score, rows), where="sensitivity text")


def check_spec(spec: RunSpec, watch: Watch, *, turn: int, thorough: bool) -> None:
    """Everything that a run-spec answers; `turn` picks what is too slow to do for each."""
    spec = _named_plainly(spec)
    _check_plan(spec, watch, files=turn % 32 == 0)
    if thorough or turn % 2:
        _check_cells(spec, watch)
    if thorough or not turn % 2:
        batch = (1, 7, 256, 1_000_000_000)[turn // 2 % 4]
        _check_sweeps(spec, watch, batch=batch, phase=PHASES[turn // 8 % 2])


def _spec_of_machine(machine: Machine) -> RunSpec:
    usual = _usual_spec("granite-4.1-8b-trn2")
    return replace(usual, machine=machine, precision=next(iter(machine.peak_flops_per_s)), configs=())


def _spec_of_model(model: ModelArch, turn: int) -> RunSpec:
    usual = _usual_spec("granite-4.1-8b-trn2")
    machine = load_preset(("trn2", "sip128", "h100-cluster-32", "gb200-nvl72")[turn % 4])
    return replace(
        usual,
        model=model,
        machine=machine,
        widths=model.widths,
        kv_dtype_bytes=model.kv_dtype_bytes,
        configs=(),
    )


def _read(kind: Kind, data: bytes, turn: int) -> RunSpec:
    document = require_object(
        load_json(data, where="upload", allow_non_finite=kind == "config"), where="upload"
    )
    if kind == "hardware":
        machine = parse_hardware(document)
        if parse_hardware(json.loads(dumps(hardware_to_json(machine)))) != machine:
            raise Broken("a machine that does not come back from its own file")
        check_lines(
            machine_lines(replace(machine, name="machine", title="machine", sources={})), where="machine text"
        )
        return _spec_of_machine(machine)
    if kind == "config":
        model = parse_config(document, name="model")
        check_document(model_document(model), where="model")
        model_lines(model)
        return _spec_of_model(model, turn)
    spec = parse_run_spec(document, resolve=uploads_resolver({}))
    again = parse_run_spec(json.loads(dumps(run_spec_to_json(spec))), resolve=uploads_resolver({}))
    if (again.model, again.machine, again.configs) != (spec.model, spec.machine, spec.configs):
        raise Broken("a run-spec that does not come back from its own file")
    return spec


def answer(
    kind: Kind, data: bytes, *, spent: Spent, limit_s: float = LIMIT_S, thorough: bool = True
) -> Outcome:
    """Read one document and compute what follows from it: all of it, or where not `thorough` a part in turn.

    Raises
    ------
    Broken
        A number that is none, a refusal that says nothing, too long, too much memory.
    Exception
        Anything but the planner's own refusals, as it was raised.
    """
    watch = Watch(spent, limit_s=limit_s)
    turn = sum(data[-400:]) + len(data)
    before = _peak_bytes()
    with watched():
        try:
            spec = watch.step("read", _read, kind, data, turn)
            check_spec(spec, watch, turn=turn, thorough=thorough)
            outcome: Outcome = "answered"
        except InvalidSpec as error:
            check_refusal(error)
            outcome = "refused"
        except UnsupportedModel as error:
            check_refusal(error)
            outcome = "unsupported"
    growth = _peak_bytes() - before
    spent.largest_growth_bytes = max(spent.largest_growth_bytes, growth)
    if growth > LIMIT_BYTES:
        raise Broken(f"{growth / 1e6:.0f} MB more memory")
    return outcome
