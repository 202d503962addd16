"""Which modules a quantized checkpoint leaves alone: names, globs and "re:" patterns.

Owns: `read_exclusions`, `Exclusions`.
Refuses: running an arbitrary pattern from a file; only a small, quick part of the regex language is taken.

A list may name each module of each layer, so entries are folded first: what stands behind "layers.N." is kept
once, with the layers that it holds for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from planner_core.hf_config.fields import MAX_LAYERS, Fields
from planner_core.hf_config.weights import Weight

_MAX_ENTRIES: Final = 200_000
_MAX_DISTINCT: Final = 256
_MAX_PER_LAYER_PATTERNS: Final = 4
_MAX_LENGTH: Final = 200
_MAX_WILDCARDS: Final = 3
_LISTS: Final = ("modules_to_not_convert", "ignore", "exclude_modules", "ignored_layers")
_LAYER: Final = re.compile(r"(?:^|.*?\.)(?:layers|h|blocks)\\?\.(\d{1,4})\\?(?:\.|$)(.*)$", re.DOTALL)
_NOT_LANGUAGE: Final = re.compile(r"vision|visual|audio|image|mtp")
# One module under the names that checkpoints give it.
_ALIASES: Final = {
    "self_attn": ("attn", "attention"),
    "mlp": ("block_sparse_moe", "feed_forward", "moe", "ffn"),
    "gate": ("router",),
    "shared_experts": ("shared_expert", "shared_mlp"),
    "gate_proj": ("w1", "gate_up_proj"),
    "down_proj": ("w2",),
    "up_proj": ("w3", "gate_up_proj"),
}
_PREFIXES: Final = ("", "model.", "model.language_model.", "language_model.model.", "language_model.")
# What a regex may hold: letters, ".", "\.", ".*", "\d+", anchors and groups of plain alternatives.
_SAFE_REGEX: Final = re.compile(r"^\^?(?:[\w\-]|\\\.|\\d\+?|\.\*|\.|\((?:\?:)?[\w|\-]+\))*\$?$")


@lru_cache(maxsize=1024)
def _spellings(module: str) -> tuple[str, ...]:
    """Return a module's name under each combination of the names its parts go by."""
    options = [""]
    for part in module.split("."):
        names = (part, *_ALIASES.get(part, ()))
        options = [f"{head}.{name}" if head else name for head in options for name in names]
    return tuple(options)


def _parents(name: str) -> tuple[str, ...]:
    """Return a dotted name and each of its parents."""
    parts = name.split(".")
    return tuple(".".join(parts[:end]) for end in range(1, len(parts) + 1))


def _runs(name: str) -> frozenset[str]:
    """Return every run of consecutive parts of a dotted name."""
    parts = name.split(".")
    return frozenset(
        ".".join(parts[start:end]) for start in range(len(parts)) for end in range(start + 1, len(parts) + 1)
    )


def _compile(entry: str) -> re.Pattern[str] | None:
    """Return a pattern for a glob or a "re:" entry; None where it is outside what is taken."""
    if len(entry) > _MAX_LENGTH:
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


@dataclass(slots=True)
class Exclusions:
    """The modules that stay in the base data type.

    Parameters
    ----------
    head_stays : bool
        True where the loader leaves the lm_head and the routers alone whatever the list says.
    """

    head_stays: bool
    names: set[str] = field(default_factory=set)
    patterns: dict[str, re.Pattern[str]] = field(default_factory=dict)
    layered: dict[str, set[int]] = field(default_factory=dict)
    layered_patterns: dict[str, re.Pattern[str]] = field(default_factory=dict)
    by_layer: dict[str, re.Pattern[str]] = field(default_factory=dict)
    n_unread: int = 0
    _found: dict[str, tuple[bool, frozenset[int]]] = field(default_factory=dict)

    def add(self, entry: str) -> None:
        """Take one entry of the list; count it as unread where it is outside what is taken."""
        text, prefix = entry.removeprefix("re:"), "re:" if entry.startswith("re:") else ""
        at_layer = _LAYER.match(text) if len(text) <= _MAX_LENGTH else None
        if at_layer is not None:
            if not _NOT_LANGUAGE.search(text):
                self._add_layered(
                    prefix + (at_layer.group(2) or ".*" * bool(prefix) or "*"), int(at_layer.group(1))
                )
            return
        if not prefix and "*" not in entry:
            self.names.add(entry)
            return
        pattern = _compile(entry)
        per_layer = bool(prefix) and any(letter.isdigit() for letter in text)
        store, limit = (
            (self.by_layer, _MAX_PER_LAYER_PATTERNS) if per_layer else (self.patterns, _MAX_DISTINCT)
        )
        self._keep(store, entry, pattern, limit)

    def _add_layered(self, rest: str, layer: int) -> None:
        is_pattern = rest.startswith("re:") or "*" in rest
        if rest in self.layered:
            self.layered[rest].add(layer)
        elif not is_pattern or self._keep(self.layered_patterns, rest, _compile(rest), _MAX_DISTINCT):
            self.layered[rest] = {layer}

    def _keep(
        self, store: dict[str, re.Pattern[str]], entry: str, pattern: re.Pattern[str] | None, limit: int
    ) -> bool:
        if pattern is None or (entry not in store and len(store) >= limit):
            self.n_unread += 1
            return False
        store[entry] = pattern
        return True

    def excludes(self, weight: Weight, layer: int | None) -> bool:
        """Return True where the matrix is left alone; `layer` is None outside the layers."""
        if self.head_stays and weight.kind in ("lm_head", "router"):
            return True
        if weight.module not in self._found:
            self._found[weight.module] = self._search(weight.module, in_layer=layer is not None)
        everywhere, layers = self._found[weight.module]
        return everywhere or layer in layers

    def _search(self, module: str, *, in_layer: bool) -> tuple[bool, frozenset[int]]:
        """Return whether a module is left alone in every layer, and else in which."""
        layers: set[int] = set()
        for name in _spellings(module):
            full = f"layers.0.{name}" if in_layer else name
            if not self.names.isdisjoint(_runs(f"model.{full}")):
                return True, frozenset()
            for prefix in _PREFIXES:
                if any(pattern.match(prefix + full) for pattern in self.patterns.values()):
                    return True, frozenset()
            if not in_layer:
                continue
            for parent in _parents(name):
                layers |= self.layered.get(parent, set())
            for rest, pattern in self.layered_patterns.items():
                if not self.layered[rest] <= layers and pattern.match(name):
                    layers |= self.layered[rest]
            for pattern in self.by_layer.values():
                layers |= {at for at in range(MAX_LAYERS) if pattern.match(f"model.layers.{at}.{name}")}
        return False, frozenset(layers)


def read_exclusions(config: Fields) -> Exclusions:
    """Return what a `quantization_config` leaves alone; entries it can't read are noted."""
    method = str(config.source.get("quant_method") or "").lower()
    # These loaders never quantize the lm_head, and keep a router as it is.
    exclusions = Exclusions(
        head_stays=method
        in ("fp8", "finegrained_fp8", "fbgemm_fp8", "gptq", "awq", "gptqmodel", "bitsandbytes")
    )
    for level in (config, config.child("quantization")):
        for key in _LISTS if level is not None else ():
            for entry in (level.items(key, at_most=_MAX_ENTRIES) if level is not None else None) or []:
                if isinstance(entry, str):
                    exclusions.add(entry)
                else:
                    exclusions.n_unread += 1
    if exclusions.n_unread:
        config.log.note(
            f"{exclusions.n_unread} entries of the list of modules left alone could not be read: "
            "those modules count as quantized"
        )
    return exclusions
