"""A running app and a real browser for the tests under this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scripts.app_server import Server, free_port


@pytest.fixture
def new_server(tmp_path: Path) -> Iterator[Callable[[], Server]]:
    """Return a maker of fresh servers, each with no visitor yet."""
    made: list[Server] = []

    def make() -> Server:
        server = Server(port=free_port(), log=tmp_path / f"server-{len(made)}.log")
        made.append(server)
        server.start()
        return server

    yield make
    for server in made:
        server.stop()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Return the server that most browser tests share."""
    shared = Server(port=free_port(), log=tmp_path_factory.mktemp("server") / "server.log")
    shared.start()
    yield shared
    shared.stop()


@pytest.fixture(scope="session")
def browser_context_args(browser_context_args: dict[str, object]) -> dict[str, object]:
    """Look at the size that the app is designed for."""
    return {**browser_context_args, "viewport": {"width": 1600, "height": 900}, "accept_downloads": True}
