"""Small configs, one an architecture, written here: distinct small sizes, so that no two can be swapped."""

from __future__ import annotations

from typing import Any

# 6 heads of 20 over 2 KV heads: heads * head_dim is not the hidden size.
_SIZES: dict[str, Any] = {
    "hidden_size": 96,
    "intermediate_size": 176,
    "num_hidden_layers": 4,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "vocab_size": 320,
    "max_position_embeddings": 256,
}
_HEAD = {"head_dim": 20}
_LATENT: dict[str, Any] = {
    "num_key_value_heads": 6,
    "q_lora_rank": 28,
    "kv_lora_rank": 36,
    "qk_nope_head_dim": 12,
    "qk_rope_head_dim": 8,
    "v_head_dim": 14,
}
_ROUTED: dict[str, Any] = {
    "n_routed_experts": 12,
    "num_experts_per_tok": 3,
    "n_shared_experts": 2,
    "moe_intermediate_size": 52,
    "first_k_dense_replace": 1,
    "n_group": 1,
    "topk_group": 1,
}
_GPT: dict[str, Any] = {"n_embd": 96, "n_layer": 4, "n_head": 6, "vocab_size": 320, "n_positions": 256}


def _config(architecture: str, model_type: str, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    config: dict[str, Any] = {"architectures": [architecture], "model_type": model_type}
    for part in parts:
        config |= part
    return config | more


def _plain(architecture: str, model_type: str, **more: Any) -> dict[str, Any]:
    return _config(architecture, model_type, _SIZES, **more)


SMALL_CONFIGS: dict[str, dict[str, Any]] = {
    "llama": _plain("LlamaForCausalLM", "llama", **_HEAD),
    "llama untied by default": _plain("LlamaForCausalLM", "llama", tie_word_embeddings=False),
    "mistral windowed": _plain("MistralForCausalLM", "mistral", sliding_window=16, **_HEAD),
    "mistral global": _plain("MistralForCausalLM", "mistral", sliding_window=None, **_HEAD),
    "ministral": _plain(
        "MinistralForCausalLM", "ministral", sliding_window=16,
        layer_types=["sliding_attention", "full_attention", "sliding_attention", "full_attention"], **_HEAD,
    ),
    "ministral3": _plain("Ministral3ForCausalLM", "ministral3", **_HEAD),
    "mixtral": _plain(
        "MixtralForCausalLM", "mixtral", num_local_experts=7, num_experts_per_tok=2, sliding_window=None
    ),
    "qwen2": _plain("Qwen2ForCausalLM", "qwen2"),
    "qwen2 windowed": _plain(
        "Qwen2ForCausalLM", "qwen2", use_sliding_window=True, sliding_window=16, max_window_layers=1
    ),
    "qwen2 moe": _plain(
        "Qwen2MoeForCausalLM", "qwen2_moe", num_experts=7, num_experts_per_tok=2, moe_intermediate_size=52,
        shared_expert_intermediate_size=68, mlp_only_layers=[0],
    ),
    "qwen3": _plain("Qwen3ForCausalLM", "qwen3", **_HEAD),
    "qwen3 moe": _plain(
        "Qwen3MoeForCausalLM", "qwen3_moe", num_experts=7, num_experts_per_tok=2, moe_intermediate_size=52,
        decoder_sparse_step=2, mlp_only_layers=[], **_HEAD,
    ),
    "qwen3 vl": {
        "architectures": ["Qwen3VLForConditionalGeneration"],
        "model_type": "qwen3_vl",
        "text_config": _SIZES | _HEAD | {"model_type": "qwen3_vl_text"},
    },
    "gemma": _plain("GemmaForCausalLM", "gemma", **_HEAD),
    "gemma2": _plain("Gemma2ForCausalLM", "gemma2", sliding_window=16, **_HEAD),
    "gemma3": {
        "architectures": ["Gemma3ForConditionalGeneration"],
        "model_type": "gemma3",
        "text_config": _SIZES | _HEAD
        | {"model_type": "gemma3_text", "sliding_window": 16, "num_hidden_layers": 7},
    },
    "gemma4 dense": {
        "architectures": ["Gemma4ForConditionalGeneration"],
        "model_type": "gemma4",
        "text_config": _SIZES | _HEAD
        | {
            "model_type": "gemma4_text", "sliding_window": 16, "global_head_dim": 36,
            "hidden_size_per_layer_input": 0, "num_kv_shared_layers": 0, "attention_k_eq_v": True,
            "num_global_key_value_heads": 1, "enable_moe_block": False,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
        },
    },
    "gemma4 moe": {
        "architectures": ["Gemma4ForConditionalGeneration"],
        "model_type": "gemma4",
        "text_config": _SIZES | _HEAD
        | {
            "model_type": "gemma4_text", "sliding_window": 16, "global_head_dim": 36,
            "hidden_size_per_layer_input": 0, "num_kv_shared_layers": 0, "attention_k_eq_v": True,
            "num_global_key_value_heads": 1, "enable_moe_block": True, "num_experts": 7,
            "top_k_experts": 2, "moe_intermediate_size": 52,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
        },
    },
    "gemma4 per-layer inputs": {
        "architectures": ["Gemma4ForConditionalGeneration"],
        "model_type": "gemma4",
        "text_config": _SIZES | _HEAD
        | {
            "model_type": "gemma4_text", "sliding_window": 16, "global_head_dim": 36,
            "hidden_size_per_layer_input": 24, "vocab_size_per_layer_input": 320,
            "num_kv_shared_layers": 2, "use_double_wide_mlp": True, "enable_moe_block": False,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
        },
    },
    "gemma3n": {
        "architectures": ["Gemma3nForConditionalGeneration"],
        "model_type": "gemma3n",
        "text_config": _SIZES | _HEAD
        | {
            "model_type": "gemma3n_text", "sliding_window": 16, "num_kv_shared_layers": 2,
            "hidden_size_per_layer_input": 24, "vocab_size_per_layer_input": 320, "laurel_rank": 10,
            "activation_sparsity_pattern": [0.95, 0.95, 0.0, 0.0],
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
        },
    },
    "phi": _plain("PhiForCausalLM", "phi", num_key_value_heads=6),
    "phi3": _plain(
        "Phi3ForCausalLM", "phi3", sliding_window=16, pad_token_id=0, bos_token_id=1, eos_token_id=2
    ),
    "phimoe": _plain(
        "PhimoeForCausalLM", "phimoe", num_local_experts=7, num_experts_per_tok=2, sliding_window=16
    ),
    "granite": _plain("GraniteForCausalLM", "granite"),
    "granite moe": _plain(
        "GraniteMoeForCausalLM", "granitemoe", num_local_experts=7, num_experts_per_tok=2
    ),
    "granite moe shared": _plain(
        "GraniteMoeSharedForCausalLM", "granitemoeshared", num_local_experts=7, num_experts_per_tok=2,
        shared_intermediate_size=68,
    ),
    "olmo": _plain("OlmoForCausalLM", "olmo"),
    "olmo2": _plain("Olmo2ForCausalLM", "olmo2"),
    "olmo3": _plain("Olmo3ForCausalLM", "olmo3", sliding_window=16),
    "olmoe": _plain("OlmoeForCausalLM", "olmoe", num_experts=7, num_experts_per_tok=2),
    "smollm3": _plain("SmolLM3ForCausalLM", "smollm3", pad_token_id=0),
    "starcoder2": _plain("Starcoder2ForCausalLM", "starcoder2", sliding_window=16),
    "stablelm": _plain("StableLmForCausalLM", "stablelm"),
    "falcon": _config(
        "FalconForCausalLM", "falcon", hidden_size=96, num_hidden_layers=4, num_attention_heads=6,
        vocab_size=320, max_position_embeddings=256, multi_query=True,
    ),
    "falcon new": _config(
        "FalconForCausalLM", "falcon", hidden_size=96, num_hidden_layers=4, num_attention_heads=6,
        num_kv_heads=2, new_decoder_architecture=True, vocab_size=320, max_position_embeddings=256,
    ),
    "gpt2": _config("GPT2LMHeadModel", "gpt2", _GPT),
    "gpt bigcode": _config("GPTBigCodeForCausalLM", "gpt_bigcode", _GPT, multi_query=True),
    "gpt neo": _config(
        "GPTNeoForCausalLM", "gpt_neo", hidden_size=96, num_layers=4, num_heads=6, vocab_size=320,
        max_position_embeddings=256, window_size=16, attention_types=[[["global", "local"], 2]],
    ),
    "gptj": _config("GPTJForCausalLM", "gptj", _GPT, rotary_dim=8),
    "codegen": _config("CodeGenForCausalLM", "codegen", _GPT | {"n_head": 4}, rotary_dim=8),
    "gpt neox": _plain("GPTNeoXForCausalLM", "gpt_neox", num_key_value_heads=6),
    "opt": _config(
        "OPTForCausalLM", "opt", hidden_size=96, ffn_dim=176, num_hidden_layers=4, num_attention_heads=6,
        vocab_size=320, max_position_embeddings=256, word_embed_proj_dim=96,
    ),
    "bloom": _config(
        "BloomForCausalLM", "bloom", hidden_size=96, n_layer=4, n_head=6, vocab_size=320, seq_length=256
    ),
    "mpt": _config(
        "MptForCausalLM", "mpt", d_model=96, n_layers=4, n_heads=6, expansion_ratio=4, vocab_size=320,
        max_seq_len=256,
    ),
    "cohere": _plain("CohereForCausalLM", "cohere", use_qk_norm=True),
    "cohere2": _plain("Cohere2ForCausalLM", "cohere2", sliding_window=16),
    "exaone4": _plain("Exaone4ForCausalLM", "exaone4", sliding_window=16, sliding_window_pattern=4),
    "glm": _plain("GlmForCausalLM", "glm", pad_token_id=0, **_HEAD),
    "glm4": _plain("Glm4ForCausalLM", "glm4", pad_token_id=0, **_HEAD),
    "glm4 moe": _plain("Glm4MoeForCausalLM", "glm4_moe", **_ROUTED, **_HEAD),
    "deepseek v2": _config("DeepseekV2ForCausalLM", "deepseek_v2", _SIZES, _LATENT, _ROUTED),
    "deepseek v3": _config("DeepseekV3ForCausalLM", "deepseek_v3", _SIZES, _LATENT, _ROUTED),
    "deepseek v3 without q_lora": _config(
        "DeepseekV3ForCausalLM", "deepseek_v3", _SIZES, _LATENT, _ROUTED, q_lora_rank=None
    ),
    "kimi k2": _config("DeepseekV3ForCausalLM", "kimi_k2", _SIZES, _LATENT, _ROUTED),
    "glm4 moe lite": _config("Glm4MoeLiteForCausalLM", "glm4_moe_lite", _SIZES, _LATENT, _ROUTED),
    "minicpm3": _config("MiniCPM3ForCausalLM", "minicpm3", _SIZES, _LATENT),
    "dots1": _plain("Dots1ForCausalLM", "dots1", sliding_window=None, **_ROUTED, **_HEAD),
    "minimax m2": _plain(
        "MiniMaxM2ForCausalLM", "minimax_m2", num_local_experts=7, num_experts_per_tok=2, **_HEAD
    ),
    "gpt-oss": _plain(
        "GptOssForCausalLM", "gpt_oss", num_local_experts=7, num_experts_per_tok=2, sliding_window=16,
        **_HEAD,
    ),
    "llama4": _plain(
        "Llama4ForCausalLM", "llama4_text", num_local_experts=7, num_experts_per_tok=1,
        intermediate_size_mlp=208, interleave_moe_layer_step=2, attention_chunk_size=20, **_HEAD,
    ),
    "dbrx": _config(
        "DbrxForCausalLM", "dbrx", d_model=96, n_heads=6, n_layers=4, vocab_size=320, max_seq_len=256,
        attn_config={"kv_n_heads": 2, "clip_qkv": 8, "rope_theta": 500000},
        ffn_config={"ffn_hidden_size": 52, "moe_num_experts": 7, "moe_top_k": 2},
    ),
    "persimmon": _plain("PersimmonForCausalLM", "persimmon", num_key_value_heads=6),
    "nemotron": _plain("NemotronForCausalLM", "nemotron", **_HEAD),
    "arcee": _plain("ArceeForCausalLM", "arcee", **_HEAD),
    "seed oss": _plain("SeedOssForCausalLM", "seed_oss", **_HEAD),
    "ernie": _plain("Ernie4_5ForCausalLM", "ernie4_5", **_HEAD),
    "ernie moe": _plain(
        "Ernie4_5_MoeForCausalLM", "ernie4_5_moe", moe_num_experts=7, moe_k=2, moe_intermediate_size=52,
        moe_num_shared_experts=2, moe_layer_start_index=1, moe_layer_end_index=3, moe_layer_interval=1,
    ),
    "hunyuan": _plain("HunYuanDenseV1ForCausalLM", "hunyuan_v1_dense", **_HEAD),
    "helium": _plain("HeliumForCausalLM", "helium", head_dim=16),
    "llava flat": _plain("LlavaLlamaForCausalLM", "llava"),
    "llava": {
        "architectures": ["LlavaForConditionalGeneration"],
        "model_type": "llava",
        "text_config": _SIZES | {"model_type": "llama"},
    },
}  # fmt: skip
