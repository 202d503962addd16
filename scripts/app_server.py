"""Start and stop the app on a port of its own, for browser tests, benches and screenshots."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
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
        while time.monotonic() < until and self.process.poll() is None:
            if self._answers():
                return
            time.sleep(0.1)
        self.stop()
        raise RuntimeError(f"the app did not start:\n{self.log.read_text(errors='replace')[-2000:]}")

    def _answers(self) -> bool:
        with (
            contextlib.suppress(OSError),
            urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=2) as answer,
        ):
            return answer.read().strip() == b"ok"
        return False

    def stop(self) -> None:
        """Stop it and its children."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait(timeout=10)
