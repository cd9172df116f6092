"""PostgreSQL and every process restarted under load: the logs have no hole, the turns end once."""

from __future__ import annotations

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.journeys.checks import assert_contiguous, assert_replay_equals_state
from tests.journeys.client import Client, Json, count, texts
from tests.journeys.server import Server, is_at_work

WORDS = " ".join(f"word{number:02}" for number in range(1, 41))
ANSWER = {"say": WORDS, "chunks": 40, "every_ms": 80}
SESSIONS = 6


def assert_answered(client: Client, session_id: str, events: list[Json]) -> None:
    assert_contiguous(events)
    assert count(events, "turn.completed") == 1
    assert texts(events) == [WORDS]
    assert_replay_equals_state(client, session_id)


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL], ids=["stopped", "killed"])
def test_postgres_restarted_under_load(
    server: Server, client: Client, sign: signal.Signals
) -> None:
    """An orderly stop of the database, and one in which it has to recover from its journal."""
    sessions = [client.start(ANSWER) for _ in range(SESSIONS)]
    client.wait_for(sessions[-1], lambda log: count(log, "agent.message_delta") >= 5)
    before = server.pids()["postgres"]
    os.kill(before, sign)
    server.wait_until(
        lambda: server.pids().get("postgres", before) != before, 60, "PostgreSQL is not back"
    )
    for session_id in sessions:
        assert_answered(client, session_id, client.wait_for_idle(session_id, seconds=60))
    # And what comes after is as before.
    later = client.start({"say": "all is well"})
    assert texts(client.wait_for_idle(later)) == ["all is well"]
    for name, pid in server.pids().items():
        assert is_at_work(pid), name


def test_each_process_restarted_in_turn_leaves_no_hole(server: Server, client: Client) -> None:
    """A reader that comes back with its position each time ends with exactly the log."""
    session_id = client.start({**ANSWER, "every_ms": 200})
    with ThreadPoolExecutor() as pool:
        reading = pool.submit(_read_stubbornly, client, session_id)
        client.wait_for(session_id, lambda log: count(log, "agent.message_delta") >= 3)
        _kill(server, "web-1")
        os.kill(server.worker_of(session_id), signal.SIGKILL)
        client.wait_for(session_id, lambda log: count(log, "attempt.started") == 2)
        _kill(server, "postgres")
        _kill(server, "web-2")
        read = reading.result(timeout=100)
    events = client.wait_for_idle(session_id)
    assert [json.loads(text) for text in read] == events
    assert_answered(client, session_id, events)


def _kill(server: Server, name: str) -> None:
    """And wait for its successor, though not for what that does."""
    pid = server.pids()[name]
    os.kill(pid, signal.SIGKILL)
    server.wait_until(lambda: server.pids().get(name, pid) != pid, 60, f"{name} is not back")


def _read_stubbornly(client: Client, session_id: str) -> list[str]:
    """Reconnects with `Last-Event-ID` whenever the stream breaks, as a browser does."""
    found: list[str] = []
    last = "0"
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        try:
            with client.stream(session_id, last_event_id=last) as frames:
                for frame in frames:
                    if frame.id is None:
                        continue
                    found.append(frame.text)
                    last = frame.id
                    if frame.event == "session.status_idle":
                        return found
        except client.STREAM_BREAKS:
            time.sleep(0.2)
    raise AssertionError(f"not idle in time; read {len(found)} events")
