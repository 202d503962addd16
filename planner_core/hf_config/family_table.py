"""The table of decoder families: one row each.

Owns: the families with their class defaults.
Refuses: what a row means (see `families`), finding one (see `family_lookup`).

Class defaults are those of the transformers configuration classes, version 5.24.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from planner_core.hf_config.families import Family, MoeRule

# A table reads better in rows than one argument a line.
# fmt: off

def _sizes(
    hidden: int, intermediate: int, layers: int, heads: int, kv: int, vocab: int, positions: int,
    *, tied: bool = False, **more: int | bool,
) -> dict[str, int | bool]:
    """Return class defaults under the fields' usual names; a size of 0 has no default."""
    sizes: dict[str, int | bool] = {
        "hidden_size": hidden,
        "intermediate_size": intermediate,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "vocab_size": vocab,
        "max_position_embeddings": positions,
    }
    return {name: size for name, size in sizes.items() if size} | {"tie_word_embeddings": tied} | more


LLAMA: Final = Family(
    stem="Llama",
    model_types=("llama", "yi", "aquila", "xverse", "mistral_yarn", "skywork", "code_llama"),
    defaults=_sizes(4096, 11008, 32, 32, 0, 32000, 2048, attention_bias=False, mlp_bias=False),
    qkv_bias="attention_bias", o_bias="attention_bias", ffn_bias="mlp_bias",
)
_MISTRAL: Final = Family(
    stem="Mistral",
    model_types=("mistral",),
    defaults=_sizes(4096, 14336, 32, 32, 8, 32000, 131072, sliding_window=4096),
    window="all",
)
_QWEN2: Final = Family(
    stem="Qwen2",
    model_types=("qwen2", "qwen2_vl_text", "qwen2_5_vl_text", "qwen2_5_omni_text", "qwen2_vl", "qwen2_5_vl"),
    defaults=_sizes(
        4096, 22016, 32, 32, 32, 151936, 32768, use_sliding_window=False,
        max_window_layers=28,
    ),
    qkv_bias=True, window="qwen",
)
_QWEN3: Final = replace(
    _QWEN2,
    stem="Qwen3",
    model_types=("qwen3", "qwen3_vl_text"),
    defaults=_sizes(
        4096, 22016, 32, 32, 32, 151936, 32768, head_dim=128, attention_bias=False,
        use_sliding_window=False, max_window_layers=28,
    ),
    qkv_bias="attention_bias", o_bias="attention_bias", qk_norm="head",
)
_QWEN2_MOE: Final = replace(
    _QWEN2,
    stem="Qwen2Moe",
    model_types=("qwen2_moe",),
    defaults=_sizes(
        2048, 5632, 24, 16, 16, 151936, 32768, use_sliding_window=False, max_window_layers=28,
        num_experts=60, num_experts_per_tok=4, moe_intermediate_size=1408, decoder_sparse_step=1,
        shared_expert_intermediate_size=5632, qkv_bias=True,
    ),
    qkv_bias="qkv_bias",
    moe=MoeRule(layout="qwen", shared="width", shared_gate=True),
)
_QWEN3_MOE: Final = replace(
    _QWEN3,
    stem="Qwen3Moe",
    model_types=("qwen3_moe", "qwen3_omni_moe_text"),
    defaults=_sizes(
        2048, 6144, 24, 32, 4, 151936, 32768, attention_bias=False, use_sliding_window=False,
        max_window_layers=28, num_experts=128, num_experts_per_tok=8, moe_intermediate_size=768,
        decoder_sparse_step=1,
    ),
    moe=MoeRule(layout="qwen"),
)
_GEMMA: Final = Family(
    stem="Gemma",
    model_types=("gemma",),
    defaults=_sizes(
        3072, 24576, 28, 16, 16, 256000, 8192, tied=True,
        head_dim=256, attention_bias=False,
    ),
    qkv_bias="attention_bias", o_bias="attention_bias",
)
_GEMMA2: Final = replace(
    _GEMMA,
    stem="Gemma2",
    model_types=("gemma2",),
    defaults=_sizes(
        2304, 9216, 26, 8, 4, 256000, 8192, tied=True, head_dim=256, attention_bias=False, sliding_window=4096
    ),
    block_norms=4, window="period", period=2,
)
_GEMMA3: Final = replace(
    _GEMMA2,
    stem="Gemma3",
    model_types=("gemma3_text", "gemma3"),
    defaults=_sizes(
        2304, 9216, 26, 8, 4, 262208, 131072, tied=True, head_dim=256, attention_bias=False,
        sliding_window=4096,
    ),
    qk_norm="head", period=6,
)
_GEMMA3N: Final = replace(
    _GEMMA3,
    stem="Gemma3n",
    model_types=("gemma3n_text", "gemma3n"),
    defaults=_sizes(
        2048, 16384, 35, 8, 2, 262400, 32768, tied=True, head_dim=256, attention_bias=False,
        sliding_window=512,
    ),
    period=5,
)
_GEMMA4: Final = replace(
    _GEMMA3,
    stem="Gemma4",
    model_types=("gemma4_text", "gemma4"),
    defaults=_sizes(
        2304, 9216, 30, 8, 4, 262144, 131072, tied=True, head_dim=256, attention_bias=False,
        sliding_window=512,
    ),
    period=6,
    moe=MoeRule(shared="dense"),
)
_PHI: Final = Family(
    stem="Phi",
    model_types=("phi", "phi-msft"),
    defaults=_sizes(2048, 8192, 24, 32, 0, 51200, 2048, qk_layernorm=False),
    norm="layer", block_norms=1, qk_norm="head", qk_norm_field="qk_layernorm", qk_norm_bias=True,
    qkv_bias=True, o_bias=True, ffn_bias=True, lm_head_bias=True, gated=False,
)
_PHI3: Final = Family(
    stem="Phi3",
    model_types=("phi3", "phi3_v", "phi4mm"),
    defaults=_sizes(3072, 8192, 32, 32, 0, 32064, 4096),
    window="all",
)
_PHIMOE: Final = Family(
    stem="Phimoe",
    model_types=("phimoe",),
    defaults=_sizes(
        4096, 6400, 32, 32, 8, 32064, 131072, attention_bias=False, lm_head_bias=False,
        num_local_experts=16, num_experts_per_tok=2,
    ),
    norm="layer", qkv_bias="attention_bias", o_bias="attention_bias", lm_head_bias="lm_head_bias",
    window="all",
    moe=MoeRule(width="intermediate_size"),
)
_GRANITE_MOE: Final = replace(
    LLAMA,
    stem="GraniteMoe",
    model_types=("granitemoe",),
    defaults=_sizes(
        4096, 11008, 32, 32, 0, 32000, 2048, attention_bias=False, num_local_experts=8, num_experts_per_tok=2
    ),
    ffn_bias=False,
    moe=MoeRule(width="intermediate_size"),
)
_OLMO2: Final = replace(
    LLAMA,
    stem="Olmo2",
    model_types=("olmo2",),
    defaults=_sizes(4096, 11008, 32, 32, 0, 50304, 2048, attention_bias=False),
    ffn_bias=False, qk_norm="heads",
)
_GPT2: Final = Family(
    stem="GPT2",
    model_types=("gpt2",),
    defaults=_sizes(768, 0, 12, 12, 0, 50257, 1024, tied=True),
    norm="layer", qkv_bias=True, o_bias=True, ffn_bias=True, gated=False, intermediate_multiple=4,
    learned_positions=0,
)
_GPTJ: Final = Family(
    stem="GPTJ",
    model_types=("gptj",),
    defaults=_sizes(4096, 0, 28, 16, 0, 50400, 2048),
    norm="layer", block_norms=1, ffn_bias=True, lm_head_bias=True, gated=False, intermediate_multiple=4,
)
_COHERE: Final = Family(
    stem="Cohere",
    model_types=("cohere",),
    defaults=_sizes(
        8192, 22528, 40, 64, 0, 256000, 8192, tied=True,
        attention_bias=False, use_qk_norm=False,
    ),
    norm="layer_no_bias", block_norms=1, qk_norm="heads", qk_norm_field="use_qk_norm",
    qkv_bias="attention_bias", o_bias="attention_bias",
)
_GLM: Final = Family(
    stem="Glm",
    model_types=("glm",),
    defaults=_sizes(4096, 13696, 40, 32, 2, 151552, 131072, head_dim=128, attention_bias=True),
    qkv_bias="attention_bias",
)
_DEEPSEEK3: Final = Family(
    stem="DeepseekV3",
    model_types=("deepseek_v3", "kimi_k2"),
    defaults=_sizes(
        7168, 18432, 61, 128, 0, 129280, 4096, attention_bias=False, moe_intermediate_size=2048,
        n_routed_experts=256, n_shared_experts=1, num_experts_per_tok=8, first_k_dense_replace=3,
        q_lora_rank=1536, kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128,
    ),
    qkv_bias="attention_bias", mla=True,
    moe=MoeRule(layout="deepseek", shared="experts", score_correction=True),
)
_GLM4_MOE: Final = Family(
    stem="Glm4Moe",
    model_types=("glm4_moe",),
    defaults=_sizes(
        4096, 10944, 46, 96, 8, 151552, 131072, attention_bias=False, use_qk_norm=False,
        moe_intermediate_size=1408, n_routed_experts=128, n_shared_experts=1, num_experts_per_tok=8,
        first_k_dense_replace=1,
    ),
    qkv_bias="attention_bias", qk_norm="head", qk_norm_field="use_qk_norm",
    moe=MoeRule(layout="deepseek", shared="experts", score_correction=True),
)

FAMILIES: Final = (
    LLAMA,
    _MISTRAL,
    replace(_MISTRAL, stem="Ministral", model_types=("ministral",)),
    replace(
        _MISTRAL,
        stem="Ministral3",
        model_types=("ministral3",),
        defaults=_sizes(4096, 14336, 34, 32, 8, 131072, 262144, head_dim=128),
    ),
    replace(
        _MISTRAL,
        stem="Mixtral",
        model_types=("mixtral",),
        defaults=_sizes(
            4096, 14336, 32, 32, 8, 32000, 131072, num_local_experts=8,
            num_experts_per_tok=2,
        ),
        moe=MoeRule(width="intermediate_size"),
    ),
    _QWEN2,
    _QWEN3,
    _QWEN2_MOE,
    _QWEN3_MOE,
    replace(
        _QWEN3_MOE,
        stem="Qwen3VLMoeText",
        model_types=("qwen3_vl_moe_text",),
        defaults=_sizes(
            2048, 5632, 24, 16, 16, 151936, 128000, attention_bias=False, head_dim=128,
            num_experts=60, num_experts_per_tok=4, moe_intermediate_size=1408, decoder_sparse_step=1,
        ) | {"tie_word_embeddings": True},
        window="",
    ),
    Family(
        stem="QWen",
        model_types=("qwen",),
        defaults=_sizes(4096, 22016, 32, 32, 0, 151936, 8192, no_bias=True),
        qkv_bias=True, o_bias="!no_bias", ffn_bias="!no_bias",
    ),
    _GEMMA,
    _GEMMA2,
    _GEMMA3,
    _GEMMA3N,
    _GEMMA4,
    _PHI,
    _PHI3,
    _PHIMOE,
    replace(LLAMA, stem="Granite", model_types=("granite",)),
    _GRANITE_MOE,
    replace(
        _GRANITE_MOE,
        stem="GraniteMoeShared",
        model_types=("granitemoeshared",),
        moe=MoeRule(width="intermediate_size", shared="width"),
    ),
    replace(
        _GRANITE_MOE,
        stem="GraniteMoeHybrid",
        model_types=("granitemoehybrid",),
        moe=MoeRule(width="intermediate_size", shared="width"),
    ),
    replace(
        LLAMA,
        stem="Olmo",
        model_types=("olmo",),
        defaults=_sizes(4096, 11008, 32, 32, 0, 50304, 2048, attention_bias=False),
        norm="none", ffn_bias=False,
    ),
    _OLMO2,
    replace(
        _OLMO2,
        stem="Olmo3",
        model_types=("olmo3",),
        defaults=_sizes(4096, 11008, 32, 32, 0, 50304, 2048, attention_bias=False, sliding_window=4096),
        window="period", period=4,
    ),
    replace(
        _OLMO2,
        stem="Olmoe",
        model_types=("olmoe",),
        defaults=_sizes(
            2048, 2048, 16, 16, 0, 50304, 4096, attention_bias=False,
            num_experts=64, num_experts_per_tok=8,
        ),
        moe=MoeRule(width="intermediate_size"),
    ),
    replace(
        LLAMA,
        stem="SmolLM3",
        model_types=("smollm3",),
        defaults=_sizes(
            2048, 11008, 36, 16, 4, 128256, 32768, tied=True, attention_bias=False, mlp_bias=False,
            use_sliding_window=False, max_window_layers=0,
        ),
        window="qwen",
    ),
    Family(
        stem="Starcoder2",
        model_types=("starcoder2",),
        defaults=_sizes(3072, 12288, 30, 24, 2, 49152, 4096, tied=True, use_bias=True),
        norm="layer", qkv_bias="use_bias", o_bias="use_bias", ffn_bias="use_bias", gated=False,
        window="all",
    ),
    Family(
        stem="StableLm",
        model_types=("stablelm", "stablelm_epoch"),
        defaults=_sizes(
            2560, 6912, 32, 32, 32, 50304, 4096, use_qkv_bias=False, qk_layernorm=False,
            use_parallel_residual=False,
        ),
        norm="layer", qkv_bias="use_qkv_bias", qk_norm="heads", qk_norm_field="qk_layernorm",
    ),
    Family(
        stem="Falcon",
        model_types=("falcon", "RefinedWeb", "RefinedWebModel"),
        defaults=_sizes(
            4544, 0, 32, 71, 0, 65024, 2048, tied=True, bias=False, multi_query=True,
            parallel_attn=True, new_decoder_architecture=False,
        ),
        norm="layer", qkv_bias="bias", o_bias="bias", ffn_bias="bias", gated=False, intermediate_multiple=4,
    ),
    _GPT2,
    replace(
        _GPT2,
        stem="GPTBigCode",
        model_types=("gpt_bigcode",),
        defaults=_sizes(768, 0, 12, 12, 0, 50257, 1024, tied=True, multi_query=True),
    ),
    replace(
        _GPT2,
        stem="GPTNeo",
        model_types=("gpt_neo",),
        defaults=_sizes(2048, 0, 24, 16, 0, 50257, 2048, tied=True, window_size=256),
        qkv_bias=False, window="gpt_neo",
    ),
    _GPTJ,
    replace(_GPTJ, stem="CodeGen", model_types=("codegen",)),
    Family(
        stem="GPTNeoX",
        model_types=("gpt_neox",),
        defaults=_sizes(6144, 24576, 44, 64, 0, 50432, 2048, attention_bias=True),
        norm="layer", qkv_bias="attention_bias", o_bias="attention_bias", ffn_bias=True, gated=False,
    ),
    Family(
        stem="OPT",
        model_types=("opt",),
        defaults=_sizes(768, 3072, 12, 12, 0, 50272, 2048, tied=True, enable_bias=True),
        norm="layer", qkv_bias="enable_bias", o_bias="enable_bias", ffn_bias="enable_bias", gated=False,
        learned_positions=2,
    ),
    Family(
        stem="Bloom",
        model_types=("bloom",),
        defaults=_sizes(64, 0, 2, 8, 0, 250880, 2048, tied=True),
        norm="layer", embedding_norm=True, qkv_bias=True, o_bias=True, ffn_bias=True, gated=False,
        intermediate_multiple=4,
    ),
    Family(
        stem="Mpt",
        model_types=("mpt",),
        defaults=_sizes(2048, 0, 24, 16, 0, 50368, 2048, tied=True),
        norm="layer_no_bias", gated=False, intermediate_multiple=4,
    ),
    _COHERE,
    replace(
        _COHERE,
        stem="Cohere2",
        model_types=("cohere2",),
        defaults=_sizes(
            8192, 22528, 40, 64, 0, 256000, 8192, tied=True,
            attention_bias=False, sliding_window=4096,
        ),
        qk_norm="", qk_norm_field="", window="period", period=4,
    ),
    replace(
        LLAMA,
        stem="Exaone",
        model_types=("exaone",),
        defaults=_sizes(4096, 14336, 32, 32, 8, 102400, 4096, attention_bias=False, mlp_bias=False),
    ),
    Family(
        stem="Exaone4",
        model_types=("exaone4",),
        defaults=_sizes(4096, 16384, 32, 32, 32, 102400, 2048, sliding_window=4096),
        qk_norm="head", window="period", period=4,
    ),
    _GLM,
    replace(_GLM, stem="Glm4", model_types=("glm4", "glm4v_text", "glm4v"), block_norms=4),
    _GLM4_MOE,
    replace(
        _GLM4_MOE,
        stem="Glm4vMoe",
        model_types=("glm4v_moe_text", "glm4v_moe"),
        defaults={**_GLM4_MOE.defaults, "attention_bias": True, "max_position_embeddings": 65536},
    ),
    Family(
        stem="ChatGLM",
        model_types=("chatglm",),
        defaults=_sizes(
            4096, 13696, 28, 32, 0, 65024, 2048, multi_query_attention=False,
            add_qkv_bias=False, add_bias_linear=True,
        ),
        qkv_bias="add_qkv_bias", o_bias="add_bias_linear", ffn_bias="add_bias_linear",
    ),
    Family(
        stem="Persimmon",
        model_types=("persimmon",),
        defaults=_sizes(4096, 16384, 36, 64, 0, 262144, 16384, qk_layernorm=True),
        norm="layer", qk_norm="head", qk_norm_field="qk_layernorm", qk_norm_bias=True, qkv_bias=True,
        o_bias=True, ffn_bias=True, gated=False,
    ),
    replace(
        LLAMA,
        stem="Nemotron",
        model_types=("nemotron",),
        defaults=_sizes(6144, 24576, 32, 48, 0, 256000, 4096, attention_bias=False, mlp_bias=False),
        norm="layer", gated=False,
    ),
    replace(
        LLAMA,
        stem="Arcee",
        model_types=("arcee",),
        defaults=_sizes(2560, 18432, 32, 32, 0, 32000, 4096, attention_bias=False, mlp_bias=False),
        gated=False,
    ),
    replace(
        LLAMA,
        stem="Apertus",
        model_types=("apertus",),
        defaults=_sizes(4096, 14336, 32, 32, 0, 131072, 65536, attention_bias=False),
        ffn_bias=False, gated=False, qk_norm="head", layer_scalars=2,
    ),
    replace(
        LLAMA,
        stem="SeedOss",
        model_types=("seed_oss",),
        defaults=_sizes(
            4096, 27648, 64, 80, 8, 155136, 524288, head_dim=128, attention_bias=True,
            attention_out_bias=False, mlp_bias=False,
        ),
        o_bias="attention_out_bias",
    ),
    Family(
        stem="Ernie4_5",
        model_types=("ernie4_5",),
        defaults=_sizes(1024, 3072, 18, 16, 2, 103424, 131072, tied=True, head_dim=128, use_bias=False),
        qkv_bias="use_bias", o_bias="use_bias", ffn_bias="use_bias",
    ),
    Family(
        stem="Ernie4_5_Moe",
        model_types=("ernie4_5_moe",),
        defaults=_sizes(
            2560, 12288, 28, 20, 4, 103424, 131072, tied=True, use_bias=False, moe_num_experts=64,
            moe_k=6, moe_intermediate_size=1536, moe_num_shared_experts=2, moe_layer_start_index=1,
            moe_layer_end_index=-1, moe_layer_interval=1,
        ),
        qkv_bias="use_bias", o_bias="use_bias", ffn_bias="use_bias",
        moe=MoeRule(layout="ernie", shared="experts", score_correction=True),
    ),
    replace(
        LLAMA,
        stem="HunYuanDenseV1",
        model_types=("hunyuan_v1_dense",),
        defaults=_sizes(4096, 11008, 32, 32, 0, 290943, 2048, attention_bias=False),
        ffn_bias=False, qk_norm="head",
    ),
    replace(
        LLAMA,
        stem="Helium",
        model_types=("helium",),
        defaults=_sizes(
            2560, 7040, 24, 20, 20, 48000, 4096, head_dim=128,
            attention_bias=False, mlp_bias=False,
        ),
        o_bias=False,
    ),
    Family(
        stem="InternLM2",
        model_types=("internlm2",),
        defaults=_sizes(4096, 11008, 32, 32, 0, 103168, 2048, bias=False),
        qkv_bias="bias", o_bias="bias",
    ),
    Family(
        stem="InternLM",
        model_types=("internlm",),
        defaults=_sizes(4096, 11008, 32, 32, 0, 103168, 2048, bias=True),
        qkv_bias="bias", o_bias="bias",
    ),
    Family(
        stem="InternLM3",
        model_types=("internlm3",),
        defaults=_sizes(
            4096, 10240, 48, 32, 2, 128512, 32768, head_dim=128,
            qkv_bias=False, bias=False,
        ),
        qkv_bias="qkv_bias", o_bias="bias", ffn_bias="bias",
    ),
    Family(
        stem="Baichuan",
        model_types=("baichuan",),
        defaults=_sizes(4096, 11008, 32, 32, 0, 125696, 4096),
    ),
    Family(
        stem="MiniCPM",
        model_types=("minicpm",),
        defaults=_sizes(4096, 11008, 32, 32, 0, 32000, 2048, tied=True, attention_bias=False),
        qkv_bias="attention_bias", o_bias="attention_bias",
    ),
    Family(
        stem="MiniCPM3",
        model_types=("minicpm3",),
        defaults=_sizes(
            2560, 6400, 62, 40, 0, 73448, 32768, tied=True, attention_bias=False, q_lora_rank=768,
            kv_lora_rank=256, qk_nope_head_dim=64, qk_rope_head_dim=32,
        ),
        qkv_bias="attention_bias", mla=True,
    ),
    replace(
        _DEEPSEEK3,
        stem="DeepseekV2",
        model_types=("deepseek_v2",),
        defaults=_sizes(
            4096, 11008, 32, 32, 0, 102400, 2048, attention_bias=False, moe_intermediate_size=1407,
            n_routed_experts=64, n_shared_experts=2, first_k_dense_replace=0,
            q_lora_rank=1536, kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128,
        ),
        moe=MoeRule(layout="deepseek", shared="experts"),
    ),
    _DEEPSEEK3,
    replace(
        _DEEPSEEK3,
        stem="Glm4MoeLite",
        model_types=("glm4_moe_lite",),
        defaults=_sizes(
            2048, 10240, 47, 20, 0, 154880, 202752, attention_bias=False, moe_intermediate_size=1536,
            n_routed_experts=64, n_shared_experts=1, num_experts_per_tok=4, first_k_dense_replace=1,
            q_lora_rank=768, kv_lora_rank=512, qk_nope_head_dim=192, qk_rope_head_dim=64, v_head_dim=256,
        ),
    ),
    replace(
        _QWEN3,
        stem="Dots1",
        model_types=("dots1",),
        defaults=_sizes(
            4608, 10944, 62, 32, 32, 152064, 2048, attention_bias=False, moe_intermediate_size=1408,
            first_k_dense_replace=0, sliding_window=4096, max_window_layers=62,
        ),
        window="",
        moe=MoeRule(layout="deepseek", shared="experts", score_correction=True),
    ),
    Family(
        stem="MiniMaxM2",
        model_types=("minimax_m2",),
        defaults=_sizes(
            3072, 1536, 62, 48, 8, 200064, 196608, head_dim=128,
            num_local_experts=256, num_experts_per_tok=8,
        ),
        qk_norm="heads",
        moe=MoeRule(width="intermediate_size", score_correction=True),
    ),
    Family(
        stem="GptOss",
        model_types=("gpt_oss",),
        defaults=_sizes(
            2880, 2880, 36, 64, 8, 201088, 131072, head_dim=64, attention_bias=True,
            sliding_window=128, num_local_experts=128, num_experts_per_tok=4,
        ),
        qkv_bias="attention_bias", o_bias="attention_bias", window="period", period=2, sinks=True,
        moe=MoeRule(width="intermediate_size", router_bias=True, expert_bias=True),
    ),
    Family(
        stem="Llama4",
        model_types=("llama4_text", "llama4"),
        defaults=_sizes(
            5120, 8192, 48, 40, 8, 202048, 131072, head_dim=128, attention_bias=False,
            intermediate_size_mlp=16384, num_local_experts=16, num_experts_per_tok=1,
            interleave_moe_layer_step=1, attention_chunk_size=8192,
        ),
        qkv_bias="attention_bias", o_bias="attention_bias", window="llama4",
        moe=MoeRule(layout="llama4", width="intermediate_size", shared="expert_width"),
    ),
    Family(
        stem="Dbrx",
        model_types=("dbrx",),
        defaults=_sizes(2048, 0, 24, 16, 0, 32000, 2048),
        norm="layer_no_bias",
        moe=MoeRule(width="ffn_hidden_size"),
    ),
    Family(
        stem="Step3p7",
        model_types=("step3p7", "step3p7_text", "step3p7flash", "step3p5", "step3p5flash"),
        defaults=_sizes(
            4096, 11264, 45, 64, 8, 128815, 128000, head_dim=128, attention_bias=False, mlp_bias=False,
            num_experts_per_tok=8, moe_intermediate_size=1280, num_experts=288, share_expert_dim=1280,
        ),
        qk_norm="head", qkv_bias="attention_bias", o_bias="attention_bias", ffn_bias="mlp_bias",
        head_gate=True,
        moe=MoeRule(layout="deepseek", shared="width", score_correction=True),
    ),
    replace(
        LLAMA,
        stem="DeciLM",
        model_types=("nemotron-nas", "deci"),
        defaults=_sizes(4096, 0, 32, 32, 0, 32000, 2048, attention_bias=False, mlp_bias=False),
    ),
    Family(
        stem="OpenELM",
        model_types=("openelm",),
        defaults=_sizes(0, 0, 0, 0, 0, 32000, 2048, tied=True),
        qk_norm="head",
    ),
)
# fmt: on
