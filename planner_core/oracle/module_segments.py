"""Sort what a run of a `transformers` model did into the planner's segments.

Owns: which module is attention, FFN, experts or lm_head, what kind each layer is, and which weights count
as matmul weights.
Refuses: the planner's parse: what a layer is (global, windowed, latent, routed) is read from the built
modules, their config and their cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from planner_core.oracle.measurement import CannotSpeak, Execution, Measurement, SegmentCount
from planner_core.oracle.torch_room import import_torch

LAYER_KINDS = {
    "global": "global",
    "local": "sliding",
    "full_attention": "global",
    "sliding_attention": "sliding",
    "chunked_attention": "chunked",
}


def sort_modules(
    *,
    built: Any,
    config: Any,
    cache: Any,
    flops: Mapping[str, int],
    tokens: int,
    batch: int,
    context_tokens: int,
) -> Measurement:
    """Sort module counts into segments: attention and FFN of each layer, lm_head, and the rest.

    Parameters
    ----------
    built, config, cache : object
        The language model, its config and the cache of the run.
    flops : mapping of str to int
        FLOP by module path, as `count_flops` gives them.
    tokens, batch, context_tokens : int
        New tokens of the step over all sequences, sequences, and `S` [tokens].

    Returns
    -------
    Measurement
        What lies outside the layers and the lm_head is under "other".
    """
    root = type(built).__name__
    paths = {module: path for path, module in built.named_modules()}

    def flops_of(module: Any) -> int:
        return flops.get(f"{root}.{paths[module]}", 0)

    def rows_of(module: Any, elements: int) -> int:
        """Tokens that went through a module's weights."""
        return flops_of(module) // (2 * elements)

    segments: dict[str, SegmentCount] = {}
    head = built.get_output_embeddings()
    head_count = SegmentCount(flops=flops_of(head), weight_elements=head.weight.numel())
    outside = SegmentCount(
        flops=flops["Global"] - head_count.flops,
        weight_elements=_matmul_elements(built, without=head),
    )
    latent_rows, expert_shares = set(), set()
    layers = _layers(built, config)
    kinds = _layer_kinds(config, cache, len(layers))
    share = SegmentCount()
    for module, path in paths.items():
        if path.endswith("per_layer_model_projection"):  # one matmul for the FFN inputs of all layers
            share = SegmentCount(
                flops=flops_of(module) // len(layers),
                weight_elements=module.weight.numel() // len(layers),
            )
    for layer, kind in zip(layers, kinds, strict=True):
        whole = SegmentCount(flops=flops_of(layer), weight_elements=_matmul_elements(layer))
        attention = SegmentCount()
        for block in _attention_blocks(layer):
            attention = attention.plus(
                SegmentCount(flops=flops_of(block), weight_elements=_matmul_elements(block))
            )
            if hasattr(block, "kv_b_proj"):
                kind = "mla"
                latent_rows.add(rows_of(block.kv_b_proj, block.kv_b_proj.weight.numel()))
        experts = list(_expert_blocks(layer))
        for block, n_experts in experts:
            rows = rows_of(block, _matmul_elements(block) // n_experts)
            expert_shares.add(rows == tokens * n_experts)
        for name, count in (
            (f"attention/{kind}", attention),
            (f"ffn/{'moe' if experts else 'dense'}", whole.minus(attention).plus(share)),
        ):
            if count != SegmentCount():
                segments[name] = segments.get(name, SegmentCount()).plus(count)
        outside = outside.minus(whole).minus(share)
    segments["lm_head"] = head_count
    if outside != SegmentCount():
        segments["other"] = outside
    return Measurement(
        segments=segments,
        execution=Execution(
            latent_expanded=latent_rows == {batch * context_tokens},
            all_experts_ran=expert_shares == {True},
            windows_padded=any(
                kind in ("sliding", "chunked") and type(kept).__name__ == "DynamicLayer"
                for kind, kept in zip(kinds, cache.layers, strict=False)
            ),
            lm_head_on_all_tokens=tokens > batch and rows_of(head, head.weight.numel()) == tokens,
            n_altup_streams=getattr(config, "altup_num_inputs", 0),
        ),
    )


def _layers(built: Any, config: Any) -> Any:
    """Return the list of decoder layers: the first list of that length whose members attend."""
    torch = import_torch()
    for module in built.modules():
        if (
            isinstance(module, torch.nn.ModuleList)
            and len(module) == config.num_hidden_layers
            and any(True for layer in module for _ in _attention_blocks(layer))
        ):
            return module
    raise CannotSpeak(f"no list of {config.num_hidden_layers} layers found in {type(built).__name__}")


def _attention_blocks(layer: Any) -> Iterator[Any]:
    """Yield a layer's own children that attend, told by their class, and what runs beside attention.

    AltUp's matrices are called one by one, not through the module that holds them.
    """
    for child in layer.children():
        name = type(child).__name__
        if "Attention" in name or "Laurel" in name:
            yield child
        elif "AltUp" in name:
            yield from (part for part in child.children() if hasattr(part, "in_features"))


def _expert_blocks(layer: Any) -> Iterator[tuple[Any, int]]:
    """Yield the modules that hold stacked expert weights, and how many experts each holds."""
    for module in layer.modules():
        stacked = [weight for weight in module.parameters(recurse=False) if weight.ndim == 3]
        if stacked and "Expert" in type(module).__name__:
            yield module, stacked[0].shape[0]


def _layer_kinds(config: Any, cache: Any, n_layers: int) -> list[str]:
    """Return each layer's attention kind: from the config's layer types, else from its cache."""
    types = getattr(config, "layer_types", None) or getattr(config, "attention_layers", None)
    if types is None:
        windowed = "chunked" if getattr(config, "attention_chunk_size", None) else "sliding"
        return [windowed if layer.is_sliding else "global" for layer in cache.layers[:n_layers]]
    return [LAYER_KINDS.get(name, str(name)) for name in types[:n_layers]]


def _matmul_elements(module: Any, *, without: Any = None) -> int:
    """Return the elements of a module's matmul weights: no biases, norms or embedding tables."""
    torch = import_torch()
    total = 0
    for part in module.modules():
        if part is without or isinstance(part, torch.nn.Embedding) or "Norm" in type(part).__name__:
            continue
        total += sum(
            weight.numel()
            for name, weight in part.named_parameters(recurse=False)
            if weight.ndim >= 2 and not name.endswith("bias")
        )
    return total
