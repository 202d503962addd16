"""The nine-axis grid: the one place where an axis gets a position.

Owns: `ExploreAxes`, slabs of the open grid, the four prunes, and the way from a cell back to a `Config`.
Refuses: formulas; the arrays it builds go into `stage_latencies` and `memory_layout` as they are.

Source: physics contract, section 6.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from planner_core.auto_explore.config import DEGREES, MODES, Config
from planner_core.errors import Fault, InvalidSpec, shorten
from planner_core.legal_degrees import max_tp
from planner_core.model_arch import ModelArch
from planner_core.parallelism import BoolArray, Parallelism, make_parallelism

SLAB_CELLS: Final = 65_536
MAX_AXIS_VALUES: Final = 1024
MAX_CELLS: Final = 200_000_000
PRUNE_REASONS: Final = (
    "more stages than layers",
    "head split too fine",
    "FFN scope over DP without DP",
    "qoml ring without CP",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExploreAxes:
    """The values that each of the nine axes takes, in sweep order.

    Parameters
    ----------
    cp, tp, pp, dp : tuple of int
        Degrees.
    kv_shard_mode, ffn_shard_scope, tp_placement, cp_placement, cp_ring_variant : tuple of str
        Modes.
    """

    cp: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128)
    tp: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128)
    pp: tuple[int, ...] = (1, 2, 4)
    dp: tuple[int, ...] = (1, 2, 4)
    kv_shard_mode: tuple[str, ...] = MODES["kv_shard_mode"]
    ffn_shard_scope: tuple[str, ...] = MODES["ffn_shard_scope"]
    tp_placement: tuple[str, ...] = MODES["tp_placement"]
    cp_placement: tuple[str, ...] = MODES["cp_placement"]
    cp_ring_variant: tuple[str, ...] = MODES["cp_ring_variant"]

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""
        return tuple(len(getattr(self, name)) for name in AXIS_NAMES)

    @property
    def n_cells(self) -> int:
        """Cells of the grid, before any prune."""
        count = 1
        for length in self.shape:
            count *= length
        return count


AXIS_NAMES: Final = tuple(field.name for field in fields(ExploreAxes))


def dense_axes(*, cp_max: int = 256, tp_max: int = 64, pp_max: int = 32, dp_max: int = 64) -> ExploreAxes:
    """Return axes with 1 and every even degree up to the given ones.

    Examples
    --------
    >>> dense_axes(cp_max=6, tp_max=2, pp_max=1, dp_max=1).cp
    (1, 2, 4, 6)
    """
    return ExploreAxes(
        cp=even_values(cp_max), tp=even_values(tp_max), pp=even_values(pp_max), dp=even_values(dp_max)
    )


def even_values(largest: int) -> tuple[int, ...]:
    """Return 1, then every even number up to `largest`.

    Examples
    --------
    >>> even_values(6)
    (1, 2, 4, 6)
    """
    return (1, *range(2, largest + 1, 2))


def check_axes(axes: ExploreAxes) -> None:
    """Refuse axes that are empty, hold a wrong or repeated value, or make too many cells.

    Raises
    ------
    InvalidSpec
        With every fault at once.
    """
    faults = []
    for name in AXIS_NAMES:
        values = getattr(axes, name)
        if name in DEGREES:
            good = all(isinstance(v, int) and not isinstance(v, bool) and v >= 1 for v in values)
            allowed = f"1 to {MAX_AXIS_VALUES} different whole numbers from 1 up"
        else:
            good = all(value in MODES[name] for value in values)
            allowed = f"one or more of {', '.join(MODES[name])}, each once"
        if not good or not 1 <= len(values) <= MAX_AXIS_VALUES or len(set(values)) != len(values):
            faults.append(
                Fault(where=name, given=shorten(list(values)), allowed=allowed, fix="correct the axis")
            )
    if not faults and axes.n_cells > MAX_CELLS:
        faults.append(
            Fault(
                where="axes",
                given=f"{axes.n_cells} cells",
                allowed=f"at most {MAX_CELLS}",
                fix="search fewer values on one of the axes",
            )
        )
    if faults:
        raise InvalidSpec(faults)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slab:
    """A block of the grid, small enough for the processor's cache.

    Parameters
    ----------
    offset, shape : tuple of int
        Where it starts in the grid and how long it is, an entry an axis.
    parallelism : Parallelism
        Open arrays: each field lies on its own axes only.
    prunes : tuple of ndarray of bool
        For each of `PRUNE_REASONS`, the cells that it removes, on its own axes only.
    """

    offset: tuple[int, ...]
    shape: tuple[int, ...]
    parallelism: Parallelism
    prunes: tuple[BoolArray, ...]


def slabs(*, axes: ExploreAxes, model: ModelArch, slab_cells: int = SLAB_CELLS) -> Iterator[Slab]:
    """Cut the grid into slabs of at most `slab_cells` cells.

    Parameters
    ----------
    axes : ExploreAxes
        The grid.
    model : ModelArch
        Layers and heads, for the prunes.
    slab_cells : int
        Largest slab; an axis is never cut below one value.

    Yields
    ------
    Slab
        In grid order of the leading axes; together they cover each cell once.
    """
    lengths = list(axes.shape)
    for position in range(len(lengths)):
        rest = int(np.prod(lengths[position + 1 :]))
        lengths[position] = min(lengths[position], max(1, slab_cells // rest))
    starts = [range(0, full, step) for full, step in zip(axes.shape, lengths, strict=True)]
    for offset in product(*starts):
        yield _slab(axes, model, offset, lengths)


def _slab(axes: ExploreAxes, model: ModelArch, offset: tuple[int, ...], lengths: list[int]) -> Slab:
    values = [
        np.asarray(getattr(axes, name)[start : start + length])
        for name, start, length in zip(AXIS_NAMES, offset, lengths, strict=True)
    ]
    # np.ix_ turns booleans into positions, so the modes become booleans only after they are placed.
    parallelism = _parallelism(*np.ix_(*values))
    return Slab(
        offset=offset,
        shape=tuple(len(value) for value in values),
        parallelism=parallelism,
        prunes=(
            parallelism.pp > model.n_layers,
            parallelism.tp > max_tp(model),
            parallelism.ffn_over_dp & (parallelism.dp == 1),
            parallelism.ring_qoml & (parallelism.cp == 1),
        ),
    )


def _parallelism(
    cp: NDArray[Any],
    tp: NDArray[Any],
    pp: NDArray[Any],
    dp: NDArray[Any],
    kv: NDArray[Any],
    scope: NDArray[Any],
    tp_place: NDArray[Any],
    cp_place: NDArray[Any],
    ring: NDArray[Any],
) -> Parallelism:
    """Turn the values of the nine axes, in sweep order and by name, into a `Parallelism`."""
    return make_parallelism(
        cp=cp,
        tp=tp,
        pp=pp,
        dp=dp,
        kv_split=np.where(kv == "split", np.inf, 1.0),
        ffn_over_cp=np.isin(scope, ("TP+CP", "TP+CP+DP")),
        ffn_over_dp=np.isin(scope, ("TP+DP", "TP+CP+DP")),
        tp_outer=tp_place == "outer",
        cp_outer=cp_place == "outer",
        ring_qoml=ring == "qoml",
    )


def parallelism_at(*, axes: ExploreAxes, index: NDArray[np.intp]) -> Parallelism:
    """Return several cells as one `Parallelism` of 1-D arrays.

    Parameters
    ----------
    axes : ExploreAxes
        The grid.
    index : ndarray of int
        Positions on each axis [n, 9].

    Returns
    -------
    Parallelism
        Every field is shaped [n].
    """
    columns = (
        np.asarray(getattr(axes, name))[index[:, position]] for position, name in enumerate(AXIS_NAMES)
    )
    return _parallelism(*columns)


def config_at(*, axes: ExploreAxes, index: tuple[int, ...]) -> Config:
    """Return the config of a cell.

    Parameters
    ----------
    axes : ExploreAxes
        The grid.
    index : tuple of int
        A position on each axis.

    Returns
    -------
    Config
    """
    return Config(**{name: getattr(axes, name)[at] for name, at in zip(AXIS_NAMES, index, strict=True)})


def grid_index(*, slab: Slab, flat: NDArray[np.intp]) -> NDArray[np.intp]:
    """Turn flat positions inside a slab into positions on each axis of the grid.

    Parameters
    ----------
    slab : Slab
        The slab.
    flat : ndarray of int
        Positions [n] in the slab, C order.

    Returns
    -------
    ndarray of int
        [n, 9].
    """
    inside = np.stack(np.unravel_index(flat, slab.shape), axis=1)
    return np.asarray(inside + np.asarray(slab.offset), dtype=np.intp)
