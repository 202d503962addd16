"""Published measurements: what is printed, the planner's time beside it, and what the two may say."""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner_core.errors import InvalidSpec
from planner_core.hardware import Machine
from planner_core.hardware_file import load_preset
from planner_core.measurements import (
    METRICS,
    Comparison,
    Measurement,
    compare,
    load_measurements,
    measured_line,
    parse_measurements,
    shipped_comparisons,
    summarize,
)
from planner_core.preset_files import presets_dir

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = json.loads((presets_dir() / "measurements.json").read_text(encoding="utf-8"))


def one(**where: object) -> Measurement:
    """The only shipped measurement with these fields."""
    found = [
        m
        for m in load_measurements()
        if all((m.machine.name if k == "machine" else getattr(m, k)) == v for k, v in where.items())
    ]
    assert len(found) == 1
    return found[0]


def test_every_measurement_says_where_it_was_read() -> None:
    assert len(load_measurements()) >= 40
    assert {m.metric for m in load_measurements()} == set(METRICS)
    for measurement in load_measurements():
        assert measurement.url.startswith("https://")
        assert measurement.read == "2026-11-30"


def test_no_measurement_is_there_twice_and_no_source_is_unused() -> None:
    rows = [
        json.dumps({**row, "published": 0, "note": ""}, sort_keys=True) for row in SHIPPED["measurements"]
    ]
    assert len(set(rows)) == len(rows)
    assert {row["source"] for row in SHIPPED["measurements"]} == set(SHIPPED["sources"])
    assert set(SHIPPED["models"]) <= {row["model"] for row in SHIPPED["measurements"]}


@pytest.mark.parametrize(
    ("name", "n_params"),
    [("llama-2-7b", 6_738_415_616), ("llama-2-13b", 13_015_864_320), ("llama-2-70b", 68_976_648_192)],
)
def test_models_that_only_measurements_need_have_their_published_size(name: str, n_params: int) -> None:
    assert {m.model.n_params for m in load_measurements() if m.model.name == name} == {n_params}


@pytest.mark.parametrize(
    ("metric", "published", "unit", "expected_s"),
    [
        ("ttft", 406.77, "ms", 0.40677),
        ("itl", 0.019832, "s", 0.019832),
        ("itl", 111.0, "tok/s", 64 / 111.0),
        ("request", 9193.0, "tok/s", 64 * 128 / 9193.0),
        ("request", 2657.0, "tok/s/PE", 64 * 128 / (4 * 2657.0)),
    ],
)
def test_a_published_number_becomes_a_time(
    metric: str, published: float, unit: str, expected_s: float
) -> None:
    base = replace(load_measurements()[0], batch=64, tp=4, output_tokens=128)
    changed = replace(base, metric=metric, published=published, unit=unit)
    assert changed.measured_s == pytest.approx(expected_s, rel=1e-12)


def test_a_decode_step_on_h100_by_hand() -> None:
    """Llama 3.3 70B, fp8, TP 2 on H100, one sequence of 5,250 tokens: the bytes read over 3.35 TB/s."""
    n_tokens, hidden = 5000 + 500 / 2, 8192
    attention = 80 * (2 * hidden * hidden + 2 * hidden * 1024) / 2
    cache = 80 * 2 * 1024 / 2 * n_tokens
    ffn = 80 * 3 * hidden * 28672 / 2
    lm_head = hidden * 128256 / 2
    activations = 80 * 2 * (2 * hidden * 2) + 2 * (hidden + 128256 / 2)
    loads_s = (attention + cache + ffn + lm_head + activations) / 3.35e12
    ring_s = 160 * (2 * 1.07e-6 + 2 * hidden / 450e9)
    measurement = one(machine="h100-sxm", metric="itl", batch=1, input_tokens=5000)
    seen = compare(measurement)
    assert seen.predicted_s == pytest.approx(loads_s + ring_s, rel=1e-9)
    assert seen.communication_s == pytest.approx(ring_s, rel=1e-9)
    assert seen.ratio == pytest.approx((loads_s + ring_s) / 0.01858, rel=1e-9)


@pytest.mark.parametrize("n_out", [1, 7, 512])
def test_a_whole_batch_is_its_prefill_and_the_steps_after_the_first_token(n_out: int) -> None:
    base = replace(one(machine="h200", model_title="Mixtral 8x7B"), output_tokens=n_out)
    parts = {metric: compare(replace(base, metric=metric)) for metric in METRICS}
    for name in ("predicted_s", "communication_s"):
        whole = getattr(parts["ttft"], name) + (n_out - 1) * getattr(parts["itl"], name)
        assert getattr(parts["request"], name) == pytest.approx(whole, rel=1e-12)


def label(item: Comparison) -> str:
    measurement = item.measurement
    return f"{measurement.machine.name}-{measurement.model_title}-{measurement.metric}-{measurement.point()}"


@pytest.mark.parametrize("item", shipped_comparisons(), ids=label)
def test_compute_and_memory_are_a_floor(item: Comparison) -> None:
    assert 0.0 < item.compute_ratio < 1.0
    assert item.compute_ratio <= item.ratio


@pytest.mark.parametrize("item", shipped_comparisons(), ids=label)
def test_only_a_ring_that_was_fitted_or_assumed_predicts_more_than_was_measured(item: Comparison) -> None:
    machine = item.measurement.machine
    kinds = {source.kind for path, source in machine.sources.items() if path.endswith("hop_latency_s")}
    assert item.ratio <= 1.0 or kinds <= {"fitted", "assumed"}


def test_a_summary_is_the_geometric_mean_and_the_range() -> None:
    first, second = shipped_comparisons()[:2]
    pair = [
        Comparison(
            measurement=replace(item.measurement, metric="itl"),
            predicted_s=predicted_s,
            measured_s=1.0,
            communication_s=0.0,
        )
        for item, predicted_s in ((first, 0.2), (second, 0.8))
    ]
    (group,) = summarize(pair)
    assert (group.machine, group.metric, group.count) == ("h100-sxm", "itl", 2)
    assert (group.lowest, group.highest) == (0.2, 0.8)
    assert group.geometric_mean == pytest.approx(math.sqrt(0.2 * 0.8))
    assert summarize([]) == ()


def test_the_document_on_accuracy_has_todays_ratios() -> None:
    text = (ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8")
    found = [line for line in text.splitlines() if line.startswith("| `")]
    rows = [
        f"| `{g.machine}` | {g.metric} | {g.count} | {g.geometric_mean:.2f} "
        f"| {g.lowest:.2f} to {g.highest:.2f} |"
        for g in summarize(shipped_comparisons())
    ]
    assert found == rows
    for measurement in load_measurements():
        assert measurement.url in text


def changed(**row: object) -> Mapping[str, Any]:
    """The shipped file with only its first measurement, changed."""
    return {**SHIPPED, "measurements": [{**SHIPPED["measurements"][0], **row}]}


@pytest.mark.parametrize(
    ("row", "where", "match"),
    [
        ({"machine": "h300"}, "machine", "h100-sxm"),
        ({"model": "gpt-2"}, "model", "llama-2-7b"),
        ({"source": "memory"}, "source", "nim"),
        ({"metric": "latency"}, "metric", "ttft, itl, request"),
        ({"precision": "fp4"}, "precision", "bf16, fp8"),
        ({"unit": "tok/s"}, "unit", "ms, s"),
        ({"published": 0}, "published", "above 0"),
        ({"batch": 1.5}, "batch", "whole number of sequences"),
        ({"widths": {"bias": 2}}, "widths", "attention"),
        ({"gpu": 1}, "gpu", "unknown key"),
    ],
)
def test_a_faulty_measurement_is_refused_by_its_field(row: dict[str, object], where: str, match: str) -> None:
    with pytest.raises(InvalidSpec, match=match) as caught:
        parse_measurements(changed(**row))
    assert [fault.where for fault in caught.value.faults] == [f"measurements[0].{where}"]


def test_every_fault_is_told_at_once() -> None:
    with pytest.raises(InvalidSpec) as caught:
        parse_measurements(changed(machine="h300", model="gpt-2", source="memory"))
    assert len(caught.value.faults) == 3


def test_a_machine_is_told_with_the_measurements_it_has() -> None:
    machine = load_preset("h100-sxm")
    ratios = [item.measured_s / item.predicted_s for item in shipped_comparisons() if _is_itl(item, machine)]
    said = measured_line(machine)
    assert f"ITL {min(ratios):#.2g} to {max(ratios):#.2g} times ({len(ratios)} points)" in said
    assert measured_line(replace(machine, title="ours")) == said
    assert measured_line(load_preset("sip128")) == "No published measurement of this machine."


def test_a_machine_with_other_constants_was_not_measured() -> None:
    changed = replace(load_preset("h100-sxm"), hbm_bytes_per_s=1e12)
    assert measured_line(changed).startswith("No published measurement of this machine: NVIDIA H100")


def _is_itl(item: Comparison, machine: Machine) -> bool:
    return item.measurement.metric == "itl" and item.measurement.machine == machine
