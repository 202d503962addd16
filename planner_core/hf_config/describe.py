"""A `ModelArch` as the JSON document of `planner parse`.

Owns: `describe`.
Refuses: printing.
"""

from __future__ import annotations

from dataclasses import asdict

from planner_core.model_arch import ModelArch, kv_bytes_per_token

_BF16_BYTES = 2.0


def describe(model: ModelArch) -> dict[str, object]:
    """Return what `planner parse --json` prints for a model.

    Parameters
    ----------
    model : ModelArch
        The model.

    Returns
    -------
    dict
        JSON values only. `kv_bytes_per_token` is at 2 bytes an element (bf16), so that models compare;
        its `as_stored` part is at the width the checkpoint asks for.

    Examples
    --------
    >>> from planner_core.hf_config import parse_config
    >>> describe(parse_config({"model_type": "llama"}))["kv_bytes_per_token"]["full"]
    524288
    """

    def kv(width: float) -> dict[str, object]:
        return {
            "full": kv_bytes_per_token(model, kv_dtype_bytes=width, windowed=False),
            "windowed": kv_bytes_per_token(model, kv_dtype_bytes=width, windowed=True),
            "dtype_bytes": width,
        }

    return {
        "name": model.name,
        "architecture": model.architecture,
        "n_params": model.n_params,
        "n_layers": model.n_layers,
        "hidden_size": model.hidden_size,
        "vocab_size": model.vocab_size,
        "tied_embeddings": model.tied_embeddings,
        "max_position_tokens": model.max_position_tokens,
        "attention": [asdict(group) for group in model.attention],
        "ffn": [asdict(group) for group in model.ffn],
        "kv_bytes_per_token": {**kv(_BF16_BYTES), "as_stored": kv(model.kv_dtype_bytes)},
        "weight_bytes": model.weight_bytes,
        "weight_bytes_per_element": asdict(model.widths),
        "assumed": list(model.assumed),
        "ignored": list(model.ignored),
        "notes": list(model.notes),
    }
