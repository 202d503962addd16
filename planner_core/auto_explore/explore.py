"""The sweep: score every config of the grid for one phase, keep what fits, rank the rest.

Owns: `explore`, its result, and `score_configs` (the same numbers for configs by name).
Refuses: formulas: it calls `stage_latencies` and `memory_layout`.

Source: physics contract, section 6.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Final

import moocore
import numpy as np
from numpy.typing import NDArray

from planner_core.auto_explore.config import MODES, Config, stack_configs
from planner_core.auto_explore.feasibility import lacks, pe_limit
from planner_core.auto_explore.grid import (
    AXIS_NAMES,
    PRUNE_REASONS,
    ExploreAxes,
    Slab,
    check_axes,
    config_at,
    grid_index,
    parallelism_at,
    slabs,
)
from planner_core.hardware import Machine
from planner_core.memory_layout import SHORTAGES, MemoryLayout, compute_memory
from planner_core.model_arch import ModelArch
from planner_core.parallelism import BoolArray, Parallelism
from planner_core.shards import new_tokens_per_sequence
from planner_core.stage_latencies import step_latency, work_floor_s
from planner_core.units import FloatArray, as_float
from planner_core.workload import Workload

MAX_CLOUD_POINTS: Final = 4096
N_DEGREES: Final = 4
_DEFAULT: Final = Config()
LACKS: Final = (*SHORTAGES[1:], "PEs")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigScore(Config):
    """A scored config: the nine axes, and what they give.

    Parameters
    ----------
    latency_s : float
        One step [s].
    pes_used : int
        CP * TP * PP * DP.
    efficiency : float
        Least PE-seconds for the work over those spent, in (0, 1].
    throughput_tokens_per_s : float
        New tokens of all replicas over the latency [tokens/s]; shown, no objective.
    memory_bytes_per_pe, hbm_frac : float
        On the most loaded PE [B], and over its HBM.
    fits : bool
        Within the memory budget and the PEs allowed, with ranks, layers and heads enough.
    lacks : str
        What was short: see `feasibility.lacks`; empty where it fits.
    binding : str
        What binds the step.
    n_tied : int
        Other feasible configs with the very same objectives.
    """

    latency_s: float
    pes_used: int
    efficiency: float
    throughput_tokens_per_s: float
    memory_bytes_per_pe: float
    hbm_frac: float
    fits: bool
    lacks: str
    binding: str
    n_tied: int = 0

    @property
    def config(self) -> Config:
        """The axes alone."""
        return Config(**{item.name: getattr(self, item.name) for item in fields(Config)})


@dataclass(frozen=True, kw_only=True)
class ExploreResult:
    """What a sweep found.

    Parameters
    ----------
    n_grid, n_enumerated, n_feasible : int
        Cells of the grid, those left by the prunes, those that fit.
    pruned : dict of str to int
        Cells that each prune removed, in order: a cell counts for the first that removes it.
    infeasible : dict of str to int
        Enumerated cells that lack weights, KV, activations (memory) or PEs.
    pareto : tuple of ConfigScore
        The front, by latency; among equals the simplest.
    closest : ConfigScore or None
        Where nothing fits: the enumerated config with the smallest memory shortfall.
    cloud_index : ndarray of int
        Feasible cells, evenly sampled [n, 9]; see `cloud_scores`.
    axes : ExploreAxes
        What was searched.
    elapsed_s : float
        Wall time of the sweep.
    stopped : bool
        True where it was stopped; the counts are then of what was done.
    """

    n_grid: int
    n_enumerated: int
    n_feasible: int
    pruned: dict[str, int]
    infeasible: dict[str, int]
    pareto: tuple[ConfigScore, ...]
    closest: ConfigScore | None
    cloud_index: NDArray[np.intp] = field(repr=False)
    axes: ExploreAxes
    elapsed_s: float
    stopped: bool = False


def _best_efficiency_s(
    *, model: ModelArch, machine: Machine, parallelism: Parallelism, workload: Workload
) -> FloatArray:
    """Return the latency at which the efficiency would be 1: the floor spread over the PEs used [s]."""
    floor_s = work_floor_s(model=model, machine=machine, workload=workload, n_replicas=parallelism.dp)
    return floor_s / parallelism.pes_used


def _efficiency(best_s: FloatArray, latency_s: FloatArray) -> FloatArray:
    """Return best over actual latency, in (0, 1]: the two sums may round a last digit past each other."""
    return np.minimum(best_s / latency_s, 1.0)


def score_configs(
    *,
    configs: Sequence[Config],
    model: ModelArch,
    machine: Machine,
    workload: Workload,
    max_pes: float | None = None,
    n_tied: Sequence[int] | None = None,
) -> tuple[ConfigScore, ...]:
    """Score configs by name.

    Parameters
    ----------
    configs : sequence of Config
        Which.
    model, machine, workload
        As in `step_latency`.
    max_pes : float, optional
        PE budget; the machine's own limit always holds.
    n_tied : sequence of int, optional
        To be carried along.

    Returns
    -------
    tuple of ConfigScore
        In the order given; equal to the same cells of a sweep, to the bit.

    Examples
    --------
    >>> from planner_core.preset_files import presets_dir
    >>> from planner_core.run_spec import load_run_spec
    >>> spec = load_run_spec(presets_dir() / "run_specs" / "llama-3.1-70b-sip128.json")
    >>> (score,) = score_configs(configs=[Config(tp=16)], model=spec.model, machine=spec.machine,
    ...                          workload=Workload(phase="decode", context_tokens=8192, batch=1))
    >>> score.pes_used, score.fits, score.lacks
    (16, False, 'weights')
    """
    if not configs:
        return ()
    parallelism = stack_configs(configs)
    step = step_latency(model=model, machine=machine, parallelism=parallelism, workload=workload)
    memory = compute_memory(model=model, machine=machine, parallelism=parallelism, workload=workload)
    count = len(configs)
    pes_used = parallelism.pes_used
    latency_s = np.broadcast_to(step.latency_s, (count,))
    best_s = _best_efficiency_s(model=model, machine=machine, parallelism=parallelism, workload=workload)
    efficiency = np.broadcast_to(_efficiency(best_s, latency_s), (count,))
    tokens = (
        parallelism.dp * parallelism.cp * new_tokens_per_sequence(workload=workload, parallelism=parallelism)
        if workload.phase == "prefill"
        else parallelism.dp
    )
    throughput = as_float(workload.batch) * tokens / latency_s
    labels = step.binding_labels()
    binding = np.broadcast_to(step.binding_index(), (count,))
    short_of = np.broadcast_to(
        lacks(parallelism=parallelism, memory=memory, model=model, machine=machine, max_pes=max_pes),
        (count,),
    )
    total = np.broadcast_to(memory.total_bytes, (count,))
    return tuple(
        ConfigScore(
            **{item.name: getattr(config, item.name) for item in fields(Config)},
            latency_s=float(latency_s[at]),
            pes_used=int(pes_used[at]),
            efficiency=float(efficiency[at]),
            throughput_tokens_per_s=float(throughput[at]),
            memory_bytes_per_pe=float(total[at]),
            hbm_frac=float(total[at] / machine.hbm_bytes),
            fits=bool(short_of[at] == ""),
            lacks=str(short_of[at]),
            binding=labels[int(binding[at])],
            n_tied=0 if n_tied is None else int(n_tied[at]),
        )
        for at, config in enumerate(configs)
    )


@dataclass(slots=True)
class _Tally:
    """What has been seen so far, slab by slab."""

    n_enumerated: int = 0
    n_feasible: int = 0
    pruned: NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(PRUNE_REASONS), np.int64))
    lacking: NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(LACKS), np.int64))
    front_points: FloatArray = field(default_factory=lambda: np.empty((0, 3)))
    front_index: NDArray[np.intp] = field(default_factory=lambda: np.empty((0, 9), np.intp))
    closest_bytes: float = np.inf
    closest_index: NDArray[np.intp] | None = None
    cloud: list[NDArray[np.intp]] = field(default_factory=list)


def explore(
    *,
    model: ModelArch,
    machine: Machine,
    workload: Workload,
    axes: ExploreAxes | None = None,
    max_pes: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> ExploreResult:
    """Sweep the nine axes and rank the configs that fit on the 3-D Pareto front.

    Parameters
    ----------
    model, machine, workload
        As in `step_latency`; the workload's context and batch are numbers here.
    axes : ExploreAxes, optional
        What to search; the contract's default grid.
    max_pes : float, optional
        PE budget; the machine's own limit always holds.
    progress : callable, optional
        Called after each slab with the cells done and the cells in all.
    should_stop : callable, optional
        Asked before each slab; True ends the sweep with what it has.

    Returns
    -------
    ExploreResult

    Raises
    ------
    InvalidSpec
        Where an axis is empty or wrong.

    Notes
    -----
    Latency down, PEs used down, efficiency up. Physics contract, section 6.

    Examples
    --------
    >>> from planner_core.preset_files import presets_dir
    >>> from planner_core.run_spec import load_run_spec
    >>> spec = load_run_spec(presets_dir() / "run_specs" / "llama-3.1-70b-sip128.json")
    >>> result = explore(model=spec.model, machine=spec.machine,
    ...                  workload=Workload(phase="decode", context_tokens=2**20, batch=1))
    >>> result.n_enumerated, [row.label() for row in result.pareto]
    (28800, ['TP64 CP2 TP outer'])
    """
    started_s = time.perf_counter()
    axes = ExploreAxes() if axes is None else axes
    check_axes(axes)
    tally = _Tally()
    limit = pe_limit(machine=machine, max_pes=max_pes)
    n_done = 0
    stopped = False
    for slab in slabs(axes=axes, model=model):
        if should_stop is not None and should_stop():
            stopped = True
            break
        _sweep_slab(slab, tally, axes, model, machine, workload, limit)
        n_done += int(np.prod(slab.shape))
        if progress is not None:
            progress(n_done, axes.n_cells)
    pareto = _front_scores(tally, axes, model, machine, workload, max_pes)
    closest = None
    if tally.n_feasible == 0 and tally.closest_index is not None:
        at = tuple(int(position) for position in tally.closest_index)
        (closest,) = score_configs(
            configs=[config_at(axes=axes, index=at)],
            model=model,
            machine=machine,
            workload=workload,
            max_pes=max_pes,
        )
    return ExploreResult(
        n_grid=axes.n_cells,
        n_enumerated=tally.n_enumerated,
        n_feasible=tally.n_feasible,
        pruned={name: int(n) for name, n in zip(PRUNE_REASONS, tally.pruned, strict=True)},
        infeasible={name: int(n) for name, n in zip(LACKS, tally.lacking, strict=True)},
        pareto=pareto,
        closest=closest,
        cloud_index=_cloud_index(tally),
        axes=axes,
        elapsed_s=time.perf_counter() - started_s,
        stopped=stopped,
    )


def _count(mask: BoolArray, shape: tuple[int, ...]) -> int:
    """Count True cells of an open mask as if it were spread over `shape`."""
    return int(np.count_nonzero(mask)) * (int(np.prod(shape)) // mask.size)


def _sweep_slab(
    slab: Slab,
    tally: _Tally,
    axes: ExploreAxes,
    model: ModelArch,
    machine: Machine,
    workload: Workload,
    most_pes: float,
) -> None:
    """Score one slab and fold it into the tally."""
    removed: BoolArray = np.zeros((1,) * len(slab.shape), dtype=np.bool_)
    for position, prune in enumerate(slab.prunes):
        tally.pruned[position] += _count(np.asarray(prune & ~removed), slab.shape)
        removed = removed | prune
    enumerated = ~removed
    tally.n_enumerated += _count(enumerated, slab.shape)

    memory = compute_memory(model=model, machine=machine, parallelism=slab.parallelism, workload=workload)
    enough_pes = slab.parallelism.pes_used <= most_pes
    feasible = enumerated & enough_pes & memory.fits
    _count_lacks(slab, tally, memory, enumerated, enough_pes)
    _note_closest(slab, tally, memory, enumerated & enough_pes)

    flat = np.flatnonzero(np.broadcast_to(feasible, slab.shape))
    tally.n_feasible += len(flat)
    if not len(flat):
        return
    _merge_front(slab, tally, feasible, model, machine, workload)
    share = MAX_CLOUD_POINTS * int(np.prod(slab.shape)) // axes.n_cells
    step = max(1, -(-len(flat) // max(1, share)))
    tally.cloud.append(grid_index(slab=slab, flat=flat[::step]))


def _merge_front(
    slab: Slab,
    tally: _Tally,
    feasible: BoolArray,
    model: ModelArch,
    machine: Machine,
    workload: Workload,
) -> None:
    """Rank a slab's feasible cells with the front so far, and keep every cell on it, ties too.

    The four degrees fix the PEs used and the work, so among the modes of one (CP, TP, PP, DP) only the
    lowest latency can be on the front: the ranking sees one point for each, not one for each cell.
    """
    parallelism = slab.parallelism
    latency_s = step_latency(
        model=model, machine=machine, parallelism=parallelism, workload=workload
    ).latency_s
    best_s = _best_efficiency_s(model=model, machine=machine, parallelism=parallelism, workload=workload)
    degrees = slab.shape[:N_DEGREES]
    feasible_s = np.broadcast_to(np.where(feasible, latency_s, np.inf), slab.shape)
    by_degrees = feasible_s.reshape(*degrees, -1)
    lowest_s = by_degrees.min(axis=-1).ravel()
    spread = (*degrees, *(1,) * (len(slab.shape) - N_DEGREES))
    points = np.stack(
        [
            lowest_s,
            np.broadcast_to(parallelism.pes_used, spread).ravel(),
            -_efficiency(np.broadcast_to(best_s, spread).ravel(), lowest_s),
        ],
        axis=1,
    )
    candidates = np.flatnonzero(np.isfinite(lowest_s))
    kept = candidates[np.asarray(moocore.is_nondominated(points[candidates], keep_weakly=True))]
    n_modes = by_degrees.shape[-1]
    rows, modes = np.nonzero(by_degrees.reshape(-1, n_modes)[kept] == lowest_s[kept, np.newaxis])
    flat = kept[rows] * n_modes + modes
    front = np.concatenate([tally.front_points, points[kept[rows]]])
    index = np.concatenate([tally.front_index, grid_index(slab=slab, flat=flat)])
    if len(tally.front_points):
        still = np.asarray(moocore.is_nondominated(front, keep_weakly=True))
        front, index = front[still], index[still]
    tally.front_points, tally.front_index = front, index


def _count_lacks(
    slab: Slab, tally: _Tally, memory: MemoryLayout, enumerated: BoolArray, enough_pes: BoolArray
) -> None:
    """Count what the enumerated cells lack: PEs first, then memory by what overflowed."""
    shortage = memory.shortage_index()
    for position in range(len(SHORTAGES) - 1):
        tally.lacking[position] += _count(enumerated & enough_pes & (shortage == position + 1), slab.shape)
    tally.lacking[-1] += _count(enumerated & ~enough_pes, slab.shape)


def _note_closest(slab: Slab, tally: _Tally, memory: MemoryLayout, allowed: BoolArray) -> None:
    """Remember the allowed cell that needs the least memory, as long as nothing fits."""
    if tally.n_feasible:
        return
    needed = np.where(allowed, memory.total_bytes, np.inf)
    at = int(np.argmin(needed))
    least = float(needed.flat[at])
    if least < tally.closest_bytes:
        tally.closest_bytes = least
        inside = np.asarray(np.unravel_index(at, needed.shape), dtype=np.intp)
        tally.closest_index = inside + np.asarray(slab.offset)


def _cloud_index(tally: _Tally) -> NDArray[np.intp]:
    """Evenly sampled feasible cells [n, 9]."""
    if not tally.cloud:
        return np.empty((0, 9), np.intp)
    return np.concatenate(tally.cloud)


def _front_scores(
    tally: _Tally,
    axes: ExploreAxes,
    model: ModelArch,
    machine: Machine,
    workload: Workload,
    max_pes: float | None,
) -> tuple[ConfigScore, ...]:
    """One row for each point of the front: the simplest of the configs that give it."""
    if not len(tally.front_points):
        return ()
    simplest_last = _simplicity(axes=axes, index=tally.front_index)[::-1]
    order = np.lexsort((*simplest_last, *tally.front_points.T[::-1]))
    points = tally.front_points[order]
    index = tally.front_index[order]
    starts = np.flatnonzero(np.any(np.diff(points, axis=0, prepend=np.nan) != 0.0, axis=1))
    n_tied = (np.diff(starts, append=len(points)) - 1).tolist()
    return score_configs(
        configs=[config_at(axes=axes, index=tuple(cell)) for cell in index[starts].tolist()],
        model=model,
        machine=machine,
        workload=workload,
        max_pes=max_pes,
        n_tied=n_tied,
    )


def _simplicity(*, axes: ExploreAxes, index: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Order among equals: fewest modes off their default, then the smallest PP, DP, CP, then mode by mode.

    A ring variant counts as off its default only where there is a ring. One key an entry, each [n], the first
    decides first. No two configs come out equal, so the order of an axis's values does not choose.
    """
    column = {name: index[:, position] for position, name in enumerate(AXIS_NAMES)}
    degree = {name: np.asarray(getattr(axes, name))[column[name]] for name in ("pp", "dp", "cp")}
    n_off = np.zeros(len(index), np.intp)
    modes = []
    for name, choices in MODES.items():
        places = [choices.index(value) for value in getattr(axes, name)]
        modes.append(np.asarray(places)[column[name]])
        off = modes[-1] != choices.index(getattr(_DEFAULT, name))
        n_off += off & (degree["cp"] > 1) if name == "cp_ring_variant" else off
    return [n_off, degree["pp"], degree["dp"], degree["cp"], *modes]


def cloud_scores(
    *,
    result: ExploreResult,
    model: ModelArch,
    machine: Machine,
    workload: Workload,
    n_points: int = 1000,
) -> tuple[ConfigScore, ...]:
    """Score an even sample of the feasible configs, for drawing behind the front.

    Parameters
    ----------
    result : ExploreResult
        A sweep of the same model, machine and workload.
    model, machine, workload
        As they were given to `explore`.
    n_points : int
        At most so many, no two with the same latency and PEs.

    Returns
    -------
    tuple of ConfigScore
    """
    index = result.cloud_index
    if not len(index):
        return ()
    parallelism = parallelism_at(axes=result.axes, index=index)
    step = step_latency(model=model, machine=machine, parallelism=parallelism, workload=workload)
    latency_s = np.broadcast_to(step.latency_s, (len(index),))
    places = np.stack([latency_s, parallelism.pes_used], axis=1)
    distinct = np.sort(np.unique(places, axis=0, return_index=True)[1])
    shown = distinct[:: max(1, -(-len(distinct) // n_points))]
    configs = [
        config_at(axes=result.axes, index=tuple(int(position) for position in cell)) for cell in index[shown]
    ]
    return score_configs(configs=configs, model=model, machine=machine, workload=workload)
