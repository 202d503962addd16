"""The one state of the app: what is loaded, what is set, which points are compared.

Owns: `AppState` and its parts, their bounds, and how one field is replaced.
Refuses: Streamlit, the URL (see `link`), and the meaning of a run-spec (see `planner_core.run_spec`).

Every value a user can set is a field here and nowhere else. A field that is None is "as the run-spec says" or
"not chosen yet". `spec` is a JSON document: treat it as immutable and replace it whole.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from planner_core.workload import MAX_BATCH

VERSION = 1
MAX_COMPARED = 4
MAX_DRAFT_CHARS = 1_000_000

Degree = Annotated[int, Field(ge=1, le=1 << 20)]
Sequences = Annotated[int, Field(ge=1, le=MAX_BATCH)]
Tokens = Annotated[int, Field(ge=1, le=1 << 40)]
Milliseconds = Annotated[float, Field(ge=1e-6, le=1e9, allow_inf_nan=False)]
TokensPerSecond = Annotated[float, Field(ge=1e-6, le=1e15, allow_inf_nan=False)]
Phase = Literal["decode", "prefill"]
KvMode = Literal["split", "replicate"]
FfnScope = Literal["TP", "TP+CP", "TP+DP", "TP+CP+DP"]
Placement = Literal["inner", "outer"]
RingVariant = Literal["qoml", "kv"]
CollectiveModel = Literal["hierarchical", "flat", "flat-all-pes"]
Degrees = Annotated[tuple[Degree, ...], Field(max_length=64)]
Powers = (1, 2, 4, 8, 16, 32, 64, 128)


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ParallelConfig(_Part):
    """One config: the nine axes, EP, and for a serving config its split (`planner cell --cp`)."""

    cp: Degree = 1
    tp: Degree = 8
    pp: Degree = 1
    dp: Degree = 1
    ep: Degree = 1
    kv_shard_mode: KvMode = "split"
    ffn_shard_scope: FfnScope = "TP"
    tp_placement: Placement = "inner"
    cp_placement: Placement = "inner"
    cp_ring_variant: RingVariant = "qoml"
    kv_split: Degree | None = None


class PlanSettings(_Part):
    """Serving plan: overrides of the run-spec's targets, the bucket, the FP8 overlay, the chosen row."""

    itl_ceiling_ms: Milliseconds | None = None
    prefill_itps_floor: TokensPerSecond | None = None
    bucket_tokens: Tokens | None = None
    overlay: Literal["none", "fp8_weights", "fp8_kv", "fp8_weights_kv"] = "none"
    selected: ParallelConfig | None = None


class SearchedAxes(_Part):
    """The values that each of the nine axes takes in a sweep; an empty one is a fault that the page shows."""

    cp: Degrees = Powers
    tp: Degrees = Powers
    pp: Degrees = (1, 2, 4)
    dp: Degrees = (1, 2, 4)
    kv_shard_mode: Annotated[tuple[KvMode, ...], Field(max_length=2)] = ("split", "replicate")
    ffn_shard_scope: Annotated[tuple[FfnScope, ...], Field(max_length=4)] = (
        "TP",
        "TP+CP",
        "TP+DP",
        "TP+CP+DP",
    )
    tp_placement: Annotated[tuple[Placement, ...], Field(max_length=2)] = ("inner", "outer")
    cp_placement: Annotated[tuple[Placement, ...], Field(max_length=2)] = ("inner", "outer")
    cp_ring_variant: Annotated[tuple[RingVariant, ...], Field(max_length=2)] = ("qoml", "kv")


class ExploreSettings(_Part):
    """Auto Explore: the workload, the budget, what is searched, the collective model, the tab and the view.

    `context_tokens=None` is the model's longest context, 128k at most; `collective_model="own"` is the
    machine's; `dense` searches 1 and every even degree.
    """

    phase: Phase = "decode"
    context_tokens: Tokens | None = None
    batch: Sequences = 1
    max_pes: Degree | None = None
    axes: SearchedAxes = SearchedAxes()
    dense: bool = False
    collective_model: CollectiveModel | Literal["own"] = "own"
    tab: Literal["Pareto", "Sensitivity"] = "Pareto"
    view: Literal["Projections", "3-D"] = "Projections"


class CellPoint(_Part):
    """One operating point; `collective_model=None` is the machine's own.

    Where the config has a `kv_split` it is a serving config, as in `planner cell`: TP, PP and that split
    count, on one node. Where it has none, all axes count, as in `planner explore`.
    """

    phase: Phase = "decode"
    context_tokens: Tokens = 8192
    batch: Sequences = 16
    config: ParallelConfig = ParallelConfig(kv_split=1)
    collective_model: CollectiveModel | None = None


class OracleSettings(_Part):
    """Oracle: the step that is checked; `context_tokens=None` is the oracle's own default for the model."""

    context_tokens: Tokens | None = None
    batch: Sequences = 8


class ComparePoint(_Part):
    """One point of Compare, with the whole run-spec it belongs to."""

    label: Annotated[str, Field(max_length=400)] = ""
    spec: dict[str, JsonValue]
    cell: CellPoint


class AppState(_Part):
    """Everything that a link reopens. See the module."""

    v: Literal[1] = VERSION
    spec: dict[str, JsonValue]
    draft: Annotated[str, Field(max_length=MAX_DRAFT_CHARS)] | None = None
    plan: PlanSettings = PlanSettings()
    explore: ExploreSettings = ExploreSettings()
    baseline: ParallelConfig | None = None
    cell: CellPoint = CellPoint()
    oracle: OracleSettings = OracleSettings()
    compare: Annotated[tuple[ComparePoint, ...], Field(max_length=MAX_COMPARED)] = ()
    review: bool = False


def get_at(state: AppState, path: str) -> Any:
    """Return the value at a dotted path ("explore.batch")."""
    value: Any = state
    for name in path.split("."):
        value = getattr(value, name)
    return value


def replaced_at(state: AppState, path: str, value: object) -> AppState:
    """Return the state with the field at a dotted path replaced, and validated.

    Raises
    ------
    pydantic.ValidationError
        If the field does not take that value.
    """
    head, _, rest = path.partition(".")
    part = getattr(state, head)
    if rest:
        value = _replaced_in(part, rest, value)
    return _replaced_in(state, head, value)


def _replaced_in(part: Any, path: str, value: object) -> Any:
    head, _, rest = path.partition(".")
    if rest:
        value = _replaced_in(getattr(part, head), rest, value)
    fields = {name: getattr(part, name) for name in type(part).model_fields}
    if head not in fields:
        raise KeyError(f"{type(part).__name__} has no field {head!r}")
    return type(part).model_validate({**fields, head: value})
