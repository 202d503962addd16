"""A `config.json`, already loaded, to a `ModelArch`: the steps in order.

Owns: `parse_config`; which nested part is the language model; which family reads it.
Refuses: opening files; any layer kind that is not modelled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, TypeVar

from planner_core.errors import shorten
from planner_core.hf_config.attention import read_attention
from planner_core.hf_config.extras import read_extras
from planner_core.hf_config.families import Family
from planner_core.hf_config.family_lookup import family_of_class, family_of_model_type
from planner_core.hf_config.family_table import LLAMA
from planner_core.hf_config.ffn import moe_rule, read_ffn
from planner_core.hf_config.fields import MAX_HIDDEN, MAX_REPORTED, Fields, Log
from planner_core.hf_config.per_layer import read_block_lists
from planner_core.hf_config.quantization import Stored, read_stored
from planner_core.hf_config.refusals import refuse_unsupported
from planner_core.hf_config.sizes import Sizes, Traits, read_n_layers, read_sizes, read_traits
from planner_core.hf_config.weights import (
    Weight,
    attention_weights,
    ffn_weights,
    model_weights,
    norm_weights,
)
from planner_core.model_arch import AttentionGroup, FfnGroup, ModelArch

_Group = TypeVar("_Group", AttentionGroup, FfnGroup)

_NESTED: Final = ("text_config", "llm_config", "language_config", "thinker_config", "text_model_config")
_TOWERS: Final = (
    "vision_config", "audio_config", "visual", "vision_tower", "mm_vision_tower", "vision_model_config",
    "talker_config",
)  # fmt: skip
# Keys of a config that say nothing about the model's shape.
_UNREMARKABLE: Final = frozenset({"transformers_version", "_name_or_path", "auto_map", "name_or_path"})
_PLAIN: Final = replace(LLAMA, stem="", model_types=(), defaults={})


def _language_part(outer: Fields) -> Fields:
    """Return the nested object that describes the language model, or the whole config."""
    fields = outer
    for _ in range(3):
        inner = next((name for name in _NESTED if fields.has(name)), None)
        nested = None if inner is None else fields.child(inner)
        if nested is None:
            return fields
        fields = nested
    return fields


def _class_name(fields: Fields) -> str | None:
    """Return the first class in `architectures`, or None."""
    value = fields.get("architectures")
    if value is None:
        return None
    if isinstance(value, list) and value and isinstance(value[0], str):
        return value[0]
    fields.log.fault(
        fields.path("architectures"),
        value,
        allowed="a list with one class name, such as ['LlamaForCausalLM']",
        fix="give architectures as a list of texts",
    )
    return None


def _family(outer: Fields, fields: Fields) -> tuple[Family, str]:
    """Return the family that reads the language model, and the architecture's name to show."""
    levels = [fields] if fields is outer else [fields, outer]
    shown = ""
    found: Family | None = None
    for level in levels:
        name, model_type = _class_name(level), level.text("model_type")
        shown = name or shown or model_type or ""
        by_class = None if name is None else family_of_class(name)
        by_type = None if model_type is None else family_of_model_type(model_type)
        if by_class is not None and by_type is not None and by_class is not by_type:
            level.log.note(
                f"{level.path('model_type')} = {shorten(model_type)} but "
                f"{level.path('architectures')} = {shorten(name)}; the class in architectures is used"
            )
        elif by_class is not None and model_type is not None and by_type is None:
            level.log.note(
                f"{level.path('model_type')} = {shorten(model_type)} is not known; "
                f"the class in architectures, {shorten(name)}, is used"
            )
        if found is None:
            found = by_class or by_type
    if found is not None:
        return found, shorten(shown)[1:-1] if shown else found.stem
    where = fields.path("model_type")
    latent = fields.has("kv_lora_rank")
    fields.log.assume(
        f"{where} = {shorten(fields.source.get('model_type'))} is not known: read as a plain decoder with "
        f"{'multi-head latent' if latent else 'grouped-query'} attention, a gated FFN, two RMS norms a layer "
        "and no biases unless a flag says so"
    )
    return replace(_PLAIN, mla=latent), shorten(shown)[1:-1] if shown else "unknown"


def _merge(layers: Iterable[_Group | None]) -> tuple[tuple[_Group, ...], list[int | None]]:
    """Return one group a shape, in order of first use, and each layer's group."""
    order: dict[_Group, int] = {}
    counts: list[int] = []
    at: list[int | None] = []
    for layer in layers:
        if layer is None:
            at.append(None)
            continue
        index = order.setdefault(layer, len(order))
        if index == len(counts):
            counts.append(0)
        counts[index] += 1
        at.append(index)
    return tuple(replace(shape, n_layers=n) for shape, n in zip(order, counts, strict=True)), at


def _note_what_is_left_out(outer: Fields, fields: Fields) -> None:
    log = outer.log
    towers = [name for name in _TOWERS if outer.has(name)]
    for name in towers:
        outer.get(name)
    if towers or fields is not outer:
        what = ", ".join(towers) if towers else "what is outside " + fields.where
        log.note(f"only the language model is described: the vision tower ({what}) is not counted")
    for name in ("num_nextn_predict_layers", "num_mtp_modules", "mtp_num_hidden_layers"):
        count = fields.source.get(name)
        if isinstance(count, int) and not isinstance(count, bool) and count > 0:
            fields.get(name)
            log.note(
                f"{fields.path(name)} = {shorten(count)}: the multi-token prediction part is not counted"
            )


def _ignored(outer: Fields, fields: Fields) -> tuple[str, ...]:
    """Return the keys that were read past, sorted, at most `MAX_REPORTED` and a last line with the rest."""
    paths: set[str] = set()
    level = outer
    while True:
        paths.update(path for path in level.unread() if path not in _UNREMARKABLE)
        if level.where == fields.where:
            break
        name = fields.where.removeprefix(level.where).lstrip(".").split(".")[0]
        nested = level.source.get(name)
        if not isinstance(nested, Mapping):
            break
        level = Fields(nested, outer.log, level.path(name))
    shown = sorted(shorten(path, limit=120)[1:-1] for path in paths)
    if len(shown) > MAX_REPORTED:
        shown = [*shown[:MAX_REPORTED], f"and {len(shown) - MAX_REPORTED:,} more"]
    return tuple(shown)


def _all_weights(
    attention: list[AttentionGroup | None],
    ffn: list[FfnGroup | None],
    sizes: Sizes,
    traits: Traits,
    fields: Fields,
    family: Family,
) -> tuple[list[list[Weight]], list[Weight]]:
    """Return the weights of each layer in order, and those outside the layers."""
    rule = moe_rule(fields, family)
    hidden = sizes.hidden
    extras = read_extras(fields, family, sizes, rule)
    cache: dict[tuple[AttentionGroup | None, FfnGroup | None], list[Weight]] = {}
    layers = []
    for shape, width in zip(attention, ffn, strict=True):
        key = (shape, width)
        if key not in cache:
            cache[key] = [
                *([] if shape is None else attention_weights(shape, traits, hidden)),
                *([] if width is None else ffn_weights(width, traits, rule, hidden)),
                *([norm_weights(traits, hidden)] if shape is not None or width is not None else []),
                *extras.layer,
            ]
        layers.append(cache[key])
    embedding_width = hidden
    if family.stem == "OPT":
        embedding_width = fields.optional_count("word_embed_proj_dim", high=MAX_HIDDEN) or hidden
    outside = model_weights(sizes, traits, family, embedding_width=embedding_width)
    return layers, [*outside, *extras.model]


def parse_config(source: Mapping[str, object], *, name: str | None = None) -> ModelArch:
    """Describe the language model of a Hugging Face `config.json`.

    Parameters
    ----------
    source : mapping
        The loaded JSON object.
    name : str, optional
        What to call the model; its class by default.

    Returns
    -------
    ModelArch
        Exact counts, with what was assumed and ignored.

    Raises
    ------
    InvalidSpec
        With every fault of the config at once.
    UnsupportedModel
        Where layers of a kind that is not modelled exist; it names the kind and how many.

    Examples
    --------
    >>> model = parse_config({"model_type": "llama", "num_key_value_heads": 8, "intermediate_size": 14336,
    ...                       "vocab_size": 128256})
    >>> model.n_params
    8030261248
    """
    log = Log()
    outer = Fields(source, log)
    fields = _language_part(outer)
    family, architecture = _family(outer, fields)
    refuse_unsupported(outer, fields, family)
    n_layers = read_n_layers(fields, family)
    layers_known = not log.faults
    sizes = read_sizes(outer, fields, family, n_layers=n_layers)
    traits = read_traits(fields, family)
    if not layers_known:
        log.raise_faults()
    blocks = read_block_lists(fields, family, sizes, traits)
    rule = moe_rule(fields, family)
    attention: list[AttentionGroup | None]
    ffn: list[FfnGroup | None]
    if blocks is not None:
        attention, ffn = blocks
    else:
        attention = list(read_attention(fields, family, sizes))
        ffn = list(read_ffn(fields, family, rule, sizes, traits))
    log.raise_faults()
    extras = read_extras(fields, family, sizes, rule)
    layers, outside = _all_weights(attention, ffn, sizes, traits, fields, family)
    stored: Stored = read_stored(outer, fields, layers, outside)
    log.raise_faults()
    _note_what_is_left_out(outer, fields)
    attention_groups, attention_at = _merge(extras.on_attention(attention))
    ffn_groups, ffn_at = _merge(extras.on_ffn(ffn))
    tables = sum(w.n_elements for w in outside if w.kind == "embedding" and w.module != "embed_tokens")
    return ModelArch(
        name=name or architecture,
        architecture=architecture,
        hidden_size=sizes.hidden,
        n_layers=n_layers,
        vocab_size=sizes.vocab,
        tied_embeddings=sizes.tied,
        max_position_tokens=sizes.max_positions,
        attention=attention_groups,
        ffn=ffn_groups,
        layer_pattern=tuple(zip(attention_at, ffn_at, strict=True)),
        n_params=sum(w.n_elements for layer in layers for w in layer) + sum(w.n_elements for w in outside),
        extra_embedding_elements=tables,
        widths=stored.widths,
        kv_dtype_bytes=stored.kv_dtype_bytes,
        weight_bytes=stored.weight_bytes,
        assumed=tuple(log.assumed[:MAX_REPORTED]),
        ignored=_ignored(outer, fields),
        notes=tuple(log.notes[:MAX_REPORTED]),
    )
