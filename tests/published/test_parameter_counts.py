"""Parameter counts against model cards: exact ones to the unit, rounded ones within their rounding."""

import csv
import json
from pathlib import Path

import pytest

from planner_core.errors import UnsupportedModel
from planner_core.hf_config import parse_config
from planner_core.model_arch import ModelArch
from planner_core.preset_files import presets_dir

# Card figures that the language model alone meets: (low, high) is the card's figure and its rounding.
WITHIN_CARD = {
    "MiniMaxAI__MiniMax-M2.5": (228.5e9, 230.5e9),
    "deepseek-ai__DeepSeek-R1": (671_026_419_200, 671_026_419_200),
    "facebook__opt-66b": (65.65e9, 66.5e9),
    "mistralai__Devstral-2-123B-Instruct": (124.95e9, 125.05e9),
    "mistralai__Mistral-Small-3.1-24B-Instruct-2503": (23_572_403_200, 23_572_403_200),
    "mlc__OLMo-2-13B": (13_716_198_400, 13_716_198_400),
    "mlc__gpt-j-6b": (6_050_882_784, 6_050_882_784),
    "mlc__gpt2-medium": (354_823_168, 354_823_168),
    "moonshotai__Kimi-K2.5": (0.95e12, 1.05e12),
    "mosaicml__mpt-7b": (6.645e9, 6.655e9),
    "zai-org__GLM-4.5V_onnxdiag": (105.5e9, 107.5e9),
}
# Card figures that count more than the language model, or another config: card less ours, and why.
DIFFERS = {
    # 303,507,456 of CLIP ViT-L/14-336 and 20,979,712 of the projector.
    "mlc__llava-1.5-7b": (7_063_427_072, 303_507_456 + 20_979_712, "vision tower and projector"),
    "google__gemma-3-27b-it": (27.4e9, 0.39e9, "vision tower, about 0.42e9, before rounding"),
    "google__gemma-3n-E4B_defaults": (8e9, 1.16e9, "vision and audio towers, about 1e9, before rounding"),
    "meta-llama__Llama-4-Scout-17B-16E-Instruct": (109e9, 1.23e9, "vision tower, about 0.9e9"),
    # The file leaves out tie_word_embeddings; the class's default, untied, adds one table of 49152 * 4096.
    "ibm-granite__granite-3.1-8b-base": (8.17e9, -49152 * 4096, "the file does not say that it ties"),
}


def _index(shared_data: Path) -> list[dict[str, str]]:
    with (shared_data / "hf_configs" / "index.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _model(shared_data: Path, name: str) -> ModelArch:
    path = shared_data / "hf_configs" / f"{name}.json"
    return parse_config(json.loads(path.read_text(encoding="utf-8")))


def test_exact_counts_to_the_unit(shared_data: Path) -> None:
    rows = [row for row in _index(shared_data) if row["published_kind"] == "exact"]
    assert len(rows) > 20
    for row in rows:
        assert _model(shared_data, row["name"]).n_params == int(row["published_params"]), row["name"]


def test_card_counts_within_their_rounding(shared_data: Path) -> None:
    seen = set()
    for row in _index(shared_data):
        name = row["name"]
        if row["published_kind"] != "card":
            continue
        try:
            n_params = _model(shared_data, name).n_params
        except UnsupportedModel:
            continue
        seen.add(name)
        if name in WITHIN_CARD:
            low, high = WITHIN_CARD[name]
            assert low <= n_params <= high, name
        else:
            card, difference, _why = DIFFERS[name]
            assert card - n_params == pytest.approx(
                difference, abs=0 if name.startswith("mlc") else 0.01e9
            ), name
    assert seen == WITHIN_CARD.keys() | DIFFERS.keys()


def test_presets_match_their_published_counts() -> None:
    folder = presets_dir() / "models"
    index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    assert index.keys() == {path.name for path in folder.glob("*.json")} - {"index.json"}
    for file, entry in index.items():
        model = parse_config(json.loads((folder / file).read_text(encoding="utf-8")))
        if entry["published_params"] is not None:
            assert model.n_params == entry["published_params"], file
            assert entry["source"]


def test_presets_agree_with_the_real_configs(shared_data: Path) -> None:
    pairs = {
        "llama-3.1-8b": "meta-llama__Meta-Llama-3.1-8B",
        "llama-3.1-70b": "meta-llama__Meta-Llama-3.1-70B",
        "llama-3.1-405b": "meta-llama__Meta-Llama-3.1-405B",
        "mistral-nemo-12b": "mistralai__Mistral-Nemo-Instruct-2407",
        "qwen3-8b": "Qwen__Qwen3-8B",
        "qwen3-32b": "Qwen__Qwen3-32B",
        "qwen3-30b-a3b": "Qwen__Qwen3-30B-A3B",
        "qwen3-235b-a22b": "nvidia__Qwen3-235B-A22B-NVFP4",
        "deepseek-v3": "deepseek-ai__DeepSeek-V3",
        "gpt-oss-120b": "openai__gpt-oss-120b",
        "mixtral-8x7b": "mistralai__Mixtral-8x7B-v0.1",
        "gemma-3-27b": "google__gemma-3-27b-it",
        "llama-4-scout": "meta-llama__Llama-4-Scout-17B-16E-Instruct",
    }
    for preset, name in pairs.items():
        text = (presets_dir() / "models" / f"{preset}.json").read_text(encoding="utf-8")
        ours, real = parse_config(json.loads(text)), _model(shared_data, name)
        assert (ours.attention, ours.ffn, ours.layer_pattern) == (
            real.attention,
            real.ffn,
            real.layer_pattern,
        )
        assert (ours.n_params, ours.weight_bytes, ours.max_position_tokens) == (
            real.n_params,
            real.weight_bytes,
            real.max_position_tokens,
        )
