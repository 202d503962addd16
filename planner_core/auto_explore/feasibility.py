"""Whether a config can run, and what it lacks where it cannot.

Owns: `lacks`, for configs by name and for the sensitivity panel alike.
Refuses: formulas: the memory comes from `memory_layout`, the ranks that EP may take from `shards`.

Source: physics contract, sections 4 and 6.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner_core.hardware import Machine
from planner_core.legal_degrees import max_tp
from planner_core.memory_layout import SHORTAGES, MemoryLayout
from planner_core.model_arch import ModelArch
from planner_core.parallelism import Parallelism
from planner_core.shards import ep_fits


def pe_limit(*, machine: Machine, max_pes: float | None) -> float:
    """Return the most PEs that a plan may use: the machine's, or the budget where that is less."""
    return machine.max_pes if max_pes is None else min(machine.max_pes, max_pes)


def lacks(
    *,
    parallelism: Parallelism,
    memory: MemoryLayout,
    model: ModelArch,
    machine: Machine,
    max_pes: float | None,
) -> NDArray[np.str_]:
    """Return what each config lacks, the first of the reasons that holds; empty where it can run.

    Parameters
    ----------
    parallelism : Parallelism
        The configs.
    memory : MemoryLayout
        Theirs.
    model : ModelArch
        Layers and heads, which bound PP and TP.
    machine : Machine
        Its PEs.
    max_pes : float, optional
        PE budget; the machine's own limit always holds.

    Returns
    -------
    ndarray of str
        "not enough ranks" (for EP), "more stages than layers", "head split too fine", "PEs", "weights",
        "KV", "activations" or "".
    """
    return np.select(
        [
            ~ep_fits(parallelism=parallelism),
            parallelism.pp > model.n_layers,
            parallelism.tp > max_tp(model),
            parallelism.pes_used > pe_limit(machine=machine, max_pes=max_pes),
        ],
        ["not enough ranks", "more stages than layers", "head split too fine", "PEs"],
        default=np.array(SHORTAGES)[memory.shortage_index()],
    )
