"""What was understood of a run-spec: the model as parsed, what was assumed, what was ignored.

Owns: the part of the Run spec page under the form, and its tables for the report.
Refuses: numbers of its own: each is the core's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from planner_core.model_arch import ModelArch, kv_bytes_per_token
from planner_core.run_spec import RunSpec
from ui import export, layout, loaded, tables, text

_KINDS = {
    "global": "Global attention",
    "sliding": "Sliding-window attention",
    "chunked": "Chunked attention",
    "mla": "Multi-head latent attention",
    "dense": "Dense FFN",
    "moe": "Mixture of experts",
}


def layer_table(model: ModelArch) -> pd.DataFrame:
    """Return one row a group of layers."""
    rows: list[dict[str, Any]] = []
    for group in model.attention:
        window = "" if group.window_tokens is None else f", window {text.count(group.window_tokens)}"
        heads = f"{group.n_q_heads} query heads, {group.n_kv_heads} KV heads"
        if group.kind == "mla":
            heads = f"{group.n_q_heads} query heads, one latent of {group.cached_elements_per_token}"
        rows.append(
            {
                "Layers of": _KINDS[group.kind],
                "Layers": group.n_layers,
                "Shape": f"{heads}{window}",
                "Head dim K": group.head_dim_k,
                "Head dim V": group.head_dim_v,
                "Cached elements per token": group.cached_elements_per_token if group.owns_cache else 0,
                "FFN width": None,
            }
        )
    for ffn in model.ffn:
        gated = "gated" if ffn.gated else "not gated"
        shape = gated
        if ffn.kind == "moe":
            shape = f"{ffn.n_experts} experts, {ffn.n_experts_per_token} per token, {gated}"
            if ffn.shared_intermediate_size:
                shape += f", shared width {text.count(ffn.shared_intermediate_size)}"
        rows.append(
            {
                "Layers of": _KINDS[ffn.kind],
                "Layers": ffn.n_layers,
                "Shape": shape,
                "Head dim K": None,
                "Head dim V": None,
                "Cached elements per token": None,
                "FFN width": ffn.intermediate_size,
            }
        )
    whole = ["Head dim K", "Head dim V", "Cached elements per token", "FFN width"]
    return pd.DataFrame(rows).astype(dict.fromkeys(whole, "Int64"))


def parameter_note(model: ModelArch, document: Mapping[str, Any]) -> str:
    """Return how the exact count compares with the model card, where one is known."""
    preset = loaded.preset_named(document.get("hf_config"), known=loaded.model_presets())
    entry = loaded.model_index()[preset] if preset else {}
    published = entry.get("published_params")
    if not published:
        return "no published count to compare with"
    difference = model.n_params - int(published)
    if difference == 0:
        return f"exactly as published: {text.count(published)}"
    return f"{text.count(published)} published, {difference / published:+.2%}"


def kv_note(spec: RunSpec) -> str:
    """Return what the layers with a window add."""
    windowed = kv_bytes_per_token(spec.model, kv_dtype_bytes=spec.kv_dtype_bytes, windowed=True)
    return f"and {text.n_bytes(windowed)} inside the window" if windowed else "all layers, whole model"


def fact_entries(spec: RunSpec, document: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return the big numbers of a model."""
    model = spec.model
    full = kv_bytes_per_token(model, kv_dtype_bytes=spec.kv_dtype_bytes, windowed=False)
    return [
        ("Parameters", _billions(model.n_params), parameter_note(model, document)),
        ("Weights as stored", text.n_bytes(model.weight_bytes), f"{model.architecture}"),
        ("KV cache per token", text.n_bytes(full), kv_note(spec)),
        ("Layers", text.count(model.n_layers), f"hidden {text.count(model.hidden_size)}"),
        (
            "Vocabulary",
            text.count(model.vocab_size),
            "embedding tied" if model.tied_embeddings else "embedding not tied",
        ),
        (
            "Longest context",
            text.context(model.max_position_tokens),
            f"{text.count(model.max_position_tokens)} tokens",
        ),
    ]


def _billions(n_params: int) -> str:
    return (
        f"{text.sig(n_params / 1e9)}{text.NBSP}B"
        if n_params >= 1e9
        else f"{text.sig(n_params / 1e6)}{text.NBSP}M"
    )


def export_report(spec: RunSpec, *, document: Mapping[str, Any]) -> None:
    """Show *Export*."""
    export.export_button(
        page="Run spec",
        summary=f"{spec.model_label} on {spec.machine.title}: {loaded.targets_line(spec)}",
        sections=lambda: _sections(spec, document),
        name=(spec.model.name, spec.machine.name, "run-spec"),
    )


def show(spec: RunSpec, *, document: Mapping[str, Any]) -> None:
    """Show what was understood of the run-spec in force."""
    model = spec.model
    name = (model.name, spec.machine.name)
    st.subheader("What was understood", anchor=False)
    layout.facts(fact_entries(spec, document))
    tables.show_table(layer_table(model), key="spec_layers", title="Layers by kind", name=(*name, "layers"))
    left, middle, right = st.columns(3)
    with left:
        st.subheader("Assumed", anchor=False)
        layout.lines(model.assumed, none="Nothing: the config.json says all that matters.")
    with middle:
        st.subheader("Ignored", anchor=False)
        layout.lines(model.ignored, none="Nothing.")
    with right:
        st.subheader("Notes", anchor=False)
        layout.lines((*model.notes, *spec.warnings), none="None.")


def _sections(spec: RunSpec, document: Mapping[str, Any]) -> list[export.Section]:
    """Return the page for the report."""
    facts = pd.DataFrame(fact_entries(spec, document), columns=["Quantity", "Value", "Note"])
    model = spec.model
    said = [("Assumed", model.assumed), ("Ignored", model.ignored), ("Notes", (*model.notes, *spec.warnings))]
    return [
        export.Table("The model", facts),
        export.Table("Layers by kind", layer_table(model)),
        *(export.Paragraph("; ".join(entries) or "none", title) for title, entries in said),
    ]
