"""Every real config beside the repository is described or refused by name."""

import csv
import json
from pathlib import Path

import pytest

from planner_core.errors import UnsupportedModel
from planner_core.hf_config import parse_config
from planner_core.reports import model_document
from planner_core.strict_json import MAX_CONFIG_BYTES, read_json_file, require_object

N_CONFIGS = 104

# name: (words of the message, field)
REFUSED = {
    "LiquidAI__LFM2.5-VL-1.6B": ("10 of 16 layers are convolution", "text_config.layer_types"),
    "MiniMaxAI__MiniMax-M1-40k": ("70 of 80 layers are linear (lightning) attention", "attn_type_list"),
    "Qwen__Qwen3-Next-80B-A3B-Instruct-FP8": (
        "36 of 48 layers are linear attention",
        "full_attention_interval",
    ),
    "Qwen__Qwen3.5-397B-A17B": ("45 of 60 layers are linear attention", "text_config.layer_types"),
    "Qwen__Qwen3.5-4B": ("24 of 32 layers are linear attention", "text_config.layer_types"),
    "ai21labs__AI21-Jamba-1.5-Mini": ("28 of 32 layers are state space", "attn_layer_period"),
    "deepseek-ai__DeepSeek-V4-Pro": ("61 of 61 layers are indexer-sparse attention", "index_n_heads"),
    "ibm-granite__granite-4.0-h-small": ("36 of 40 layers are state space", "layer_types"),
    "maxtext__Qwen3.5-397B-A17B": ("45 of 60 layers are linear attention", "text_config.layer_types"),
    "meta-llama__Llama-3.2-11B-Vision_mllama": (
        "8 of 32 layers are cross-attention",
        "text_config.cross_attention_layers",
    ),
    "meta-llama__Llama-3.2-90B-Vision-Instruct": (
        "20 of 100 layers are cross-attention",
        "text_config.cross_attention_layers",
    ),
    "mlc__RWKV-5-3B": ("32 of 32 layers are recurrent", "model_type"),
    "nvidia__DeepSeek-V4-Flash-NVFP4": ("41 of 43 layers are indexer-sparse attention", "compress_ratios"),
    "nvidia__MiniMax-M3-NVFP4": (
        "57 of 60 layers are indexer-sparse attention",
        "text_config.sparse_attention_config",
    ),
    "nvidia__NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4": (
        "23 of 52 layers are state space",
        "hybrid_override_pattern",
    ),
    "nvidia__NVIDIA-Nemotron-3-Super-120B-A12B-FP8": (
        "40 of 88 layers are state space",
        "hybrid_override_pattern",
    ),
    "nvidia__Qwen3.5-397B-A17B-NVFP4": ("45 of 60 layers are linear attention", "text_config.layer_types"),
    "sgl-project__DeepSeek-V4-Flash-FP8": ("41 of 43 layers are indexer-sparse attention", "index_n_heads"),
    "zai-org__GLM-5-FP8": ("78 of 78 layers are indexer-sparse attention", "index_n_heads"),
    "zai-org__GLM-5.1": ("78 of 78 layers are indexer-sparse attention", "index_n_heads"),
    "zai-org__GLM-5.2-FP8": ("78 of 78 layers are indexer-sparse attention", "index_n_heads"),
    "zai-org__GLM-5.2": ("78 of 78 layers are indexer-sparse attention", "index_n_heads"),
}


@pytest.fixture(scope="module")
def configs(shared_data: Path) -> dict[str, dict[str, object]]:
    folder = shared_data / "hf_configs"
    return {
        path.stem: require_object(
            read_json_file(path, allow_non_finite=True, max_bytes=MAX_CONFIG_BYTES), where=path.stem
        )
        for path in sorted(folder.glob("*.json"))
    }


def test_each_config_is_described_or_refused_by_name(configs: dict[str, dict[str, object]]) -> None:
    assert len(configs) == N_CONFIGS
    refused: dict[str, tuple[str, str]] = {}
    for name, config in configs.items():
        try:
            document = model_document(parse_config(config, name=name))
        except UnsupportedModel as error:
            refused[name] = (error.message, error.field)
            continue
        json.dumps(document, allow_nan=False)
        attention = document["attention"]
        assert isinstance(attention, list)
        assert sum(group["n_layers"] for group in attention) == document["n_layers"]
    assert refused.keys() == REFUSED.keys()
    for name, (words, field) in REFUSED.items():
        assert words in refused[name][0]
        assert refused[name][1] == field


def test_windows_of_real_models(configs: dict[str, dict[str, object]]) -> None:
    def shapes(name: str) -> list[tuple[str, int, int | None]]:
        return [(g.kind, g.n_layers, g.window_tokens) for g in parse_config(configs[name]).attention]

    assert shapes("google__gemma-3-27b-it") == [("sliding", 52, 1024), ("global", 10, None)]
    assert shapes("maxtext__gemma-3-4b") == [("sliding", 29, 1024), ("global", 5, None)]
    assert shapes("mlc__gemma-2-27b") == [("sliding", 23, 4096), ("global", 23, None)]
    assert shapes("openai__gpt-oss-120b") == [("sliding", 18, 128), ("global", 18, None)]
    assert shapes("maxtext__Olmo-3-7B") == [("sliding", 24, 4096), ("global", 8, None)]
    assert shapes("meta-llama__Llama-4-Scout-17B-16E-Instruct") == [
        ("chunked", 36, 8192),
        ("global", 12, None),
    ]
    assert shapes("mlc__Qwen2-7B") == [("global", 28, None)]
    assert shapes("microsoft__Phi-mini-MoE-instruct") == [("sliding", 32, 2047)]


def test_moe_of_real_models(configs: dict[str, dict[str, object]]) -> None:
    def shapes(name: str) -> list[tuple[str, int, int, int, int, int]]:
        return [
            (
                g.kind,
                g.n_layers,
                g.intermediate_size,
                g.n_experts,
                g.n_experts_per_token,
                g.shared_intermediate_size,
            )
            for g in parse_config(configs[name]).ffn
        ]

    assert shapes("deepseek-ai__DeepSeek-V3") == [
        ("dense", 3, 18432, 0, 0, 0),
        ("moe", 58, 2048, 256, 8, 2048),
    ]
    assert shapes("meta-llama__Llama-4-Maverick_4layer_shrunk") == [
        ("dense", 2, 16384, 0, 0, 0),
        ("moe", 2, 8192, 128, 1, 8192),
    ]
    assert shapes("google__gemma-4-26B-A4B") == [("moe", 30, 704, 128, 8, 2112)]
    assert shapes("stepfun-ai__Step-3.7-Flash-FP8") == [
        ("dense", 3, 11264, 0, 0, 0),
        ("moe", 42, 1280, 288, 8, 1280),
    ]
    assert shapes("zai-org__GLM-4.5V_onnxdiag")[1] == ("moe", 45, 1408, 128, 8, 1408)


def test_contradictions_are_told(configs: dict[str, dict[str, object]]) -> None:
    model = parse_config(configs["altered__Qwen3-235B-A22B-FP8_simai"])
    assert any("the class in architectures is used" in note for note in model.notes)
    assert any("use_sliding_window is false: no layer has a window" in note for note in model.notes)
    assert model.ffn[0].shared_intermediate_size == 0
    multimodal = parse_config(configs["google__gemma-3-27b-it"])
    assert any("vision tower" in note and "not counted" in note for note in multimodal.notes)
    assert "text_config.rope_theta" in multimodal.ignored or "text_config.rope_scaling" in multimodal.ignored


def test_bytes_of_a_quantized_checkpoint(configs: dict[str, dict[str, object]]) -> None:
    """gpt-oss model card, table 1: a checkpoint of 60.8 GiB."""
    assert f"{parse_config(configs['openai__gpt-oss-120b']).weight_bytes / 2**30:.1f}" == "60.8"


def test_widths_by_kind(configs: dict[str, dict[str, object]]) -> None:
    gpt_oss = parse_config(configs["openai__gpt-oss-120b"]).widths
    assert (gpt_oss.experts, gpt_oss.attention, gpt_oss.router) == (0.5 + 1 / 32, 2.0, 2.0)
    kimi = parse_config(configs["moonshotai__Kimi-K2.5"]).widths
    assert (kimi.experts, kimi.attention, kimi.ffn, kimi.shared_experts) == (0.5 + 2 / 32, 2.0, 2.0, 2.0)
    gemma = parse_config(configs["nvidia__Gemma-4-26B-A4B-NVFP4"])
    assert gemma.widths.experts == pytest.approx(0.5 + 1 / 16, rel=1e-5)
    assert (gemma.widths.attention, gemma.widths.shared_experts, gemma.widths.router) == (2.0, 2.0, 2.0)
    assert gemma.kv_dtype_bytes == 1.0
    deepseek = parse_config(configs["deepseek-ai__DeepSeek-V3"]).widths
    assert deepseek.experts == 1 + 4 / (128 * 128)
    assert (deepseek.router, deepseek.lm_head, deepseek.embedding) == (2.0, 2.0, 2.0)
    # kv_a_proj has 576 rows: 4.5 blocks, so 5 rows of scales.
    assert deepseek.attention > deepseek.experts
    qwen = parse_config(configs["Qwen__Qwen3-30B-A3B-FP8"]).widths
    assert (qwen.router, qwen.experts) == (2.0, 1 + 4 / (128 * 128))


def test_index_lists_the_same_configs(configs: dict[str, dict[str, object]], shared_data: Path) -> None:
    with (shared_data / "hf_configs" / "index.csv").open(encoding="utf-8", newline="") as file:
        assert {row["name"] for row in csv.DictReader(file)} == configs.keys()
