"""Oracle: every state of the page, the worker process and its limits."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterator

import pytest

from planner_core.oracle import Explanation, OraclePhase, OracleReport, OracleSegment
from tests.app.apptest import check_no_fault, html_of, open_page
from ui import loaded, oracle_job, oracle_words
from ui.app_state import AppState, OracleSettings
from ui.oracle_job import Job, Question, report_of

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 160,
    "max_position_embeddings": 256,
    "tie_word_embeddings": False,
}


@pytest.fixture(autouse=True)
def _nothing_kept() -> Iterator[None]:
    oracle_job._kept.clear()
    yield
    oracle_job._kept.clear()


def small_state(**oracle: int) -> AppState:
    spec = {**loaded.default_spec(), "model": "small", "hf_config": CONFIG}
    return AppState(spec=spec, oracle=OracleSettings(**oracle))


def small_question(*, context_tokens: int = 48, batch: int = 3) -> Question:
    spec = loaded.run_spec(small_state().spec)
    return oracle_job.question(spec, context_tokens=context_tokens, batch=batch)


def report(*, unexplained: int = 0) -> OracleReport:
    def segment(name: str) -> OracleSegment:
        return OracleSegment(
            name=name,
            oracle_flops=2**60 + 300 * 2**20 + unexplained,
            planner_flops=float(2**60),
            oracle_weight_bytes=512.5,
            planner_weight_bytes=500.0,
            explanations=(Explanation(text="<b>a reason</b>", flops=300 * 2**20, weight_bytes=12.5),),
        )

    phases = tuple(
        OraclePhase(phase=phase, context_tokens=48, batch=3, segments=(segment("ffn/moe"), segment("total")))
        for phase in ("decode", "prefill")
    )
    return OracleReport(phases=phases, spoke="transformers 5.24.0", notes=("a note",))


def wait(job: Job, *, limit_s: float = 120.0) -> None:
    job.join(limit_s)
    assert not job.running


def test_a_report_survives_the_way_between_processes() -> None:
    for found in (report(), report(unexplained=2**20)):
        again = report_of(found.to_json())
        assert again == found
        assert again.agrees is found.agrees


def test_the_verdict_names_what_is_left_unexplained() -> None:
    assert "every FLOP and every byte of weights of M is accounted for" in oracle_words.verdict(
        report(), model="M"
    )
    said = oracle_words.verdict(report(unexplained=2**20), model="M")
    assert "They do not agree at 48 tokens and batch 3" in said
    assert "FFN, MOE in decode (+1,048,576 FLOP, 0 B of weights); FFN, MOE in prefill" in said


def test_the_table_adds_up() -> None:
    frame = oracle_words.phase_table(report(unexplained=2**20).phases[0])
    rest = frame["Oracle [GFLOP]"] - frame["Planner [GFLOP]"] - frame["Explained [GFLOP]"]
    assert (rest * 1e9).tolist() == pytest.approx(frame["Unexplained [FLOP]"].tolist(), rel=1e-3)
    assert frame["Unexplained weights [B]"].tolist() == [0.0, 0.0]
    assert "+314,572,800 FLOP" in frame["Explained by"][0]


def test_without_torch_the_page_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle_job, "torch_is_installed", lambda: False)
    at = open_page("oracle", small_state())
    check_no_fault(at)
    assert "pip install" in html_of(at)
    assert "oracle_start" not in [button.key for button in at.button]


def test_nothing_runs_before_the_button(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle_job, "torch_is_installed", lambda: True)
    at = open_page("oracle", small_state())
    check_no_fault(at)
    assert "Not run yet" in html_of(at)
    assert at.number_input(key="field_oracle_context_tokens").value == 256  # what the model is made for
    assert "oracle_start" in [button.key for button in at.button]


@pytest.mark.parametrize("unexplained", [0, 2**20])
def test_a_kept_report_is_shown_to_everybody(unexplained: int) -> None:
    oracle_job._keep(small_question(), report(unexplained=unexplained))
    at = open_page("oracle", small_state(context_tokens=48, batch=3))
    check_no_fault(at)
    page = html_of(at)
    assert ("They do not agree" in page) is bool(unexplained)
    assert ("They agree" in page) is not bool(unexplained)
    assert "&lt;b&gt;a reason&lt;/b&gt;" in page
    assert "a note" in page
    assert len(at.dataframe) == 2
    assert "oracle_start" not in [button.key for button in at.button]
    at.number_input(key="field_oracle_batch").set_value(4).run()
    assert "Not run yet" in html_of(at)


def test_kept_reports_are_few() -> None:
    for batch in range(1, 40):
        oracle_job._keep(small_question(batch=batch), report())
    assert len(oracle_job._kept) == oracle_job._MAX_KEPT
    assert oracle_job.kept(small_question(batch=39)) is not None
    assert oracle_job.kept(small_question(batch=1)) is None


def test_a_process_that_dies_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle_job.sys, "executable", "/bin/false")
    job = Job(small_question())
    wait(job)
    assert "ended without an answer" in job.failed


def test_a_process_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle_job, "LIMIT_S", 0.2)
    job = Job(small_question())
    wait(job)
    assert job.failed.startswith("It took more than")


def test_stop_ends_the_process_and_gives_the_turn_to_the_next() -> None:
    first, second = Job(small_question()), Job(small_question(batch=5))
    while first.waiting and second.waiting:
        time.sleep(0.01)
    assert first.waiting != second.waiting
    first.stop()
    second.stop()
    wait(first, limit_s=10)
    wait(second, limit_s=10)
    assert not first.failed
    assert not second.failed
    assert oracle_job.kept(first.asked) is None
    assert oracle_job._turn.acquire(timeout=5)
    oracle_job._turn.release()


@pytest.mark.oracle
@needs_torch
def test_from_the_button_to_the_report() -> None:
    at = open_page("oracle", small_state(context_tokens=48, batch=3))
    at.button(key="oracle_start").click().run()
    check_no_fault(at)
    until = time.monotonic() + 120
    while "oracle_stop" in [button.key for button in at.button] and time.monotonic() < until:
        time.sleep(0.2)
        at.run()
        check_no_fault(at)
    assert "They agree: every FLOP" in html_of(at)
    frame = at.dataframe[0].value
    assert frame["Segment"].tolist() == ["attention, global", "FFN, dense", "LM head", "total"]
    # LM head of 3 tokens: 2 * 3 * 64 * 160.
    assert frame["Oracle [GFLOP]"][2] == pytest.approx(2 * 3 * 64 * 160 / 1e9)
    assert frame["Unexplained [FLOP]"].tolist() == [0.0] * 4


def test_a_links_step_out_of_range_takes_the_nearest_that_is_possible() -> None:
    oracle_job._keep(small_question(context_tokens=256, batch=4096), report())
    at = open_page("oracle", small_state(context_tokens=10**6, batch=1 << 20))
    check_no_fault(at)
    assert at.number_input(key="field_oracle_context_tokens").value == 256
    assert at.number_input(key="field_oracle_batch").value == 4096
    assert "They agree" in html_of(at)


def test_the_page_shows_every_fault_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle_job, "torch_is_installed", lambda: True)
    job = Job(small_question(context_tokens=10**6, batch=1 << 20))
    wait(job)
    assert [fault.where for fault in job.faults] == ["context_tokens", "batch"]
    monkeypatch.setattr(oracle_job, "current", lambda asked: job)
    at = open_page("oracle", small_state())
    check_no_fault(at)
    assert "2 to 256 tokens" in html_of(at)
    assert "1 to 4096 sequences" in html_of(at)
    assert "oracle_start" in [button.key for button in at.button]
