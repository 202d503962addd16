"""Where another config gives more at a smaller batch, within the same ITL ceiling, the plan says so."""

import re
from dataclasses import replace

import pytest

from planner_core.preset_files import presets_dir
from planner_core.run_spec import load_run_spec
from planner_core.serving_plan import BucketPlan, interactivity_curves, largest_batch_within, plan_serving

SPEC = load_run_spec(presets_dir() / "run_specs" / "llama-3.1-70b-h100.json")
CONTEXT = 8192
NAMED = re.compile(r": (TP\d+(?: CP\d+)?) at batch (\d+) meets .* gives ([\d,]+) tok/s a node")


def planned(ceiling_ms: float) -> BucketPlan:
    spec = replace(SPEC, decode_itl_ceiling_s=ceiling_ms / 1e3)
    return plan_serving(spec, buckets=[CONTEXT]).buckets[0]


def most_within(bucket: BucketPlan, ceiling_s: float) -> float:
    """Return the most tokens/s a node of any config and batch within both targets, by looking at all."""
    configs = [(row.tp, row.cp) for row in bucket.rows if row.fits and row.meets_ttft]
    (curves,) = interactivity_curves(SPEC, configs=configs, buckets=[CONTEXT])
    return max(
        float(curve.tokens_per_s_per_node[curve.itl_s <= ceiling_s].max(initial=0.0)) for curve in curves
    )


@pytest.mark.parametrize("ceiling_ms", [22, 22.8, 23, 24, 25, 25.6, 26, 30, 60])
def test_the_most_within_the_targets_is_selected_or_named(ceiling_ms: float) -> None:
    bucket = planned(ceiling_ms)
    assert bucket.selected is not None
    assert bucket.sla_met
    most = most_within(bucket, ceiling_ms / 1e3)
    named = [NAMED.search(line) for line in bucket.advice]
    offered = [float(found[3].replace(",", "")) for found in named if found is not None]
    best = max([bucket.selected.tokens_per_s_per_node, *offered])
    assert best == pytest.approx(most, abs=0.5)


def test_the_batch_that_is_named_is_the_largest_within_the_ceiling() -> None:
    (line,) = planned(24).advice
    found = NAMED.search(line)
    assert found is not None
    assert found[1] == "TP8"
    ((curve,),) = interactivity_curves(SPEC, configs=[(8, 1)], buckets=[CONTEXT])
    assert int(found[2]) == largest_batch_within(curve, itl_ceiling_s=24e-3)


def test_nothing_is_named_where_the_selection_has_the_most() -> None:
    assert planned(60).advice == ()
