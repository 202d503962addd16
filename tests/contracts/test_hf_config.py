"""How a config.json is read: faults, refusals, defaults, contradictions, quantization."""

import time
from typing import Any

import pytest

from planner_core.errors import InvalidSpec, UnsupportedModel, shorten
from planner_core.hf_config import parse_config
from planner_core.reports import model_document

LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
    "attention_bias": False,
    "mlp_bias": False,
    "torch_dtype": "bfloat16",
}


def faults(config: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidSpec) as caught:
        parse_config(config)
    return {fault.where: fault.line() for fault in caught.value.faults}


@pytest.mark.parametrize(
    "value",
    [-8, 0, True, "8", 1e400, float("nan"), 8.0, 7.5, [8], {"n": 8}, 2**53, 10**5000],
    ids=lambda value: shorten(value, limit=20),
)
@pytest.mark.parametrize(
    "field",
    [
        "hidden_size",
        "intermediate_size",
        "num_hidden_layers",
        "num_attention_heads",
        "num_key_value_heads",
        "vocab_size",
        "max_position_embeddings",
        "head_dim",
    ],
)
def test_a_bad_size_is_one_clear_fault(field: str, value: object) -> None:
    found = faults(LLAMA | {field: value})
    assert "allowed: a whole number from 1 to " in found[field]
    assert "fix: " in found[field]


def test_all_faults_at_once() -> None:
    found = faults(
        LLAMA | {"hidden_size": -1, "vocab_size": "many", "tie_word_embeddings": 1, "torch_dtype": 5}
    )
    assert found.keys() >= {"hidden_size", "vocab_size", "tie_word_embeddings"}


def test_heads_not_divisible_by_kv_heads() -> None:
    assert (
        "a divisor of the number of query heads, 32"
        in faults(LLAMA | {"num_key_value_heads": 5})["num_key_value_heads"]
    )


def test_a_faulty_size_brings_no_second_fault_about_what_divides_it() -> None:
    assert faults(LLAMA | {"num_attention_heads": -8}).keys() == {"num_attention_heads"}
    without_head_dim = {key: value for key, value in LLAMA.items() if key != "head_dim"}
    assert faults(without_head_dim | {"hidden_size": "wide"}).keys() == {"hidden_size"}


def test_hidden_size_not_divisible_by_heads() -> None:
    config = LLAMA | {"num_attention_heads": 30, "num_key_value_heads": 10}
    assert "head_dim" in faults(config)["num_attention_heads"]
    assert parse_config(config | {"head_dim": 128}).attention[0].head_dim_k == 128


def test_null_kv_heads_and_head_dim_are_derived() -> None:
    model = parse_config(LLAMA | {"num_key_value_heads": None, "head_dim": None})
    assert (model.attention[0].n_kv_heads, model.attention[0].head_dim_k) == (32, 128)
    assert any("num_key_value_heads = 32" in line for line in model.assumed)


def test_null_hidden_size_is_a_fault() -> None:
    assert "hidden_size" in faults(LLAMA | {"hidden_size": None})


def test_an_empty_object_names_what_is_missing() -> None:
    assert faults({}).keys() >= {"hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size"}


@pytest.mark.parametrize("value", [["llama"], {"a": 1}, 3, True])
def test_model_type_of_another_type(value: object) -> None:
    assert "model_type" in faults(LLAMA | {"model_type": value})


def test_architectures_of_another_type() -> None:
    assert "architectures" in faults(LLAMA | {"architectures": [["LlamaForCausalLM"]]})


def test_million_layers_and_blocks_are_refused_quickly() -> None:
    started = time.perf_counter()
    assert "num_hidden_layers" in faults(LLAMA | {"num_hidden_layers": 10**6})
    blocks = [{"attention": {"n_heads_in_group": 4}, "ffn": {"ffn_mult": 3.5}}] * 10**6
    assert "block_configs" in faults(LLAMA | {"block_configs": blocks})
    assert "layer_types" in faults(LLAMA | {"layer_types": ["full_attention"] * 10**6})
    assert time.perf_counter() - started < 2.0


def test_infinity_in_an_ignored_key_is_accepted() -> None:
    model = parse_config(
        LLAMA | {"rope_scaling": {"factor": float("inf")}, "time_step_limit": [0.0, float("inf")]}
    )
    assert {"rope_scaling", "time_step_limit"} <= set(model.ignored)


@pytest.mark.parametrize("window", [-1, 0, None])
def test_no_window(window: object) -> None:
    model = parse_config(LLAMA | {"model_type": "mistral", "architectures": None, "sliding_window": window})
    assert [group.kind for group in model.attention] == ["global"]


def test_the_class_default_of_a_window_is_applied_and_told() -> None:
    model = parse_config(LLAMA | {"model_type": "mistral", "architectures": None})
    assert model.attention[0].window_tokens == 4096
    assert any("sliding_window = 4096" in line for line in model.assumed)


@pytest.mark.parametrize("window", [True, "4096", 1e400, -2, 0.5])
def test_a_bad_window(window: object) -> None:
    config = LLAMA | {"model_type": "mistral", "architectures": None, "sliding_window": window}
    assert "sliding_window" in faults(config)


def test_qwen_windows_start_at_max_window_layers() -> None:
    config = LLAMA | {
        "model_type": "qwen2",
        "architectures": ["Qwen2ForCausalLM"],
        "sliding_window": 1000,
        "use_sliding_window": True,
        "max_window_layers": 20,
    }
    groups = parse_config(config).attention
    assert [(g.kind, g.n_layers, g.window_tokens) for g in groups] == [
        ("global", 20, None),
        ("sliding", 12, 1000),
    ]
    off = parse_config(config | {"use_sliding_window": False})
    assert [g.kind for g in off.attention] == ["global"]
    assert any("no layer has a window" in note for note in off.notes)


def test_same_shapes_merge_and_the_pattern_keeps_their_order() -> None:
    kinds = ["full_attention", "sliding_attention", "full_attention", "sliding_attention"]
    config = LLAMA | {
        "num_hidden_layers": 4,
        "layer_types": kinds,
        "model_type": "gemma2",
        "architectures": None,
    }
    model = parse_config(config)
    assert [(g.kind, g.n_layers) for g in model.attention] == [("global", 2), ("sliding", 2)]
    assert model.layer_pattern == ((0, 0), (1, 0), (0, 0), (1, 0))


def test_tied_embeddings_count_once() -> None:
    untied, tied = parse_config(LLAMA), parse_config(LLAMA | {"tie_word_embeddings": True})
    assert untied.n_params - tied.n_params == 128256 * 4096
    assert untied.weight_bytes - tied.weight_bytes == 2 * 128256 * 4096


def test_float32_is_four_bytes_and_noted() -> None:
    model = parse_config(LLAMA | {"torch_dtype": "float32"})
    assert model.weight_bytes == 4 * model.n_params
    assert any("4 bytes a stored weight" in note for note in model.notes)


def test_disagreeing_names_are_noted() -> None:
    model = parse_config(LLAMA | {"n_layer": 16})
    assert model.n_layers == 32
    assert any("n_layer = 16 disagree" in note for note in model.notes)


def test_class_and_model_type_disagree() -> None:
    model = parse_config(LLAMA | {"architectures": ["Qwen3ForCausalLM"]})
    assert any("the class in architectures is used" in note for note in model.notes)
    assert model.n_params == parse_config(LLAMA).n_params + 32 * 2 * 128


def test_an_unknown_plain_decoder_is_read_and_told() -> None:
    model = parse_config(LLAMA | {"model_type": "newmodel", "architectures": ["NewForCausalLM"]})
    assert model.n_params == 8_030_261_248
    assert any("'newmodel' is not known" in line for line in model.assumed)


LAYERS = ["attention"] * 8 + ["hyena"] * 24


@pytest.mark.parametrize(
    ("extra", "words", "field"),
    [
        ({"mixer_pattern": LAYERS}, "24 of 32 layers are convolution", "mixer_pattern"),
        (
            {"token_mixer_types": ["attn", "wavelet"]},
            "16 of 32 layers are of the kind 'wavelet'",
            "token_mixer_types",
        ),
        (
            {"blocks": [{"type": "mamba"}] * 30 + [{"type": "attention"}] * 2},
            "30 of 32 layers are state",
            "blocks",
        ),
        (
            {"layer_map": {"attention": [0, 1], "rwkv": list(range(2, 32))}},
            "30 of 32 layers are recur",
            "layer_map",
        ),
        (
            {"layer_types": ["full_attention"] * 31 + ["vortex"]},
            "1 of 32 layers are of the kind 'vort",
            "layer_types",
        ),
        (
            {"attention_layers": [3, 7, 11]},
            "29 of 32 layers are of a kind other than att",
            "attention_layers",
        ),
        ({"hybrid_attn_kinds": [1, 0] * 16}, "16 of 32 layers are of an unknown kind", "hybrid_attn_kinds"),
        ({"mamba_d_state": 16}, "32 of 32 layers are state space", "mamba_d_state"),
        ({"index_topk": 2048}, "32 of 32 layers are indexer-sparse", "index_topk"),
        ({"is_encoder_decoder": True}, "32 of 32 layers are cross-attention", "is_encoder_decoder"),
        ({"cross_attention_layers": [3, 8]}, "2 of 32 layers are cross-attention", "cross_attention_layers"),
    ],
)
@pytest.mark.parametrize("model_type", ["llama", "newmodel"])
def test_layers_that_are_no_attention_are_refused(
    extra: dict[str, Any], words: str, field: str, model_type: str
) -> None:
    with pytest.raises(UnsupportedModel) as caught:
        parse_config(LLAMA | {"architectures": None, "model_type": model_type} | extra)
    assert words in caught.value.message
    assert caught.value.field == field


@pytest.mark.parametrize(
    "extra",
    [
        {
            "is_encoder_decoder": False,
            "add_cross_attention": False,
            "index_topk": 0,
            "cross_attention_layers": [],
        },
        {"mixer_pattern": ["attention"] * 32},
        {"mlp_layer_types": ["dense"] * 32},
        {"activation_per_layer": ["gelu", "relu"] * 16},
        {"layer_norm_types": ["rms", "none"] * 16, "attention_type": "m" * 32},
    ],
)
def test_fields_that_are_off_or_all_attention_do_not_refuse(extra: dict[str, Any]) -> None:
    assert parse_config(LLAMA | extra).n_params == 8_030_261_248


def test_an_attention_only_granite_hybrid_is_described() -> None:
    config = LLAMA | {
        "model_type": "granitemoehybrid",
        "architectures": ["GraniteMoeHybridForCausalLM"],
        "layer_types": ["attention"] * 32,
        "num_local_experts": 0,
        "num_experts_per_tok": 0,
        "shared_intermediate_size": 14336,
        "mamba_d_state": 128,
    }
    assert parse_config(config).n_params == 8_030_261_248
    with pytest.raises(UnsupportedModel, match="32 of 32 layers are state space"):
        parse_config({key: value for key, value in config.items() if key != "layer_types"})


def test_block_configs_give_each_layer_its_shape() -> None:
    blocks = [
        {"attention": {"n_heads_in_group": 4}, "ffn": {"ffn_mult": 2.625}},
        {"attention": {"no_op": True}, "ffn": {"ffn_mult": 1.3125}},
        {"attention": {"n_heads_in_group": 8}, "ffn": {"no_op": True}},
        {"attention": {"n_heads_in_group": 4}, "ffn": {"ffn_mult": 2.625}},
    ]
    config = LLAMA | {"num_hidden_layers": 4, "block_configs": blocks, "model_type": "nemotron-nas"}
    model = parse_config(config | {"architectures": ["DeciLMForCausalLM"], "num_key_value_heads": None})
    assert [(g.n_layers, g.n_kv_heads) for g in model.attention] == [(2, 8), (1, 4)]
    assert [(g.n_layers, g.intermediate_size) for g in model.ffn] == [(2, 7168), (1, 3584)]
    assert model.layer_pattern == ((0, 0), (None, 1), (1, None), (0, 0))
    blocks[1]["attention"] = {"replace_with_linear": True}
    with pytest.raises(UnsupportedModel, match="1 blocks have a linear layer"):
        parse_config(config)


def test_openelm_lists() -> None:
    """Two layers of 12 and 16 query heads of 64; widths 0.5 and 4 times 1280, rounded to 256."""
    config = {
        "model_type": "openelm",
        "architectures": ["OpenELMForCausalLM"],
        "model_dim": 1280,
        "head_dim": 64,
        "num_transformer_layers": 2,
        "num_query_heads": [12, 16],
        "num_kv_heads": [3, 4],
        "ffn_multipliers": [0.5, 4.0],
        "ffn_with_glu": True,
        "normalize_qk_projections": True,
        "share_input_output_layers": True,
        "vocab_size": 32000,
        "max_context_length": 2048,
    }
    model = parse_config(config)
    assert [g.n_q_heads for g in model.attention] == [12, 16]
    assert [g.intermediate_size for g in model.ffn] == [768, 5120]
    matrices = 1280 * 64 * ((12 + 2 * 3 + 12) + (16 + 2 * 4 + 16)) + 3 * 1280 * (768 + 5120)
    norms = 5 * 1280 + 4 * 64
    assert model.n_params == 32000 * 1280 + matrices + norms


QUANTIZED = [
    ({"quant_method": "fp8"}, 1.0, 1e-5),
    ({"quant_method": "fp8", "weight_block_size": [128, 128]}, 1 + 4 / (128 * 128), 0),
    ({"quant_method": "gptq", "bits": 4, "group_size": 128}, 0.5 + 2.5 / 128, 0),
    ({"quant_method": "awq", "bits": 4, "group_size": 64}, 0.5 + 2.5 / 64, 0),
    ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, 0.5 + 1 / 16, 1e-5),
    ({"quant_method": "modelopt", "quant_algo": "FP8"}, 1.0, 1e-5),
    (
        {
            "quant_method": "compressed-tensors",
            "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int", "group_size": 32}}},
        },
        0.5 + 2 / 32,
        0,
    ),
    ({"quantization": {"quant_algo": "FP8", "exclude_modules": ["lm_head"]}}, 1.0, 1e-5),
]


@pytest.mark.parametrize(("quantization", "width", "tolerance"), QUANTIZED)
def test_quantized_widths(quantization: dict[str, Any], width: float, tolerance: float) -> None:
    model = parse_config(LLAMA | {"quantization_config": quantization})
    assert model.widths.attention == pytest.approx(width, rel=tolerance)
    assert model.widths.ffn == pytest.approx(width, rel=tolerance)
    assert model.widths.embedding == 2.0


@pytest.mark.parametrize(
    ("ignore", "left_alone"),
    [
        (["model.layers.0.self_attn"], 1 / 32),
        (["re:.*self_attn.*"], 1.0),
        (["*self_attn*"], 1.0),
        (["model.layers.0.self_attn*", "model.layers.1.self_attn*"], 2 / 32),
        (["re:.*layers\\.(0|1|2)\\.self_attn.*"], 3 / 32),
        (["lm_head"], 0.0),
    ],
)
def test_modules_left_alone(ignore: list[str], left_alone: float) -> None:
    quantization = {"quant_method": "modelopt", "quant_algo": "FP8", "ignore": ignore}
    widths = parse_config(LLAMA | {"quantization_config": quantization}).widths
    assert widths.attention == pytest.approx(1 + left_alone, rel=1e-5)
    assert widths.ffn == pytest.approx(1.0, rel=1e-5)
    assert widths.lm_head == pytest.approx(2.0 if ignore == ["lm_head"] else 1.0, rel=1e-5)


def test_a_hostile_pattern_is_not_run() -> None:
    started = time.perf_counter()
    entries = [
        "re:(a+)+$",
        "re:(.*)*b",
        "re:" + ".*a" * 40,
        "*" * 300,
        *(f"*x{n}*y{n}*" for n in range(3000)),
    ]
    quantization = {"quant_method": "modelopt", "quant_algo": "FP8", "ignore": entries}
    model = parse_config(LLAMA | {"quantization_config": quantization})
    assert any("could not be read" in note for note in model.notes)
    assert time.perf_counter() - started < 2.0


def test_an_unknown_quantization_is_a_fault() -> None:
    assert "quantization_config.quant_method" in faults(
        LLAMA | {"quantization_config": {"quant_method": "quip", "bits": 2}}
    )


@pytest.mark.parametrize(
    ("quantization", "n_bytes"),
    [
        ({"quant_method": "fp8"}, 2.0),
        ({"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_scheme": {"num_bits": 8}}, 1.0),
        ({"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}, 1.0),
    ],
)
def test_cache_width(quantization: dict[str, Any], n_bytes: float) -> None:
    assert parse_config(LLAMA | {"quantization_config": quantization}).kv_dtype_bytes == n_bytes


def test_more_experts_a_token_than_experts() -> None:
    config = LLAMA | {"model_type": "mixtral", "architectures": None, "num_local_experts": 8}
    assert "num_experts_per_tok" in faults(config | {"num_experts_per_tok": 9})


def test_a_model_has_the_keys_of_the_document() -> None:
    document = model_document(parse_config(LLAMA))
    assert document.keys() >= {
        "architecture", "n_params", "n_layers", "attention", "ffn", "kv_bytes_per_token", "weight_bytes",
        "assumed", "ignored",
    }  # fmt: skip
    attention = document["attention"]
    assert isinstance(attention, list)
    assert (
        attention[0]
        | {
            "kind": "global",
            "n_layers": 32,
            "n_q_heads": 32,
            "n_kv_heads": 8,
            "head_dim_k": 128,
            "head_dim_v": 128,
            "window_tokens": None,
        }
        == attention[0]
    )


def test_the_language_model_of_a_speaking_model_is_found() -> None:
    """Qwen Omni keeps it two levels down, beside a talker."""
    inner = {key: value for key, value in LLAMA.items() if key != "architectures"}
    inner |= {"model_type": "qwen2_5_omni_text"}
    config = {
        "architectures": ["Qwen2_5OmniForConditionalGeneration"],
        "model_type": "qwen2_5_omni",
        "thinker_config": {"model_type": "qwen2_5_omni_thinker", "text_config": inner, "audio_config": {}},
        "talker_config": {"hidden_size": 896},
    }
    model = parse_config(config)
    assert model.n_params == 8_030_261_248 + 32 * (4096 + 2 * 1024)  # query, key and value biases
    assert any("not counted" in note for note in model.notes)
    faulty = config | {"thinker_config": {"text_config": inner | {"hidden_size": -1}}}
    assert "thinker_config.text_config.hidden_size" in faults(faulty)


def test_an_unknown_model_with_shapes_of_its_own_is_refused() -> None:
    config = LLAMA | {"model_type": "newmodel", "architectures": None, "swa_num_key_value_heads": 4}
    with pytest.raises(UnsupportedModel, match="some of its 32 layers have a shape of their own"):
        parse_config(config)
