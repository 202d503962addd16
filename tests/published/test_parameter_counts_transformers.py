"""Parameter counts against the models' own code: transformers builds each small model on the meta device."""

from typing import Any

import pytest

from planner_core.hf_config import parse_config

torch = pytest.importorskip("torch", reason="torch is an optional extra")
transformers = pytest.importorskip("transformers", reason="transformers is an optional extra")

SIZES: dict[str, Any] = {
    "hidden_size": 256,
    "intermediate_size": 384,
    "num_hidden_layers": 5,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "max_position_embeddings": 512,
    "head_dim": 32,
    "pad_token_id": 0,
}
# Classes without KV heads or a head size of their own.
OLD = {key: value for key, value in SIZES.items() if key not in ("num_key_value_heads", "head_dim")}
GPT = {"n_embd": 256, "n_layer": 3, "n_head": 8, "vocab_size": 1000, "n_positions": 128}
ROUTED = SIZES | {"num_experts_per_tok": 2, "n_routed_experts": 8, "moe_intermediate_size": 64}
LATENT = {key: value for key, value in ROUTED.items() if key != "head_dim"} | {
    "num_key_value_heads": 8,
    "n_group": 2,
    "topk_group": 1,
    "first_k_dense_replace": 2,
}
MIXED = ["sliding_attention", "sliding_attention", "full_attention", "sliding_attention", "full_attention"]
PLAIN = [
    "llama", "mistral", "ministral", "ministral3", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "phi",
    "phi3", "granite", "olmo", "olmo2", "olmo3", "smollm3", "starcoder2", "stablelm", "cohere", "cohere2",
    "exaone4", "glm", "glm4", "nemotron", "seed_oss", "arcee", "apertus", "ernie4_5", "hunyuan_v1_dense",
    "helium",
    "internlm3",
]  # fmt: skip
CASES: list[tuple[str, str, dict[str, Any]]] = [
    *((name, name, SIZES) for name in PLAIN),
    ("llama biases", "llama", SIZES | {"attention_bias": True, "mlp_bias": True, "head_dim": 48}),
    ("llama tied", "llama", SIZES | {"tie_word_embeddings": True}),
    ("phi query norms", "phi", SIZES | {"qk_layernorm": True}),
    ("cohere query norms", "cohere", SIZES | {"use_qk_norm": True}),
    (
        "stablelm parallel",
        "stablelm",
        SIZES | {"use_parallel_residual": True, "qk_layernorm": True, "use_qkv_bias": True},
    ),
    ("gpt_neox", "gpt_neox", OLD),
    ("persimmon", "persimmon", OLD),
    ("falcon", "falcon", {key: value for key, value in OLD.items() if key != "intermediate_size"}),
    (
        "falcon new",
        "falcon",
        {"hidden_size": 256, "num_hidden_layers": 3, "num_attention_heads": 8, "num_kv_heads": 2,
         "vocab_size": 1000, "new_decoder_architecture": True},
    ),
    (
        "falcon sequential",
        "falcon",
        {"hidden_size": 256, "num_hidden_layers": 3, "num_attention_heads": 8, "vocab_size": 1000,
         "parallel_attn": False, "multi_query": False, "bias": True},
    ),
    *((name, name, GPT) for name in ("gpt2", "gpt_bigcode", "gptj", "codegen")),
    (
        "gpt_neo",
        "gpt_neo",
        {"hidden_size": 256, "num_layers": 4, "num_heads": 8, "vocab_size": 1000,
         "max_position_embeddings": 128, "attention_types": [[["global", "local"], 2]]},
    ),
    (
        "opt projected",
        "opt",
        {"hidden_size": 256, "num_hidden_layers": 3, "num_attention_heads": 8, "vocab_size": 1000,
         "ffn_dim": 512, "word_embed_proj_dim": 128, "max_position_embeddings": 128},
    ),
    ("bloom", "bloom", {"hidden_size": 256, "n_layer": 3, "n_head": 8, "vocab_size": 1000}),
    ("mpt", "mpt", {"d_model": 256, "n_layers": 3, "n_heads": 8, "vocab_size": 1000}),
    (
        "dbrx",
        "dbrx",
        {"d_model": 256, "n_layers": 3, "n_heads": 8, "vocab_size": 1000,
         "attn_config": {"kv_n_heads": 2, "rope_theta": 1e4},
         "ffn_config": {"ffn_hidden_size": 128, "moe_num_experts": 4, "moe_top_k": 2}},
    ),
    *(
        (name, name, ROUTED | {"num_local_experts": 4})
        for name in ("mixtral", "granitemoe", "minimax_m2", "gpt_oss")
    ),
    ("phimoe", "phimoe", ROUTED | {"num_local_experts": 4, "attention_bias": True, "lm_head_bias": True}),
    ("olmoe", "olmoe", ROUTED | {"num_experts": 4}),
    (
        "granitemoeshared",
        "granitemoeshared",
        ROUTED | {"num_local_experts": 4, "shared_intermediate_size": 96},
    ),
    (
        "granite hybrid, attention only",
        "granitemoehybrid",
        ROUTED | {"num_local_experts": 4, "shared_intermediate_size": 96, "layer_types": ["attention"] * 5},
    ),
    (
        "granite hybrid, dense",
        "granitemoehybrid",
        SIZES | {"num_local_experts": 0, "num_experts_per_tok": 0, "shared_intermediate_size": 96,
                 "layer_types": ["attention"] * 5},
    ),
    (
        "qwen2_moe",
        "qwen2_moe",
        ROUTED | {"num_experts": 4, "shared_expert_intermediate_size": 96, "decoder_sparse_step": 2},
    ),
    ("qwen3_moe", "qwen3_moe", ROUTED | {"num_experts": 4, "mlp_only_layers": [1]}),
    ("dots1", "dots1", ROUTED | {"n_shared_experts": 1, "first_k_dense_replace": 1}),
    ("glm4_moe", "glm4_moe", ROUTED | {"use_qk_norm": True}),
    ("glm4_moe_lite", "glm4_moe_lite", LATENT | {"n_group": 1, "first_k_dense_replace": 1}),
    ("deepseek_v2", "deepseek_v2", LATENT),
    ("deepseek_v3", "deepseek_v3", LATENT),
    ("deepseek_v3 biases", "deepseek_v3", LATENT | {"attention_bias": True}),
    ("deepseek_v3 without a query rank", "deepseek_v3", LATENT | {"q_lora_rank": None}),
    ("minicpm3", "minicpm3", OLD | {"num_key_value_heads": 8}),
    (
        "llama4_text",
        "llama4_text",
        ROUTED | {"num_local_experts": 4, "interleave_moe_layer_step": 2, "intermediate_size_mlp": 512},
    ),
    ("ernie4_5_moe", "ernie4_5_moe", SIZES | {"moe_num_experts": 4, "moe_k": 2, "moe_intermediate_size": 64}),
    (
        "gemma3n_text",
        "gemma3n_text",
        SIZES | {"layer_types": MIXED, "num_kv_shared_layers": 2, "laurel_rank": 16,
                 "hidden_size_per_layer_input": 32, "vocab_size_per_layer_input": 900,
                 "activation_sparsity_pattern": None},
    ),
    (
        "gemma4_text",
        "gemma4_text",
        SIZES | {"layer_types": MIXED, "num_kv_shared_layers": 2, "use_double_wide_mlp": True,
                 "hidden_size_per_layer_input": 32, "vocab_size_per_layer_input": 900},
    ),
    (
        "gemma4_text experts",
        "gemma4_text",
        SIZES | {"enable_moe_block": True, "moe_intermediate_size": 64, "num_experts": 4,
                 "top_k_experts": 2, "attention_k_eq_v": True,
                  "num_global_key_value_heads": 1, "hidden_size_per_layer_input": 0},
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("model_type", "config"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_count_equals_the_models_own(model_type: str, config: dict[str, Any]) -> None:
    """All parameters, and the routers' stored corrections, which the classes keep as buffers."""
    model_config = transformers.AutoConfig.for_model(model_type, **config)
    with torch.device("meta"):
        built = transformers.AutoModelForCausalLM.from_config(model_config)
    built.tie_weights()
    corrections = sum(
        buffer.numel() for name, buffer in built.named_buffers() if name.endswith("correction_bias")
    )
    n_params = sum(parameter.numel() for parameter in built.parameters()) + corrections
    assert parse_config({"model_type": model_type, **config}).n_params == n_params
