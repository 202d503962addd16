"""What the checkpoint stores: bytes a weight by kind of module, scales included, and the cache's own width.

Owns: `read_stored`; the quantization methods and the bytes of their scales.
Refuses: which modules a list leaves out (see `exclusions`).

Sources: OCP microscaling formats 1.0 (MXFP4: 32 elements of 4 bits share one 8-bit scale, MXFP8 likewise);
NVIDIA's NVFP4 (16 elements share one fp8 scale, and a tensor one fp32 scale); DeepSeek V3 report, section 3.3
(fp8 in blocks of 128 x 128 with one fp32 scale each); GPTQ and AWQ packing as their loaders read it (one
fp16 scale and one packed zero point a group).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from planner_core.errors import shorten
from planner_core.hf_config.exclusions import read_exclusions
from planner_core.hf_config.fields import Fields
from planner_core.hf_config.weights import KINDS, Weight
from planner_core.model_arch import WeightWidths

_DTYPE_BYTES: Final = {
    "float32": 4, "float": 4, "float64": 8, "bfloat16": 2, "float16": 2, "half": 2,
    "float8_e4m3fn": 1, "float8_e5m2": 1,
}  # fmt: skip
_MATRIX_KINDS: Final = frozenset({"attention", "ffn", "experts", "shared_experts", "router", "lm_head"})
_MAX_BLOCK: Final = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """How one matrix is stored.

    Parameters
    ----------
    element_bits : int
        Bits of an element.
    group : int
        Input elements that share a scale; 0: one scale an output row, -1: one a matrix.
    block_rows : int
        Output rows that share it too (block formats).
    scale_bytes : Fraction
        Bytes of a scale, its zero point included.
    tensor_bytes : int
        Bytes once a matrix.
    """

    element_bits: int
    group: int = 0
    block_rows: int = 1
    scale_bytes: Fraction = Fraction(0)
    tensor_bytes: int = 0

    def n_bytes(self, weight: Weight) -> int:
        """Return the bytes of all copies of a matrix."""
        columns = 1 if self.group <= 0 else -(-weight.n_in // self.group)
        rows = 1 if self.group < 0 else -(-weight.n_out // self.block_rows)
        elements = Fraction(weight.n_out * weight.n_in * self.element_bits, 8)
        one = elements + rows * columns * self.scale_bytes + self.tensor_bytes
        return weight.copies * -(-one.numerator // one.denominator)


_MXFP4: Final = Format(element_bits=4, group=32, scale_bytes=Fraction(1))
_MXFP8: Final = Format(element_bits=8, group=32, scale_bytes=Fraction(1))
_NVFP4: Final = Format(element_bits=4, group=16, scale_bytes=Fraction(1), tensor_bytes=4)
_FP8_TENSOR: Final = Format(element_bits=8, group=-1, scale_bytes=Fraction(4))
_FP8_CHANNEL: Final = Format(element_bits=8, group=0, scale_bytes=Fraction(4))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Bytes of the checkpoint and of a cached element."""

    widths: WeightWidths
    weight_bytes: int
    kv_dtype_bytes: float


def _base_bytes(outer: Fields, fields: Fields) -> int:
    """Return the bytes of an element that is not quantized."""
    for level in (fields, outer):
        for name in ("dtype", "torch_dtype"):
            value = level.text(name)
            if value is None or value == "auto":
                continue
            known = _DTYPE_BYTES.get(value.removeprefix("torch."))
            if known is None:
                level.log.fault(
                    level.path(name),
                    value,
                    allowed="bfloat16, float16 or float32",
                    fix="name the data type of the stored weights",
                )
                return 2
            if known > 2:
                level.log.note(f"{level.path(name)} = {value}: {known} bytes a stored weight")
            return known
    fields.log.assume("dtype = bfloat16 (2 bytes; the config names none)")
    return 2


def _fp8_format(config: Fields) -> Format:
    block = config.get("weight_block_size")
    if block is None:
        return _FP8_TENSOR
    if not isinstance(block, list) or len(block) != 2:
        config.log.fault(
            config.path("weight_block_size"),
            block,
            allowed="two whole numbers, such as [128, 128], or null",
            fix="give the block's rows and columns",
        )
        return _FP8_TENSOR
    rows, columns = (
        config.checked_count(f"weight_block_size[{at}]", size, low=1, high=_MAX_BLOCK)
        for at, size in enumerate(block)
    )
    scale = 1 if config.source.get("scale_fmt") == "ue8m0" else 4
    return Format(element_bits=8, group=columns, block_rows=rows, scale_bytes=Fraction(scale))


def _packed_format(config: Fields, *, bits_name: str = "bits") -> Format:
    """Return GPTQ's or AWQ's format: an fp16 scale and a packed zero point a group."""
    bits = config.count(bits_name, default=4, high=16)
    group = config.get("group_size")
    size = 128 if group is None else group
    if size != -1:
        size = config.checked_count("group_size", size, low=1, high=_MAX_BLOCK)
    return Format(
        element_bits=bits,
        group=0 if size == -1 else int(size),
        scale_bytes=Fraction(16 + bits, 8),
    )


def _scheme_format(config: Fields, weights: Fields) -> Format | None:
    """Return the format of a `weights` object in a compressed-tensors config."""
    bits = weights.count("num_bits", default=8, high=16)
    strategy = weights.text("strategy")
    is_float = weights.text("type") == "float"
    group = weights.get("group_size")
    block = weights.get("block_structure")
    if strategy == "block" and isinstance(block, list) and len(block) == 2:
        rows, columns = (
            weights.checked_count(f"block_structure[{at}]", size, low=1, high=_MAX_BLOCK)
            for at, size in enumerate(block)
        )
        return Format(element_bits=bits, group=columns, block_rows=rows, scale_bytes=Fraction(4))
    if isinstance(group, int) and not isinstance(group, bool) and group > 0:
        size = weights.checked_count("group_size", group, low=1, high=_MAX_BLOCK)
        if is_float and bits == 4:
            return _NVFP4 if size == 16 else Format(element_bits=4, group=size, scale_bytes=Fraction(1))
        zero = Fraction(0) if weights.optional_flag("symmetric") is not False else Fraction(bits, 8)
        return Format(element_bits=bits, group=size, scale_bytes=Fraction(2) + zero)
    if strategy == "channel":
        return Format(element_bits=bits, group=0, scale_bytes=Fraction(4 if bits == 8 and is_float else 2))
    return Format(element_bits=bits, group=-1, scale_bytes=Fraction(4))


def _named_format(algorithm: str, config: Fields) -> Format | None:
    """Return the format of a ModelOpt `quant_algo`, None where it is not known."""
    name = algorithm.upper()
    if "NVFP4" in name:
        return _NVFP4
    if "MXFP4" in name:
        return _MXFP4
    if "MXFP8" in name:
        return _MXFP8
    if name.startswith("FP8_PB") or "BLOCK" in name:
        return Format(element_bits=8, group=128, block_rows=128, scale_bytes=Fraction(4))
    if "FP8" in name:
        return _FP8_CHANNEL if "CHANNEL" in name else _FP8_TENSOR
    if "W4A16" in name or "INT4" in name or "AWQ" in name:
        return Format(element_bits=4, group=128, scale_bytes=Fraction(2))
    if "INT8" in name or "W8A8" in name:
        return Format(element_bits=8, group=0, scale_bytes=Fraction(4))
    return None


def _grouped_format(config: Fields) -> Format | None:
    """Return the format of the first group of `config_groups`, None where there is none."""
    groups = config.child("config_groups")
    if groups is None:
        return None
    formats: set[Format] = set()
    for name in list(groups.source)[:64]:
        group = groups.child(name)
        weights = None if group is None else group.child("weights")
        if weights is not None:
            found = _scheme_format(config, weights)
            if found is not None:
                formats.add(found)
    if len(formats) > 1:
        config.log.note(
            f"{config.path('config_groups')} has {len(formats)} formats; the widest is used for all groups"
        )
    return max(formats, key=lambda form: form.element_bits, default=None)


def _format(config: Fields) -> Format | None:
    """Return the format that a `quantization_config` asks for; a fault and None for an unknown method."""
    method = (config.text("quant_method") or "").lower()
    algorithm = config.text("quant_algo")
    nested = config.child("quantization")
    if nested is not None and algorithm is None:
        algorithm = nested.text("quant_algo")
    if algorithm is not None and algorithm.upper() not in ("MIXED_PRECISION", "NONE", ""):
        named = _named_format(algorithm, config)
        if named is not None:
            config.get("config_groups")
            return named
    grouped = _grouped_format(config)
    if grouped is not None:
        return grouped
    if method in ("fp8", "fbgemm_fp8", "finegrained_fp8"):
        return _fp8_format(config) if method != "fbgemm_fp8" else _FP8_CHANNEL
    if method in ("gptq", "awq", "gptqmodel", "autoround", "auto-round"):
        return _packed_format(config, bits_name="bits" if config.has("bits") else "w_bit")
    if method == "mxfp4":
        return _MXFP4
    if method == "bitsandbytes":
        four = config.optional_flag("load_in_4bit") or config.optional_flag("_load_in_4bit") or False
        if four:
            return Format(element_bits=4, group=64, scale_bytes=Fraction(4))
        return Format(element_bits=8, group=0, scale_bytes=Fraction(4))
    if not method and algorithm is None:
        config.log.note(f"{config.where} names no quant_method: weights are read as not quantized")
        return None
    config.log.fault(
        config.path("quant_method" if method else "quant_algo"),
        method or algorithm,
        allowed="fp8, gptq, awq, mxfp4, nvfp4, compressed-tensors, modelopt or bitsandbytes",
        fix="name a quantization method that is known, or remove quantization_config",
    )
    return None


def _kv_bytes(config: Fields | None) -> float:
    """Return the bytes of a cached element that the checkpoint asks for, 2 where it says nothing."""
    if config is None:
        return 2.0
    scheme = config.child("kv_cache_scheme")
    if scheme is not None:
        bits = scheme.count("num_bits", default=8, high=16)
        return bits / 8.0
    for level in (config, config.child("quantization")):
        algorithm = None if level is None else level.text("kv_cache_quant_algo")
        if algorithm is not None:
            name = algorithm.upper()
            if "NVFP4" in name:
                return 0.5 + 1.0 / 16.0
            if "FP8" in name or "INT8" in name:
                return 1.0
            if name not in ("NONE", ""):
                config.log.note(
                    f"kv_cache_quant_algo = {shorten(algorithm)} is not known: 2 bytes a cached element"
                )
    return 2.0


def _config(outer: Fields, fields: Fields) -> Fields | None:
    for level in (fields, outer):
        for name in ("quantization_config", "compression_config"):
            if level.has(name):
                return level.child(name)
    return None


def read_stored(outer: Fields, fields: Fields, layers: list[list[Weight]], outside: list[Weight]) -> Stored:
    """Return the checkpoint's bytes, by kind and in all.

    Parameters
    ----------
    outer, fields : Fields
        The whole config and its language model.
    layers : list of list of Weight
        The weights of each layer, in order.
    outside : list of Weight
        The weights outside the layers.
    """
    base = _base_bytes(outer, fields)
    config = _config(outer, fields)
    form = None if config is None else _format(config)
    kv_bytes = _kv_bytes(config)
    exclusions = None if config is None or form is None else read_exclusions(config)
    only_experts = config is not None and config.source.get("quant_method") == "mxfp4"
    elements: dict[str, int] = defaultdict(int)
    n_bytes: dict[str, int] = defaultdict(int)

    def add(weight: Weight, layer: int | None) -> None:
        quantized = (
            form is not None
            and exclusions is not None
            and weight.kind in _MATRIX_KINDS
            and (not only_experts or weight.kind == "experts")
            and not exclusions.excludes(weight, layer)
        )
        stored = form.n_bytes(weight) if quantized and form is not None else weight.n_elements * base
        elements[weight.kind] += weight.n_elements
        n_bytes[weight.kind] += stored

    for at, layer in enumerate(layers):
        for weight in layer:
            add(weight, at)
    for weight in outside:
        add(weight, None)
    widths = {
        kind: n_bytes[kind] / elements[kind] if elements[kind] else float(base)
        for kind in KINDS
        if kind != "other"
    }
    if not elements["lm_head"]:  # tied: the table itself is multiplied
        widths["lm_head"] = widths["embedding"]
    return Stored(widths=_as_widths(widths), weight_bytes=sum(n_bytes.values()), kv_dtype_bytes=kv_bytes)


def _as_widths(widths: Mapping[str, float]) -> WeightWidths:
    return WeightWidths(
        attention=widths["attention"],
        ffn=widths["ffn"],
        experts=widths["experts"],
        shared_experts=widths["shared_experts"],
        router=widths["router"],
        lm_head=widths["lm_head"],
        embedding=widths["embedding"],
    )
