"""Changes to a JSON document: of its structure, of its values, of its bytes.

Every choice is asked of a `random.Random`, so that hypothesis can steer and shrink a document, and a number
can name one.
"""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Callable
from random import Random
from typing import Any, Final

from fuzz.seeds import Document, Kind, seeds
from planner_core.hardware_file import _MachineFields, _TierFields
from planner_core.hf_config import fields as hf
from planner_core.json_fields import Count, Number, StrictFields
from planner_core.run_spec_layout import ConfigFields, SpecFields

# Marks that `to_text` turns into what `json.dumps` would never write: any token, a key twice.
_TOKEN: Final = "\0token:"
_AGAIN: Final = "\0again"

TOKENS: Final = (
    "NaN", "Infinity", "-Infinity", "1e400", "-1e400", "9" * 101, "9" * 5000, "1e-400", "-0.0", "0x10", "01",
    "1_000", "True", "+1", ".5", "5.", "1E+0400", "truefalse", "",
)  # fmt: skip
NUMBERS: Final = (
    0, -1, 1, 2, 3, 7, 0.5, -0.5, 1.5, 1e308, -1e308, 5e-324, 1e-300, 1e-9, 1e30, 2**31, 2**53, 2**53 + 1,
    2**63, 2**64, 10**99, 1e15, 1e18, 1e21, 4096, 65536, 1024, 1025,
)  # fmt: skip
TEXTS: Final = (
    "", " ", "8", "1e9", "true", "\u202eevil\u202c", "\ud800", "\x00\x1b[31m", "a" * 401, "\U0001f600" * 50,
    "=cmd|' /C calc'!A0", "<script>alert(1)</script>", "../../../etc/passwd", "/etc/passwd", "~root",
    "C:\\x.json", "llama", "trn2", "granite-4.1-8b", "colocated", "lowest_ttft", "fp8", "bf16", "mamba",
    "full_attention", "sliding_attention", "linear_attention", "fp8_e4m3", "re:(a+)+$", "model.layers.*.mlp",
)  # fmt: skip

PIECES: Final = (b"\r\n", b"\0", b"\xff", b"\xef\xbb\xbf", b",", b"[" * 99, b'"', b"-", b"e9", b"\\u", b"{")


def _junk(random: Random) -> Any:
    kind = random.randrange(9)
    if kind < 3:
        return random.choice(NUMBERS)
    if kind == 3:
        return random.choice(TEXTS)
    if kind == 4:
        return _TOKEN + random.choice(TOKENS)
    if kind == 5:
        return random.choice((None, True, False))
    if kind == 6:
        return random.choice(([], {}, [[]], [{}], [None] * 17, [1] * 33, [0.5] * 300, ["x"] * 2000, {"": 1}))
    if kind == 7:
        return _nested(random.choice((3, 60, 70, 2000)))
    return random.choice(NUMBERS) * 10 ** random.randrange(-6, 7)


def _nested(depth: int) -> Any:
    text = "[" * depth + "]" * depth
    return _TOKEN + text


Place = tuple[Any, Any]


def _places(value: Any, found: list[Place]) -> list[Place]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found.append((value, key))
        if isinstance(item, (dict, list)):
            _places(item, found)
    return found


def _place(document: Document, random: Random) -> Place | None:
    places = _places(document, [])
    return random.choice(places) if places else None


def _drop(document: Document, random: Random) -> None:
    if place := _place(document, random):
        del place[0][place[1]]


def _replace(document: Document, random: Random) -> None:
    if place := _place(document, random):
        place[0][place[1]] = _junk(random)


def _repeat(document: Document, random: Random) -> None:
    place = _place(document, random)
    if place is None:
        return
    owner, key = place
    if isinstance(owner, dict):
        owner[key + _AGAIN] = copy.deepcopy(owner[key]) if random.random() < 0.5 else _junk(random)
    else:
        owner.extend(copy.deepcopy(owner[key]) for _ in range(random.choice((1, 2, 16, 300))))


def _add(document: Document, random: Random) -> None:
    place = _place(document, random)
    owner: Document = place[0] if place and isinstance(place[0], dict) else document
    other = random.choice(seeds(random.choice(("run-spec", "hardware", "config")))).document
    key = random.choice([*other, *TEXTS])
    owner[key] = copy.deepcopy(other.get(key)) if random.random() < 0.7 else _junk(random)


def _rename(document: Document, random: Random) -> None:
    place = _place(document, random)
    if place and isinstance(place[0], dict):
        owner, key = place
        at = random.randrange(len(key) + 1)
        owner[key[:at] + random.choice(("", "_", "x", "\u0301", "\0")) + key[at + 1 :]] = owner.pop(key)


def _other_type(document: Document, random: Random) -> None:
    place = _place(document, random)
    if place is None:
        return
    owner, key = place
    value = owner[key]
    choices: tuple[Any, ...] = (None, [value], {"value": value}, [], {})
    if isinstance(value, (int, float)):
        choices = (
            *choices,
            str(value),
            bool(value),
            float(value) if abs(value) < 1e300 else 0,
            [value, value],
        )
    owner[key] = random.choice(choices)


def _nudge(document: Document, random: Random) -> None:
    places = [
        (owner, key)
        for owner, key in _places(document, [])
        if isinstance(owner[key], (int, float)) and not isinstance(owner[key], bool)
    ]
    if not places:
        return
    owner, key = random.choice(places)
    value = owner[key]
    changed = random.choice(
        (value + 1, value - 1, value * 2, value * 3, value // 2, -value, value * 1e-6, value * 1e6, value / 3)
    )
    owner[key] = int(changed) if isinstance(value, int) and random.random() < 0.8 else changed


def _swap(document: Document, random: Random) -> None:
    first, second = _place(document, random), _place(document, random)
    if first and second:
        first[0][first[1]], second[0][second[1]] = (
            copy.deepcopy(second[0][second[1]]),
            copy.deepcopy(first[0][first[1]]),
        )


def _splice(document: Document, random: Random) -> None:
    """Take the value of the same key from another document of any kind."""
    place = _place(document, random)
    if place is None:
        return
    owner, key = place
    donors = _places(random.choice(seeds(random.choice(("run-spec", "hardware", "config")))).document, [])
    same = [donor for donor in donors if donor[1] == key] or donors
    donor = random.choice(same)
    owner[key] = copy.deepcopy(donor[0][donor[1]])


STRUCTURAL: Final[tuple[Callable[[Document, Random], None], ...]] = (
    _drop, _replace, _replace, _repeat, _add, _rename, _other_type, _nudge, _nudge, _swap, _splice,
)  # fmt: skip


# Values that a layout allows, at the edges of what it allows.

_SIZES: Final = {
    "num_hidden_layers": hf.MAX_LAYERS,
    "num_attention_heads": hf.MAX_HEADS,
    "num_key_value_heads": hf.MAX_HEADS,
    "head_dim": hf.MAX_HEAD_DIM,
    "hidden_size": hf.MAX_HIDDEN,
    "intermediate_size": hf.MAX_INTERMEDIATE,
    "moe_intermediate_size": hf.MAX_INTERMEDIATE,
    "vocab_size": hf.MAX_VOCAB,
    "max_position_embeddings": hf.MAX_TOKENS,
    "sliding_window": hf.MAX_TOKENS,
    "num_local_experts": hf.MAX_EXPERTS,
    "n_routed_experts": hf.MAX_EXPERTS,
    "num_experts": hf.MAX_EXPERTS,
    "num_experts_per_tok": hf.MAX_EXPERTS,
    "n_shared_experts": hf.MAX_EXPERTS,
    "q_lora_rank": hf.MAX_HIDDEN,
    "kv_lora_rank": hf.MAX_HIDDEN,
    "qk_rope_head_dim": hf.MAX_HEAD_DIM,
    "v_head_dim": hf.MAX_HEAD_DIM,
}


def _edge(rule: Number | Count, random: Random) -> int | float:
    low, high = rule.low, rule.high
    if isinstance(rule, Count):
        spread = round(math.exp(random.uniform(math.log(max(low, 1)), math.log(high))))
        return random.choice((low, high, spread, min(high, 2 ** random.randrange(31))))
    lowest = 5e-324 if rule.above and low == 0 else low
    from_ = max(low, 1e-12)
    return random.choice((lowest, high, math.exp(random.uniform(math.log(from_), math.log(high)))))


def _at_edges(owner: Any, layout: type[StrictFields], random: Random) -> None:
    if not isinstance(owner, dict):
        return
    rules = {
        name: rule
        for name, field in layout.model_fields.items()
        for rule in field.metadata
        if isinstance(rule, (Number, Count))
    }
    for name in random.sample(sorted(rules), k=random.randrange(1, 4)):
        owner[name] = _edge(rules[name], random)


def _extreme_machine(machine: Any, random: Random) -> None:
    if not isinstance(machine, dict):
        return
    machine.pop("sources", None)
    _at_edges(machine, _MachineFields, random)
    tiers = machine.get("tiers")
    if not isinstance(tiers, list) or not tiers:
        return
    if random.random() < 0.3:
        count = random.choice((1, 2, 16))
        tiers[:] = [{**copy.deepcopy(tiers[0]), "n_pes": 2 ** (at + 1)} for at in range(count)]
        tiers[-1]["n_pes"] = None
    for tier in random.sample(tiers, k=random.randrange(len(tiers) + 1)):
        kept = tier.get("n_pes") if isinstance(tier, dict) else None
        _at_edges(tier, _TierFields, random)
        if isinstance(tier, dict) and random.random() < 0.8:
            tier["n_pes"] = kept
    machine["tiers"][-1]["n_pes"] = None
    peaks = machine.get("peak_flops_per_s")
    if isinstance(peaks, dict) and random.random() < 0.3:
        machine["peak_flops_per_s"] = {name: random.choice((1.0, 1e21, 3e9)) for name in peaks}
    node_pes = machine.get("node_pes")
    if random.random() < 0.7 or not isinstance(node_pes, int):
        machine.pop("serving_grid", None)
    else:
        degrees = sorted({1, min(node_pes, 3), node_pes})
        machine["serving_grid"] = {"tp": degrees, "cp": degrees}


def _extreme_config(config: Any, random: Random) -> None:
    if not isinstance(config, dict):
        return
    inner = config.get("text_config")
    owner = inner if isinstance(inner, dict) else config
    known = [name for name in _SIZES if name in owner] or list(_SIZES)
    for name in random.sample(known, k=min(len(known), random.randrange(1, 5))):
        high = _SIZES[name]
        owner[name] = random.choice((1, 2, high, high - 1, 2 ** random.randrange(high.bit_length())))
    if random.random() < 0.5:  # keep the heads divisible, so that the rest is reached
        heads = 2 ** random.randrange(17)
        owner["num_attention_heads"] = heads
        owner["num_key_value_heads"] = 2 ** random.randrange(heads.bit_length())
        owner["head_dim"] = random.choice((1, 64, 128, hf.MAX_HEAD_DIM))
        owner.pop("layer_types", None)


def _extreme_spec(spec: Any, random: Random) -> None:
    _at_edges(spec, SpecFields, random)
    if spec.get("objective") is not None:
        spec.pop("objective")
    point = {"TP": 1, "bucket": 1, "bs": 1}
    _at_edges(point, ConfigFields, random)
    if random.random() < 0.5:
        point |= {"TP": random.choice((1, 2, 8)), "PP": 1, "CP": 1}
    spec["configs"] = [point]
    if random.random() < 0.5:
        _extreme_machine(spec.get("hardware"), random)
    if random.random() < 0.5:
        _extreme_config(spec.get("hf_config"), random)


_EXTREME: Final[dict[Kind, Callable[[Any, Random], None]]] = {
    "run-spec": _extreme_spec,
    "hardware": _extreme_machine,
    "config": _extreme_config,
}


def extreme(kind: Kind, document: Document, random: Random) -> None:
    """Put values at the edges of what is allowed; most documents stay valid."""
    _EXTREME[kind](document, random)


def to_text(document: Any) -> str:
    """Return the JSON text of a document with marks, as text that may be no JSON at all."""
    text = json.dumps(document)
    text = re.sub(r'"\\u0000token:([^"]*)"', r"\1", text)
    return text.replace("\\u0000again", "")


def _damaged(text: str, random: Random) -> bytes:
    """Change bytes: cut, repeat, flip, insert; or change the encoding."""
    if random.random() < 0.1:
        return text.encode(random.choice(("utf-16", "utf-32", "utf-8-sig", "utf-16-le", "cp037")))
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    for _ in range(random.randrange(1, 4)):
        at = random.randrange(len(data) + 1)
        length = random.randrange(1, 40)
        change = random.randrange(5)
        if change == 0:
            del data[at : at + length]
        elif change == 1:
            data[at:at] = data[at : at + length] * random.choice((1, 2, 100))
        elif change == 2 and at < len(data):
            data[at] ^= 1 << random.randrange(8)
        elif change == 3:
            data[at:at] = random.choice(PIECES)
        else:
            del data[at:]
    return bytes(data)


def mutated(kind: Kind, random: Random) -> bytes:
    """Return the text of one mutated document: extreme and mostly valid, or changed, or damaged."""
    seed = random.choice(seeds(kind))
    document = copy.deepcopy(seed.document)
    if kind == "run-spec" and random.random() < 0.2:  # by name, as a preset says it
        document |= {"hf_config": "granite-4.1-8b", "hardware": "trn2"}
    if random.random() < 0.6:
        extreme(kind, document, random)
    if random.random() < 0.4:
        for _ in range(random.choice((1, 1, 1, 2, 3, 8))):
            random.choice(STRUCTURAL)(document, random)
    text = to_text(document)
    return _damaged(text, random) if random.random() < 0.15 else text.encode("utf-8", "surrogatepass")


def restructured(kind: Kind, text: str, random: Random) -> bytes | None:
    """Return another text made from one that is JSON; None where it is not."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    try:
        if random.random() < 0.3:
            extreme(kind, document, random)
        random.choice(STRUCTURAL)(document, random)
        return to_text(document).encode("utf-8", "surrogatepass")
    except (ValueError, TypeError, OverflowError, RecursionError, IndexError, AttributeError, KeyError):
        return None  # the document had lost the form that the change needs
