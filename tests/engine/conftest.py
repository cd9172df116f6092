"""A worker inside the test's own event loop, on the real services and a real PostgreSQL."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from core.db import in_db_thread
from engine.loop import Limits
from engine.ports import Tool
from engine.tools.registry import build_registry
from engine.worker import Worker, WorkerSettings
from sessions_app import eventlog
from sessions_app.models import Session
from sessions_app.services.interruption import interrupt_session
from sessions_app.services.model_settings import RequestedSettings
from sessions_app.services.verification import verify_session
from tests.factories import Cast, make_session, send

QUICK = WorkerSettings(
    concurrency=8,
    lease_seconds=10,
    heartbeat_seconds=1,
    poll_seconds=0.1,
    grace_seconds=2,
    flush_seconds=0.02,
    flush_characters=2048,
    return_grace_seconds=0,  # no outage here, and workers that are dead before one begins
    limits=Limits(tries=3, first_pause=0.02, max_pause=0.05),
)
ENDINGS = ("turn.completed", "turn.failed", "turn.cancelled", "turn.superseded")


@dataclass
class Talk:
    """One session of the cast, seen from a test."""

    cast: Cast
    session: Session

    async def send(self, prompt: str | dict[str, Any]) -> str:
        """Returns the turn's public id."""
        text = prompt if isinstance(prompt, str) else json.dumps(prompt)
        receipt = await in_db_thread(send, self.cast, self.session, text)
        assert receipt.turn_id is not None
        return f"trn_{receipt.turn_id.hex}"

    async def script(self, *elements: dict[str, Any], echo: bool = False) -> str:
        return await self.send({"script": list(elements), "echo": echo})

    async def stop(self) -> None:
        access = await in_db_thread(self.cast.access, "member")
        await in_db_thread(interrupt_session, access=access, session_id=self.session.pk)

    async def events(self, *types: str) -> list[dict[str, Any]]:
        stored = await in_db_thread(
            eventlog.read_after,
            session_id=self.session.pk,
            after=0,
            limit=100_000,
            types=types or None,
        )
        return [event.data for event in stored]

    async def types(self) -> list[str]:
        return [event["type"] for event in await self.events()]

    async def until(self, met: Callable[[list[dict[str, Any]]], bool], seconds: float = 15) -> None:
        limit = time.monotonic() + seconds
        while not met(await self.events()):
            assert time.monotonic() < limit, [e["type"] for e in await self.events()]
            await asyncio.sleep(0.01)

    async def until_type(self, kind: str, count: int = 1) -> None:
        await self.until(lambda events: sum(e["type"] == kind for e in events) >= count)

    async def ending(self, turn_id: str, seconds: float = 15) -> dict[str, Any]:
        """The turn's one terminal event; the log must verify and be contiguous."""

        def endings(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
            return [e for e in events if e["type"] in ENDINGS and e["turn_id"] == turn_id]

        await self.until(lambda events: bool(endings(events)), seconds)
        events = await self.events()
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
        assert await in_db_thread(verify_session, session_id=self.session.pk) == []
        (ending,) = endings(events)
        return ending

    async def answer(self) -> str:
        """The text of the newest sealed message."""
        return text_of((await self.events("agent.message"))[-1])


def text_of(event: dict[str, Any]) -> str:
    return "".join(block["text"] for block in event["content"])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Where the probes write."""
    return tmp_path


@pytest.fixture
def talk(committed_cast: Cast) -> Talk:
    return open_talk(committed_cast)


def open_talk(cast: Cast, model: str = "demo/scripted") -> Talk:
    return Talk(cast, make_session(cast, requested=RequestedSettings(model=model)))


def probe_lines(home: Path) -> list[str]:
    path = home / "probe.log"
    return path.read_text().splitlines() if path.exists() else []


@asynccontextmanager
async def working(
    home: Path, *, tools: Sequence[Tool] = (), **changes: Any
) -> AsyncIterator[Worker]:
    """A worker that is stopped in good order at the end; `tools` beside those of development."""
    registry = build_registry(is_development=True, home=home)
    for tool in tools:
        registry.register(tool)
    worker = Worker(replace(QUICK, **changes), registry)
    task = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        worker.stop()
        await asyncio.wait_for(task, 20)
