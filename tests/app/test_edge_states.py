"""Links at the edges of what a link may hold, and past them: every page opens, or says why it does not."""

import base64
import copy
import itertools
import json
import logging
import re
import zlib
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from fuzz.links import edge_state
from fuzz.mutations import restructured
from planner_core.errors import InvalidSpec, PlannerError
from tests.app.apptest import check_no_fault, html_of, open_app, open_page
from tests.app.test_link import FULL, packed
from ui import link, loaded, pages
from ui.app_state import AppState

PAGE_NAMES = [page.name for page in pages.available()]
N_STATES = 28
NO_NUMBER = re.compile(r"(?<![\w.'])-?(?:nan|inf|infinity)(?![\w'])", re.IGNORECASE)


def shown(at: AppTest) -> str:
    """Everything that a page shows as text or in a table."""
    tables = [str(table.value.to_csv()) for table in at.get("dataframe")]
    return "\n".join([html_of(at), *tables, *(str(item.value) for item in (*at.caption, *at.markdown))])


@pytest.mark.parametrize("number", range(N_STATES))
def test_a_page_opens_at_an_edge(number: int, caplog: pytest.LogCaptureFixture) -> None:
    state = edge_state(Random(number))
    assert link.encode(state) is not None
    with caplog.at_level(logging.ERROR, logger="planner.app"):
        at = open_page(PAGE_NAMES[number % len(PAGE_NAMES)], state)
    assert [record.getMessage() for record in caplog.records] == []
    check_no_fault(at)
    found = NO_NUMBER.search(shown(at))
    assert found is None, shown(at)[max(0, found.start() - 100) : found.end() + 50]


def test_edge_states_reach_the_edges() -> None:
    states = [edge_state(Random(number)) for number in range(100)]
    assert {state.cell.batch for state in states} >= {1, 10**9}
    assert {state.cell.context_tokens for state in states} >= {1, 1 << 40}
    assert {state.plan.itl_ceiling_ms for state in states} >= {None, 1e-6, 1e9}
    assert {len(state.compare) for state in states} >= {0, 1, 2, 4}


def fields(value: Any, path: tuple[Any, ...] = ()) -> Any:
    """The path of every field of a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from fields(item, (*path, key))


JUNK = (
    None,
    True,
    -1,
    0,
    1.5,
    2**53 + 1,
    10**30,
    1e308,
    "",
    "x" * 500,
    "nan",
    [],
    {},
    [[]],
    {"a": 1},
    "decode",
)


def read_or_refused(read: Callable[[Any], Any], given: Any) -> tuple[Any, PlannerError | None]:
    """What reading gives, or the refusal; any other exception is raised."""
    try:
        return read(given), None
    except PlannerError as error:
        return None, error


def test_every_field_of_a_link_with_junk_in_its_place() -> None:
    """Each gives a state whose run-specs are read or refused like an upload's, or a reason that names it."""
    document = FULL.model_dump(mode="json")
    n_states = n_refused = 0
    for path, junk in itertools.product(tuple(fields(document)), JUNK):
        changed = copy.deepcopy(document)
        owner = changed
        for key in path[:-1]:
            owner = owner[key]
        owner[path[-1]] = junk
        state, error = read_or_refused(link.decode, packed(changed))
        if error is None:
            n_states += 1
            assert isinstance(state, AppState)
            for spec in (state.spec, *(point.spec for point in state.compare)):
                read_or_refused(loaded.run_spec, spec)
            continue
        n_refused += 1
        assert isinstance(error, InvalidSpec)
        assert all(fault.where.startswith("link") for fault in error.faults)
        assert any(str(path[0]) in fault.where for fault in error.faults), path
        assert len(str(error)) < 5000
    assert min(n_states, n_refused) > 200, (n_states, n_refused)


@settings(max_examples=150, deadline=None)
@given(random=st.randoms(use_true_random=False))
def test_a_link_of_another_structure_is_refused_or_a_state(random: Any) -> None:
    data = restructured("run-spec", json.dumps(FULL.model_dump(mode="json")), random) or b"{}"
    text = "1." + base64.urlsafe_b64encode(zlib.compress(data)).rstrip(b"=").decode()
    state, error = read_or_refused(link.decode, text)
    assert isinstance(state, AppState) or str(error)


@pytest.mark.parametrize(
    "name", ["S", "s[]", "page", "embed", "embed_options", "review", "__import__('os')", "../x", "x" * 5000]
)
def test_other_parameters_change_nothing(name: str) -> None:
    at = AppTest.from_file(str(open_app.__globals__["APP"]), default_timeout=60)
    at.query_params[name] = "<script>alert(1)</script>" * 50
    at.run()
    check_no_fault(at)
    assert "Granite 4.1 8B" in html_of(at)
    assert "<script>" not in html_of(at)
