"""Two real cases, once a session: Llama 3.1 70B swept on sip128, and Granite 4.1 8B planned on trn2."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from planner_core.auto_explore import (
    Config,
    ConfigScore,
    ParallelismSensitivityRow,
    cloud_scores,
    compute_parallelism_sensitivity,
    explore,
)
from planner_core.figures.frame import Drawn, FigureContext
from planner_core.figures.frontier import interactivity_frontier
from planner_core.figures.memory import LabelledMemory, memory_bar
from planner_core.figures.pareto import pareto_3d, pareto_projections
from planner_core.figures.plan import prefill_footprint, selection_by_context
from planner_core.figures.roofline import roofline
from planner_core.figures.sensitivity import sensitivity_panel
from planner_core.figures.step import LabelledStep, compare_steps, operator_floors, step_waterfall
from planner_core.figures.theme import Theme
from planner_core.hardware_file import load_preset, preset_hardware_json
from planner_core.hf_config import parse_config
from planner_core.preset_files import presets_dir
from planner_core.run_spec import RunSpec, parse_run_spec
from planner_core.serving_plan import (
    FrontierPoint,
    InteractivityCurve,
    OperatingPoint,
    ServingPlan,
    interactivity_curves,
    operating_point,
    plan_serving,
    serving_grid,
    upper_frontier,
)
from planner_core.strict_json import read_json_file
from planner_core.workload import Workload

CONTEXT_TOKENS = 131_072


def preset_config(name: str) -> dict[str, Any]:
    document = read_json_file(presets_dir() / "models" / f"{name}.json")
    assert isinstance(document, dict)
    return document.get("hf_config", document)


@dataclass(frozen=True)
class Swept:
    """A sweep and what is drawn of it."""

    front: tuple[ConfigScore, ...]
    cloud: tuple[ConfigScore, ...]
    baseline: Config
    rows: tuple[ParallelismSensitivityRow, ...]
    budget_bytes: float


@dataclass(frozen=True)
class Planned:
    """A serving plan and what is drawn of it."""

    spec: RunSpec
    plan: ServingPlan
    curves: list[InteractivityCurve]
    frontier: tuple[FrontierPoint, ...]
    cell: OperatingPoint
    too_large: OperatingPoint
    prefills: list[OperatingPoint]


@pytest.fixture(scope="session")
def swept() -> Swept:
    model = parse_config(preset_config("llama-3.1-70b"), name="Llama 3.1 70B")
    machine = load_preset("sip128")
    workload = Workload(phase="decode", context_tokens=CONTEXT_TOKENS, batch=1)
    result = explore(model=model, machine=machine, workload=workload)
    baseline = Config(cp=8, tp=16, ffn_shard_scope="TP+CP")
    return Swept(
        front=result.pareto,
        cloud=cloud_scores(result=result, model=model, machine=machine, workload=workload),
        baseline=baseline,
        rows=compute_parallelism_sensitivity(baseline, model=model, machine=machine, workload=workload),
        budget_bytes=machine.budget_bytes,
    )


@pytest.fixture(scope="session")
def planned() -> Planned:
    document = {
        "model": "granite-4.1-8B (dense)",
        "hf_config": preset_config("granite-4.1-8b"),
        "hardware": preset_hardware_json("trn2"),
        "serving": "colocated",
        "decode_itl_ceiling_ms": 50,
        "prefill_itps_floor": 30000,
    }

    def no_file(*_: object, **__: object) -> Any:
        raise AssertionError("everything is inline")

    spec = parse_run_spec(document, resolve=no_file)
    plan = plan_serving(spec)
    configs = serving_grid(model=spec.model, machine=spec.machine)
    curves = interactivity_curves(spec, configs=configs, buckets=[8192])[0]
    return Planned(
        spec=spec,
        plan=plan,
        curves=curves,
        frontier=upper_frontier(curves),
        cell=operating_point(spec, tp=8, batch=16, context_tokens=8192),
        too_large=operating_point(spec, tp=4, batch=80, context_tokens=8192),
        prefills=[
            operating_point(
                spec,
                tp=bucket.selected.tp,
                cp=bucket.selected.cp,
                batch=1,
                context_tokens=bucket.context_tokens,
                phase="prefill",
            )
            for bucket in plan.buckets
            if bucket.selected is not None
        ],
    )


Draw = Callable[[Theme, FigureContext], Drawn]


@pytest.fixture(scope="session")
def figures(swept: Swept, planned: Planned) -> dict[str, Draw]:
    """Every figure by name, drawn for a theme and a context."""
    front, cloud, curves, plan = swept.front, swept.cloud, planned.curves, planned.plan
    cell, selected = planned.cell, plan.buckets[0].selected

    def frontier(theme: Theme, about: FigureContext, **more: Any) -> Drawn:
        return interactivity_frontier(
            curves=curves,
            frontier=planned.frontier,
            about=about,
            theme=theme,
            itl_ceiling_s=0.05,
            selected=selected,
            **more,
        )

    steps = [LabelledStep(label=about, step=p.step) for about, p in _labelled(planned)]
    memories = [LabelledMemory(label=about, memory=p.memory) for about, p in _labelled(planned)]
    ceilings_s = [bucket.ttft_ceiling_s for bucket in plan.buckets if bucket.selected is not None]
    return {
        "pareto_3d": lambda theme, about: pareto_3d(
            front=front, cloud=cloud, about=about, theme=theme, baseline_row=0
        ),
        "pareto_projections": lambda theme, about: pareto_projections(
            front=front, cloud=cloud, about=about, theme=theme, baseline_row=0
        ),
        "sensitivity": lambda theme, about: sensitivity_panel(
            rows=swept.rows,
            baseline=swept.baseline,
            about=about,
            theme=theme,
            budget_bytes=swept.budget_bytes,
        ),
        "frontier_node": frontier,
        "frontier_replica": lambda theme, about: frontier(theme, about, per="replica"),
        "frontier_user": lambda theme, about: frontier(theme, about, against="user"),
        "selection": lambda theme, about: selection_by_context(
            buckets=plan.buckets, about=about, theme=theme
        ),
        "prefill": lambda theme, about: prefill_footprint(
            points=planned.prefills, ttft_ceilings_s=ceilings_s, about=about, theme=theme
        ),
        "waterfall": lambda theme, about: step_waterfall(step=cell.step, about=about, theme=theme),
        "floors": lambda theme, about: operator_floors(step=cell.step, about=about, theme=theme),
        "roofline": lambda theme, about: roofline(
            step=cell.step, machine=planned.spec.machine, precision="bf16", about=about, theme=theme
        ),
        "memory_one": lambda theme, about: memory_bar(points=memories[:1], about=about, theme=theme),
        "memory_many": lambda theme, about: memory_bar(points=memories, about=about, theme=theme),
        "compare": lambda theme, about: compare_steps(points=steps, about=about, theme=theme),
    }


def _labelled(planned: Planned) -> list[tuple[str, OperatingPoint]]:
    return [("TP8", planned.cell), ("<b>TP4</b>", planned.too_large)]


@pytest.fixture
def about() -> FigureContext:
    return FigureContext(
        model="Llama 3.1 70B",
        machine="sip128",
        phase="decode",
        context_tokens=CONTEXT_TOKENS,
        extra="batch 1",
    )
