"""Layers that are not modelled: found by class, by field and by pattern, and refused with their count.

Owns: the kinds that are refused, and the search for them in known and unknown fields.
Refuses: guessing; a pattern that says that some layers are no attention stops the parse.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from planner_core.errors import UnsupportedModel, shorten
from planner_core.hf_config.attention import LAYER_KINDS
from planner_core.hf_config.families import Family
from planner_core.hf_config.family_lookup import class_stem
from planner_core.hf_config.fields import MAX_LAYERS, Fields, is_whole
from planner_core.hf_config.sizes import LAYERS

_SSM: Final = "state space (Mamba)"
_LINEAR: Final = "linear attention"
_RECURRENT: Final = "recurrent"
_CROSS: Final = "cross-attention"
_INDEXER: Final = "indexer-sparse attention"
_CONV: Final = "convolution"
_ENCODER: Final = "encoder (bidirectional) attention"

# fmt: off
# Class stems whose layers, or some of them, are of a kind that is not modelled.
_REFUSED_STEMS: Final = {
    **dict.fromkeys(
        (
            "mamba", "mamba2", "falconmamba", "jamba", "bamba", "zamba", "zamba2", "nemotronh", "falconh1",
            "plamo2", "phi4flash", "samba", "hymba", "codestralmamba", "zaya",
        ),
        _SSM,
    ),
    **dict.fromkeys(
        ("rwkv", "rwkv4", "rwkv5", "rwkv6", "rwkv7", "xlstm", "recurrentgemma", "griffin"), _RECURRENT
    ),
    **dict.fromkeys(
        (
            "minimax", "minimaxm1", "minimaxtext01", "qwen3next", "qwen35", "qwen35text", "qwen35moe",
            "qwen35moetext", "kimilinear", "retnet", "olmohybrid", "bailinghybrid",
        ),
        _LINEAR,
    ),
    **dict.fromkeys(
        (
            "deepseekv32", "deepseekv4", "deepseekref", "glmmoedsa", "minimaxm3", "minimaxm3sparse",
            "minimaxm3vl",
        ),
        _INDEXER,
    ),
    **dict.fromkeys(("mllama", "mllamatext", "idefics", "flamingo"), _CROSS),
    **dict.fromkeys(("lfm2", "lfm2vl", "lfm2moe", "hyena", "stripedhyena", "evo"), _CONV),
    **dict.fromkeys(
        (
            "t5", "mt5", "umt5", "bart", "mbart", "pegasus", "marian", "whisper", "m2m100", "nllbmoe",
            "t5gemma",
        ),
        _CROSS,
    ),
    **dict.fromkeys(
        (
            "bert", "roberta", "xlmroberta", "distilbert", "deberta", "debertav2", "electra", "albert",
            "modernbert",
        ),
        _ENCODER,
    ),
    "diffllama": "differential attention",
    "longcatflash": "two attention blocks in one layer",
    "doge": "dynamic mask attention",
}
# fmt: on

_PATTERN_KEY: Final = re.compile(
    r"(layer|block|mixer|attn|attention|hybrid)\w*"
    r"(type|kind|pattern|list|map|spec|layout|mixer|order|schedule)s?$"
    r"|^(mixers?|blocks?|layers|layout|block_pattern|layers_block_type)$"
)
# Lists about a part of a layer, not about what the layer is.
_PART_KEY: Final = re.compile(r"norm|act|rope|rotary|pos|init|quant|lora|dropout")
_ATTENTION_LAYERS_KEY: Final = re.compile(
    r"^(full_|global_|self_)?(attn|attention)_layers?(_ids?|_idxs?|_indices|_index)?$"
)
_ATTENTION_WORD: Final = re.compile(
    r"attn|attention|full|global|local|sliding|swa|chunk|gqa|mha|mqa|mla|window"
)
_FFN_WORD: Final = re.compile(r"^(dense|sparse|moe|mlp|ffn|nope|rope|none|default)$")
_OTHER_WORD: Final = re.compile(
    r"mamba|ssm|s4|rwkv|recurrent|lru|rnn|lstm|hyena|conv|linear|lightning|retention|delta|kda|gla|cross"
    r"|state_?space"
)
_SIGNAL_KEYS: Final = (
    (re.compile(r"^(mamba|ssm)_|^(ssm_cfg|state_size|d_state|time_step_rank|mamba2?)$"), _SSM),
    (
        re.compile(
            r"^(linear_(num|key|value|attn|attention|conv)|lightning|kda_|gla_|gated_delta|retention)"
        ),
        _LINEAR,
    ),
    (re.compile(r"^(rwkv|lru_|recurrent_|rnn_|lstm_)"), _RECURRENT),
    (re.compile(r"^(conv_L_cache|hyena)"), _CONV),
    (
        re.compile(r"^(cross_attention_layers|cross_attn_layers|add_cross_attention|is_encoder_decoder)$"),
        _CROSS,
    ),
    (
        re.compile(
            r"^(index_topk|index_n_heads|sparse_attention_config|compress_ratios|indexer_types|[nd]sa_)"
        ),
        _INDEXER,
    ),
)
_MEANS: Final = (
    (re.compile(r"mamba|ssm|s4|state_?space|^m$"), _SSM),
    (re.compile(r"linear|lightning|delta|kda|gla|retention"), _LINEAR),
    (re.compile(r"recurrent|rwkv|lru|rnn|lstm"), _RECURRENT),
    (re.compile(r"cross"), _CROSS),
    (re.compile(r"conv|hyena"), _CONV),
)
# Fields by which some layers differ from the others.
_SHAPE_KEY: Final = re.compile(
    r"kv_shared|k_eq_v|^cla_|^swa_|^global_(head|num)|num_global_|per_layer|cross_layer"
    r"|sliding_attention_heads"
)
# Keys read elsewhere, whose lists are no layer kinds.
_KNOWN_KEYS: Final = frozenset(
    {
        "layer_types", "mlp_layer_types", "moe_layer_freq", "no_rope_layers", "block_configs",
        "sliding_window_pattern", "_sliding_window_pattern", "attention_types",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Found:
    """Layers that are not modelled: what they are, how many, and the field that says so."""

    kind: str
    count: int | None
    field: str


def _kind_of(word: str) -> str:
    """Return what a layer's name in a pattern means, the name itself where it is new."""
    for pattern, kind in _MEANS:
        if pattern.search(word.lower()):
            return kind
    return f"of the kind {shorten(word, limit=40)}"


def _word(entry: object) -> str | None:
    """Return the text that names a pattern's entry, None where there is none."""
    if isinstance(entry, str):
        return entry
    if isinstance(entry, dict):
        for key in ("type", "kind", "layer_type", "block_type", "mixer", "mixer_type", "name", "attn_type"):
            if isinstance(entry.get(key), str):
                return str(entry[key])
    return None


def _is_attention(word: str) -> bool:
    lowered = word.lower()
    return bool(_ATTENTION_WORD.search(lowered)) and not _OTHER_WORD.search(lowered)


def _count_cycled(words: list[str], n_layers: int | None) -> Counter[str]:
    """Count the words over all layers, repeating a shorter pattern."""
    if n_layers is None or len(words) >= n_layers:
        return Counter(words[:n_layers])
    return Counter(words[layer % len(words)] for layer in range(n_layers))


def _from_words(words: list[str], field: str, n_layers: int | None, *, named: bool) -> _Found | None:
    """Return the layers of a pattern of names that are no attention; `named`: the key itself says pattern."""
    counts = _count_cycled(words, n_layers)
    odd = Counter[str]()
    for word, count in counts.items():
        new = named and not _is_attention(word) and not _FFN_WORD.match(word.lower())
        if new or _OTHER_WORD.search(word.lower()):
            odd[_kind_of(word)] += count
    if not odd:
        return None
    kind, count = odd.most_common(1)[0]
    return _Found(kind, count, field)


def _from_letters(pattern: str, field: str) -> _Found | None:
    """Return the Mamba layers of a pattern of letters: M Mamba, * attention, E experts, - FFN."""
    mamba = pattern.count("M")
    other = len(pattern) - sum(pattern.count(letter) for letter in "M*E-")
    if mamba:
        return _Found(_SSM, mamba, field)
    return _Found("of an unknown kind", other, field) if other else None


def _from_layer_types(fields: Fields, n_layers: int | None) -> _Found | None:
    listed = fields.source.get("layer_types")
    if not isinstance(listed, list) or len(listed) > MAX_LAYERS:
        return None
    odd = Counter(
        _kind_of(word)
        for word in (_word(entry) for entry in listed[:n_layers])
        if word and word not in LAYER_KINDS
    )
    if not odd:
        return None
    kind, count = odd.most_common(1)[0]
    return _Found(kind, count, fields.path("layer_types"))


def _from_patterns(fields: Fields, n_layers: int | None) -> Iterator[_Found | None]:
    """Yield what the layer patterns say, in known and unknown fields."""
    for key, value in fields.source.items():
        if key in _KNOWN_KEYS or len(key) > 100:
            continue
        field, named = fields.path(key), bool(_PATTERN_KEY.search(key)) and not _PART_KEY.search(key)
        if (
            isinstance(value, str)
            and "pattern" in key
            and 1 < len(value) <= MAX_LAYERS
            and len(set(value)) <= 8
        ):
            if set(value) <= set("M*E-") or len(value) == n_layers:
                yield _from_letters(value, field)
        elif isinstance(value, dict) and (named or _ATTENTION_LAYERS_KEY.match(key)):
            words = [name for name, at in value.items() if isinstance(at, list) for _ in at[:MAX_LAYERS]]
            if words and n_layers is not None and len(words) <= n_layers:
                yield _from_words(words, field, len(words), named=True)
        elif isinstance(value, list) and 0 < len(value) <= MAX_LAYERS:
            yield _from_list(fields, key, value, n_layers, named=named)


def _from_list(
    fields: Fields, key: str, value: list[object], n_layers: int | None, *, named: bool
) -> _Found | None:
    """Return the layers that one list says are no attention."""
    field = fields.path(key)
    words = [word for word in (_word(entry) for entry in value) if word is not None]
    if len(words) == len(value):
        return _from_words(words, field, n_layers, named=named) if named or len(words) == n_layers else None
    if not all(is_whole(entry) for entry in value):
        return None
    numbers = [entry for entry in value if isinstance(entry, int)]
    if key == "attn_type_list":  # MiniMax: 0 lightning, 1 softmax
        linear = sum(number == 0 for number in numbers)
        return _Found("linear (lightning) attention", linear, field) if linear else None
    if _ATTENTION_LAYERS_KEY.match(key) and n_layers is not None and len(numbers) < n_layers:
        return _Found("of a kind other than attention", n_layers - len(numbers), field)
    if named and len(numbers) == n_layers and len(set(numbers)) > 1:
        common = Counter(numbers).most_common()[0][1]
        return _Found("of an unknown kind", common, field)
    return None


def _jamba_layers(fields: Fields, n_layers: int | None) -> _Found | None:
    period, offset = fields.source.get("attn_layer_period"), fields.source.get("attn_layer_offset")
    if not isinstance(period, int) or isinstance(period, bool) or not 1 < period <= MAX_LAYERS:
        return None
    start = offset if isinstance(offset, int) and not isinstance(offset, bool) else 0
    if n_layers is None:
        return _Found(_SSM, None, fields.path("attn_layer_period"))
    n_attention = sum(layer % period == start % period for layer in range(n_layers))
    return _Found(_SSM, n_layers - n_attention, fields.path("attn_layer_period"))


def _linear_layers(fields: Fields, n_layers: int | None) -> _Found | None:
    """Return the linear attention layers of Qwen3-Next and Kimi Linear configs without `layer_types`."""
    interval = fields.source.get("full_attention_interval")
    if isinstance(interval, int) and not isinstance(interval, bool) and interval > 1 and n_layers is not None:
        return _Found(_LINEAR, n_layers - n_layers // interval, fields.path("full_attention_interval"))
    nested = fields.source.get("linear_attn_config")
    if isinstance(nested, dict):
        layers = nested.get("kda_layers")
        count = len(layers) if isinstance(layers, list) else n_layers
        return _Found(_LINEAR, count, fields.path("linear_attn_config"))
    return None


def _indexer_layers(fields: Fields, key: str, value: object, n_layers: int | None) -> int | None:
    """Return how many layers an indexer's field covers."""
    if key == "sparse_attention_config" and isinstance(value, dict):
        value = value.get("sparse_attention_freq")
    elif isinstance(fields.source.get("compress_ratios"), list):  # DeepSeek V4: 0 marks a plain layer
        value = fields.source["compress_ratios"]
    if isinstance(value, list) and len(value) <= 2 * MAX_LAYERS and key != "indexer_types":
        return sum(bool(entry) for entry in value[:n_layers])
    return n_layers


def _from_signals(fields: Fields, n_layers: int | None) -> Iterator[_Found | None]:
    """Yield what single fields say: sizes that only such layers have."""
    for key, value in fields.source.items():
        off = value is None or value is False or value == 0 or value in ([], {}, "")
        if off or len(key) > 100:
            continue
        for pattern, kind in _SIGNAL_KEYS:
            if not pattern.search(key):
                continue
            if isinstance(value, dict) and value.get("use_sparse_attention") is False:
                continue
            count = n_layers
            if kind == _CROSS and isinstance(value, list):
                count = len(value)
            elif kind == _INDEXER:
                count = _indexer_layers(fields, key, value, n_layers)
            yield _Found(kind, count, fields.path(key))


def _known_n_layers(fields: Fields) -> int | None:
    """Return the number of layers where it is a plausible one, else None; a fault comes later."""
    for name in LAYERS:
        value = fields.source.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return value if 1 <= value <= MAX_LAYERS else None
    return None


def _refused_name(outer: Fields, fields: Fields) -> tuple[str, str] | None:
    """Return the kind and the field of a class or `model_type` that is refused whole."""
    for level in (fields, outer):
        names: list[tuple[str, object]] = [("model_type", level.source.get("model_type"))]
        classes = level.source.get("architectures")
        if isinstance(classes, list) and classes:
            names.append(("architectures", classes[0]))
        for key, name in names:
            if isinstance(name, str) and class_stem(name) in _REFUSED_STEMS:
                return _REFUSED_STEMS[class_stem(name)], level.path(key)
    return None


def _raise(found: _Found, n_layers: int | None) -> None:
    if found.count is None or n_layers is None:
        how_many = "its layers are" if found.count is None else f"{found.count} layers are"
    elif found.count > n_layers:
        how_many = f"{found.count} layers beside the {n_layers} of self-attention are"
    else:
        how_many = f"{found.count} of {n_layers} layers are"
    raise UnsupportedModel(f"{how_many} {found.kind}, which is not modelled", field=found.field)


def refuse_unsupported(outer: Fields, fields: Fields, family: Family) -> None:
    """Raise `UnsupportedModel` where any layer is of a kind that is not modelled.

    Parameters
    ----------
    outer, fields : Fields
        The whole config and its language model.
    family : Family
        Who would read it.
    """
    n_layers = _known_n_layers(fields)
    listed = _from_layer_types(fields, n_layers)
    if listed is not None:
        _raise(listed, n_layers)
    refused = _refused_name(outer, fields)
    all_attention = isinstance(fields.source.get("layer_types"), list) and refused is None
    for found in (
        *_from_patterns(fields, n_layers),
        _jamba_layers(fields, n_layers),
        _linear_layers(fields, n_layers) if not all_attention else None,
        *(_from_signals(fields, n_layers) if not _unused_signals(family, all_attention) else ()),
    ):
        if found is not None and found.count != 0:
            _raise(found, n_layers)
    if not family.model_types:
        _refuse_unread_shapes(fields, n_layers)
    if family.stem == "GraniteMoeHybrid" and not all_attention:
        _raise(_Found(_SSM, n_layers, fields.path("layer_types")), n_layers)
    if refused is not None:
        _raise(_Found(refused[0], n_layers, refused[1]), n_layers)


def _refuse_unread_shapes(fields: Fields, n_layers: int | None) -> None:
    """Raise where an unknown model has fields that give some layers another shape."""
    for key, value in fields.source.items():
        if value and len(key) <= 100 and _SHAPE_KEY.search(key):
            layers = "its layers" if n_layers is None else f"some of its {n_layers} layers"
            raise UnsupportedModel(
                f"{layers} have a shape of their own by a field that this model type is not known for",
                field=fields.path(key),
            )


def _unused_signals(family: Family, all_attention: bool) -> bool:
    """Return True for the hybrid class whose attention-only members keep their unused Mamba sizes."""
    return family.stem == "GraniteMoeHybrid" and all_attention
