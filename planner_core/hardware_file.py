"""A machine's JSON to a `Machine` and back, and the machines that come with the planner.

Owns: the file's layout, its ranges and cross checks, the list of presets.
Refuses: formulas, and constants of its own: every number is in `presets/hardware/*.json` with its source.

Units in the file are SI base units, named in the keys.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeGuard

from pydantic import Field

from planner_core.errors import Fault, InvalidSpec, shorten
from planner_core.hardware import COLLECTIVE_MODELS, SOURCE_KINDS, Machine, Source, Tier
from planner_core.json_fields import Choice, Count, Flag, Items, Number, StrictFields, Text, read_layout
from planner_core.preset_files import preset_names, presets_dir
from planner_core.strict_json import MAX_FAULTS, read_json_file, require_object

MAX_TIERS: Final = 16
MAX_GRID: Final = 32
MAX_PES: Final = 1_000_000_000
DEFAULT_CP_GRID: Final = (1, 2, 4, 8)

_PRECISION: Final = re.compile(r"[a-z0-9]{1,16}")
_BANDWIDTH: Final = Number(unit="B/s", low=1.0, high=1e18)
_PES: Final = Count(unit="PEs", low=1, high=MAX_PES)
_DEGREE: Final = Count(unit="ranks", low=1, high=MAX_PES)


class _TierFields(StrictFields):
    name: Annotated[str, Text(what="the tier's name")]
    n_pes: Annotated[int | None, Count(unit="PEs", low=1, high=MAX_PES, null="no limit")]
    hop_latency_s: Annotated[float, Number(unit="s", low=0.0, high=1e3)]
    link_bytes_per_s: Annotated[float, _BANDWIDTH]


class _GridFields(StrictFields):
    tp: Annotated[tuple[Annotated[int, _DEGREE], ...], Items(what="TP degrees", low=1, high=MAX_GRID)]
    cp: Annotated[tuple[Annotated[int, _DEGREE], ...], Items(what="CP degrees", low=1, high=MAX_GRID)]


class _SourceFields(StrictFields):
    kind: Annotated[str, Choice(choices=SOURCE_KINDS)]
    cite: Annotated[str, Text(what="where the number comes from")]
    date: Annotated[str, Text(what="an ISO date", empty=True)] = ""


class _MachineFields(StrictFields):
    name: Annotated[str, Text(what="the machine's short name")]
    title: Annotated[str, Text(what="what to show", empty=True)] = ""
    illustrative: Annotated[bool, Flag()] = False
    pe_name: Annotated[str, Text(what="what a PE is")] = "PE"
    node_pes: Annotated[int, _PES]
    peak_flops_per_s: Annotated[
        dict[str, Annotated[float, Number(unit="FLOP/s", low=1.0, high=1e21)]],
        Items(what="peaks by precision", low=1, high=16, keyed=True),
    ]
    hbm_bytes_per_s: Annotated[float, _BANDWIDTH]
    hbm_bytes: Annotated[float, Number(unit="bytes", low=1.0, high=1e18)]
    usable_hbm_frac: Annotated[float, Number(unit="", low=0.0, high=1.0, above=True)]
    reserved_bytes: Annotated[float, Number(unit="bytes", low=0.0, high=1e18)] = 0.0
    collective_model: Annotated[str, Choice(choices=COLLECTIVE_MODELS)]
    tiers: Annotated[tuple[_TierFields, ...], Items(what="tiers", low=1, high=MAX_TIERS)]
    kv_merge_bytes_per_s: Annotated[
        float | None, Number(unit="B/s", low=1.0, high=1e18, null="the tier that the copies span")
    ] = None
    batch_multiple: Annotated[int, Count(unit="sequences", low=1, high=65_536)] = 1
    serving_grid: _GridFields | None = None
    sources: Annotated[
        dict[str, _SourceFields], Items(what="sources by constant", low=0, high=256, keyed=True)
    ] = Field(default_factory=dict)


def _whole(value: object) -> TypeGuard[float]:
    """Return whether a value is a count, written 8 or 8.0."""
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool)


def _tier_faults(source: Mapping[str, Any]) -> list[Fault]:
    """Tiers must grow outwards, only the last may be without limit, and a node must fit in them."""
    tiers = source.get("tiers")
    if not isinstance(tiers, (list, tuple)) or len(tiers) > MAX_TIERS:
        return []
    faults = []
    sizes = [tier.get("n_pes", 0) if isinstance(tier, Mapping) else 0 for tier in tiers]
    for index, size in enumerate(sizes):
        inner = sizes[index - 1] if index else 0
        if size is None and index < len(sizes) - 1:
            faults.append(
                Fault(
                    where=f"tiers[{index}].n_pes",
                    given="null (no limit)",
                    allowed="null on the last tier only",
                    fix="give the number of PEs, or drop the tiers after it",
                )
            )
        elif _whole(size) and _whole(inner) and 1 <= size <= inner:
            faults.append(
                Fault(
                    where=f"tiers[{index}].n_pes",
                    given=shorten(size),
                    allowed=f"more than the {inner} PEs of the tier inside it",
                    fix="list the tiers innermost first, each larger than the one before",
                )
            )
    node_pes = source.get("node_pes")
    if sizes and _whole(node_pes) and _whole(sizes[-1]) and 1 <= sizes[-1] < node_pes:
        faults.append(
            Fault(
                where="node_pes",
                given=shorten(node_pes),
                allowed=f"at most the {sizes[-1]} PEs of the outermost tier",
                fix="add the tier that holds a whole node, or lower node_pes",
            )
        )
    return faults


def _precision_faults(source: Mapping[str, Any]) -> list[Fault]:
    """Return the precisions that have no plain name."""
    peaks = source.get("peak_flops_per_s")
    return [
        Fault(
            where="peak_flops_per_s",
            given=shorten(name),
            allowed="precisions of 1 to 16 small letters and digits, such as bf16, fp8, int8",
            fix="rename it",
        )
        for name in (peaks if isinstance(peaks, Mapping) else ())
        if not _PRECISION.fullmatch(str(name))
    ][:MAX_FAULTS]


def _grid_faults(source: Mapping[str, Any]) -> list[Fault]:
    """No degree of the serving grid may exceed the node, and each is listed once."""
    grid, node_pes = source.get("serving_grid"), source.get("node_pes")
    if not isinstance(grid, Mapping):
        return []
    faults = []
    for axis in ("tp", "cp"):
        values = grid.get(axis)
        if not isinstance(values, (list, tuple)):
            continue
        for index, value in enumerate(values[:MAX_GRID]):
            where = f"serving_grid.{axis}[{index}]"
            if _whole(value) and _whole(node_pes) and value > node_pes >= 1:
                allowed, fix = f"at most the {node_pes} PEs of a node", "lower it or take it out"
            elif _whole(value) and value in values[:index]:
                allowed, fix = "each value once", "take one of them out"
            else:
                continue
            faults.append(Fault(where=where, given=shorten(value), allowed=allowed, fix=fix))
    return faults


def _doubling(limit: int) -> tuple[int, ...]:
    """1, 2, 4 and so on, up to `limit`."""
    return tuple(2**power for power in range(min(limit.bit_length(), MAX_GRID)))


def constant_paths(machine: Machine) -> tuple[str, ...]:
    """Return the dotted path of every numeric constant of a machine: what `sources` is keyed by.

    Parameters
    ----------
    machine : Machine
        The machine.

    Returns
    -------
    tuple of str
        In the file's order; a constant that is null or without limit is left out.
    """
    paths = ["node_pes"]
    paths += [f"peak_flops_per_s.{precision}" for precision in machine.peak_flops_per_s]
    paths += ["hbm_bytes_per_s", "hbm_bytes", "usable_hbm_frac", "reserved_bytes"]
    for index, tier in enumerate(machine.tiers):
        keys = ("n_pes", "hop_latency_s", "link_bytes_per_s")
        paths += [f"tiers[{index}].{key}" for key in keys if math.isfinite(getattr(tier, key))]
    if machine.kv_merge_bytes_per_s is not None:
        paths.append("kv_merge_bytes_per_s")
    return (*paths, "batch_multiple")


def parse_hardware(source: Mapping[str, Any]) -> Machine:
    """Check a machine's JSON and return the machine.

    Parameters
    ----------
    source : mapping
        The parsed JSON, units as the keys say (SI base units).

    Returns
    -------
    Machine
        `serving_grid`, where left out, is TP by doubling up to the node and CP 1, 2, 4, 8.

    Raises
    ------
    InvalidSpec
        With every fault at once.

    Examples
    --------
    >>> parse_hardware(preset_hardware_json("trn2")).title
    'AWS Trainium2 (trn2.48xlarge)'
    """
    fields, faults = read_layout(source, layout=_MachineFields)
    if isinstance(source, Mapping):
        faults += _precision_faults(source) + _tier_faults(source) + _grid_faults(source)
    if fields is None or faults:
        raise InvalidSpec(faults[:MAX_FAULTS])
    grid = fields.serving_grid
    machine = Machine(
        name=fields.name,
        title=fields.title or fields.name,
        illustrative=fields.illustrative,
        pe_name=fields.pe_name,
        node_pes=fields.node_pes,
        peak_flops_per_s=fields.peak_flops_per_s,
        hbm_bytes_per_s=fields.hbm_bytes_per_s,
        hbm_bytes=fields.hbm_bytes,
        usable_hbm_frac=fields.usable_hbm_frac,
        reserved_bytes=fields.reserved_bytes,
        collective_model=fields.collective_model,
        tiers=tuple(
            Tier(
                name=tier.name,
                n_pes=math.inf if tier.n_pes is None else float(tier.n_pes),
                hop_latency_s=tier.hop_latency_s,
                link_bytes_per_s=tier.link_bytes_per_s,
            )
            for tier in fields.tiers
        ),
        kv_merge_bytes_per_s=fields.kv_merge_bytes_per_s,
        batch_multiple=fields.batch_multiple,
        tp_grid=tuple(sorted(grid.tp)) if grid else _doubling(fields.node_pes),
        cp_grid=tuple(sorted(grid.cp))
        if grid
        else tuple(cp for cp in DEFAULT_CP_GRID if cp <= fields.node_pes),
        sources={
            path: Source(kind=item.kind, cite=item.cite, date=item.date)
            for path, item in fields.sources.items()
        },
    )
    unknown = [path for path in machine.sources if path not in constant_paths(machine)]
    if unknown:
        raise InvalidSpec(
            Fault(
                where="sources",
                given=shorten(path),
                allowed="the path of a constant of this machine, such as 'tiers[0].n_pes'",
                fix="correct the path or take it out",
            )
            for path in unknown[:MAX_FAULTS]
        )
    return machine


def _plain(value: float) -> int | float:
    """Return a whole float as an int, so that 64.0 is written 64."""
    return int(value) if float(value).is_integer() and abs(value) < 2**53 else value


def hardware_to_json(machine: Machine) -> dict[str, Any]:
    """Return the JSON of a machine: what `parse_hardware` turns into an equal machine.

    Parameters
    ----------
    machine : Machine
        The machine.

    Returns
    -------
    dict
        Strict JSON values only.
    """
    return {
        "name": machine.name,
        "title": machine.title,
        "illustrative": machine.illustrative,
        "pe_name": machine.pe_name,
        "node_pes": machine.node_pes,
        "peak_flops_per_s": dict(machine.peak_flops_per_s),
        "hbm_bytes_per_s": machine.hbm_bytes_per_s,
        "hbm_bytes": _plain(machine.hbm_bytes),
        "usable_hbm_frac": machine.usable_hbm_frac,
        "reserved_bytes": _plain(machine.reserved_bytes),
        "collective_model": machine.collective_model,
        "tiers": [
            {
                "name": tier.name,
                "n_pes": int(tier.n_pes) if math.isfinite(tier.n_pes) else None,
                "hop_latency_s": tier.hop_latency_s,
                "link_bytes_per_s": tier.link_bytes_per_s,
            }
            for tier in machine.tiers
        ],
        "kv_merge_bytes_per_s": machine.kv_merge_bytes_per_s,
        "batch_multiple": machine.batch_multiple,
        "serving_grid": {"tp": list(machine.tp_grid), "cp": list(machine.cp_grid)},
        "sources": {
            path: {"kind": item.kind, "cite": item.cite, "date": item.date}
            for path, item in machine.sources.items()
        },
    }


def list_presets() -> tuple[str, ...]:
    """Return the names of the machines that come with the planner, sorted."""
    return preset_names("hardware")


def preset_hardware_json(name: str) -> dict[str, Any]:
    """Return the JSON of a machine that comes with the planner.

    Parameters
    ----------
    name : str
        One of `list_presets()`.

    Returns
    -------
    dict

    Raises
    ------
    InvalidSpec
        No such preset.
    """
    known = list_presets()
    if name not in known:
        meant = [preset for preset in known if name and preset.startswith(name)]
        raise InvalidSpec(
            [
                Fault(
                    where="hardware",
                    given=shorten(name),
                    allowed="one of " + ", ".join(known),
                    fix=f"did you mean {' or '.join(meant)}?"
                    if meant
                    else "pick one of these or give a hardware file",
                )
            ]
        )
    where = f"presets/hardware/{name}.json"
    path = presets_dir() / "hardware" / f"{name}.json"
    return require_object(read_json_file(path, where=where), where=where)


def load_preset(name: str) -> Machine:
    """Return a machine that comes with the planner.

    Parameters
    ----------
    name : str
        One of `list_presets()`.

    Returns
    -------
    Machine

    Raises
    ------
    InvalidSpec
        No such preset.

    Examples
    --------
    >>> load_preset("trn2").node_pes
    64
    """
    return parse_hardware(preset_hardware_json(name))
