"""Which family answers to a class name or a `model_type`.

Owns: the one spelling in which names are compared, and the language models of multimodal classes.
Refuses: what a family is (see `family_table`).
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from planner_core.hf_config.families import Family
from planner_core.hf_config.family_table import FAMILIES

# Multimodal classes whose language model has another family by default.
_LANGUAGE_STEM: Final = MappingProxyType(
    {
        "llava": "llama",
        "llavallama": "llama",
        "llavanext": "llama",
        "vipllava": "llama",
        "mistral3": "mistral",
        "pixtral": "mistral",
        "paligemma": "gemma",
        "idefics3": "llama",
        "smolvlm": "llama",
        "fuyu": "persimmon",
        "qwen2vl": "qwen2",
        "qwen25vl": "qwen2",
        "qwen3vl": "qwen3",
        "qwen3vlmoe": "qwen3vlmoetext",
        "kimivl": "deepseekv3",
        "kimik25": "deepseekv3",
        "glm4v": "glm4",
        "glm4vmoe": "glm4moe",
        "gptbigcode": "gptbigcode",
        "mistrallarge3": "deepseekv3",
    }
)
_SUFFIXES: Final = (
    "forcausallm",
    "lmheadmodel",
    "forconditionalgeneration",
    "forsequenceclassification",
    "textmodel",
    "model",
)


def class_stem(name: str) -> str:
    """Return a class name or a `model_type` in one spelling: lower case, no suffix, letters and digits only.

    Examples
    --------
    >>> class_stem("LlamaForCausalLM"), class_stem("qwen3_moe")
    ('llama', 'qwen3moe')
    """
    stem = "".join(letter for letter in name[:200].lower() if letter.isalnum())
    for suffix in _SUFFIXES:
        if stem.endswith(suffix) and stem != suffix:
            return stem.removesuffix(suffix)
    return stem


_BY_STEM: Final = MappingProxyType(
    {class_stem(name): family for family in FAMILIES for name in (*family.model_types, family.stem)}
)


def family_of_class(name: str) -> Family | None:
    """Return the family of a class in `architectures`, or None."""
    stem = class_stem(name)
    return _BY_STEM.get(_LANGUAGE_STEM.get(stem, stem))


def family_of_model_type(model_type: str) -> Family | None:
    """Return the family of a `model_type`, or None."""
    return family_of_class(model_type)
