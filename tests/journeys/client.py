"""A product's view of the server: HTTP, Server-Sent Events, a WebSocket. Knows no Django."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from websockets.sync.client import connect

Json = dict[str, Any]
SCRIPTED = "demo/scripted"
IDLE = "session.status_idle"


@dataclass(frozen=True)
class Frame:
    """One SSE frame; `text` is the `data:` as it came."""

    id: str | None
    event: str
    text: str

    @property
    def data(self) -> Json:
        return dict(json.loads(self.text))


class Client:
    # What a reader meets when a web process dies under it, or is not there yet.
    STREAM_BREAKS = (httpx.TransportError, httpx.StreamError)

    def __init__(self, url: str, key: str, workspace_id: str) -> None:
        self.url = url
        self.key = key
        self.workspace_id = workspace_id
        self._headers = {"Authorization": f"Bearer {key}"}

    # ── sessions ──
    def call(self, method: str, path: str, **options: Any) -> Json:
        """One request, repeated while the server cannot be reached or is not ready (5xx)."""
        if method == "POST":
            # So that a request whose answer was lost is not accepted twice.
            options["headers"] = {"Idempotency-Key": str(uuid.uuid4())}
        deadline = time.monotonic() + 30
        while True:
            try:
                with httpx.Client(base_url=self.url, headers=self._headers, timeout=15) as http:
                    answer = http.request(method, f"/v1/{path}", **options)
                if answer.status_code < 500:
                    break
            except httpx.TransportError:
                answer = None
            assert time.monotonic() < deadline, answer.text if answer else "unreachable"
            time.sleep(0.1)
        assert answer.is_success, answer.text
        return dict(answer.json())

    def create(self, title: str = "A journey") -> str:
        made = self.call(
            "POST",
            "sessions",
            json={"title": title, "workspace_id": self.workspace_id, "model": SCRIPTED},
        )
        return str(made["id"])

    def send(self, session_id: str, prompt: str) -> Json:
        event = {"type": "user.message", "content": prompt}
        return self.call("POST", f"sessions/{session_id}/events", json={"events": [event]})

    def start(self, *script: Json) -> str:
        """A new session at work on this script."""
        session_id = self.create()
        self.send(session_id, scripted(*script))
        return session_id

    def session(self, session_id: str) -> Json:
        return self.call("GET", f"sessions/{session_id}")

    def turns(self, session_id: str) -> list[Json]:
        """With their attempts."""
        listed = self.call("GET", f"sessions/{session_id}/turns")["data"]
        return [self.call("GET", f"sessions/{session_id}/turns/{turn['id']}") for turn in listed]

    # ── the log ──
    def events(self, session_id: str, *types: str) -> list[Json]:
        """The whole log by replay, page after page."""
        found: list[Json] = []
        parameters: dict[str, Any] = {"limit": 1000}
        if types:
            parameters["types[]"] = list(types)
        while True:
            page = self.call("GET", f"sessions/{session_id}/events", params=parameters)
            found += page["data"]
            if not page["has_more"]:
                return found
            parameters["page"] = page["next_page"]

    def wait_for(
        self,
        session_id: str,
        condition: Callable[[list[Json]], object],
        seconds: float = 40,
    ) -> list[Json]:
        deadline = time.monotonic() + seconds
        while not condition(events := self.events(session_id)):
            told = [event["type"] for event in events]
            assert time.monotonic() < deadline, f"not in {seconds} s; the log has {told}"
            time.sleep(0.05)
        return events

    def wait_for_idle(self, session_id: str, seconds: float = 40, times: int = 1) -> list[Json]:
        return self.wait_for(
            session_id, lambda events: count(events, IDLE) >= times, seconds=seconds
        )

    # ── streams ──
    @contextmanager
    def stream(
        self, session_id: str, *, after: int | None = None, last_event_id: str | None = None
    ) -> Iterator[Iterator[Frame]]:
        """Frames as they come. Leaving the block drops the connection."""
        headers = dict(self._headers)
        if last_event_id is not None:
            headers["Last-Event-ID"] = last_event_id
        parameters = {} if after is None else {"after": after}
        path = f"{self.url}/v1/sessions/{session_id}/events/stream"
        with (
            httpx.Client(timeout=30) as http,
            http.stream("GET", path, headers=headers, params=parameters) as answer,
        ):
            if answer.status_code >= 500:
                raise httpx.RemoteProtocolError(f"the server answered {answer.status_code}")
            assert answer.status_code == 200, answer.read()
            yield _frames(answer.iter_lines())

    def read_sse(self, session_id: str, **position: Any) -> list[str]:
        """The texts of all events until the session is idle."""
        with self.stream(session_id, **position) as frames:
            return _until_idle(frame.text for frame in frames if frame.id is not None)

    def read_socket(self, session_id: str, after: int = 0) -> list[str]:
        with connect(
            f"{self.url.replace('http', 'ws', 1)}/v1/ws", additional_headers=self._headers
        ) as socket:
            socket.send(json.dumps({"type": "subscribe", "session": session_id, "after": after}))
            return _until_idle(_event_text(str(text)) for text in socket)


def scripted(*elements: Json) -> str:
    return json.dumps({"script": list(elements)})


def count(events: list[Json], kind: str) -> int:
    return sum(event["type"] == kind for event in events)


def texts(events: list[Json]) -> list[str]:
    """What the agent has said, by its whole messages."""
    return [
        "".join(block["text"] for block in event["content"])
        for event in events
        if event["type"] == "agent.message"
    ]


def _frames(lines: Iterator[str]) -> Iterator[Frame]:
    fields: dict[str, str] = {}
    for line in lines:
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(": ")
            assert name not in fields, f"two `{name}` in one frame"
            fields[name] = value
        elif fields:
            yield Frame(fields.get("id"), fields["event"], fields["data"])
            fields = {}


def _event_text(message: str) -> str:
    """The event inside a socket's frame as it was written; empty for other frames."""
    if json.loads(message)["type"] != "event":
        return ""
    return message[message.index('"event":') + len('"event":') : -1]


def _until_idle(events: Iterator[str]) -> list[str]:
    found = []
    for text in events:
        if not text:
            continue
        found.append(text)
        if json.loads(text)["type"] == IDLE:
            break
    return found
