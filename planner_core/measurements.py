"""Published measurements, and what the formulas say at the same operating point.

Owns: the layout of `presets/measurements.json`, a measurement's time from its published number, the planner's
time at its operating point, and the ratio of the two.
Refuses: constants and formulas of its own: no number here is fitted to a measurement.

A ratio under 1 is what a floor should give. The collectives of a machine may be fitted and are no floor, so
the share of the prediction that is communication is kept beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, Final

import numpy as np
from pydantic import Field

from planner_core.errors import Fault, InvalidSpec, shorten
from planner_core.hardware import Machine
from planner_core.hardware_file import list_presets, load_preset
from planner_core.hf_config import parse_config
from planner_core.json_fields import Choice, Count, Items, Number, StrictFields, Text, read_layout
from planner_core.model_arch import ModelArch, WeightWidths
from planner_core.parallelism import make_parallelism
from planner_core.preset_files import preset_names, presets_dir
from planner_core.stage_latencies import step_latency
from planner_core.strict_json import MAX_FAULTS, read_json_file, require_object
from planner_core.workload import Phase, Workload

METRICS: Final = ("ttft", "itl", "request")
METRIC_WORDS: Final = {
    "ttft": "time to first token",
    "itl": "time between tokens",
    "request": "whole static batch",
}
_SHORT_WORDS: Final = {"itl": "ITL", "ttft": "TTFT", "request": "whole static batch"}
UNITS: Final = ("ms", "s", "tok/s", "tok/s/PE")
PLACE: Final = "presets/measurements.json"

_TOKENS: Final = Count(unit="tokens", low=1, high=100_000_000)
_WIDTH: Final = Number(unit="bytes", low=0.0, high=16.0, above=True)


class _SourceFields(StrictFields):
    title: Annotated[str, Text(what="the page's title")]
    url: Annotated[str, Text(what="the page's address")]
    read: Annotated[str, Text(what="the ISO date when it was read")]


class _MeasurementFields(StrictFields):
    source: Annotated[str, Text(what="one of the sources")]
    machine: Annotated[str, Text(what="the name of a machine that comes with the planner")]
    model: Annotated[str, Text(what="one of the models, or one that comes with the planner")]
    model_title: Annotated[str, Text(what="what the source calls the model")]
    metric: Annotated[str, Choice(choices=METRICS)]
    published: Annotated[float, Number(unit="the unit given", low=0.0, high=1e12, above=True)]
    unit: Annotated[str, Choice(choices=UNITS)]
    tp: Annotated[int, Count(unit="ranks", low=1, high=65_536)]
    batch: Annotated[int, Count(unit="sequences", low=1, high=1_000_000)]
    input_tokens: Annotated[int, _TOKENS]
    output_tokens: Annotated[int, _TOKENS]
    weight_dtype_bytes: Annotated[float, _WIDTH]
    kv_dtype_bytes: Annotated[float, _WIDTH]
    precision: Annotated[str, Text(what="one of the machine's peaks")]
    widths: Annotated[
        dict[str, Annotated[float, _WIDTH]],
        Items(what="byte widths by kind of module", low=0, high=7, keyed=True),
    ] = Field(default_factory=dict)
    note: Annotated[str, Text(what="what else the source says", empty=True)] = ""


class _FileFields(StrictFields):
    sources: Annotated[dict[str, _SourceFields], Items(what="sources", low=1, high=256, keyed=True)]
    models: Annotated[dict[str, dict[str, Any]], Items(what="models", low=0, high=64, keyed=True)]
    measurements: Annotated[tuple[_MeasurementFields, ...], Items(what="measurements", low=1, high=1_000)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One published number and the operating point that it was measured at.

    Parameters
    ----------
    source_title, url, read : str
        The page, its address, and when it was read (ISO).
    machine : Machine
        A machine that comes with the planner.
    model : ModelArch
        The model's shapes.
    model_title : str
        What the source calls it.
    metric : str
        One of `METRICS`.
    published, unit : float, str
        As printed; one of `UNITS`. "tok/s" counts the output tokens of the whole batch.
    tp : int
        Tensor parallel ranks; the only axis in use. A KV head is copied where TP exceeds the KV heads.
    batch : int
        Sequences in a step.
    input_tokens, output_tokens : int
        Lengths [tokens].
    widths : WeightWidths
        Bytes a weight.
    kv_dtype_bytes : float
        Bytes a cached element.
    precision : str
        Which peak computes.
    note : str
        What else matters.
    """

    source_title: str
    url: str
    read: str
    machine: Machine
    model: ModelArch
    model_title: str
    metric: str
    published: float
    unit: str
    tp: int
    batch: int
    input_tokens: int
    output_tokens: int
    widths: WeightWidths
    kv_dtype_bytes: float
    precision: str
    note: str

    @property
    def measured_s(self) -> float:
        """The published number as a time [s].

        ms and s as they are. tok/s: batch/rate between tokens, batch * output/rate for a whole batch.
        """
        if self.unit in ("ms", "s"):
            return self.published * (1e-3 if self.unit == "ms" else 1.0)
        rate_tokens_per_s = self.published * (self.tp if self.unit == "tok/s/PE" else 1)
        n_tokens = self.batch * (self.output_tokens if self.metric == "request" else 1)
        return n_tokens / rate_tokens_per_s

    def point(self) -> str:
        """Return the operating point in words: "TP 2, batch 1, 5,000 in, 500 out"."""
        lengths = f"{self.input_tokens:,} in, {self.output_tokens:,} out"
        return f"TP {self.tp}, batch {self.batch:,}, {lengths}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A measurement beside the planner's time.

    Parameters
    ----------
    measurement : Measurement
        What was measured.
    predicted_s, measured_s : float
        The planner's time and the measured one [s].
    communication_s : float
        The part of `predicted_s` that is communication [s].
    """

    measurement: Measurement
    predicted_s: float
    measured_s: float
    communication_s: float

    @property
    def ratio(self) -> float:
        """Predicted over measured; a floor gives 1 or less."""
        return self.predicted_s / self.measured_s

    @property
    def compute_ratio(self) -> float:
        """Predicted without communication over measured: what is left when the fitted ring is taken out."""
        return (self.predicted_s - self.communication_s) / self.measured_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """Ratios of the comparisons of one machine and one metric.

    Parameters
    ----------
    machine, metric : str
        The machine's short name; one of `METRICS`.
    count : int
        Comparisons.
    geometric_mean, lowest, highest : float
        Of predicted over measured.
    """

    machine: str
    metric: str
    count: int
    geometric_mean: float
    lowest: float
    highest: float


def _missing(where: str, given: str, what: str, known: Iterable[str]) -> Fault:
    return Fault(
        where=where, given=shorten(given), allowed=f"{what}: {', '.join(known)}", fix="correct the name"
    )


def _faults_of(index: int, row: _MeasurementFields, fields: _FileFields) -> list[Fault]:
    """Names that nothing has, and a rate where only a time makes sense."""
    where = f"measurements[{index}]"
    models = (*fields.models, *preset_names("models"))
    known = (
        ("source", row.source, "one of the sources", tuple(fields.sources)),
        ("machine", row.machine, "a machine", list_presets()),
        ("model", row.model, "a model", models),
    )
    faults = [
        _missing(f"{where}.{key}", given, what, names)
        for key, given, what, names in known
        if given not in names
    ]
    kinds = tuple(WeightWidths.__dataclass_fields__)
    faults += [
        _missing(f"{where}.widths", kind, "kinds of module", kinds)
        for kind in row.widths
        if kind not in kinds
    ]
    if row.machine in list_presets():
        peaks = tuple(load_preset(row.machine).peak_flops_per_s)
        if row.precision not in peaks:
            faults.append(_missing(f"{where}.precision", row.precision, "a peak of the machine", peaks))
    if row.metric == "ttft" and row.unit not in ("ms", "s"):
        faults.append(
            Fault(
                where=f"{where}.unit",
                given=shorten(row.unit),
                allowed="ms, s",
                fix="give a first token's time",
            )
        )
    return faults


def parse_measurements(source: Mapping[str, Any]) -> tuple[Measurement, ...]:
    """Check a file of measurements and return them.

    Parameters
    ----------
    source : mapping
        Parsed JSON: `sources` by name, `models` (a config.json by name, for those that do not come with the
        planner) and `measurements`.

    Returns
    -------
    tuple of Measurement
        In the file's order.

    Raises
    ------
    InvalidSpec
        With every fault at once.
    UnsupportedModel
        A model has layers that are not modelled.
    """
    fields, faults = read_layout(source, layout=_FileFields)
    if fields is None:
        raise InvalidSpec(faults)
    for index, row in enumerate(fields.measurements):
        faults += _faults_of(index, row, fields)
    if faults:
        raise InvalidSpec(faults[:MAX_FAULTS])
    machines = {name: load_preset(name) for name in {row.machine for row in fields.measurements}}
    models = {
        name: parse_config(fields.models[name] if name in fields.models else _preset_model(name), name=name)
        for name in {row.model for row in fields.measurements}
    }
    return tuple(
        Measurement(
            source_title=fields.sources[row.source].title,
            url=fields.sources[row.source].url,
            read=fields.sources[row.source].read,
            machine=machines[row.machine],
            model=models[row.model],
            model_title=row.model_title,
            metric=row.metric,
            published=row.published,
            unit=row.unit,
            tp=row.tp,
            batch=row.batch,
            input_tokens=row.input_tokens,
            output_tokens=row.output_tokens,
            widths=WeightWidths(**_all_widths(row)),
            kv_dtype_bytes=row.kv_dtype_bytes,
            precision=row.precision,
            note=row.note,
        )
        for row in fields.measurements
    )


def _all_widths(row: _MeasurementFields) -> dict[str, float]:
    kinds = WeightWidths.__dataclass_fields__
    return {kind: row.widths.get(kind, row.weight_dtype_bytes) for kind in kinds}


def _preset_model(name: str) -> dict[str, object]:
    where = f"presets/models/{name}.json"
    return require_object(read_json_file(presets_dir() / "models" / f"{name}.json", where=where), where=where)


@cache
def load_measurements() -> tuple[Measurement, ...]:
    """Return the published measurements that come with the planner.

    Returns
    -------
    tuple of Measurement
        In the file's order; read once.

    Examples
    --------
    >>> first = load_measurements()[0]
    >>> first.machine.name, first.metric, first.point()
    ('h100-sxm', 'ttft', 'TP 2, batch 1, 5,000 in, 500 out')
    """
    source = read_json_file(presets_dir() / "measurements.json", where=PLACE)
    return parse_measurements(require_object(source, where=PLACE))


def _step_s(measurement: Measurement, *, phase: Phase, context_tokens: float) -> tuple[float, float]:
    """Return a step's latency and the communication in it [s]."""
    step = step_latency(
        model=measurement.model,
        machine=measurement.machine,
        parallelism=make_parallelism(tp=measurement.tp, kv_split=1),
        workload=Workload(
            phase=phase,
            context_tokens=context_tokens,
            batch=measurement.batch,
            widths=measurement.widths,
            kv_dtype_bytes=measurement.kv_dtype_bytes,
            precision=measurement.precision,
        ),
    )
    return float(step.latency_s), float(step.communication_s)


def compare(measurement: Measurement) -> Comparison:
    """Return the planner's time at a measurement's operating point beside the measured one.

    Parameters
    ----------
    measurement : Measurement
        What was measured.

    Returns
    -------
    Comparison

    Notes
    -----
    ttft: the prefill of the batch. itl: a decode step at the mean context, input + output/2. request: the
    prefill, and output - 1 decode steps at that mean context; exact where one term binds throughout, since a
    step is then linear in the context.

    Examples
    --------
    >>> seen = compare(load_measurements()[1])
    >>> seen.measured_s, round(seen.ratio, 2)
    (0.01858, 0.58)
    """
    predicted_s = communication_s = 0.0
    if measurement.metric in ("ttft", "request"):
        predicted_s, communication_s = _step_s(
            measurement, phase="prefill", context_tokens=float(measurement.input_tokens)
        )
    if measurement.metric in ("itl", "request"):
        n_steps = measurement.output_tokens - 1 if measurement.metric == "request" else 1
        mean_tokens = measurement.input_tokens + measurement.output_tokens / 2.0
        step_s, sent_s = _step_s(measurement, phase="decode", context_tokens=mean_tokens)
        predicted_s += n_steps * step_s
        communication_s += n_steps * sent_s
    return Comparison(
        measurement=measurement,
        predicted_s=predicted_s,
        measured_s=measurement.measured_s,
        communication_s=communication_s,
    )


@cache
def shipped_comparisons() -> tuple[Comparison, ...]:
    """Return the comparison of each measurement that comes with the planner, in the file's order."""
    return tuple(compare(measurement) for measurement in load_measurements())


def summarize(comparisons: Iterable[Comparison]) -> tuple[Accuracy, ...]:
    """Return how far predictions are from measurements, by machine and metric.

    Parameters
    ----------
    comparisons : iterable of Comparison
        To sum up.

    Returns
    -------
    tuple of Accuracy
        In the order in which each machine and metric first comes.
    """
    ratios: dict[tuple[str, str], list[float]] = {}
    for item in comparisons:
        key = (item.measurement.machine.name, item.measurement.metric)
        ratios.setdefault(key, []).append(item.ratio)
    return tuple(
        Accuracy(
            machine=machine,
            metric=metric,
            count=len(values),
            geometric_mean=float(np.exp(np.mean(np.log(values)))),
            lowest=min(values),
            highest=max(values),
        )
        for (machine, metric), values in ratios.items()
    )


def measured_line(machine: Machine) -> str:
    """Return how far the published measurements on a machine are from the predictions, in one sentence.

    Parameters
    ----------
    machine : Machine
        As it is in force. One whose constants were changed was not measured, whatever its name.

    Returns
    -------
    str

    Examples
    --------
    >>> measured_line(load_preset("b200"))
    'Measured over predicted, on NVIDIA B200 180 GB, 8 to a node: ITL 3.4 times (1 point).'
    >>> measured_line(load_preset("sip128"))
    'No published measurement of this machine.'
    """
    rows = [row for row in load_measurements() if row.machine.name == machine.name]
    if not rows:
        return "No published measurement of this machine."
    if replace(machine, title=rows[0].machine.title) != rows[0].machine:
        return f"No published measurement of this machine: {rows[0].machine.title} with other constants."
    found = {item.metric: item for item in summarize(compare(row) for row in rows)}
    parts = []
    for metric, name in _SHORT_WORDS.items():
        if metric in found:
            low, high = (f"{1.0 / ratio:#.2g}" for ratio in (found[metric].highest, found[metric].lowest))
            times = low if low == high else f"{low} to {high}"
            points = f"{found[metric].count} point{'s' if found[metric].count > 1 else ''}"
            parts.append(f"{name} {times} times ({points})")
    return f"Measured over predicted, on {rows[0].machine.title}: {', '.join(parts)}."
