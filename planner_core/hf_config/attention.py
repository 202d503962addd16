"""Which attention each layer has: window pattern, shapes, MLA.

Owns: the layer kinds ("full_attention" and so on) and their windows; one `AttentionGroup` a layer.
Refuses: layer kinds that are not attention (see `refusals`, which runs before).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from planner_core.hf_config.families import Family
from planner_core.hf_config.fields import (
    MAX_HEAD_DIM,
    MAX_HEADS,
    MAX_HIDDEN,
    MAX_LAYERS,
    Fields,
    is_whole,
)
from planner_core.hf_config.sizes import Sizes, check_kv_heads
from planner_core.model_arch import AttentionGroup

FULL: Final = "global"
SLIDING: Final = "sliding"
CHUNKED: Final = "chunked"
LAYER_KINDS: Final = {
    "full_attention": FULL,
    "attention": FULL,
    "full": FULL,
    "global": FULL,
    "global_attention": FULL,
    "sliding_attention": SLIDING,
    "sliding_window": SLIDING,
    "sliding": SLIDING,
    "local": SLIDING,
    "local_attention": SLIDING,
    "chunked_attention": CHUNKED,
}


def _period_kinds(fields: Fields, family: Family, n_layers: int) -> list[str]:
    """Return kinds where the last layer of each run of `period` layers is global."""
    period = family.period
    for name in ("sliding_window_pattern", "_sliding_window_pattern"):
        value = fields.source.get(name)
        if is_whole(value):
            period = fields.optional_count(name, high=MAX_LAYERS) or period
            break
        if isinstance(value, str) and 0 < len(value) <= MAX_LAYERS:  # "LLLG", letter by letter
            fields.get(name)
            kinds = [SLIDING if letter == "L" else FULL for letter in value]
            return [kinds[layer % len(kinds)] for layer in range(n_layers)]
    else:
        fields.log.assume(
            f"{fields.path('layer_types')}: 1 layer in {period} is global, the others slide (class default)"
        )
    return [FULL if (layer + 1) % period == 0 else SLIDING for layer in range(n_layers)]


def _qwen_kinds(fields: Fields, family: Family, n_layers: int) -> list[str]:
    """Return kinds where `use_sliding_window` and `max_window_layers` decide."""
    used = fields.flag("use_sliding_window", default=False)
    given = fields.source.get("sliding_window")
    if not used:
        fields.get("max_window_layers")
        if given is not None:
            fields.window("sliding_window")
            fields.log.note(
                f"{fields.path('sliding_window')} is set, use_sliding_window is false: no layer has a window"
            )
        return [FULL] * n_layers
    if fields.window("sliding_window", default=4096) is None:
        return [FULL] * n_layers
    default = family.defaults.get("max_window_layers", 28)
    first = fields.count("max_window_layers", default=default, low=0, high=MAX_LAYERS)
    fields.log.note(f"layers from max_window_layers = {first} on have the window, those before are global")
    return [SLIDING if layer >= first else FULL for layer in range(n_layers)]


def _llama4_kinds(fields: Fields, n_layers: int) -> list[str]:
    """Return kinds where a layer without RoPE is global and the others see their chunk."""
    no_rope = fields.items("no_rope_layers", at_most=MAX_LAYERS)
    if no_rope and len(no_rope) == n_layers:  # 0 marks a layer without RoPE
        return [CHUNKED if value else FULL for value in no_rope]
    step = fields.optional_count("no_rope_layer_interval", high=MAX_LAYERS) or 4
    fields.log.assume(
        f"{fields.path('layer_types')}: every {step}th layer is global, the others chunked (class default)"
    )
    return [FULL if (layer + 1) % step == 0 else CHUNKED for layer in range(n_layers)]


def _gpt_neo_kinds(fields: Fields, n_layers: int) -> list[str]:
    """Return kinds from `attention_types`, a list of [[kinds], repeats]."""
    value = fields.get("attention_types")
    kinds: list[str] = []
    for entry in value if isinstance(value, list) and len(value) <= MAX_LAYERS else []:
        if not (isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], list)):
            break
        repeats = fields.checked_count("attention_types", entry[1], low=1, high=MAX_LAYERS)
        if len(entry[0]) * repeats > MAX_LAYERS:
            break
        kinds += [LAYER_KINDS.get(kind, "") if isinstance(kind, str) else "" for kind in entry[0]] * repeats
    if value is None:
        fields.log.assume(f"{fields.path('attention_types')}: global and local alternate (class default)")
        return [SLIDING if layer % 2 else FULL for layer in range(n_layers)]
    if len(kinds) != n_layers or "" in kinds:
        fields.log.fault(
            fields.path("attention_types"),
            value,
            allowed=f"[[kinds], repeats] pairs of 'global' and 'local' for {n_layers:,} layers",
            fix="match attention_types to the number of layers",
        )
        return [FULL] * n_layers
    return kinds


def layer_kinds(fields: Fields, family: Family, n_layers: int) -> list[str]:
    """Return each layer's kind: global, sliding or chunked."""
    spare = fields.source.get("num_nextn_predict_layers")
    listed = fields.per_layer("layer_types", n_layers=n_layers, spare=spare)
    if listed is not None:
        kinds = [LAYER_KINDS.get(kind, FULL) if isinstance(kind, str) else "" for kind in listed]
        if "" in kinds:
            fields.log.fault(
                fields.path("layer_types"),
                listed[kinds.index("")],
                allowed="a list of texts such as 'full_attention'",
                fix="give each layer's kind as a text",
            )
        if (
            family.window == "qwen"
            and SLIDING in kinds
            and not fields.flag("use_sliding_window", default=False)
        ):
            fields.log.note(
                "layer_types has sliding layers, use_sliding_window is false: no layer has a window"
            )
            return [FULL] * n_layers
        return [kind or FULL for kind in kinds]
    hybrid = fields.items("hybrid_layer_pattern", at_most=MAX_LAYERS)
    if family.window == "period":
        return _period_kinds(fields, family, n_layers)
    if family.window == "qwen":
        return _qwen_kinds(fields, family, n_layers)
    if family.window == "llama4":
        return _llama4_kinds(fields, n_layers)
    if family.window == "gpt_neo":
        return _gpt_neo_kinds(fields, n_layers)
    if family.window == "all" and hybrid is None:
        return [SLIDING] * n_layers
    if fields.has("sliding_window") and fields.window("sliding_window") is not None:
        if fields.optional_flag("use_sliding_window") is False:
            fields.log.note(
                f"{fields.path('sliding_window')} is set, use_sliding_window is false: no layer has a window"
            )
            return [FULL] * n_layers
        if not family.model_types:  # an unknown model: the window is taken at its word
            fields.log.assume("sliding_window holds for all layers (no layer_types)")
            return [SLIDING] * n_layers
        fields.log.note(
            f"{fields.path('sliding_window')} is set but this class has no window: no layer has one"
        )
    return [FULL] * n_layers


def _windows(fields: Fields, family: Family, kinds: list[str]) -> dict[str, int | None]:
    """Return the window of each kind that occurs [tokens]; None where it has none."""
    windows: dict[str, int | None] = {FULL: None}
    defaults = family.defaults
    if SLIDING in kinds:
        name = "window_size" if family.window == "gpt_neo" else "sliding_window"
        default = defaults.get(name)
        windows[SLIDING] = fields.window(name, default=None if default is None else int(default))
        if windows[SLIDING] is None and "layer_types" in fields.source:
            fields.log.note("layer_types has sliding layers but no window is set: they are read as global")
    if CHUNKED in kinds:
        default = defaults.get("attention_chunk_size")
        windows[CHUNKED] = fields.window(
            "attention_chunk_size", default=None if default is None else int(default)
        )
    return windows


def _mla_layer(fields: Fields, family: Family, sizes: Sizes) -> AttentionGroup:
    """Return the one shape of an MLA model's layers."""
    defaults = family.defaults

    def read(name: str, *, high: int = MAX_HEAD_DIM) -> int:
        return fields.count(name, default=defaults.get(name), high=high)

    q_rank = 0
    if "q_lora_rank" not in fields.source or fields.source["q_lora_rank"] is not None:
        q_rank = fields.count("q_lora_rank", default=defaults.get("q_lora_rank"), low=0, high=MAX_HIDDEN)
    else:
        fields.get("q_lora_rank")
    if family.stem == "MiniCPM3":
        defaults = {**defaults, "v_head_dim": max(sizes.hidden // sizes.n_heads, 1)}
    nope, rope = read("qk_nope_head_dim"), read("qk_rope_head_dim")
    for name in ("num_key_value_heads", "head_dim", "qk_head_dim"):
        fields.get(name)  # the latent is the same for every head
    return AttentionGroup(
        kind="mla",
        n_layers=1,
        n_q_heads=sizes.n_heads,
        n_kv_heads=1,
        head_dim_k=nope + rope,
        head_dim_v=read("v_head_dim"),
        q_lora_rank=q_rank,
        kv_lora_rank=read("kv_lora_rank", high=MAX_HIDDEN),
        qk_nope_head_dim=nope,
        qk_rope_head_dim=rope,
    )


def _gemma4_global(fields: Fields, layer: AttentionGroup) -> AttentionGroup:
    """Return a Gemma 4 global layer: its own head size, KV heads, and a value that reuses the key."""
    shared_value = fields.optional_flag("attention_k_eq_v") or False
    head_dim = fields.count("global_head_dim", default=512, high=MAX_HEAD_DIM)
    given = fields.optional_count("num_global_key_value_heads", high=MAX_HEADS)
    n_kv_heads = given if given is not None and shared_value else layer.n_kv_heads
    check_kv_heads(fields, n_heads=layer.n_q_heads, n_kv_heads=n_kv_heads)
    return replace(
        layer,
        n_kv_heads=n_kv_heads,
        head_dim_k=head_dim,
        head_dim_v=head_dim,
        has_v_proj=not shared_value,
    )


def _gated_heads(fields: Fields, shapes: dict[str, AttentionGroup], hidden: int) -> dict[str, AttentionGroup]:
    """Return Step's shapes: sliding layers may have more query heads, and each head has a gate."""
    n_heads = fields.optional_count("num_sliding_attention_heads", high=MAX_HEADS)
    other = fields.child("attention_other_setting")
    if n_heads is None and other is not None:
        n_heads = other.optional_count("num_attention_heads", high=MAX_HEADS)
    if n_heads is not None and SLIDING in shapes:
        shapes = {**shapes, SLIDING: replace(shapes[SLIDING], n_q_heads=n_heads)}
        check_kv_heads(fields, n_heads=n_heads, n_kv_heads=shapes[SLIDING].n_kv_heads)
    return {
        kind: replace(shape, replicated_weight_elements=hidden * shape.n_q_heads)
        for kind, shape in shapes.items()
    }


def read_attention(fields: Fields, family: Family, sizes: Sizes) -> list[AttentionGroup]:
    """Return one `AttentionGroup` of one layer for each layer, in order."""
    n_layers = sizes.n_layers
    if family.mla:
        return [_mla_layer(fields, family, sizes)] * n_layers
    base = AttentionGroup(
        kind=FULL,
        n_layers=1,
        n_q_heads=sizes.n_heads,
        n_kv_heads=sizes.n_kv_heads,
        head_dim_k=sizes.head_dim,
        head_dim_v=sizes.head_dim,
    )
    kinds = layer_kinds(fields, family, n_layers)
    windows = _windows(fields, family, kinds)
    shapes = {
        kind: base if window is None else replace(base, kind=kind, window_tokens=window)
        for kind, window in windows.items()
    }
    if family.stem == "Gemma4":
        if FULL not in kinds[-1:]:
            fields.log.note("the last layer is read as global, as the class does")
            kinds[-1] = FULL
        shapes[FULL] = _gemma4_global(fields, base)
    if family.head_gate:
        shapes = _gated_heads(fields, shapes, sizes.hidden)
    layers = [shapes[kind] for kind in kinds]
    if family.stem in ("Gemma3n", "Gemma4"):
        default = 15 if family.stem == "Gemma3n" else 0
        n_shared = fields.count("num_kv_shared_layers", default=default, low=0, high=n_layers)
        first = n_layers - n_shared
        layers = [
            replace(layer, owns_cache=False, has_k_proj=False, has_v_proj=False) if at >= first else layer
            for at, layer in enumerate(layers)
        ]
    return layers
