"""Real servers in processes of their own, and clients that read streams from them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import orjson

from tests.factories import Cast
from tests.streaming.helpers import until

ROOT = Path(__file__).resolve().parents[2]
HEARTBEAT_SECONDS = 1


class Server:
    """`uvicorn` as the supervisor starts it, or `daphne`."""

    def __init__(self, kind: str, database_url: str, **environment: str) -> None:
        self.kind = kind
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._folder = tempfile.TemporaryDirectory()
        self._log = Path(self._folder.name) / "log"
        self._environment = {
            **os.environ,
            "DATABASE_URL": database_url,
            "DATABASE_DIRECT_URL": database_url,
            "STREAM_HEARTBEAT_SECONDS": str(HEARTBEAT_SECONDS),
            "DJANGO_SETTINGS_MODULE": "config.settings",
            **environment,
        }

    def start(self) -> None:
        command = [sys.executable, "-m"]
        if self.kind == "uvicorn":
            command += ["config.serve", "--fd", str(self._listener.fileno())]
        else:
            self._listener.close()
            command += ["daphne", "-b", "127.0.0.1", "-p", str(self.port)]
            command += ["config.asgi:application"]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=self._environment,
                pass_fds=[self._listener.fileno()] if self.kind == "uvicorn" else [],
                stdout=log,
                stderr=log,
            )
        self._wait_until_ready()

    def _wait_until_ready(self) -> None:
        for _ in range(400):
            assert self.process.poll() is None, self.log()
            try:
                if httpx.get(f"{self.url}/readyz", timeout=2).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.05)
        raise AssertionError(f"the server did not become ready\n{self.log()}")

    def log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else self._last_words

    def stop(self) -> float:
        """Orderly; returns how many seconds it took."""
        started = time.monotonic()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._listener.close()
        self._last_words = self.log()
        self._folder.cleanup()
        return time.monotonic() - started

    def gauge(self, name: str) -> float:
        text = httpx.get(f"{self.url}/metrics", timeout=10).text
        lines = [line for line in text.splitlines() if line.startswith(f"{name} ")]
        return float(lines[0].split()[1])


@dataclass
class Message:
    event: str = ""
    id: str | None = None
    data: str = ""


@dataclass
class Stream:
    """One reader of Server-Sent Events, on a task of its own."""

    url: str
    headers: dict[str, str]
    messages: list[Message] = field(default_factory=list)
    comments: int = 0
    status: int = 0
    body: bytes = b""
    response_headers: httpx.Headers = field(default_factory=httpx.Headers)

    def start(self) -> Stream:
        self._task = asyncio.create_task(self._read())
        return self

    async def _read(self) -> None:
        timeout = httpx.Timeout(10, read=60)
        async with (
            httpx.AsyncClient(timeout=timeout) as client,
            client.stream("GET", self.url, headers=self.headers) as response,
        ):
            self.status = response.status_code
            self.response_headers = response.headers
            if self.status != 200:
                self.body = await response.aread()
                return
            message = Message()
            async for line in response.aiter_lines():
                if line == "":
                    if message.event:
                        self.messages.append(message)
                    message = Message()
                elif line.startswith(":"):
                    self.comments += 1
                else:
                    name, _, value = line.partition(": ")
                    setattr(message, name, value)

    @property
    def events(self) -> list[Message]:
        """The durable ones."""
        return [message for message in self.messages if message.id is not None]

    @property
    def texts(self) -> list[str]:
        return [message.data for message in self.events]

    @property
    def last_id(self) -> str:
        return self.events[-1].id or ""

    def told(self, event: str) -> list[Message]:
        return [message for message in self.messages if message.event == event]

    @property
    def has_ended(self) -> bool:
        return self._task.done()

    async def until(self, condition: Callable[[], Any], seconds: float = 10) -> None:
        await until(lambda: condition() or self._failed(), seconds)

    def _failed(self) -> bool:
        if self._task.done() and (error := self._task.exception()) is not None:
            raise error
        return False

    async def close(self) -> None:
        """Drops the connection."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


def key_of(cast: Cast, name: str = "workspace_key") -> dict[str, str]:
    return {"authorization": f"Bearer {getattr(cast, name).secret}"}


def socket_arguments(server: Server, cast: Cast, **more: Any) -> dict[str, Any]:
    url = f"ws://127.0.0.1:{server.port}/v1/ws"
    return {"uri": url, "additional_headers": key_of(cast), "proxy": None, **more}


def subscribe_to(session: Any, after: int = 0) -> str:
    message = {"type": "subscribe", "session": session.public_id, "after": after}
    return orjson.dumps(message).decode()


async def read_events(each: Any, count: int) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []
    async with asyncio.timeout(30):
        while len(told) < count:
            frame = json.loads(await each.recv())
            if frame["type"] == "event":
                told.append(frame["event"])
    return told
