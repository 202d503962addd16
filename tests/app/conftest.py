"""A running app and a real browser for the tests under this folder."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
START_LIMIT_S = 60.0


def free_port() -> int:
    """Return a port on 127.0.0.1 that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Server:
    """One `streamlit run app.py`."""

    port: int
    log: Path
    process: subprocess.Popen[bytes] = field(init=False)

    @property
    def url(self) -> str:
        """Address without a trailing slash."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start and wait until it answers."""
        command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(self.port)]
        command += ["--server.address", "127.0.0.1", "--server.headless", "true"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        until = time.monotonic() + START_LIMIT_S
        while time.monotonic() < until:
            if self.process.poll() is not None:
                break
            with (
                contextlib.suppress(OSError),
                urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=2) as answer,
            ):
                if answer.read().strip() == b"ok":
                    return
            time.sleep(0.1)
        self.stop()
        raise RuntimeError(f"the app did not start:\n{self.log.read_text(errors='replace')[-2000:]}")

    def stop(self) -> None:
        """Stop it and its children."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait(timeout=10)


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
