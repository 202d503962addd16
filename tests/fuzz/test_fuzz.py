"""2,000 mutated documents; `make fuzz` takes 100,000 and atheris. And that the check itself can fail."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from fuzz import answers
from fuzz.answers import Broken, Spent, answer
from fuzz.mutations import to_text
from fuzz.run import run_batch
from fuzz.seeds import KINDS, seeds

N_BATCHES = 4
BATCH = 500
# The processor's clock runs on where other tests share the processor's cache, so the limit has some room.
LIMIT_S = 2.0


@pytest.mark.parametrize("number", range(N_BATCHES))
def test_mutated_documents_are_answered_or_refused(number: int) -> None:
    tally = run_batch(number, BATCH, limit_s=LIMIT_S, thorough=False)
    print(*tally.lines(), sep="\n")  # noqa: T201  # the counts of the run, with -s
    assert tally.n_documents >= BATCH
    assert tally.broken == []
    by_outcome = Counter[str]()
    for (_, outcome), count in tally.outcomes.items():
        by_outcome[outcome] += count
    assert min(by_outcome["answered"], by_outcome["refused"]) > BATCH // 10


@pytest.mark.parametrize("kind", KINDS)
def test_a_preset_is_answered_as_it_is(kind: answers.Kind) -> None:
    outcomes = {answer(kind, json.dumps(item.document).encode(), spent=Spent()) for item in seeds(kind)[:3]}
    assert outcomes == {"answered"}


def test_marks_become_what_json_dumps_never_writes() -> None:
    document = {"a": "\0token:1e400", "b": 1, "b\0again": ["\0token:NaN"]}
    assert to_text(document) == '{"a": 1e400, "b": 1, "b": [NaN]}'


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -1, -0.5])
def test_the_check_sees_a_number_that_is_none(number: float) -> None:
    with pytest.raises(Broken, match=r"plan\.rows\[1\]\.itl_s"):
        answers.check_document({"rows": [{"itl_s": 1.0}, {"itl_s": number}]}, where="plan")


@pytest.mark.parametrize("line", ["ITL nan ms", "inf tok/s", "by -3%", "(-1 GB)", "x=-2"])
def test_the_check_sees_a_text_with_a_number_that_is_none(line: str) -> None:
    with pytest.raises(Broken):
        answers.check_lines(["1.5 ms", line], where="text")


def test_the_check_sees_an_answer_that_is_wrong_or_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    data = json.dumps(seeds("run-spec")[0].document).encode()
    with pytest.raises(Broken, match=r"took \d"):
        answer("run-spec", data, spent=Spent(), limit_s=1e-9)
    real = answers.plan_serving
    monkeypatch.setattr(answers, "plan_serving", lambda spec: replace(real(spec), grid_size=-1))
    with pytest.raises(Broken, match="grid_size is -1"):
        answer("run-spec", data, spent=Spent())
    monkeypatch.setattr(answers, "plan_serving", lambda spec: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        answer("run-spec", data, spent=Spent())
