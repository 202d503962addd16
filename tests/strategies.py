"""Random models, machines, cuts and workloads for hypothesis, within what the planner describes."""

import math
from typing import Any

from hypothesis import strategies as st

from planner_core.hardware import COLLECTIVE_MODELS, Machine, Tier
from planner_core.model_arch import AttentionGroup, FfnGroup, ModelArch, WeightWidths
from planner_core.parallelism import (
    CP_RING_VARIANTS,
    FFN_SHARD_SCOPES,
    KV_SHARD_MODES,
    PLACEMENTS,
    Parallelism,
    make_parallelism,
)
from planner_core.workload import Workload
from tests.reference_physics import Cut

DEGREES = (1, 2, 3, 4, 6, 8, 12, 16)
WIDTHS = (0.53125, 1.0, 1.000244140625, 2.0, 4.0)


@st.composite
def attention_groups(draw: st.DrawFn, *, kinds: tuple[str, ...], n_layers: int) -> AttentionGroup:
    kind = draw(st.sampled_from(kinds))
    heads = draw(st.sampled_from((1, 2, 3, 4, 6, 8, 12, 16, 40)))
    replicated = draw(st.sampled_from((0, 0, 96)))
    if kind == "mla":
        nope, rope = draw(st.sampled_from(((128, 64), (24, 8), (16, 48))))
        return AttentionGroup(
            kind=kind,
            n_layers=n_layers,
            n_q_heads=heads,
            n_kv_heads=1,
            head_dim_k=nope + rope,
            head_dim_v=draw(st.sampled_from((16, 128))),
            q_lora_rank=draw(st.sampled_from((0, 96, 1536))),
            kv_lora_rank=draw(st.sampled_from((64, 512))),
            qk_nope_head_dim=nope,
            qk_rope_head_dim=rope,
            replicated_weight_elements=replicated,
        )
    divisors = [n for n in range(1, heads + 1) if heads % n == 0]
    return AttentionGroup(
        kind=kind,
        n_layers=n_layers,
        n_q_heads=heads,
        n_kv_heads=draw(st.sampled_from(divisors)),
        head_dim_k=draw(st.sampled_from((8, 64, 128))),
        head_dim_v=draw(st.sampled_from((8, 96, 128))),
        window_tokens=None if kind == "global" else draw(st.sampled_from((1, 7, 128, 1000, 8192))),
        has_v_proj=draw(st.sampled_from((True, True, True, False))),
        has_k_proj=draw(st.sampled_from((True, True, True, False))),
        owns_cache=draw(st.sampled_from((True, True, True, False))),
        replicated_weight_elements=replicated,
    )


@st.composite
def ffn_groups(draw: st.DrawFn, *, kinds: tuple[str, ...], n_layers: int) -> FfnGroup:
    kind = draw(st.sampled_from(kinds))
    n_experts = draw(st.sampled_from((4, 8, 48, 128))) if kind == "moe" else 0
    return FfnGroup(
        kind=kind,
        n_layers=n_layers,
        intermediate_size=draw(st.sampled_from((100, 768, 2880, 12800))),
        gated=draw(st.booleans()),
        n_experts=n_experts,
        n_experts_per_token=draw(st.integers(1, 4)) if n_experts else 0,
        shared_intermediate_size=draw(st.sampled_from((0, 500))) if n_experts else 0,
        replicated_weight_elements=draw(st.sampled_from((0, 640))),
    )


@st.composite
def models(
    draw: st.DrawFn,
    *,
    attention_kinds: tuple[str, ...] = ("global", "sliding", "chunked", "mla"),
    ffn_kinds: tuple[str, ...] = ("dense", "moe"),
    uniform: bool = False,
) -> ModelArch:
    """A model of 1 to 12 layers; `uniform`: all of them alike."""
    n_layers = draw(st.integers(1, 12))
    n_attention = 1 if uniform else draw(st.integers(1, 2))
    n_ffn = 1 if uniform else draw(st.integers(1, 2))
    pattern = tuple(
        (draw(st.integers(0, n_attention - 1)), draw(st.integers(0, n_ffn - 1))) for _ in range(n_layers)
    )
    used_attention = sorted({attention for attention, _ in pattern})
    used_ffn = sorted({ffn for _, ffn in pattern})
    pattern = tuple((used_attention.index(a), used_ffn.index(f)) for a, f in pattern)
    attention = []
    free = attention_kinds
    for at in range(len(used_attention)):
        count = sum(1 for a, _ in pattern if a == at)
        group = draw(attention_groups(kinds=free, n_layers=count))
        # One shape a kind, so that a component is one shape too and the per-layer floor is plain.
        free = tuple(kind for kind in free if kind != group.kind) or attention_kinds
        attention.append(group)
    ffn = []
    for at in range(len(used_ffn)):
        count = sum(1 for _, f in pattern if f == at)
        ffn.append(draw(ffn_groups(kinds=ffn_kinds, n_layers=count)))
    return ModelArch(
        name="random",
        architecture="RandomForCausalLM",
        hidden_size=draw(st.sampled_from((64, 1000, 4096))),
        n_layers=n_layers,
        vocab_size=draw(st.sampled_from((997, 32000, 100352))),
        tied_embeddings=draw(st.booleans()),
        max_position_tokens=131072,
        attention=tuple(attention),
        ffn=tuple(ffn),
        layer_pattern=pattern,
        n_params=0,
        extra_embedding_elements=draw(st.sampled_from((0, 0, 12345))),
    )


@st.composite
def machines(
    draw: st.DrawFn, *, collective_models: tuple[str, ...] = COLLECTIVE_MODELS
) -> Machine:
    """A machine of 1 to 4 tiers, each slower than the one inside it."""
    n_tiers = draw(st.integers(1, 4))
    sizes = sorted(draw(st.sets(st.sampled_from((2, 4, 6, 16, 24, 64, 128, 2048)), min_size=n_tiers,
                                max_size=n_tiers)))
    limits = [float(size) for size in sizes]
    if draw(st.booleans()):
        limits[-1] = math.inf
    latencies = sorted(draw(st.lists(st.floats(0.0, 2e-5), min_size=n_tiers, max_size=n_tiers)))
    speeds = sorted(
        draw(st.lists(st.floats(1e9, 1e12), min_size=n_tiers, max_size=n_tiers)), reverse=True
    )
    return Machine(
        name="random",
        title="Random",
        pe_name="PE",
        node_pes=sizes[0],
        peak_flops_per_s={"bf16": draw(st.floats(1e12, 2e15))},
        hbm_bytes_per_s=draw(st.floats(1e10, 8e12)),
        hbm_bytes=draw(st.floats(1e9, 2e11)),
        usable_hbm_frac=draw(st.floats(0.5, 1.0)),
        reserved_bytes=draw(st.sampled_from((0.0, 5e8))),
        collective_model=draw(st.sampled_from(collective_models)),
        tiers=tuple(
            Tier(name=f"tier{at}", n_pes=limits[at], hop_latency_s=latencies[at], link_bytes_per_s=speeds[at])
            for at in range(n_tiers)
        ),
        tp_grid=(1,),
        cp_grid=(1,),
        kv_merge_bytes_per_s=draw(st.sampled_from((None, 320e9))),
        batch_multiple=draw(st.sampled_from((1, 2, 3))),
    )


@st.composite
def cuts(draw: st.DrawFn, *, with_ep: bool = True, beyond: bool = True) -> Cut:
    """A cut of any mode. EP divides evenly over the ranks it takes; `beyond`: also past those that exist."""
    cp, tp = draw(st.sampled_from(DEGREES)), draw(st.sampled_from((*DEGREES, 32, 128)))
    pp, dp = draw(st.integers(1, 5)), draw(st.sampled_from((1, 2, 3, 4)))
    scope = draw(st.sampled_from(FFN_SHARD_SCOPES))
    ep = 1
    if with_ep:
        spare_cp = 1 if "CP" in scope else cp
        spare_dp = 1 if "DP" in scope else dp
        ep = draw(st.integers(1, spare_cp))
        if ep == spare_cp:
            more = draw(st.integers(1, spare_dp))
            ep *= more
            if more == spare_dp and beyond:
                ep *= draw(st.sampled_from((1, 1, 2, 5)))
    mode = draw(st.sampled_from(KV_SHARD_MODES))
    return Cut(
        cp=cp,
        tp=tp,
        pp=pp,
        dp=dp,
        ep=ep,
        kv_shard_mode=mode,
        ffn_shard_scope=scope,
        tp_placement=draw(st.sampled_from(PLACEMENTS)),
        cp_placement=draw(st.sampled_from(PLACEMENTS)),
        cp_ring_variant=draw(st.sampled_from(CP_RING_VARIANTS)),
        kv_split=draw(st.sampled_from((None, None, 1, 2, 5))) if mode == "split" else None,
    )


@st.composite
def workloads(draw: st.DrawFn, *, phases: tuple[str, ...] = ("decode", "prefill")) -> Workload:
    if draw(st.booleans()):
        widths = WeightWidths.uniform(draw(st.sampled_from(WIDTHS)))
    else:
        widths = WeightWidths(
            **{name: draw(st.sampled_from(WIDTHS)) for name in WeightWidths.__dataclass_fields__}
        )
    return Workload(
        phase=draw(st.sampled_from(phases)),
        context_tokens=draw(st.integers(1, 9000)),
        batch=draw(st.integers(1, 70)),
        widths=widths,
        kv_dtype_bytes=draw(st.sampled_from((1.0, 2.0))),
        activation_dtype_bytes=draw(st.sampled_from((1.0, 2.0, 4.0))),
        expert_imbalance=draw(st.sampled_from((1.0, 1.0, 1.7))),
    )


def as_parallelism(cut: Cut, **changed: Any) -> Parallelism:
    """The same cut as the product takes it; `changed`: fields to replace, arrays too."""
    split: float = 1.0 if cut.kv_shard_mode == "replicate" else math.inf
    if cut.kv_shard_mode == "split" and cut.kv_split is not None:
        split = float(cut.kv_split)
    fields: dict[str, Any] = {
        "cp": cut.cp,
        "tp": cut.tp,
        "pp": cut.pp,
        "dp": cut.dp,
        "ep": cut.ep,
        "kv_split": split,
        "ffn_over_cp": cut.ffn_over_cp,
        "ffn_over_dp": cut.ffn_over_dp,
        "tp_outer": cut.tp_placement == "outer",
        "cp_outer": cut.cp_placement == "outer",
        "ring_qoml": cut.cp_ring_variant == "qoml",
    }
    return make_parallelism(**{**fields, **changed})
