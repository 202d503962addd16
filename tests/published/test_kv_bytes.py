"""Cache bytes a token against the published table, exactly; hybrid models must be refused."""

import csv
import json
from pathlib import Path

import pytest

from planner_core.errors import UnsupportedModel
from planner_core.hf_config import parse_config
from planner_core.reports import model_document
from tests.contracts.cli_runs import run


def test_cache_bytes_a_token(shared_data: Path) -> None:
    with (shared_data / "expected_kv.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 13
    for row in rows:
        name = row["config_name"]
        path = shared_data / "hf_configs" / f"{name}.json"
        config = json.loads(path.read_text(encoding="utf-8"))
        if row["recurrent_state"]:
            count = row["recurrent_state"].split()[0]
            with pytest.raises(UnsupportedModel, match=rf"^\w+: {count} of \d+ layers are "):
                parse_config(config)
            continue
        model = parse_config(config)
        expected = {
            "full": int(row["full_bytes_per_token_bf16"]),
            "windowed": int(row["windowed_bytes_per_token_bf16_below_window"]),
        }
        assert model_document(model)["kv_bytes_per_token"] == expected, name
        windowed = [group for group in model.attention if group.window_tokens is not None]
        assert sum(group.n_layers for group in windowed) == int(row["windowed_layers"])
        if row["window"]:
            assert {group.window_tokens for group in windowed} == {int(row["window"])}


def test_a_cache_of_its_own_width_is_told_beside_bf16(
    shared_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(shared_data / "hf_configs" / "nvidia__Gemma-4-31B-IT-NVFP4.json")
    document = run(capsys, "parse", path, "--json").document()
    found = document["kv_bytes_per_token"]
    assert (found["full"] + found["windowed"]) / 1024 == 880  # an engine's log, bf16
    assert document["kv_bytes_per_token_as_stored"] == {"full": 40960, "windowed": 409600}
    assert document["kv_dtype_bytes"] == 1.0
    lines = run(capsys, "parse", path).out
    assert (
        "KV cache 81,920 bytes a token in layers without a window, 819,200 in layers with one (in bf16)"
        in lines
    )
    assert "40,960 bytes a token in layers without a window, 409,600 in layers with one (as stored" in lines
