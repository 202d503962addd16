"""A run-spec's JSON to a `RunSpec` and back: which model, which machine, which targets.

Owns: the layout, its checks against the model and the machine, and where referenced files may come from.
Refuses: formulas, and serving modes other than colocated on one node.

A spec names its `config.json` and its machine's JSON by path, or holds them inline. A resolver turns a path
into JSON: from files beside the spec on the command line, from uploads and presets only in the app.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

from planner_core.errors import Fault, InvalidSpec, UnsupportedModel, shorten
from planner_core.file_kinds import Kind, require_kind
from planner_core.hardware import Machine
from planner_core.hardware_file import hardware_to_json, parse_hardware
from planner_core.hf_config import parse_config
from planner_core.json_fields import read_layout
from planner_core.legal_degrees import degree_faults
from planner_core.model_arch import ModelArch, WeightWidths
from planner_core.run_spec_layout import MAX_CONFIGS, OBJECTIVES, ConfigFields, SpecFields
from planner_core.spec_files import Resolver, file_resolver, uploads_resolver
from planner_core.strict_json import MAX_FAULTS, clean_text, read_json_file, require_object

__all__ = [
    "OBJECTIVES",
    "NamedConfig",
    "Resolver",
    "RunSpec",
    "file_resolver",
    "load_run_spec",
    "parse_run_spec",
    "run_spec_to_json",
    "uploads_resolver",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedConfig:
    """An operating point that a spec names.

    Parameters
    ----------
    label, regime : str
        What it is called, and what for ("decode_heavy").
    tp, pp, cp : int
        Degrees; `cp` is the split of a KV head's sequence over TP ranks.
    context_tokens : int
        The bucket [tokens].
    batch : int
        Sequences.
    """

    label: str
    regime: str
    tp: int
    pp: int
    cp: int
    context_tokens: int
    batch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """What a person asks for.

    Parameters
    ----------
    model_label, hardware_name : str
        What to show; text from outside.
    model : ModelArch
        The model.
    machine : Machine
        The machine.
    decode_itl_ceiling_s : float or None
        Longest time between tokens [s].
    prefill_tokens_per_s_floor : float or None
        F: TTFT of a context S may be S/F at most [tokens/s].
    objective : {"lowest_ttft", "highest_throughput"} or None
        Given instead of the two targets.
    widths : WeightWidths
        Bytes a weight, as asked for or as the checkpoint stores them.
    kv_dtype_bytes, activation_dtype_bytes : float
        Bytes an element.
    precision : str
        Which of the machine's peaks computes.
    configs : tuple of NamedConfig
        Named operating points.
    weight_dtype_bytes : float or None
        What the spec asked for; None where `widths` are the checkpoint's own.
    hf_config : mapping
        The `config.json` that `model` was read from.
    warnings : tuple of str
        What is odd and yet answered.
    """

    model_label: str
    hardware_name: str
    model: ModelArch
    machine: Machine
    decode_itl_ceiling_s: float | None
    prefill_tokens_per_s_floor: float | None
    objective: str | None
    widths: WeightWidths
    kv_dtype_bytes: float
    activation_dtype_bytes: float = 2.0
    precision: str = "bf16"
    configs: tuple[NamedConfig, ...] = ()
    weight_dtype_bytes: float | None = None
    hf_config: Mapping[str, Any] = field(default_factory=dict, repr=False)
    warnings: tuple[str, ...] = ()


class _Faults(list[Fault]):
    """Faults gathered over several readers."""

    @contextmanager
    def gather(self, prefix: str = "") -> Iterator[None]:
        """Take the faults of a block, each under `prefix`; the block's later lines are skipped."""
        try:
            yield
        except InvalidSpec as error:
            for fault in error.faults:
                inside = not prefix or fault.where.startswith(prefix)
                where = fault.where if inside else f"{prefix}.{fault.where}"
                self.append(Fault(where=where, given=fault.given, allowed=fault.allowed, fix=fault.fix))

    def add(self, where: str, given: object, allowed: str, fix: str) -> None:
        """Append one fault."""
        self.append(Fault(where=where, given=shorten(given), allowed=allowed, fix=fix))


def _target_faults(fields: Mapping[str, Any]) -> list[Fault]:
    """Targets, or an objective, and not both."""
    targets = [key for key in ("decode_itl_ceiling_ms", "prefill_itps_floor") if fields.get(key) is not None]
    choices = " or ".join(f"'{objective}'" for objective in OBJECTIVES)
    if fields.get("objective") in OBJECTIVES and targets:
        return [
            Fault(
                where="objective",
                given=f"{shorten(fields['objective'])} beside {' and '.join(targets)}",
                allowed="either latency targets or an objective",
                fix="take one of the two out",
            )
        ]
    if fields.get("objective") is None and not targets:
        return [
            Fault(
                where="decode_itl_ceiling_ms, prefill_itps_floor",
                given="neither",
                allowed="one of them, both, or an objective",
                fix="give decode_itl_ceiling_ms (ms a token), prefill_itps_floor (tokens/s), "
                f"or objective {choices}",
            )
        ]
    return []


def _readable_points(source: Mapping[str, Any]) -> list[tuple[int, ConfigFields]]:
    """Return the named points whose degrees can be read, with their positions, whatever else is wrong."""
    listed = source.get("configs")
    if not isinstance(listed, (list, tuple)) or len(listed) > MAX_CONFIGS:
        return []
    readable = []
    for index, item in enumerate(listed):
        given = item if isinstance(item, Mapping) else {}
        degrees = {key: given[key] for key in ("TP", "PP", "CP") if key in given}
        point, _ = read_layout({**degrees, "bucket": 1, "bs": 1}, layout=ConfigFields)
        if point is not None:
            readable.append((index, point))
    return readable


def _point_faults(
    points: list[tuple[int, ConfigFields]], *, model: ModelArch | None, machine: Machine
) -> list[Fault]:
    """Check the degrees of named points against the node and, where it is known, the model."""
    faults: list[Fault] = []
    for index, point in points:
        places = {name: f"configs[{index}].{name.upper()}" for name in ("tp", "cp", "pp")}
        faults += degree_faults(
            model=model, machine=machine, tp=point.TP, cp=point.CP, pp=point.PP, places=places
        )
    return faults


def _warnings(configs: tuple[ConfigFields, ...], *, model: ModelArch, machine: Machine) -> tuple[str, ...]:
    """Return what is odd about named configs and yet has an answer."""
    warnings = []
    for index, config in enumerate(configs):
        if config.bucket > model.max_position_tokens:
            warnings.append(
                f"configs[{index}].bucket: {config.bucket:,} tokens is above the "
                f"{model.max_position_tokens:,} that the model is made for; the answer holds only if its "
                "positions are extended"
            )
        if config.bs % machine.batch_multiple:
            warnings.append(
                f"configs[{index}].bs: {config.bs} is not a multiple of {machine.batch_multiple}, "
                f"which {machine.name} asks for"
            )
    return tuple(warnings)


_KINDS: Final[Mapping[str, Kind]] = {"hf_config": "model", "hardware": "machine"}


def _referenced(value: object, *, field_name: str, resolve: Resolver) -> Mapping[str, Any]:
    """Return the JSON that a field holds or names."""
    found = value if isinstance(value, Mapping) else resolve(field_name, str(value))
    document = require_object(dict(found) if isinstance(found, Mapping) else found, where=field_name)
    require_kind(document, wanted=_KINDS[field_name], where=field_name)
    return document


def _label(given: str, *, reference: object, otherwise: str) -> str:
    """Return the name to show: as given, else the file's, else the fallback."""
    if given.strip():
        return given
    name = PurePosixPath(clean_text(reference)).name if isinstance(reference, str) else ""
    return name.removesuffix(".json") or otherwise


def _run_spec(
    fields: SpecFields, *, label: str, model: ModelArch, machine: Machine, config: Mapping[str, Any]
) -> RunSpec:
    """Return what a spec without faults asks for, with the checkpoint's own widths as defaults."""
    ceiling_ms = fields.decode_itl_ceiling_ms
    width = fields.weight_dtype_bytes
    kv_width = fields.kv_dtype_bytes
    return RunSpec(
        model_label=label,
        hardware_name=fields.hardware_name.strip() or machine.name,
        model=model,
        machine=machine,
        decode_itl_ceiling_s=None if ceiling_ms is None else ceiling_ms / 1e3,
        prefill_tokens_per_s_floor=fields.prefill_itps_floor,
        objective=fields.objective,
        widths=model.widths if width is None else WeightWidths.uniform(width),
        kv_dtype_bytes=model.kv_dtype_bytes if kv_width is None else kv_width,
        activation_dtype_bytes=fields.activation_dtype_bytes,
        precision=fields.compute_precision,
        configs=tuple(
            NamedConfig(
                label=item.label or f"TP={item.TP}",
                regime=item.regime,
                tp=item.TP,
                pp=item.PP,
                cp=item.CP,
                context_tokens=item.bucket,
                batch=item.bs,
            )
            for item in fields.configs
        ),
        weight_dtype_bytes=width,
        hf_config=config,
        warnings=_warnings(fields.configs, model=model, machine=machine),
    )


def parse_run_spec(source: Mapping[str, Any], *, resolve: Resolver) -> RunSpec:
    """Check a run-spec's JSON, its model's and its machine's, and return what it asks for.

    Parameters
    ----------
    source : mapping
        The parsed JSON.
    resolve : callable
        (field, path) to parsed JSON, for `hf_config` and `hardware` given by path.

    Returns
    -------
    RunSpec

    Raises
    ------
    InvalidSpec
        With every fault of all three at once.
    UnsupportedModel
        Where that is all that is wrong.
    """
    if isinstance(source, Mapping):
        require_kind(source, wanted="run-spec", where="run-spec")
    fields, layout_faults = read_layout(source, layout=SpecFields)
    faults = _Faults(layout_faults)
    raw = source if isinstance(source, Mapping) else {}
    faults += _target_faults(raw) if isinstance(source, Mapping) else []
    model: ModelArch | None = None
    machine: Machine | None = None
    unsupported: UnsupportedModel | None = None
    config: Mapping[str, Any] = {}
    label = _label(fields.model if fields else "", reference=raw.get("hf_config"), otherwise="model")
    if isinstance(raw.get("hf_config"), (str, Mapping)):
        with faults.gather("hf_config"):
            try:
                config = _referenced(raw["hf_config"], field_name="hf_config", resolve=resolve)
                model = parse_config(config, name=label)
            except UnsupportedModel as error:
                unsupported = error
    if isinstance(raw.get("hardware"), (str, Mapping)):
        with faults.gather("hardware"):
            machine = parse_hardware(_referenced(raw["hardware"], field_name="hardware", resolve=resolve))
    if machine:
        precision = raw.get("compute_precision", "bf16")
        if isinstance(precision, str) and precision not in machine.peak_flops_per_s:
            known = ", ".join(machine.peak_flops_per_s)
            allowed = f"a precision that {machine.name} has a peak for: {known}"
            faults.add("compute_precision", precision, allowed, "pick one of these")
        faults += _point_faults(_readable_points(raw), model=model, machine=machine)
    if unsupported and not faults:
        raise unsupported
    if unsupported:
        faults.add(
            f"hf_config.{unsupported.field}",
            unsupported.message,
            "a modelled kind of layer",
            "take another model",
        )
    if fields is None or model is None or machine is None or faults:
        raise InvalidSpec(faults[:MAX_FAULTS])
    return _run_spec(fields, label=label, model=model, machine=machine, config=config)


def load_run_spec(path: Path) -> RunSpec:
    """Read a run-spec file, and the files that it names relative to itself.

    Parameters
    ----------
    path : Path
        The spec.

    Returns
    -------
    RunSpec

    Raises
    ------
    InvalidSpec
        With every fault at once.
    UnsupportedModel
        A kind of layer that is not modelled.
    """
    where = clean_text(str(path))[:200]
    source = require_object(read_json_file(path), where=where)
    return parse_run_spec(source, resolve=file_resolver(path))


_NOT_KEPT: Final = object()


def _finite(value: Any) -> Any:
    """Return a JSON value without the keys that hold NaN or Infinity, which strict JSON cannot carry."""
    if isinstance(value, float) and not math.isfinite(value):
        return _NOT_KEPT
    if isinstance(value, Mapping):
        kept = {key: _finite(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item is not _NOT_KEPT}
    if isinstance(value, (list, tuple)):
        items = [_finite(item) for item in value]
        return _NOT_KEPT if any(item is _NOT_KEPT for item in items) else items
    return value


def run_spec_to_json(spec: RunSpec) -> dict[str, Any]:
    """Return a spec as JSON with its model and machine inline: what `parse_run_spec` takes anywhere.

    Parameters
    ----------
    spec : RunSpec
        The spec.

    Returns
    -------
    dict
        Strict JSON values only. Keys of the `config.json` that hold NaN or Infinity are left out: they are
        read past anyway.
    """
    targets: dict[str, Any] = {
        "decode_itl_ceiling_ms": None
        if spec.decode_itl_ceiling_s is None
        else _milliseconds(spec.decode_itl_ceiling_s),
        "prefill_itps_floor": spec.prefill_tokens_per_s_floor,
        "objective": spec.objective,
        "weight_dtype_bytes": spec.weight_dtype_bytes,
    }
    return {
        "model": spec.model_label,
        "hardware_name": spec.hardware_name,
        "hf_config": _finite(spec.hf_config),
        "hardware": hardware_to_json(spec.machine),
        "serving": "colocated",
        **{key: value for key, value in targets.items() if value is not None},
        "kv_dtype_bytes": spec.kv_dtype_bytes,
        "activation_dtype_bytes": spec.activation_dtype_bytes,
        "compute_precision": spec.precision,
        "configs": [
            {
                "label": config.label,
                "regime": config.regime,
                "TP": config.tp,
                "PP": config.pp,
                "CP": config.cp,
                "bucket": config.context_tokens,
                "bs": config.batch,
            }
            for config in spec.configs
        ],
    }


def _milliseconds(seconds: float) -> float:
    """Return the millisecond value that divides back to exactly `seconds`, the shortest one in print."""
    value = float(f"{seconds * 1e3:.15g}")
    return value if value / 1e3 == seconds else seconds * 1e3
