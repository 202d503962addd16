"""One config of the nine axes (and EP), by name: what a person reads, types and links to.

Owns: `Config`, its text form, and its turning into a `Parallelism`.
Refuses: grids (see `grid`) and scores (see `explore`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final

import numpy as np

from planner_core.errors import Fault, InvalidSpec, shorten
from planner_core.parallelism import (
    CP_RING_VARIANTS,
    FFN_SHARD_SCOPES,
    KV_SHARD_MODES,
    PLACEMENTS,
    Parallelism,
    make_parallelism,
)

DEGREES: Final = ("cp", "tp", "pp", "dp", "ep")
MODES: Final[dict[str, tuple[str, ...]]] = {
    "kv_shard_mode": KV_SHARD_MODES,
    "ffn_shard_scope": FFN_SHARD_SCOPES,
    "tp_placement": PLACEMENTS,
    "cp_placement": PLACEMENTS,
    "cp_ring_variant": CP_RING_VARIANTS,
}
MAX_DEGREE: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """One way to cut a model.

    Parameters
    ----------
    cp, tp, pp, dp, ep : int
        Context, tensor, pipeline, data and expert parallel degrees, 1 or more.
    kv_shard_mode : {"split", "replicate"}
        Whether the copies of a KV head share its sequence.
    ffn_shard_scope : {"TP", "TP+CP", "TP+DP", "TP+CP+DP"}
        The group that the FFN weights are cut over.
    tp_placement, cp_placement : {"inner", "outer"}
        The order in which ranks are laid on PEs.
    cp_ring_variant : {"qoml", "kv"}
        What travels round the CP ring.
    """

    cp: int = 1
    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1
    kv_shard_mode: str = "split"
    ffn_shard_scope: str = "TP"
    tp_placement: str = "inner"
    cp_placement: str = "inner"
    cp_ring_variant: str = "qoml"

    def label(self) -> str:
        """Return a short name: degrees above 1, then the modes that are not the default."""
        degrees = [f"{name.upper()}{getattr(self, name)}" for name in ("tp", "cp", "pp", "dp", "ep")]
        shown = [text for text in degrees if not text.endswith("P1") or text == "TP1"]
        if self.ffn_shard_scope != "TP":
            shown.append(f"FFN {self.ffn_shard_scope}")
        if self.kv_shard_mode != "split":
            shown.append("KV replicated")
        if self.tp_placement != "inner":
            shown.append("TP outer")
        if self.cp_placement != "inner":
            shown.append("CP outer")
        if self.cp > 1 and self.cp_ring_variant != "qoml":
            shown.append("ring KV")
        return " ".join(shown)


def stack_configs(configs: Sequence[Config]) -> Parallelism:
    """Turn configs into one `Parallelism` of 1-D arrays, a config an element.

    Parameters
    ----------
    configs : sequence of Config
        One or more.

    Returns
    -------
    Parallelism
        Every field is shaped [len(configs)].
    """

    def numbers(name: str) -> list[int]:
        return [getattr(config, name) for config in configs]

    def flags(name: str, value: str) -> list[bool]:
        return [getattr(config, name) == value for config in configs]

    return make_parallelism(
        cp=numbers("cp"),
        tp=numbers("tp"),
        pp=numbers("pp"),
        dp=numbers("dp"),
        ep=numbers("ep"),
        kv_split=np.where(flags("kv_shard_mode", "split"), np.inf, 1.0),
        ffn_over_cp=["CP" in config.ffn_shard_scope for config in configs],
        ffn_over_dp=["DP" in config.ffn_shard_scope for config in configs],
        tp_outer=flags("tp_placement", "outer"),
        cp_outer=flags("cp_placement", "outer"),
        ring_qoml=flags("cp_ring_variant", "qoml"),
    )


def config_from_mapping(source: dict[str, object], *, where: str = "config") -> Config:
    """Check names and values of a config that came from outside.

    Parameters
    ----------
    source : dict
        Degrees as whole numbers, modes as their names; what is left out takes its default.
    where : str
        Prefix of a fault's place.

    Returns
    -------
    Config

    Raises
    ------
    InvalidSpec
        With every fault at once.
    """
    faults = []
    known = {field.name for field in fields(Config)}
    for name, value in source.items():
        place = f"{where}.{shorten(name)[1:-1]}"
        if name not in known:
            faults.append(
                Fault(
                    where=place,
                    given=shorten(value),
                    allowed=f"one of {', '.join(sorted(known))}",
                    fix="correct the name or remove it",
                )
            )
        elif name in DEGREES:
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_DEGREE:
                faults.append(
                    Fault(
                        where=place,
                        given=shorten(value),
                        allowed=f"a whole number from 1 to {MAX_DEGREE}",
                        fix="give a degree of parallelism",
                    )
                )
        elif value not in MODES[name]:
            faults.append(
                Fault(
                    where=place,
                    given=shorten(value),
                    allowed=f"one of {', '.join(MODES[name])}",
                    fix="choose one of them",
                )
            )
    if faults:
        raise InvalidSpec(faults)
    return Config(**source)  # type: ignore[arg-type]  # checked above


def config_from_text(text: str, *, where: str = "--config") -> Config:
    """Read "cp=8,tp=16,ffn_shard_scope=TP+CP".

    Parameters
    ----------
    text : str
        Comma-separated name=value pairs.
    where : str
        Prefix of a fault's place.

    Returns
    -------
    Config

    Raises
    ------
    InvalidSpec
        With every fault at once.

    Examples
    --------
    >>> config_from_text("cp=8,tp=16,ffn_shard_scope=TP+CP").label()
    'TP16 CP8 FFN TP+CP'
    """
    values: dict[str, object] = {}
    for part in text.split(","):
        name, found, value = (piece.strip() for piece in part.partition("="))
        if not found or not name or name in values:
            raise InvalidSpec(
                [
                    Fault(
                        where=where,
                        given=shorten(part),
                        allowed="name=value pairs, each name once, with commas between",
                        fix='write it like "cp=8,tp=16,pp=1,dp=1,ffn_shard_scope=TP+CP"',
                    )
                ]
            )
        digits = value.isascii() and value.isdigit() and len(value) <= 12
        values[name] = int(value) if name in DEGREES and digits else value
    return config_from_mapping(values, where=where)
