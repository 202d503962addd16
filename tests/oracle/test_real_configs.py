"""A few real configs at full size; `scripts/oracle_all.py` runs them all."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner_core.hf_config import parse_config
from planner_core.oracle import run_oracle
from planner_core.strict_json import read_json_file

pytestmark = pytest.mark.oracle
pytest.importorskip("torch", reason="the oracle needs torch")

NAMES = [
    "meta-llama__Meta-Llama-3.1-405B",
    "openai__gpt-oss-120b",
    "moonshotai__Kimi-K2-Instruct_rtp",
    "zai-org__GLM-4.5V_onnxdiag",
    "maxtext__gemma-4-E2B",
    "mlc__Phi-4-mini-instruct",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_real_model_agrees_at_full_size(shared_data: Path, name: str) -> None:
    pytest.importorskip("transformers", reason="the models' own code is in transformers")
    config = read_json_file(shared_data / "hf_configs" / f"{name}.json")
    assert isinstance(config, dict)
    report = run_oracle(model=parse_config(config, name=name), config=config)
    assert report.spoke.startswith("transformers "), report.notes
    assert report.agrees, "\n".join(report.lines())
