"""A link reopens the same state, and nothing but a state; whatever else it holds is refused with a reason."""

import base64
import json
import random
import zlib
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner_core.errors import InvalidSpec
from ui import link
from ui.app_state import AppState, CellPoint, ComparePoint, ExploreSettings, ParallelConfig, SearchedAxes

SPEC = {"model": "m", "hf_config": "granite-4.1-8b", "hardware": "trn2", "decode_itl_ceiling_ms": 50}
FULL = AppState(
    spec={**SPEC, "big": 2**53 + 1, "name": "<script>\u202e\U0001f600"},
    draft='{"a": ',
    explore=ExploreSettings(phase="prefill", context_tokens=2**20, max_pes=128, axes=SearchedAxes(cp=(1, 6))),
    baseline=ParallelConfig(cp=8, tp=16, ffn_shard_scope="TP+CP"),
    compare=(ComparePoint(label="**x**", spec=dict(SPEC), cell=CellPoint(batch=3)),),
    review=True,
)


def packed(document: object) -> str:
    data = zlib.compress(json.dumps(document).encode())
    return "1." + base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def test_a_link_reopens_the_same_state() -> None:
    text = link.encode(FULL)
    assert text is not None
    assert link.decode(text) == FULL
    assert link.decode(text).spec["big"] == 2**53 + 1


def test_a_default_state_makes_a_short_link() -> None:
    text = link.encode(AppState(spec=SPEC))
    assert text is not None
    assert len(text) < 800


def test_a_state_too_large_for_a_link_makes_none() -> None:
    noise = random.Random(0).randbytes(30_000).hex()
    assert link.encode(AppState(spec={**SPEC, "x": noise})) is None


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "a link made by this app"),
        ("nonsense", "a link made by this app"),
        ("2.eJwDAAAAAAE", "version 1"),
        ("1.!!!", "unreadable"),
        ("1.AAAA", "unreadable"),
        (packed(SPEC)[:-9], "cut"),
        ("1." + "A" * 40_000, "at most 32000"),
        (packed([]), "link"),
        (packed({"v": 1}), "spec"),
        (packed({"v": 2, "spec": {}}), "link.v"),
        (packed({"v": 1, "spec": {}, "more": 1}), "link.more"),
        (packed({"v": 1, "spec": {}, "cell": {"batch": -1}}), "link.cell.batch"),
        (packed({"v": 1, "spec": {}, "explore": {"phase": "train"}}), "link.explore.phase"),
        (packed({"v": 1, "spec": {}, "plan": {"itl_ceiling_ms": 0}}), "link.plan.itl_ceiling_ms"),
        (packed({"v": 1, "spec": [1]}), "link.spec"),
    ],
)
def test_anything_else_is_refused_with_a_reason(text: str, match: str) -> None:
    with pytest.raises(InvalidSpec, match=match):
        link.decode(text)


@pytest.mark.parametrize("token", ["NaN", "Infinity", "1e999"])
def test_no_number_that_is_none(token: str) -> None:
    data = f'{{"v":1,"spec":{{"x":{token}}}}}'.encode()
    text = "1." + base64.urlsafe_b64encode(zlib.compress(data)).rstrip(b"=").decode()
    with pytest.raises(InvalidSpec):
        link.decode(text)


def test_a_bomb_is_not_unpacked() -> None:
    bomb = zlib.compress(b'{"v":1,"spec":{"x":"' + b"a" * 20_000_000 + b'"}}', 9)
    text = "1." + base64.urlsafe_b64encode(bomb).rstrip(b"=").decode()
    assert len(text) < link.MAX_LINK_CHARS
    with pytest.raises(InvalidSpec, match="at most 1000000 bytes"):
        link.decode(text)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_mutated_link_gives_a_state_or_a_reason(data: st.DataObject) -> None:
    text = link.encode(FULL)
    assert text is not None
    position = data.draw(st.integers(0, len(text) - 1))
    piece = data.draw(st.text(max_size=4))
    mutated = text[:position] + piece + text[position + data.draw(st.integers(0, 4)) :]
    with suppress(InvalidSpec):
        assert isinstance(link.decode(mutated), AppState)
