"""Serving plan in AppTest: the command line's numbers, FP8 beside, and no state without words."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from planner_core.figures.theme import DARK, LIGHT
from planner_core.reports import plan_document
from planner_core.serving_plan import plan_serving
from planner_core.serving_plan.advice import fp8_trials
from tests.app.apptest import check_no_fault, html_of, open_page, state_of
from ui import live_slider, loaded, plan_core, plan_figures, plan_words
from ui.app_state import AppState, ParallelConfig, PlanSettings
from ui.differences import change

SPEC = loaded.default_spec()
TOO_BIG = {**SPEC, "hf_config": "llama-3.1-405b", "model": "Llama 3.1 405B"}


def opened(spec: dict[str, Any] = SPEC, **settings: Any) -> AppTest:
    at = open_page("serving_plan", AppState(spec=spec, plan=PlanSettings(**settings)))
    check_no_fault(at)
    return at


def figure_of(at: AppTest, key: str) -> dict[str, Any]:
    (element,) = [element for element in at.get("bidi_component") if element.key == key]
    figure: dict[str, Any] = json.loads(json.loads(element.proto.json)["figure"])
    return figure


def asked(document: dict[str, Any] = SPEC, **targets: float) -> plan_core.Question:
    whole: dict[str, Any] = {"itl_ceiling_ms": None, "prefill_itps_floor": None, **targets}
    return plan_core.Question(document=loaded.canonical(document), **whole)


def test_the_recommendation_is_the_reference() -> None:
    shown = html_of(opened())
    assert "8 replicas of TP8 at batch 124 each" in shown
    for number in ("35.3\u00a0ms", "216\u00a0ms", "28,089\u00a0tok/s", "28,089 tok/s"):
        assert number in shown
    assert "TP4: 26,768\u00a0tok/s a node (\u22124.70%); TTFT 0.32 s is over 0.27 s by 18.3%" in shown


def test_the_head_shows_the_targets_that_are_in_force() -> None:
    assert "ITL at most 50\u00a0ms, prefill at least 30,000\u00a0tok/s</bdi>" in html_of(opened())
    at = opened(itl_ceiling_ms=24.0)
    moved = "ITL at most 24\u00a0ms, prefill at least 30,000\u00a0tok/s (moved)</bdi>"
    assert moved in html_of(at)
    at.button(key="plan_own_targets").click().run()
    assert moved not in html_of(at)


def test_measurements_of_the_machine_stand_beside_the_recommendation() -> None:
    assert "Measured over predicted, on AWS Trainium2" in html_of(opened())
    edited = {**SPEC, "hardware": {**loaded.preset_hardware_json("trn2"), "hbm_bytes_per_s": 1e12}}
    assert "with other constants" in html_of(opened(edited))


def test_the_table_holds_every_config_with_the_core_numbers() -> None:
    at = opened()
    (bucket,) = plan_serving(loaded.run_spec(SPEC), buckets=[8192]).buckets
    frame = at.dataframe[0].value
    assert list(frame["Config"]) == [row.label() for row in bucket.rows]
    assert list(frame["Batch"]) == [row.batch for row in bucket.rows]
    assert list(frame["ITL [ms]"]) == [row.itl_s / 1e-3 for row in bucket.rows]
    assert list(frame["Node [tok/s]"]) == [row.tokens_per_s_per_node for row in bucket.rows]
    assert sum(str(verdict).startswith("selected") for verdict in frame["Verdict"]) == 1


def test_targets_of_the_page_plan_as_the_command_lines_overrides_do() -> None:
    document = {**SPEC, "decode_itl_ceiling_ms": 30, "prefill_itps_floor": 45000}
    moved = asked(itl_ceiling_ms=30, prefill_itps_floor=45000)
    assert plan_document(plan_core.whole_plan(moved)) == plan_document(
        plan_serving(loaded.run_spec(document))
    )
    assert moved.fields() == document


def test_a_bucket_alone_is_the_whole_plans_bucket() -> None:
    question = asked(itl_ceiling_ms=30)
    whole = plan_core.whole_plan(question)
    for bucket in whole.buckets:
        assert plan_core.bucket_plan(question, bucket.context_tokens) == bucket
    for quick, full in zip(plan_core.overview(question).buckets, whole.buckets, strict=True):
        assert replace(quick, advice=full.advice) == full


def test_where_no_config_meets_the_targets_it_says_which_is_missed_and_what_would_meet_them() -> None:
    shown = html_of(opened(itl_ceiling_ms=30))
    assert "no config meets the targets; the nearest is 2 replicas of TP32" in shown
    assert "misses 30.0\u00a0ms, +38.7%" in shown
    assert "A smaller batch: TP8 at batch 102 meets 30.0 ms" in shown
    assert "ITL at most 30.0\u00a0ms" in shown  # what is in force, for a page without its controls


def test_where_nothing_fits_it_says_why_and_what_to_change() -> None:
    at = opened(TOO_BIG)
    shown = html_of(at)
    assert "Nothing fits at a context of 8k." in shown
    assert "FP8 weights: TP32 CP4 then fits" in shown
    assert "No config holds the weights" in shown  # where the frontier would be
    assert not [one for one in at.get("bidi_component") if one.key in ("plan_frontier", "plan_selection")]
    beside = html_of(opened(TOO_BIG, overlay="fp8_weights"))
    assert "the baseline does not fit" in beside


def test_a_machine_whose_grid_has_no_config_is_told() -> None:
    machine = {**loaded.preset_hardware_json("trn2"), "serving_grid": {"tp": [64], "cp": [1]}}
    few_heads = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 1024,
        "intermediate_size": 2048,
        "num_hidden_layers": 2,
        "num_attention_heads": 8,
        "num_key_value_heads": 8,
        "vocab_size": 1000,
        "max_position_embeddings": 8192,
    }
    at = opened({**SPEC, "hardware": machine, "hf_config": few_heads})
    assert "There is no config to try" in html_of(at)


def test_fp8_beside_is_the_plan_of_that_run_spec_with_differences() -> None:
    shown = html_of(opened(overlay="fp8_kv"))
    row = plan_serving(loaded.run_spec({**SPEC, "kv_dtype_bytes": 1}), buckets=[8192]).buckets[0].selected
    base = plan_serving(loaded.run_spec(SPEC), buckets=[8192]).buckets[0].selected
    assert row is not None
    assert base is not None
    assert "With <bdi>FP8 KV cache</bdi>" in shown
    assert change(row.tokens_per_s_per_node, base.tokens_per_s_per_node) in shown
    assert f"batch {row.batch:,} (was {base.batch:,})" in shown


def test_fp8_documents_are_the_fp8_of_the_cores_advice() -> None:
    trials = dict(fp8_trials(loaded.run_spec(SPEC)))
    for overlay, name in plan_core.OVERLAYS.items():
        spec = loaded.run_spec(plan_core.overlaid(SPEC, overlay))
        wanted = trials[name]
        assert (spec.widths, spec.kv_dtype_bytes, spec.precision) == (
            wanted.widths,
            wanted.kv_dtype_bytes,
            wanted.precision,
        )


def test_a_run_spec_in_fp8_is_offered_no_fp8() -> None:
    assert plan_core.overlays(loaded.run_spec({**SPEC, "weight_dtype_bytes": 1})) == {
        "fp8_kv": plan_core.OVERLAYS["fp8_kv"]
    }
    at = opened({**SPEC, "weight_dtype_bytes": 1, "kv_dtype_bytes": 1}, overlay="fp8_weights")
    assert "With <bdi>FP8" not in html_of(at)


def test_an_objective_has_no_targets_to_move() -> None:
    document = {key: SPEC[key] for key in SPEC if not key.startswith(("decode_", "prefill_"))}
    at = opened({**document, "objective": "lowest_ttft"}, itl_ceiling_ms=10)
    assert "no targets to move" in html_of(at)
    assert not [one for one in at.get("bidi_component") if str(one.key).endswith("_live")]


def test_a_bucket_of_another_model_takes_the_nearest() -> None:
    spec = loaded.run_spec(SPEC)
    assert plan_core.bucket_in_force(spec, PlanSettings(bucket_tokens=50_000)) == 44 * 1024
    assert "At 44k" in html_of(opened(bucket_tokens=50_000))


def test_the_picked_row_goes_to_compare_and_opens_as_a_cell() -> None:
    at = opened(selected=ParallelConfig(tp=16, kv_split=2))
    at.button(key="plan_compare").click().run()
    (point,) = state_of(at).compare
    assert (point.label, point.cell.batch, point.cell.config.tp) == ("TP16 CP2", 262, 16)
    at.button(key="plan_compare").click().run()
    assert len(state_of(at).compare) == 1


def test_the_fp8_variant_is_compared_with_its_own_batch() -> None:
    at = opened(overlay="fp8_kv")
    at.button(key="plan_compare_fp8").click().run()
    (point,) = state_of(at).compare
    assert point.spec["kv_dtype_bytes"] == 1
    (bucket,) = plan_serving(loaded.run_spec(point.spec), buckets=[8192]).buckets
    assert point.cell.batch == next(row.batch for row in bucket.rows if row.label() == "TP8")


def test_curves_that_are_the_same_are_drawn_once_and_the_selection_is_marked() -> None:
    names = [trace["name"] for trace in figure_of(opened(), "plan_frontier")["data"]]
    assert "TP8 CP1, 2, 4, 8" in names
    assert "selected, TP8" in names
    assert len([name for name in names if name.startswith("TP")]) == 7


def test_the_fp8_frontier_lies_beside() -> None:
    names = [trace["name"] for trace in figure_of(opened(overlay="fp8_kv"), "plan_frontier")["data"]]
    assert "upper frontier,<br>FP8 KV cache" in names


@pytest.mark.parametrize("look", [LIGHT, DARK])
def test_the_figures_are_whole_plotly(look: Any) -> None:
    bucket = plan_core.bucket_plan(asked(), 8192)
    drawn = plan_figures.frontier(asked(), bucket, look=look, other=asked(), other_name="<b>FP8</b>")
    type(drawn.figure)(drawn.figure.to_dict())  # checks every property
    assert "<b>FP8</b>" not in json.dumps(drawn.figure.to_dict(), default=list).replace("<b>upper", "")


def test_a_hostile_model_name_is_shown_as_typed() -> None:
    at = opened({**SPEC, "model": "<script>alert(1)</script>**x**" + "y" * 370})
    assert "<script>alert" not in html_of(at)
    assert "<script>" not in json.dumps(figure_of(at, "plan_frontier"))


@pytest.mark.parametrize(
    ("value", "base", "said"),
    [
        (90.0, 100.0, "\u221210.0%"),
        (101.0, 100.0, "+1.00%"),
        (5.0, 5.0, "same"),
        (2500.0, 100.0, "25.0x"),
        (None, 1.0, ""),
        (1.0, 0.0, ""),
        (float("nan"), 1.0, ""),
    ],
)
def test_a_difference_in_words(value: float | None, base: float | None, said: str) -> None:
    assert change(value, base) == said


def test_the_stops_of_a_slider_are_round_and_ascending() -> None:
    steps = live_slider.nice_steps(2, 500)
    assert (steps[0], steps[-1]) == (2, 500)
    assert {5, 10, 20, 30, 50, 100, 200} <= set(steps)
    assert list(steps) == sorted(set(steps))


def test_the_report_has_every_context() -> None:
    frame = plan_words.plan_table(plan_core.whole_plan(asked()))
    assert sorted(set(frame["Context [tokens]"])) == [n * 1024 for n in (8, 16, 28, 44, 76, 128)]
    assert len(frame) == 6 * 15
