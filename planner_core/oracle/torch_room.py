"""The one door to torch: imported late, on the meta device, one measurement at a time.

Owns: the lazy import of torch, its versions' text, the lock around measurements, and the error that says
how to install it.
Refuses: real tensors; nothing here allocates memory for weights.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from planner_core.errors import PlannerError

# FlopCounterMode follows modules with hooks of the whole process, so two measurements must not overlap.
MEASURING = threading.Lock()


class OracleUnavailable(PlannerError):
    """The oracle cannot run here: torch is not installed."""

    kind = "oracle_unavailable"


def import_torch() -> Any:
    """Return the torch module.

    Returns
    -------
    module
        torch.

    Raises
    ------
    OracleUnavailable
        Where torch cannot be imported, with how to install it.
    """
    try:
        import torch
        import torch.utils.flop_counter
    except ImportError as fault:
        raise OracleUnavailable(
            "the oracle needs torch, which is not installed here; install it in the planner's checkout "
            "with .venv/bin/pip install -r requirements-torch.txt (the CPU build of torch is enough: "
            f"nothing is run on an accelerator). Import said: {fault}"
        ) from fault
    return torch


def count_flops(run: Callable[[], object]) -> Mapping[str, int]:
    """Run something under torch's FlopCounterMode and return its FLOP by module.

    Parameters
    ----------
    run : callable
        Runs a module on meta tensors.

    Returns
    -------
    mapping of str to int
        By dotted module path, the root's class name first; "Global" is everything.
    """
    torch = import_torch()
    counter = torch.utils.flop_counter.FlopCounterMode(display=False)
    with torch.no_grad(), torch.device("meta"), counter:
        run()
    return {path: sum(ops.values()) for path, ops in counter.get_flop_counts().items()}
