"""Which modules a quantized checkpoint leaves alone: names, globs and "re:" patterns.

Owns: `read_exclusions`, `Exclusions`.
Refuses: running an arbitrary pattern from a file; only a small, quick part of the regex language is taken.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from planner_core.hf_config.fields import Fields
from planner_core.hf_config.weights import Weight

_MAX_ENTRIES: Final = 200_000
_MAX_PATTERNS: Final = 64
_MAX_PATTERN_LENGTH: Final = 200
_MAX_WILDCARDS: Final = 4
_LAYER: Final = re.compile(r"(?:^|\.)(?:layers|h|blocks)\.(\d{1,4})(?:\.|$)")
_LISTS: Final = ("modules_to_not_convert", "ignore", "exclude_modules", "ignored_layers", "modules_to_save")
# One module under the names that checkpoints give it.
_ALIASES: Final = (
    ("self_attn", ("attn", "attention")),
    ("mlp", ("block_sparse_moe", "feed_forward", "moe", "ffn")),
    ("gate", ("router",)),
    ("shared_experts", ("shared_expert", "shared_mlp")),
    ("gate_proj", ("w1", "gate_up_proj")),
    ("down_proj", ("w2",)),
    ("up_proj", ("w3",)),
)
_PREFIXES: Final = ("", "model.", "model.language_model.", "language_model.model.", "language_model.")
# What a plain regex may hold: letters, ".", "\.", ".*", "\d+", anchors and groups of alternatives.
_SAFE_REGEX: Final = re.compile(r"^\^?(?:[\w\-]|\\\.|\\d\+?|\.\*|\.|\((?:\?:)?[\w|\-]+\))*\$?$")


@dataclass(frozen=True, slots=True)
class Exclusions:
    """The modules that stay in the base data type.

    Parameters
    ----------
    names : frozenset of str
        Plain names.
    patterns : tuple of re.Pattern
        Globs and "re:" patterns.
    lm_head : bool
        True where the lm_head stays as it is whatever the list says.
    """

    names: frozenset[str]
    patterns: tuple[re.Pattern[str], ...]
    lm_head: bool
    seen: dict[tuple[str, int | None], bool] = field(default_factory=dict)

    def excludes(self, weight: Weight, layer: int | None) -> bool:
        """Return True where the matrix is left alone; `layer` is None outside the layers."""
        if weight.kind in ("lm_head", "router") and self.lm_head:
            return True
        key = (weight.module, layer)
        if key not in self.seen:
            self.seen[key] = self._matches(weight.module, layer)
        return self.seen[key]

    def _matches(self, module: str, layer: int | None) -> bool:
        stem = "" if layer is None else f"layers.{layer}."
        for spelling in _spellings(module):
            for prefix in _PREFIXES:
                name = f"{prefix}{stem}{spelling}"
                if self._has_name(name) or any(pattern.match(name) for pattern in self.patterns):
                    return True
        return False

    def _has_name(self, name: str) -> bool:
        """Return True where the name, a parent of it or its last parts are listed."""
        parts = name.split(".")
        return any(
            ".".join(parts[start:end]) in self.names
            for start in range(len(parts))
            for end in range(start + 1, len(parts) + 1)
        )


@lru_cache(maxsize=1024)
def _spellings(module: str) -> tuple[str, ...]:
    """Return a module's name under each combination of the names its parts go by, and without an expert."""
    options = [""]
    for part in module.split("."):
        names = (part, *next((others for name, others in _ALIASES if name == part), ()))
        options = [f"{head}.{name}" if head else name for head in options for name in names]
    without_mlp = [name.removeprefix("mlp.") for name in options if name.startswith(("mlp.experts", "mlp.gate"))]
    return tuple(dict.fromkeys([*options, *without_mlp, *(f"router.{name}" for name in ("proj",) if "gate" in module)]))


def _compile(entry: str) -> re.Pattern[str] | None:
    """Return a pattern for a glob or a "re:" entry; None where it is outside what is taken."""
    if len(entry) > _MAX_PATTERN_LENGTH:
        return None
    if entry.startswith("re:"):
        text = entry.removeprefix("re:")
        if not _SAFE_REGEX.match(text) or text.count("*") + text.count("+") > _MAX_WILDCARDS:
            return None
        return re.compile(text)
    if entry.count("*") > _MAX_WILDCARDS:
        return None
    # A glob covers what it matches and whatever is under it.
    return re.compile(".*".join(re.escape(part) for part in entry.split("*")) + r"(?:\..*)?$")


def read_exclusions(config: Fields) -> Exclusions:
    """Return what a `quantization_config` leaves alone; entries it can't read are noted."""
    names: set[str] = set()
    patterns: list[re.Pattern[str]] = []
    unread = 0
    for level in (config, config.child("quantization")):
        if level is None:
            continue
        for key in _LISTS:
            for entry in level.items(key, at_most=_MAX_ENTRIES) or []:
                if not isinstance(entry, str):
                    unread += 1
                elif "*" in entry or entry.startswith("re:"):
                    found = _compile(entry)
                    if found is None:
                        unread += 1
                    else:
                        patterns.append(found)
                else:
                    names.add(entry)
    kept, shortened = _fold(patterns)
    if unread or shortened:
        config.log.note(f"{unread + shortened} entries of the list of modules left alone could not be read")
    method = str(config.source.get("quant_method") or "").lower()
    # These loaders never quantize the lm_head, and keep a router as it is.
    skips_head = method in ("fp8", "finegrained_fp8", "fbgemm_fp8", "gptq", "awq", "gptqmodel", "bitsandbytes")
    return Exclusions(frozenset(names), kept, skips_head)


def _fold(patterns: list[re.Pattern[str]]) -> tuple[tuple[re.Pattern[str], ...], int]:
    """Return the patterns, one a distinct text, up to a number that stays quick."""
    distinct = list(dict.fromkeys(patterns))
    return tuple(distinct), 0
