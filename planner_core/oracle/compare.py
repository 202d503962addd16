"""Run the oracle and the planner on the same step, and set their counts side by side.

Owns: `run_oracle`, and which of the two oracles speaks.
Refuses: time: only FLOP and weight bytes are compared, and those need no machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner_core.errors import Fault, InvalidSpec
from planner_core.hardware import Machine, Tier
from planner_core.model_arch import ModelArch, WeightWidths
from planner_core.oracle import from_shapes, from_transformers
from planner_core.oracle.explain import explanations_by_segment
from planner_core.oracle.measurement import CannotSpeak, Measurement, SegmentCount
from planner_core.oracle.report import (
    TOTAL,
    Explanation,
    OraclePhase,
    OracleReport,
    OracleSegment,
)
from planner_core.oracle.torch_room import import_torch
from planner_core.parallelism import make_parallelism
from planner_core.stage_latencies import step_latency
from planner_core.workload import PHASES, Phase, Workload

BYTES_PER_ELEMENT = 2
DEFAULT_CONTEXT_TOKENS = 4096

# FLOP and weight bytes of an uncut model are the same on any machine; a step asks for one.
_ANY_MACHINE = Machine(
    name="any",
    title="any",
    pe_name="PE",
    node_pes=1,
    peak_flops_per_s={"bf16": 1.0},
    hbm_bytes_per_s=1.0,
    hbm_bytes=1.0,
    usable_hbm_frac=1.0,
    collective_model="flat",
    tiers=(Tier(name="any", n_pes=1.0, hop_latency_s=0.0, link_bytes_per_s=1.0),),
    tp_grid=(1,),
    cp_grid=(1,),
)


def default_context_tokens(*, model: ModelArch) -> int:
    """Return the context that the oracle runs at by default: 4096 tokens, or all that the model is made for.

    Parameters
    ----------
    model : ModelArch
        The model.

    Returns
    -------
    int
        Tokens.
    """
    return min(DEFAULT_CONTEXT_TOKENS, model.max_position_tokens)


def run_oracle(
    *,
    model: ModelArch,
    config: Mapping[str, object] | None,
    context_tokens: int | None = None,
    batch: int = 8,
    phases: Sequence[Phase] = PHASES,
) -> OracleReport:
    """Compare the planner's FLOP and weight bytes with the model executed on torch's meta device.

    Parameters
    ----------
    model : ModelArch
        The parsed model.
    config : mapping or None
        The config.json that it was parsed from, for `transformers` to build the model from; None lets the
        shapes speak.
    context_tokens : int, optional
        `S` [tokens], at least 2 and no more than the model is made for; see `default_context_tokens`.
    batch : int
        `n`, sequences, 1 or more.
    phases : sequence of {"decode", "prefill"}
        What to run.

    Returns
    -------
    OracleReport
        `agrees` is False where anything is left unexplained.

    Raises
    ------
    OracleUnavailable
        Where torch is missing.
    InvalidSpec
        For a context or batch out of range.

    Notes
    -----
    Weights are compared at 2 bytes an element on both sides. Decode at context S is one new token after
    S-1 cached ones. The planner's side is `step_latency` of the uncut model.
    """
    context = default_context_tokens(model=model) if context_tokens is None else context_tokens
    _check_sizes(model, context, batch)
    torch = import_torch()
    notes: tuple[str, ...] = ()
    try:
        spoke, built_notes, measured = from_transformers.measure(
            config=config, model=model, phases=phases, context_tokens=context, batch=batch
        )
        notes += built_notes
    except CannotSpeak as fault:
        spoke = f"shapes (torch {torch.__version__.split('+')[0]})"
        notes += (f"matmuls of the parsed shapes stand for the model's own code: {fault}",)
        measured = from_shapes.measure(model=model, phases=phases, context_tokens=context, batch=batch)
    return OracleReport(
        phases=tuple(
            compare_phase(
                model=model,
                phase=phase,
                context_tokens=context,
                batch=batch,
                measured=measured[phase],
            )
            for phase in phases
        ),
        spoke=spoke,
        notes=notes,
    )


def compare_phase(
    *, model: ModelArch, phase: Phase, context_tokens: int, batch: int, measured: Measurement
) -> OraclePhase:
    """Set one measured phase beside the planner's step.

    Parameters
    ----------
    model : ModelArch
        The parsed model.
    phase : {"decode", "prefill"}
        The phase.
    context_tokens, batch : int
        `S` [tokens] and `n`.
    measured : Measurement
        What the oracle counted.

    Returns
    -------
    OraclePhase
        A segment for every name that either side has, and their total.
    """
    step = step_latency(
        model=model,
        machine=_ANY_MACHINE,
        parallelism=make_parallelism(tp=1),
        workload=Workload(
            phase=phase,
            context_tokens=context_tokens,
            batch=batch,
            widths=WeightWidths.uniform(BYTES_PER_ELEMENT),
        ),
    )
    planned = {component.name: component for component in step.components}
    known = explanations_by_segment(
        model=model,
        phase=phase,
        context_tokens=context_tokens,
        batch=batch,
        bytes_per_element=BYTES_PER_ELEMENT,
        execution=measured.execution,
    )
    segments = []
    for name in dict.fromkeys([*planned, *measured.segments]):
        count = measured.segments.get(name, SegmentCount())
        component = planned.get(name)
        segments.append(
            OracleSegment(
                name=name,
                oracle_flops=count.flops,
                planner_flops=float(component.flops) if component else 0.0,
                oracle_weight_bytes=float(count.weight_elements * BYTES_PER_ELEMENT),
                planner_weight_bytes=float(component.weight_bytes) if component else 0.0,
                explanations=known.get(name, ()),
            )
        )
    return OraclePhase(
        phase=phase,
        context_tokens=context_tokens,
        batch=batch,
        segments=(*segments, _total(segments)),
    )


def _total(segments: Sequence[OracleSegment]) -> OracleSegment:
    """Sum the segments; the explanations are summed too, one line a segment."""
    summed = tuple(
        Explanation(
            text=f"as explained under {segment.name}",
            flops=sum(explanation.flops for explanation in segment.explanations),
            weight_bytes=sum(explanation.weight_bytes for explanation in segment.explanations),
        )
        for segment in segments
        if segment.explanations
    )
    return OracleSegment(
        name=TOTAL,
        oracle_flops=sum(segment.oracle_flops for segment in segments),
        planner_flops=sum(segment.planner_flops for segment in segments),
        oracle_weight_bytes=sum(segment.oracle_weight_bytes for segment in segments),
        planner_weight_bytes=sum(segment.planner_weight_bytes for segment in segments),
        explanations=summed,
    )


def _check_sizes(model: ModelArch, context: int, batch: int) -> None:
    """Report a context or batch that cannot be run, both at once."""
    faults = []
    if not 2 <= context <= model.max_position_tokens:
        faults.append(
            Fault(
                where="context_tokens",
                given=f"{context} tokens",
                allowed=f"2 to {model.max_position_tokens} tokens, what {model.name} is made for",
                fix="choose a context in that range",
            )
        )
    if not 1 <= batch <= 4096:
        faults.append(
            Fault(
                where="batch",
                given=f"{batch} sequences",
                allowed="1 to 4096 sequences",
                fix="choose a batch in that range",
            )
        )
    if faults:
        raise InvalidSpec(faults)
