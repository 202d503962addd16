"""Granite 4.1 8B, decode, context 4096, batch 8: the published figures, to their last digit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner_core.hf_config import parse_config
from planner_core.oracle import run_oracle

pytestmark = pytest.mark.oracle
pytest.importorskip("torch", reason="the oracle needs torch")

# Segment: FLOP, MB of weights with one decimal.
PUBLISHED = {
    "attention/global": (48_318_382_080, 3355.4),
    "ffn/dense": (100_663_296_000, 12582.9),
    "lm_head": (6_576_668_672, 822.1),
    "total": (155_558_346_752, 16760.4),
}


@pytest.mark.parametrize("own_code", [True, False])
def test_granite_decode(repo_root: Path, own_code: bool) -> None:
    if own_code:
        pytest.importorskip("transformers", reason="the model's own code is in transformers")
    config = json.loads((repo_root / "presets" / "models" / "granite-4.1-8b.json").read_text())
    report = run_oracle(
        model=parse_config(config),
        config=config if own_code else None,
        context_tokens=4096,
        batch=8,
    )
    assert report.spoke.startswith("transformers " if own_code else "shapes ")
    assert report.agrees
    decode, prefill = report.phases
    for row in decode.segments:
        assert (row.oracle_flops, round(row.oracle_weight_bytes / 1e6, 1)) == PUBLISHED[row.name]
        assert (row.planner_flops, round(row.planner_weight_bytes / 1e6, 1)) == PUBLISHED[row.name]
    assert {row.name for row in decode.segments} == set(PUBLISHED)
    assert all(not segment.explanations for segment in decode.segments)

    # Prefill differs by the masked half of the score rectangle, and says so.
    attention = prefill.segment("attention/global")
    masked_pairs = 4096 * 4095 // 2
    masked_flops = 2 * 8 * masked_pairs * 32 * (128 + 128) * 40
    assert attention.oracle_flops - attention.planner_flops == masked_flops
    assert [explanation.flops for explanation in attention.explanations] == [masked_flops]
    assert f"{masked_flops:+,} FLOP" in attention.explained_by
    assert "causal half" in attention.explained_by


def test_deepseek_v3_decodes_naively_and_the_difference_is_explained(repo_root: Path) -> None:
    pytest.importorskip("transformers", reason="the model's own code is in transformers")
    config = json.loads((repo_root / "presets" / "models" / "deepseek-v3.json").read_text())
    report = run_oracle(
        model=parse_config(config), config=config, context_tokens=4096, batch=8, phases=("decode",)
    )
    assert report.agrees, "\n".join(report.lines())
    latent = report.phases[0].segment("attention/mla")
    expanding, scores = latent.explanations
    assert expanding.flops == 2 * 8 * 4095 * 512 * 128 * (128 + 128) * 61
    assert scores.flops == 2 * 8 * 4096 * 128 * ((192 + 128) - (576 + 512)) * 61
    experts = report.phases[0].segment("ffn/moe")
    assert experts.oracle_flops == experts.planner_flops
    assert "the oracle lists all 256 experts" in experts.explained_by
