"""An oracle of our own: plain torch modules of the parsed shapes, really multiplied on the meta device.

Owns: one layer of each kind as `torch.nn` modules, run under FlopCounterMode and scaled to its layers.
Refuses: to be more than it is: it checks the planner's formulas against executed matmuls, but takes the
shapes from the same parse, so it cannot find a shape read wrongly.

It expands MLA in prefill and absorbs it in decode, routes each token to its experts, and computes whole
score rectangles.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from planner_core.model_arch import AttentionGroup, FfnGroup, ModelArch
from planner_core.oracle.measurement import Execution, Measurement, SegmentCount
from planner_core.oracle.torch_room import MEASURING, count_flops, import_torch


def measure(
    *, model: ModelArch, phases: Sequence[str], context_tokens: int, batch: int
) -> Mapping[str, Measurement]:
    """Run one layer of each group and the lm_head, and return the counts by phase.

    Parameters
    ----------
    model : ModelArch
        The shapes.
    phases : sequence of str
        "decode", "prefill".
    context_tokens, batch : int
        `S` [tokens] and `n`.

    Returns
    -------
    mapping of str to Measurement
        By phase.
    """
    with MEASURING:
        return {phase: _measure_phase(model, phase, context_tokens, batch) for phase in phases}


def _measure_phase(model: ModelArch, phase: str, context: int, batch: int) -> Measurement:
    torch = import_torch()
    n_new = context if phase == "prefill" else 1
    segments: dict[str, SegmentCount] = {}

    def add(name: str, n_layers: int, layer: Any, run: Callable[[], object]) -> None:
        elements = sum(weight.numel() for weight in layer.parameters())
        counted = SegmentCount(
            flops=n_layers * count_flops(run).get("Global", 0),
            weight_elements=n_layers * elements,
        )
        segments[name] = segments.get(name, SegmentCount()).plus(counted)

    n_attention_layers = Counter(attention for attention, _ in model.layer_pattern)
    n_ffn_layers = Counter(ffn for _, ffn in model.layer_pattern)
    with torch.device("meta"):
        hidden = torch.empty(batch, n_new, model.hidden_size)
        for index, attention in enumerate(model.attention):
            attend = _run_mla if attention.kind == "mla" else _run_attention
            layer = _attention_layer(torch, model.hidden_size, attention)
            add(
                f"attention/{attention.kind}",
                n_attention_layers[index],
                layer,
                partial(attend, torch, layer, attention, hidden, context),
            )
        for index, ffn in enumerate(model.ffn):
            layer = _ffn_layer(torch, model.hidden_size, ffn)
            add(
                f"ffn/{ffn.kind}",
                n_ffn_layers[index],
                layer,
                partial(_run_ffn, torch, layer, ffn, hidden),
            )
        head = torch.nn.Linear(model.hidden_size, model.vocab_size, bias=False)
        add("lm_head", 1, head, lambda: head(hidden[:, -1:]))
    return Measurement(segments=segments, execution=Execution())


def _attention_layer(torch: Any, hidden_size: int, group: AttentionGroup) -> Any:
    """Return the projections of one layer."""

    def linear(n_in: int, n_out: int) -> Any:
        return torch.nn.Linear(n_in, n_out, bias=False)

    heads, layer = group.n_q_heads, torch.nn.ModuleDict()
    if group.kind == "mla":
        if group.q_lora_rank:
            layer["q_a"] = linear(hidden_size, group.q_lora_rank)
        layer["q_b"] = linear(group.q_lora_rank or hidden_size, heads * group.head_dim_k)
        layer["kv_a"] = linear(hidden_size, group.kv_lora_rank + group.qk_rope_head_dim)
        layer["k_b"] = linear(group.kv_lora_rank, heads * group.qk_nope_head_dim)
        layer["v_b"] = linear(group.kv_lora_rank, heads * group.head_dim_v)
    else:
        layer["q"] = linear(hidden_size, heads * group.head_dim_k)
        if group.has_k_proj:
            layer["k"] = linear(hidden_size, group.n_kv_heads * group.head_dim_k)
        if group.has_v_proj:
            layer["v"] = linear(hidden_size, group.n_kv_heads * group.head_dim_v)
    layer["o"] = linear(heads * group.head_dim_v, hidden_size)
    if group.replicated_weight_elements:
        layer["replicated"] = linear(group.replicated_weight_elements, 1)
    return layer


def _run_replicated(torch: Any, layer: Any, hidden: Any) -> None:
    """Run the weights of which only the number is known: one product and sum a token and element."""
    if "replicated" in layer:
        layer["replicated"](torch.empty(*hidden.shape[:-1], layer["replicated"].in_features))


def _run_attention(torch: Any, layer: Any, group: AttentionGroup, hidden: Any, context: int) -> None:
    """Project, score every query against every key at hand, mix the values, project out."""
    batch, n_new, _ = hidden.shape
    heads = group.n_q_heads
    for name in ("q", "k", "v"):
        if name in layer:
            layer[name](hidden)
    n_keys = context
    if n_new == 1 and group.window_tokens is not None:
        n_keys = min(context, group.window_tokens)
    query = torch.empty(batch, heads, n_new, group.head_dim_k)
    keys = torch.empty(batch, heads, n_keys, group.head_dim_k)
    values = torch.empty(batch, heads, n_keys, group.head_dim_v)
    mixed = (query @ keys.transpose(-1, -2)) @ values
    layer["o"](mixed.transpose(1, 2).reshape(batch, n_new, heads * group.head_dim_v))
    _run_replicated(torch, layer, hidden)


def _run_mla(torch: Any, layer: Any, group: AttentionGroup, hidden: Any, context: int) -> None:
    """Run MLA: expanded in prefill; in decode its up-projections go into the query and the output."""
    batch, n_new, _ = hidden.shape
    heads, rank, rope = group.n_q_heads, group.kv_lora_rank, group.qk_rope_head_dim
    nope, value_dim = group.qk_nope_head_dim, group.head_dim_v
    layer["q_b"](layer["q_a"](hidden) if "q_a" in layer else hidden)
    latent = layer["kv_a"](hidden)[..., :rank]
    if n_new == 1:
        to_latent = layer["k_b"].weight.view(heads, nope, rank)
        absorbed = torch.einsum("bhd,hdr->bhr", torch.empty(batch, heads, nope), to_latent)
        query = torch.cat([absorbed, torch.empty(batch, heads, rope)], dim=-1)
        cached = torch.empty(batch, context, rank + rope)
        scores = query @ cached.transpose(-1, -2)
        mixed_latent = scores @ cached[..., :rank]
        from_latent = layer["v_b"].weight.view(heads, value_dim, rank)
        mixed = torch.einsum("bhr,hdr->bhd", mixed_latent, from_latent)
    else:
        layer["k_b"](latent)
        values = layer["v_b"](latent).view(batch, n_new, heads, value_dim).transpose(1, 2)
        query = torch.empty(batch, heads, n_new, nope + rope)
        keys = torch.empty(batch, heads, n_new, nope + rope)
        mixed = ((query @ keys.transpose(-1, -2)) @ values).transpose(1, 2)
    layer["o"](mixed.reshape(batch, n_new, heads * value_dim))
    _run_replicated(torch, layer, hidden)


def _ffn_layer(torch: Any, hidden_size: int, group: FfnGroup) -> Any:
    """Return the matrices of one layer's FFN; experts are stacked."""
    layer = torch.nn.ModuleDict()

    def add_matrices(prefix: str, width: int) -> None:
        layer[f"{prefix}_in"] = torch.nn.Linear(hidden_size, (group.n_matrices - 1) * width, bias=False)
        layer[f"{prefix}_out"] = torch.nn.Linear(width, hidden_size, bias=False)

    if group.kind == "moe":
        experts = torch.nn.ParameterDict()
        n_in = (group.n_matrices - 1) * group.intermediate_size
        experts["in"] = torch.empty(group.n_experts, n_in, hidden_size)
        experts["out"] = torch.empty(group.n_experts, hidden_size, group.intermediate_size)
        layer["experts"] = experts
        if group.shared_intermediate_size:
            add_matrices("shared", group.shared_intermediate_size)
    else:
        add_matrices("dense", group.intermediate_size)
    if group.replicated_weight_elements:
        layer["replicated"] = torch.nn.Linear(group.replicated_weight_elements, 1, bias=False)
    return layer


def _run_ffn(torch: Any, layer: Any, group: FfnGroup, hidden: Any) -> None:
    """Each token through the dense or shared matrices and through each expert that it is routed to."""
    for prefix in ("dense", "shared"):
        if f"{prefix}_in" in layer:
            layer[f"{prefix}_out"](layer[f"{prefix}_in"](hidden)[..., : layer[f"{prefix}_out"].in_features])
    if group.kind == "moe":
        tokens = hidden.reshape(-1, hidden.shape[-1])
        rows = tokens.repeat_interleave(group.n_experts_per_token, dim=0).unsqueeze(-1)
        chosen = torch.zeros(rows.shape[0], dtype=torch.long)
        inner = torch.bmm(layer["experts"]["in"][chosen], rows)
        torch.bmm(layer["experts"]["out"][chosen], inner[:, : group.intermediate_size])
    _run_replicated(torch, layer, hidden)
