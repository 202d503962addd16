"""The further small matrices of Gemma 3n and Gemma 4, and gates on attention.

Owns: per-layer input embeddings, LAuReL, AltUp, the norms beside a MoE block, attention gates.
Refuses: everything that other families share (see `weights`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from planner_core.hf_config.families import Family, MoeRule
from planner_core.hf_config.fields import MAX_HIDDEN, MAX_VOCAB, Fields
from planner_core.hf_config.sizes import Sizes
from planner_core.hf_config.weights import Weight
from planner_core.model_arch import AttentionGroup, FfnGroup


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """Weights that a family adds to each layer and to the model.

    Parameters
    ----------
    layer, model : tuple of Weight
        In each layer; outside the layers.
    """

    layer: tuple[Weight, ...] = ()
    model: tuple[Weight, ...] = ()
    attention_elements: int = 0
    ffn_elements: int = 0

    def on_attention(self, layers: Iterable[AttentionGroup | None]) -> Iterator[AttentionGroup | None]:
        """Yield the layers with the extra matrices that run beside attention."""
        for layer in layers:
            if layer is None or not self.attention_elements:
                yield layer
            else:
                total = layer.replicated_weight_elements + self.attention_elements
                yield replace(layer, replicated_weight_elements=total)

    def on_ffn(self, layers: Iterable[FfnGroup | None]) -> Iterator[FfnGroup | None]:
        """Yield the layers with the extra matrices that run beside the FFN."""
        for layer in layers:
            if layer is None or not self.ffn_elements:
                yield layer
            else:
                total = layer.replicated_weight_elements + self.ffn_elements
                yield replace(layer, replicated_weight_elements=total)


def _per_layer_inputs(fields: Fields, sizes: Sizes, width: int) -> Extras:
    """Return the table of per-layer embeddings, its projection, and each layer's gate and projection."""
    hidden, n_layers = sizes.hidden, sizes.n_layers
    rows = fields.count("vocab_size_per_layer_input", default=262144, high=MAX_VOCAB)
    layer = (
        Weight("ffn", "per_layer_input_gate", width, hidden),
        Weight("ffn", "per_layer_projection", hidden, width),
        Weight("ffn", "per_layer_model_projection", width, hidden),  # one layer's part of it
        Weight("other", "post_per_layer_input_norm", hidden, 1),
    )
    model = (
        Weight("embedding", "embed_tokens_per_layer", rows, n_layers * width),
        Weight("other", "per_layer_projection_norm", width, 1),
    )
    return Extras(layer=layer, model=model, ffn_elements=3 * width * hidden)


def _gemma3n(fields: Fields, sizes: Sizes) -> Extras:
    hidden = sizes.hidden
    width = fields.count("hidden_size_per_layer_input", default=256, high=MAX_HIDDEN)
    rank = fields.count("laurel_rank", default=64, high=MAX_HIDDEN)
    inputs = fields.count("altup_num_inputs", default=4, high=64)
    base = _per_layer_inputs(fields, sizes, width)
    beside_attention = (
        Weight("attention", "laurel.linear_left", rank, hidden),
        Weight("attention", "laurel.linear_right", hidden, rank),
        Weight("attention", "altup.modality_router", inputs, hidden),
        Weight("attention", "altup.prediction_coefs", inputs * inputs, inputs),
        Weight("attention", "altup.correction_coefs", inputs, inputs),
    )
    small = (
        Weight("other", "laurel.post_laurel_norm", hidden, 1),
        Weight("other", "altup.router_norm", hidden, 1),
        Weight("other", "altup.correct_output_scale", hidden, 1),
    )
    # Projections in and out of the further streams: outside the layers, charged to memory, not to time.
    streams = Weight("embedding", "altup_projections", hidden, hidden, 2 * (inputs - 1))
    fields.log.note("AltUp's projections in and out of its streams take memory here and no time")
    return Extras(
        layer=(*base.layer, *beside_attention, *small),
        model=(*base.model, streams),
        attention_elements=sum(weight.n_elements for weight in beside_attention),
        ffn_elements=base.ffn_elements,
    )


def _gemma4(fields: Fields, sizes: Sizes, rule: MoeRule | None) -> Extras:
    hidden = sizes.hidden
    width = fields.count("hidden_size_per_layer_input", default=256, low=0, high=MAX_HIDDEN)
    base = _per_layer_inputs(fields, sizes, width) if width else Extras()
    if rule is None:
        return base
    experts = fields.count("num_experts", high=MAX_HIDDEN)
    beside_moe = (
        Weight("other", "layernorm_of_moe", 3 * hidden, 1),
        Weight("other", "router.scale", hidden + experts, 1),
    )
    return replace(base, layer=(*base.layer, *beside_moe))


def read_extras(fields: Fields, family: Family, sizes: Sizes, rule: MoeRule | None) -> Extras:
    """Return what the family adds; nothing for most."""
    if family.stem == "Gemma3n":
        return _gemma3n(fields, sizes)
    if family.stem == "Gemma4":
        return _gemma4(fields, sizes, rule)
    return Extras()
