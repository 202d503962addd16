"""One session of the app without a browser: a websocket client that speaks Streamlit's protobuf.

Owns: opening a page by link, sending a widget's value, waiting for the run's end, and what is an error.
Refuses: drawing, and any address but the one it is given.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field

import websockets.asyncio.client
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

RUN_LIMIT_S = 30.0
FAULT_TEXTS = ("Something went wrong", "can't be computed", "could not be applied")


class SessionError(RuntimeError):
    """The app answered with a fault, or not at all."""


@dataclass
class Session:
    """A session at one page.

    Parameters
    ----------
    address : str
        "127.0.0.1:8501".
    page : str
        The page's path in the URL.
    query : str
        The query string that opens it.
    """

    address: str
    page: str
    query: str
    received_bytes: int = 0
    _socket: websockets.asyncio.client.ClientConnection | None = None
    _ids: dict[str, str] = field(default_factory=dict)
    _fragments: dict[str, str] = field(default_factory=dict)
    _values: dict[str, WidgetState] = field(default_factory=dict)
    _page_hash: str = ""

    async def open(self) -> None:
        """Connect, and wait for the page."""
        self._socket = await websockets.asyncio.client.connect(
            f"ws://{self.address}/_stcore/stream",
            subprotocols=["streamlit"],  # type: ignore[list-item]
            max_size=None,
            proxy=None,
        )
        message = BackMsg()
        message.rerun_script.query_string = self.query
        message.rerun_script.page_name = self.page
        message.rerun_script.context_info.url = f"http://{self.address}/{self.page}?{self.query}"
        await self._socket.send(message.SerializeToString())
        await self._wait()

    async def close(self) -> None:
        """Disconnect."""
        if self._socket is not None:
            await self._socket.close()

    def has(self, key: str) -> bool:
        """Tell whether a widget with that key was drawn so far."""
        return key in self._ids

    async def set_number(self, key: str, value: float) -> None:
        """Set a number input."""
        await self._send(key, WidgetState(id=self._ids[key], double_value=value))

    async def press(self, key: str) -> None:
        """Press a button."""
        await self._send(key, WidgetState(id=self._ids[key], trigger_value=True), once=True)

    async def trigger(self, key: str, event: str, value: object) -> None:
        """Send an event of one of our own components."""
        state = WidgetState(
            id=f"$$STREAMLIT_INTERNAL_KEY_{self._ids[key]}__events",
            json_trigger_value=json.dumps([{"event": event, "value": value}]),
        )
        await self._send(key, state, once=True)

    async def rerun(self) -> None:
        """Run the whole page again, as the browser does by itself where the page polls."""
        await self._send("", None)

    async def _send(self, key: str, state: WidgetState | None, *, once: bool = False) -> None:
        assert self._socket is not None
        message = BackMsg()
        client = message.rerun_script
        client.query_string = self.query
        client.page_script_hash = self._page_hash
        client.fragment_id = self._fragments.get(key, "")
        if state is not None and not once:
            self._values[state.id] = state
        client.widget_states.widgets.extend(self._values.values())
        if state is not None and once:
            client.widget_states.widgets.append(state)
        await self._socket.send(message.SerializeToString())
        await self._wait()

    async def _wait(self) -> None:
        """Take messages until the run has ended."""
        async with asyncio.timeout(RUN_LIMIT_S):
            while not self._take(await self._next()):
                pass

    async def _next(self) -> ForwardMsg:
        assert self._socket is not None
        data = await self._socket.recv()
        assert isinstance(data, bytes)
        self.received_bytes += len(data)
        message = ForwardMsg()
        message.ParseFromString(data)
        return message

    def _take(self, message: ForwardMsg) -> bool:
        """Take one message; True where it ends a run."""
        kind = message.WhichOneof("type")
        if kind == "navigation":  # which page the link opened; a new session's own guess is the first page
            self._page_hash = message.navigation.page_script_hash
        elif kind == "page_info_changed":
            self.query = message.page_info_changed.query_string
        elif kind == "delta" and message.delta.HasField("new_element"):
            self._take_element(message)
        elif kind == "script_finished":
            status = ForwardMsg.ScriptFinishedStatus.Name(message.script_finished)
            if status == "FINISHED_WITH_COMPILE_ERROR":
                raise SessionError(status)
            return status != "FINISHED_EARLY_FOR_RERUN"
        return False

    def _take_element(self, message: ForwardMsg) -> None:
        element = message.delta.new_element
        kind = element.WhichOneof("type")
        if kind == "exception":
            raise SessionError(f"{element.exception.type}: {element.exception.message}")
        if kind == "html" and any(text in element.html.body for text in FAULT_TEXTS):
            raise SessionError(element.html.body[:200])
        identity = getattr(getattr(element, kind), "id", "") if kind else ""
        if identity.startswith("$$ID-"):
            key = identity.split("-", 2)[2]
            self._ids[key] = identity
            self._fragments[key] = message.delta.fragment_id
