"""Real worker processes: killed, stopped, cut off from their database."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from django.conf import settings
from django.db import connection

from core.db import in_db_thread
from sessions_app.models import Turn
from tests.engine.conftest import Talk, open_talk, probe_lines, text_of

Start = Callable[..., subprocess.Popen[bytes]]
CALL = {"tool": "probe.append", "args": {"line": "one", "sleep_ms": 100}}


def database_url() -> str:
    """The test database: its name differs from that of the settings."""
    parts = urlsplit(settings.DATABASE_URL)
    return urlunsplit(parts._replace(path=f"/{connection.settings_dict['NAME']}"))


@pytest.fixture
def start_worker(home: Path) -> Iterator[Start]:
    started: list[subprocess.Popen[bytes]] = []

    def start(**changes: str) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "DATABASE_URL": database_url(),
            "SEDERUNT_HOME": str(home),
            "SEDERUNT_PROCESS": "worker-under-test",
            "LEASE_SECONDS": "2",
            "HEARTBEAT_SECONDS": "1",
            "HANDOVER_GRACE_SECONDS": "2",
            **changes,
        }
        command = [sys.executable, "manage.py", "work"]
        process = subprocess.Popen(command, cwd=settings.BASE_DIR, env=environment)
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait(10)


@contextmanager
def admin() -> Iterator[psycopg.Connection]:
    with psycopg.connect(database_url(), autocommit=True) as direct:
        yield direct


async def assert_whole(talk: Talk) -> None:
    """The deltas of each sealed message are its text: nothing lost, nothing twice."""
    deltas: dict[str, str] = {}
    for event in await talk.events("agent.message_delta"):
        deltas[event["message_id"]] = deltas.get(event["message_id"], "") + event["text"]
    for message in await talk.events("agent.message"):
        assert deltas[message["message_id"]] == text_of(message)


async def test_a_killed_worker_is_replaced(talk: Talk, home: Path, start_worker: Start) -> None:
    turn = await talk.script(
        {"say": "First. ", "call": [CALL]},
        {"say": "word " * 60, "chunks": 60, "every_ms": 30},
    )
    doomed = start_worker()
    await talk.until(lambda events: len([e for e in events if "_delta" in e["type"]]) > 5, 30)
    doomed.send_signal(signal.SIGKILL)
    start_worker()
    assert (await talk.ending(turn, 30))["type"] == "turn.completed"
    assert await talk.answer() == "word " * 60
    assert probe_lines(home) == ["one"]
    row = await in_db_thread(Turn.objects.get)
    assert (row.attempt_count, row.status) == (2, "completed")
    await assert_whole(talk)


async def test_a_terminated_worker_hands_over_and_exits(
    talk: Talk, home: Path, start_worker: Start
) -> None:
    turn = await talk.script(
        {"call": [{**CALL, "args": {"line": "one", "sleep_ms": 700}}]},
        {"say": "word " * 60, "chunks": 60, "every_ms": 30},
    )
    leaving = start_worker()
    await talk.until(lambda events: any(e["type"] == "agent.tool_use" for e in events), 30)
    leaving.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(leaving.wait, 10) == 0
    assert probe_lines(home) == ["one"]
    assert (await talk.types())[-1] == "session.status_rescheduled"
    start_worker()
    await talk.ending(turn, 30)
    row = await in_db_thread(Turn.objects.get)
    assert (row.attempt_count, row.losses) == (2, 0)
    await assert_whole(talk)


# The grace is far longer than either bound; the looser one is for a machine with other work.
@pytest.mark.parametrize(
    "most_seconds", [pytest.param(2, marks=[pytest.mark.proof, pytest.mark.alone]), 15]
)
async def test_an_idle_worker_stops_at_once(
    talk: Talk, start_worker: Start, most_seconds: int
) -> None:
    worker = start_worker(HANDOVER_GRACE_SECONDS="60", LEASE_SECONDS="60", POLL_SECONDS="60")
    await talk.ending(await talk.send("Hello"), 30)
    worker.send_signal(signal.SIGINT)
    assert await asyncio.to_thread(worker.wait, most_seconds) == 0


async def test_connections_that_are_cut_lose_and_double_nothing(
    talk: Talk, home: Path, start_worker: Start
) -> None:
    """Every connection of the worker is cut, again and again, under load."""
    talks = [talk, *[await in_db_thread(open_talk, talk.cast) for _ in range(3)]]
    start_worker()
    turns = [
        await each.script(
            {"say": "word " * 100, "chunks": 100, "every_ms": 15, "call": [
                {"tool": "probe.append", "args": {"line": f"{number}-{n}", "sleep_ms": 30}}
                for n in range(5)
            ]},
            {"say": "tide " * 50, "chunks": 50, "every_ms": 15},
        )
        for number, each in enumerate(talks)
    ]  # fmt: skip
    await talk.until(lambda events: any("_delta" in e["type"] for e in events), 30)
    with admin() as direct:
        for _ in range(12):
            direct.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'worker-under-test'"
            )
            await asyncio.sleep(0.2)
    for each, turn in zip(talks, turns, strict=True):
        assert (await each.ending(turn, 40))["type"] == "turn.completed"
        await assert_whole(each)
        assert await each.answer() == "tide " * 50
    lines = probe_lines(home)
    assert sorted(lines) == sorted(f"{number}-{n}" for number in range(4) for n in range(5))


async def test_a_lease_that_cannot_be_prolonged_is_given_up(
    talk: Talk, home: Path, start_worker: Start
) -> None:
    """A frozen worker wakes up after its lease ran out: it writes nothing more."""
    turn = await talk.script({"say": "word " * 100, "chunks": 100, "every_ms": 30})
    frozen = start_worker()
    await talk.until(lambda events: any("_delta" in e["type"] for e in events), 30)
    frozen.send_signal(signal.SIGSTOP)
    start_worker()
    await talk.until(lambda events: sum(e["type"] == "attempt.started" for e in events) == 2, 20)
    frozen.send_signal(signal.SIGCONT)
    assert (await talk.ending(turn, 30))["type"] == "turn.completed"
    await assert_whole(talk)
    sealed = (await talk.events("agent.message"))[-1]
    assert sealed["attempt"] == 2
    late = [
        e for e in await talk.events("agent.message_delta")
        if e["attempt"] == 1 and e["seq"] > sealed["seq"]
    ]  # fmt: skip
    assert late == []
