"""What the report says, and what makes it disagree."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from planner_core.errors import InvalidSpec, PlannerError
from planner_core.hf_config import parse_config
from planner_core.oracle import (
    Explanation,
    OraclePhase,
    OracleReport,
    OracleSegment,
    OracleUnavailable,
    run_oracle,
)
from tests.oracle.small_configs import SMALL_CONFIGS


def _segment(*, oracle: int, planner: float, explained: int = 0, weights: float = 0.0) -> OracleSegment:
    return OracleSegment(
        name="ffn/dense",
        oracle_flops=oracle,
        planner_flops=planner,
        oracle_weight_bytes=10.0,
        planner_weight_bytes=10.0 - weights,
        explanations=(Explanation(text="a reason", flops=explained),) if explained else (),
    )


def _report(segment: OracleSegment) -> OracleReport:
    phase = OraclePhase(phase="decode", context_tokens=48, batch=3, segments=(segment,))
    return OracleReport(phases=(phase,), spoke="shapes (torch 2.13.0)")


@pytest.mark.parametrize(
    ("segment", "unexplained", "agrees"),
    [
        (_segment(oracle=100, planner=100.0), 0, True),
        (_segment(oracle=100, planner=60.0, explained=40), 0, True),
        (_segment(oracle=100, planner=60.0, explained=39), 1, False),
        (_segment(oracle=100, planner=101.0), -1, False),
        (_segment(oracle=100, planner=100.0, weights=2.0), 0, False),
        # One FLOP in 1e12 is seen; the rounding of float64 past 2**53 is not taken for a difference.
        (_segment(oracle=10**12 + 1, planner=1e12), 1, False),
        (_segment(oracle=2**60 + 1, planner=float(2**60)), 0, True),
        (_segment(oracle=2**60 + 2**20, planner=float(2**60)), 2**20, False),
    ],
)
def test_what_is_left_unexplained_decides(
    segment: OracleSegment, unexplained: int, agrees: bool
) -> None:
    assert segment.unexplained_flops == unexplained
    report = _report(segment)
    assert report.agrees is agrees
    assert report.to_json()["agrees"] is agrees
    assert report.lines()[-1].startswith("agrees" if agrees else "does NOT agree")


def test_json_has_the_documented_keys() -> None:
    document = _report(_segment(oracle=100, planner=60.0, explained=40)).to_json()
    text = json.dumps(document, allow_nan=False)
    (phase,) = json.loads(text)["phases"]
    assert phase["phase"] == "decode"
    assert (phase["context_tokens"], phase["batch"]) == (48, 3)
    (segment,) = phase["segments"]
    assert segment["name"] == "ffn/dense"
    assert (segment["oracle_flops"], segment["planner_flops"]) == (100, 60)
    assert (segment["oracle_weight_bytes"], segment["planner_weight_bytes"]) == (10, 10)
    assert segment["explained_by"] == "a reason (+40 FLOP)"
    assert segment["unexplained_flops"] == 0


def test_importing_the_planner_does_not_import_torch() -> None:
    code = (
        "import sys, planner_core.oracle; "
        "sys.exit(any(name.split('.')[0] in ('torch', 'transformers') for name in sys.modules))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])


def test_without_torch_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    config = SMALL_CONFIGS["llama"]
    with pytest.raises(OracleUnavailable, match=r"pip install -r requirements-torch\.txt") as caught:
        run_oracle(model=parse_config(config), config=config, context_tokens=48)
    assert isinstance(caught.value, PlannerError)
    assert caught.value.kind == "oracle_unavailable"


@pytest.mark.oracle
def test_without_transformers_the_shapes_speak(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="the oracle needs torch")
    monkeypatch.setitem(sys.modules, "transformers", None)
    config = SMALL_CONFIGS["llama"]
    report = run_oracle(model=parse_config(config), config=config, context_tokens=48)
    assert report.spoke.startswith("shapes (torch ")
    assert any("transformers is not installed" in note for note in report.notes)
    assert report.agrees


@pytest.mark.parametrize(("context", "batch", "n_faults"), [(1, 1, 1), (257, 1, 1), (48, 0, 1), (0, 9999, 2)])
def test_sizes_out_of_range_are_all_reported(context: int, batch: int, n_faults: int) -> None:
    config = SMALL_CONFIGS["llama"]  # made for 256 tokens
    with pytest.raises(InvalidSpec, match="allowed:") as caught:
        run_oracle(model=parse_config(config), config=config, context_tokens=context, batch=batch)
    assert len(caught.value.faults) == n_faults


@pytest.mark.oracle
@pytest.mark.parametrize(
    "hostile",
    [
        {"auto_map": {"AutoModelForCausalLM": "modeling_evil.Evil", "AutoConfig": "evil--x.Evil"}},
        {"_attn_implementation": "someone/some-kernel"},
        {"attn_implementation": "someone/some-kernel"},
        {"quantization_config": {"quant_method": "nobody-knows"}},
        {"_name_or_path": "someone/some-model", "torchscript": True, "output_attentions": True},
    ],
)
def test_a_config_cannot_choose_code(hostile: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="the oracle needs torch")
    pytest.importorskip("transformers", reason="the models' own code is in transformers")
    import socket

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the oracle opened a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    plain = SMALL_CONFIGS["llama"]
    report = run_oracle(
        model=parse_config(plain), config=plain | hostile, context_tokens=48, batch=3, phases=("decode",)
    )
    assert report.spoke.startswith("transformers "), report.notes
    assert report.agrees, "\n".join(report.lines())


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"num_hidden_layers": 10**9}, "num_hidden_layers is 1000000000"),
        ({"hidden_act": "nobody-knows"}, "cannot run it"),
        ({"model_type": "nobody", "architectures": ["NobodyForCausalLM"]}, "has no model_type 'nobody'"),
    ],
)
def test_where_transformers_cannot_speak_the_report_says_why(
    change: dict[str, object], reason: str
) -> None:
    pytest.importorskip("torch", reason="the oracle needs torch")
    pytest.importorskip("transformers", reason="the models' own code is in transformers")
    from dataclasses import replace

    plain = SMALL_CONFIGS["llama"]
    given = plain | change
    model = replace(parse_config(plain), architecture=given["architectures"][0])
    report = run_oracle(model=model, config=given, context_tokens=48, batch=3)
    assert report.spoke.startswith("shapes (torch ")
    assert any(reason in note for note in report.notes), report.notes
    assert report.agrees
