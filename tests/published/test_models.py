"""Published totals of models: weights and cache."""

import pytest

from planner_core.memory_layout import compute_memory
from planner_core.model_arch import kv_bytes_per_token
from planner_core.parallelism import make_parallelism
from planner_core.shards import shard_attention
from planner_core.stage_latencies import step_latency
from planner_core.workload import Workload
from tests.presets import preset_machine, preset_model


@pytest.mark.parametrize(
    ("name", "n_params"),
    [
        ("llama-3.1-8b", 8_030_261_248),
        ("llama-3.1-70b", 70_553_706_496),
        ("llama-3.1-405b", 405_853_388_800),
        ("mistral-nemo-12b", 12_247_782_400),
    ],
)
def test_parameter_counts(name: str, n_params: int) -> None:
    assert preset_model(name).n_params == n_params


def test_llama_70b_weights() -> None:
    """141.1e9 bytes of bf16, norms included; and all but the norms as what memory counts on one PE."""
    model = preset_model("llama-3.1-70b")
    assert f"{model.weight_bytes / 1e9:.1f}" == "141.1"
    memory = compute_memory(
        model=model,
        machine=preset_machine("sip128"),
        parallelism=make_parallelism(tp=1),
        workload=Workload(phase="decode", context_tokens=8192, batch=1),
    )
    norms = 2 * (2 * 80 + 1) * 8192
    assert memory.weight_bytes + memory.embedding_bytes + norms == model.weight_bytes
    assert f"{(memory.weight_bytes + memory.embedding_bytes) / 1e9:.1f}" == "141.1"


def test_gpt_oss_120b_cache() -> None:
    model = preset_model("gpt-oss-120b")
    full = kv_bytes_per_token(model, windowed=False)
    windowed = kv_bytes_per_token(model, windowed=True)
    assert f"{131072 * (full + windowed) / 1e9:.2f}" == "9.66"
    memory = compute_memory(
        model=model,
        machine=preset_machine("h200"),
        parallelism=make_parallelism(tp=1),
        workload=Workload(phase="decode", context_tokens=131072, batch=1),
    )
    assert memory.kv_bytes == 131072 * full + 128 * windowed
    assert f"{memory.kv_bytes / 1e9:.2f}" == "4.84"


@pytest.mark.parametrize("tp", [1, 2, 8, 64, 128])
def test_deepseek_v3_cache_is_the_same_on_every_tp_rank(tp: int) -> None:
    model = preset_model("deepseek-v3")
    assert kv_bytes_per_token(model, windowed=False) == 70_272
    memory = compute_memory(
        model=model,
        machine=preset_machine("h200"),
        parallelism=make_parallelism(tp=tp, kv_split=1),
        workload=Workload(phase="decode", context_tokens=1000, batch=1),
    )
    assert memory.kv_bytes == 1000 * 70_272


def test_granite_matmul_weights() -> None:
    """16.76 GB of bf16 matrices, the tied table once."""
    step = step_latency(
        model=preset_model("granite-4.1-8b"),
        machine=preset_machine("trn2"),
        parallelism=make_parallelism(tp=1),
        workload=Workload(phase="decode", context_tokens=8192, batch=1),
    )
    assert f"{sum(c.weight_bytes for c in step.components) / 1e9:.2f}" == "16.76"
    (attention,) = preset_model("granite-4.1-8b").attention
    assert (attention.kind, attention.n_layers, attention.head_dim_k) == ("global", 40, 128)


def test_splitting_a_llama_70b_head_over_its_copies() -> None:
    """TP 32 on 8 KV heads: four copies, reclaimed whole; a larger request reclaims no more."""
    model = preset_model("llama-3.1-70b")
    (group,) = model.attention
    workload = Workload(phase="decode", context_tokens=8192, batch=1)
    for asked, split in ((1, 1), (2, 2), (4, 4), (8, 4), (64, 4)):
        shard = shard_attention(
            group=group, model=model, parallelism=make_parallelism(tp=32, kv_split=asked), workload=workload
        )
        assert shard.split == split
        assert shard.cached_elements == 8192 * 256 / split
