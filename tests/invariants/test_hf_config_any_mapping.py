"""Whatever the JSON object: a description whose parts add up, or one of the two refusals."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from planner_core.errors import InvalidSpec, UnsupportedModel
from planner_core.hf_config import parse_config
from planner_core.preset_files import presets_dir
from planner_core.reports import model_document

CONFIGS = [
    json.loads(path.read_text(encoding="utf-8"))
    for path in sorted((presets_dir() / "models").glob("*.json"))
    if path.name != "index.json"
]
KEYS = sorted(
    {key for config in CONFIGS for key in config}
    | {key for config in CONFIGS for part in config.values() if isinstance(part, dict) for key in part}
    | {
        "layer_types",
        "block_configs",
        "no_rope_layers",
        "mlp_layer_types",
        "moe_layer_freq",
        "attention_types",
    }
    | {"ffn_config", "attn_config", "llm_config", "thinker_config", "expansion_ratio", "attn_layer_period"}
    | {"ignore", "config_groups", "kv_cache_scheme", "quantization", "hybrid_override_pattern", "index_topk"}
)
MODEL_TYPES = [
    "llama",
    "qwen2",
    "gemma4",
    "gemma3n",
    "falcon",
    "dbrx",
    "openelm",
    "gpt_neo",
    "minicpm3",
    "step3p7",
]
JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 70)
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(
        [*MODEL_TYPES, "full_attention", "mamba", 10**400, 1e400, "model.layers.0.mlp*", "re:(a+)+$"]
    ),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=8,
)


def check(config: dict[str, Any]) -> None:
    try:
        model = parse_config(config)
    except (InvalidSpec, UnsupportedModel):
        return
    json.dumps(model_document(model), allow_nan=False)
    assert model.n_params > 0
    assert model.weight_bytes > 0
    assert len(model.layer_pattern) == model.n_layers
    for index, groups in enumerate((model.attention, model.ffn)):
        used = [pair[index] for pair in model.layer_pattern if pair[index] is not None]
        assert [used.count(at) for at in range(len(groups))] == [group.n_layers for group in groups]


@given(st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=6), JUNK, max_size=12))
@settings(max_examples=300)
def test_any_object(config: dict[str, Any]) -> None:
    check(config)


@given(
    st.sampled_from(CONFIGS),
    st.dictionaries(st.sampled_from(KEYS), JUNK, max_size=3),
    st.sampled_from([None, *MODEL_TYPES]),
)
@settings(max_examples=300)
def test_a_real_config_changed(
    config: dict[str, Any], change: dict[str, Any], model_type: str | None
) -> None:
    changed = config | change
    if model_type is not None:
        changed |= {"model_type": model_type, "architectures": None}
    check(changed)
    if isinstance(config.get("text_config"), dict):
        check(config | {"text_config": config["text_config"] | change})
    if isinstance(config.get("quantization_config"), dict):
        check(config | {"quantization_config": config["quantization_config"] | change})


@given(st.integers(1, 40), st.integers(1, 8), st.integers(1, 8), st.integers(1, 128), st.booleans())
def test_the_count_of_a_llama_is_its_formula(
    n_layers: int, groups: int, kv: int, dim: int, tied: bool
) -> None:
    hidden, width, vocab, heads = 64, 112, 96, groups * kv
    config = {
        "model_type": "llama",
        "hidden_size": hidden,
        "intermediate_size": width,
        "num_hidden_layers": n_layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "head_dim": dim,
        "vocab_size": vocab,
        "tie_word_embeddings": tied,
        "torch_dtype": "bfloat16",
    }
    layer = hidden * dim * (2 * heads + 2 * kv) + 3 * hidden * width + 2 * hidden
    model = parse_config(config)
    assert model.n_params == n_layers * layer + (1 if tied else 2) * vocab * hidden + hidden
    assert model.weight_bytes == 2 * model.n_params
