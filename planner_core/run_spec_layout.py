"""The layout of a run-spec's JSON: its keys, their ranges and defaults.

Owns: what each key may hold on its own.
Refuses: what depends on the model or the machine (see `run_spec`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

from planner_core.json_fields import Choice, Count, Items, Number, Rule, StrictFields, Text, refused
from planner_core.workload import MAX_BATCH

OBJECTIVES: Final = ("lowest_ttft", "highest_throughput")
MAX_CONFIGS: Final = 256
MAX_CONTEXT_TOKENS: Final = 100_000_000


@dataclass(frozen=True, kw_only=True)
class Reference(Rule):
    """A path, or the JSON itself."""

    @property
    def words(self) -> str:
        """What is allowed, in words."""
        return "the path of a JSON file, or the JSON object itself"

    def check(self, value: Any) -> object:
        """Return the path or the object."""
        if isinstance(value, Mapping) or (isinstance(value, str) and value.strip()):
            return value
        raise refused(allowed=self.allowed, fix="write a path in quotes or an object in braces")


@dataclass(frozen=True, kw_only=True)
class Serving(Rule):
    """Colocated; what else is known by name is refused by that name."""

    @property
    def words(self) -> str:
        """What is allowed, in words."""
        return "colocated: one replica on one node does prefill and decode"

    def check(self, value: Any) -> str:
        """Return the mode."""
        if value == "colocated":
            return "colocated"
        mode = str(value).lower().replace("_", "-").replace(" ", "-")
        named = {"disaggregated": "disaggregated", "multi-node": "multi-node", "multinode": "multi-node"}
        fix = "write 'colocated'"
        if mode in named:
            fix = f"{named[mode]} serving is out of scope of the serving planner; {fix}"
        raise refused(allowed=self.allowed, fix=fix)


# The lowest values are far below any use, and far enough above 0 that nothing divided by them overflows.
_WIDTH: Final = Number(unit="bytes an element", low=1e-3, high=16.0, null="the checkpoint's own")
_DEGREE: Final = Count(unit="ranks", low=1, high=1_000_000_000)


class ConfigFields(StrictFields):
    """One named operating point."""

    label: Annotated[str, Text(what="a name", empty=True)] = ""
    regime: Annotated[str, Text(what="what the point is for")] = "decode_heavy"
    TP: Annotated[int, _DEGREE]
    PP: Annotated[int, _DEGREE] = 1
    CP: Annotated[int, _DEGREE] = 1
    bucket: Annotated[int, Count(unit="tokens", low=1, high=MAX_CONTEXT_TOKENS)]
    bs: Annotated[int, Count(unit="sequences", low=1, high=MAX_BATCH)]


class SpecFields(StrictFields):
    """A whole run-spec."""

    model: Annotated[str, Text(what="the model's name", empty=True)] = ""
    hardware_name: Annotated[str, Text(what="the machine's name", empty=True)] = ""
    hf_config: Annotated[Any, Reference()]
    hardware: Annotated[Any, Reference()]
    serving: Annotated[str, Serving()] = "colocated"
    decode_itl_ceiling_ms: Annotated[
        float | None, Number(unit="ms", low=1e-6, high=1e9, null="no ceiling")
    ] = None
    prefill_itps_floor: Annotated[
        float | None, Number(unit="tokens/s", low=1e-6, high=1e15, null="no floor")
    ] = None
    objective: Annotated[str | None, Choice(choices=OBJECTIVES, null="the two targets")] = None
    weight_dtype_bytes: Annotated[float | None, _WIDTH] = None
    kv_dtype_bytes: Annotated[float | None, _WIDTH] = None
    activation_dtype_bytes: Annotated[float, Number(unit="bytes an element", low=1e-3, high=16.0)] = 2.0
    compute_precision: Annotated[str, Text(what="one of the machine's precisions")] = "bf16"
    configs: Annotated[
        tuple[ConfigFields, ...], Items(what="named operating points", low=0, high=MAX_CONFIGS)
    ] = ()
