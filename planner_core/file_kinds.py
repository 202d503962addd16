"""Telling a run-spec, a machine's file and a model's `config.json` apart by their keys.

Owns: the keys that give a file away, and the one fault for a file where another kind is wanted.
Refuses: what the files mean (see `run_spec`, `hardware_file`, `hf_config`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from planner_core.errors import Fault, InvalidSpec

Kind = Literal["run-spec", "machine", "model"]

_KEYS: Final[Mapping[Kind, tuple[str, ...]]] = {
    "run-spec": ("hf_config", "hardware"),
    "machine": ("peak_flops_per_s", "hbm_bytes_per_s", "tiers"),
    "model": (
        "architectures",
        "model_type",
        "hidden_size",
        "num_hidden_layers",
        "text_config",
        "n_embd",
        "d_model",
    ),
}
_NAMES: Final[Mapping[Kind, str]] = {
    "run-spec": "a run-spec",
    "machine": "a machine",
    "model": "a model config",
}
_WANTED: Final[Mapping[Kind, str]] = {
    "run-spec": "a run-spec, which names a model (hf_config), a machine (hardware) and targets",
    "machine": "a machine's JSON, with its peaks, its memory and its tiers",
    "model": "a model's config.json, with its layers and widths",
}
_USES: Final[Mapping[Kind, str]] = {
    "run-spec": "give it to `planner plan`, `cell`, `explore` or `sensitivity`",
    "machine": "name it as `hardware` in a run-spec; `planner hardware FILE` shows it",
    "model": "name it as `hf_config` in a run-spec; `planner parse FILE` shows it",
}


def kind_of(document: Mapping[str, Any]) -> Kind | None:
    """Return what a JSON object is, by the first of these whose keys it has; None where it has none.

    Examples
    --------
    >>> kind_of({"hf_config": "llama", "tiers": []}), kind_of({"n_embd": 768}), kind_of({})
    ('run-spec', 'model', None)
    """
    return next((kind for kind, keys in _KEYS.items() if any(key in document for key in keys)), None)


def require_kind(document: Mapping[str, Any], *, wanted: Kind, where: str) -> None:
    """Refuse a file of another kind in one fault, rather than in one for each of its keys.

    Parameters
    ----------
    document : mapping
        The parsed JSON.
    wanted : {"run-spec", "machine", "model"}
        What is meant to be there. A file of no known kind passes: its own reader says what it lacks.
    where : str
        The field or the file.

    Raises
    ------
    InvalidSpec
        If it is plainly one of the other two.
    """
    found = kind_of(document)
    if found is None or found == wanted or any(key in document for key in _KEYS[wanted]):
        return
    raise InvalidSpec(
        [
            Fault(
                where=where,
                given=f"{_NAMES[found]}, not {_NAMES[wanted]}",
                allowed=_WANTED[wanted],
                fix=_USES[found],
            )
        ]
    )
