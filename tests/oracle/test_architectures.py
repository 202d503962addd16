"""The planner's FLOP and weights are those of each architecture's own code, on small shapes."""

from __future__ import annotations

import pytest

from planner_core.hf_config import parse_config
from planner_core.oracle import run_oracle
from tests.oracle.small_configs import SMALL_CONFIGS

pytestmark = pytest.mark.oracle
pytest.importorskip("torch", reason="the oracle needs torch")

# Their classes find the experts of a batch with torch.nonzero, which has no result on the meta device.
NOT_ON_META = {"dbrx"}


@pytest.mark.parametrize("name", sorted(SMALL_CONFIGS))
def test_the_planner_agrees_with_the_models_own_code(name: str) -> None:
    pytest.importorskip("transformers", reason="the models' own code is in transformers")
    config = SMALL_CONFIGS[name]
    # 48 tokens: beyond every window (16) and chunk (20) here, and no multiple of the chunk.
    report = run_oracle(model=parse_config(config), config=config, context_tokens=48, batch=3)
    assert report.agrees, "\n".join(report.lines())
    expected = "shapes (torch " if name in NOT_ON_META else "transformers "
    assert report.spoke.startswith(expected), report.notes


@pytest.mark.parametrize("name", sorted(SMALL_CONFIGS))
def test_the_planner_agrees_with_matmuls_of_its_own_shapes(name: str) -> None:
    model = parse_config(SMALL_CONFIGS[name])
    report = run_oracle(model=model, config=None, context_tokens=48, batch=3)
    assert report.spoke.startswith("shapes (torch ")
    assert report.agrees, "\n".join(report.lines())


def test_a_wrong_head_count_does_not_agree() -> None:
    pytest.importorskip("transformers", reason="the models' own code is in transformers")
    config = SMALL_CONFIGS["llama"]
    model = parse_config(config | {"num_key_value_heads": 3})
    report = run_oracle(model=model, config=config, context_tokens=48, batch=3)
    assert not report.agrees
    for phase in report.phases:
        assert not phase.segment("attention/global").agrees
        assert not phase.segment("total").agrees
        assert phase.segment("ffn/dense").agrees


@pytest.mark.parametrize("wrong", [15, 17, None])
def test_a_wrong_window_does_not_agree(wrong: int | None) -> None:
    pytest.importorskip("transformers", reason="the models' own code is in transformers")
    config = SMALL_CONFIGS["mistral windowed"]
    model = parse_config(config | {"sliding_window": wrong})
    report = run_oracle(model=model, config=config, context_tokens=48, batch=3, phases=("decode",))
    assert not report.agrees
