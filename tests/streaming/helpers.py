"""What the streaming tests share: writing events, and reading a stream to a point."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import aclosing
from typing import Any
from uuid import UUID

import orjson
from channels.routing import URLRouter
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.db import transaction
from django.test import Client
from django.urls import path, re_path

from core.db import in_db_thread
from orgs import principals
from orgs.access import Access
from orgs.models import User
from sessions_app import eventlog
from sessions_app.eventlog import StoredEvent
from sessions_app.streaming.follow import follow
from sessions_app.streaming.followers import Viewer
from sessions_app.streaming.frames import Events, Frame
from sessions_app.streaming.positions import find_start
from sessions_app.streaming.socket import NoSuchSocket, SessionSocket
from tests.factories import delta


def write(session_id: UUID, *texts: str) -> int:
    """One event per text, in one transaction; returns the head."""
    with transaction.atomic():
        seqs = eventlog.append(session_id=session_id, drafts=[delta(text) for text in texts])
    return seqs[-1]


async def write_async(session_id: UUID, *texts: str) -> int:
    return await in_db_thread(write, session_id, *texts)


def whole_log(session_id: UUID) -> list[StoredEvent]:
    return eventlog.read_after(session_id=session_id, after=0, limit=1_000_000)


def viewer_of(access: Access) -> Viewer:
    return Viewer(access, principals.refresh)


async def open_follow(
    viewer: Viewer,
    session_id: UUID,
    position: int | None = None,
    types: Collection[str] | None = None,
) -> AsyncGenerator[Frame]:
    start = await in_db_thread(
        find_start, access=viewer.access, session_id=session_id, position=position, param="after"
    )
    return follow(viewer=viewer, session_id=session_id, start=start, types=types)


class Reader:
    """Follows on a task of its own and keeps every frame."""

    def __init__(self, frames: AsyncGenerator[Frame], pause: float = 0) -> None:
        self.frames: list[Frame] = []
        self._task = asyncio.create_task(self._read(frames, pause))

    async def _read(self, frames: AsyncGenerator[Frame], pause: float) -> None:
        async with aclosing(frames):
            async for frame in frames:
                self.frames.append(frame)
                if pause:
                    await asyncio.sleep(pause)

    @property
    def texts(self) -> list[str]:
        return [
            event.event.json
            for frame in self.frames
            if isinstance(frame, Events)
            for event in frame.events
        ]

    @property
    def seqs(self) -> list[int]:
        return [
            event.seq
            for frame in self.frames
            if isinstance(frame, Events)
            for event in frame.events
        ]

    @property
    def has_ended(self) -> bool:
        return self._task.done()

    def told(self, kind: type[Any]) -> list[Any]:
        return [frame for frame in self.frames if isinstance(frame, kind)]

    async def until(self, condition: Callable[[], Any], seconds: float = 10) -> None:
        await until(condition, seconds)

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


async def until(condition: Callable[[], Any], seconds: float = 10) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


def sign_in(user: User) -> str:
    """The cookie header of a fresh login."""
    client = Client()
    client.force_login(user)
    return f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"


class Tab:
    """One client of the socket, in this process: it collects what it is told."""

    def __init__(self, headers: dict[str, str], path: str = "/v1/ws") -> None:
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        self._communicator = WebsocketCommunicator(_sockets(), path, headers=raw)
        self.frames: list[dict[str, Any]] = []
        self.close_code: int | None = None

    async def open(self) -> None:
        connected, _ = await self._communicator.connect(timeout=5)
        assert connected
        self._task = asyncio.create_task(self._collect())

    async def _collect(self) -> None:
        while self.close_code is None:
            output = await self._communicator.receive_output(timeout=60)
            if output["type"] == "websocket.close":
                self.close_code = output["code"]
            else:
                self.frames.append(orjson.loads(output["text"]))

    async def say(self, type_: str, **fields: Any) -> None:
        await self.say_raw(orjson.dumps({"type": type_, **fields}).decode())

    async def say_raw(self, text: str) -> None:
        await self._communicator.send_to(text_data=text)

    async def say_bytes(self, data: bytes) -> None:
        await self._communicator.send_to(bytes_data=data)

    def told(self, type_: str, **fields: Any) -> list[dict[str, Any]]:
        return [
            frame
            for frame in self.frames
            if frame["type"] == type_ and fields.items() <= frame.items()
        ]

    async def until(self, condition: Callable[[], Any], seconds: float = 10) -> None:
        await until(condition, seconds)

    async def until_told(self, type_: str, seconds: float = 10, **fields: Any) -> dict[str, Any]:
        await until(lambda: self.told(type_, **fields), seconds)
        return self.told(type_, **fields)[0]

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._communicator.disconnect()


def _sockets() -> URLRouter:
    return URLRouter([path("v1/ws", SessionSocket.as_asgi()), re_path("", NoSuchSocket.as_asgi())])
