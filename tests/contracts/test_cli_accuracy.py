"""`planner accuracy`: its document, its text, its faults."""

import csv

import pytest

from planner_core.measurements import load_measurements
from tests.contracts.cli_runs import run

KEYS = {
    "hardware", "model", "metric", "tp", "batch", "input_tokens", "output_tokens", "precision",
    "kv_dtype_bytes", "published", "unit", "source_title", "url", "read", "note", "measured_s", "predicted_s",
    "communication_s", "ratio", "compute_ratio",
}  # fmt: skip


def test_the_document_has_every_measurement_with_its_source_and_ratio(capsys):
    ran = run(capsys, "accuracy", "--json")
    document = ran.document()
    assert (ran.code, ran.err) == (0, "")
    assert set(document) == {"measurements", "summary"}
    assert len(document["measurements"]) == len(load_measurements())
    for row in document["measurements"]:
        assert set(row) == KEYS
        assert row["ratio"] == pytest.approx(row["predicted_s"] / row["measured_s"])
    assert sum(group["count"] for group in document["summary"]) == len(load_measurements())


def test_one_machine_alone(capsys):
    document = run(capsys, "accuracy", "--machine", "mi300x", "--json").document()
    assert {row["hardware"] for row in document["measurements"]} == {"mi300x"}
    assert [group["machine"] for group in document["summary"]] == ["mi300x"]


def test_the_text_has_the_ratio_and_the_address_of_each_source(capsys):
    text = run(capsys, "accuracy", "--machine", "h100-sxm").out
    (line,) = [line for line in text.splitlines() if "batch 1, 5,000 in" in line and "between" in line]
    assert line.split()[-7:] == ["18.6", "ms", "10.9", "ms", "0.584", "0.565", "[1]"]
    for url in {m.url for m in load_measurements() if m.machine.name == "h100-sxm"}:
        assert f": {url}\n" in text


def test_an_unknown_machine_is_refused_by_its_option(capsys):
    faults = run(capsys, "accuracy", "--machine", "h300", "--json").faults()
    assert [(fault["where"], fault["given"]) for fault in faults] == [("--machine", "'h300'")]
    assert "h100-sxm, h200" in faults[0]["allowed"]


def test_the_csv_has_the_documents_rows(capsys, tmp_path):
    path = tmp_path / "accuracy.csv"
    ran = run(capsys, "accuracy", "--csv", str(path))
    assert f"wrote {path}" in ran.out
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(load_measurements())
    assert set(rows[0]) == KEYS
