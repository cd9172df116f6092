"""The database is away, takes no writes, hangs, or loses its answers: no turn is lost or doubled.

Every outage here is longer than a lease. No attempt may end `lost` by it: the workers live.
"""

from __future__ import annotations

import json
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import httpx
import psycopg
import pytest

from core.embedded_postgres import EmbeddedPostgres
from tests.journeys.checks import assert_logs_verified, assert_replay_equals_state
from tests.journeys.client import Client, Json, count, scripted, texts
from tests.journeys.proxy import Proxy
from tests.journeys.server import Server

LEASE = {"LEASE_SECONDS": "3", "HEARTBEAT_SECONDS": "1"}
OPTIONS = {"fsync": "off", "max_connections": "100", "shared_buffers": "32MB"}
WORDS = " ".join(f"word{number:02}" for number in range(1, 41))
# Three leases long, so that it begins before the outage and ends after it.
ANSWER = {"say": WORDS, "chunks": 40, "every_ms": 300}


@dataclass
class Database:
    """A server of the test's own. What is said to it directly does not go by the proxy."""

    server: EmbeddedPostgres

    def restart(self, seconds_away: float) -> None:
        """As a crash does it: nothing is ended in good order, and the start has to recover."""
        self.server.stop(at_once=True)
        time.sleep(seconds_away)
        self.server.start()

    def demote(self) -> None:
        """Open connections stay, and their next write is refused, as on a standby."""
        self._say("ALTER SYSTEM SET default_transaction_read_only = on")

    def promote(self) -> None:
        self._say("ALTER SYSTEM RESET default_transaction_read_only")

    def cut(self) -> None:
        self._say("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                  " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'")  # fmt: skip

    def _say(self, statement: str) -> None:
        writable = "-c default_transaction_read_only=off"
        with psycopg.connect(self.server.url, autocommit=True, options=writable) as direct:
            direct.execute(statement)
            direct.execute("SELECT pg_reload_conf()")


@pytest.fixture
def database() -> Iterator[Database]:
    with tempfile.TemporaryDirectory(prefix="outage-") as folder:
        server = EmbeddedPostgres(Path(folder) / "pg", options=OPTIONS)
        server.start()
        try:
            yield Database(server)
        finally:
            server.stop(at_once=True)


@pytest.fixture
def proxy(database: Database) -> Iterator[Proxy]:
    proxy = Proxy(database.server.url)
    yield proxy
    proxy.close()


def serve(url: str, **environment: str) -> Iterator[Server]:
    server = Server(**{"DATABASE_URL": url, "WEB": "1", "WORKERS": "2", **LEASE, **environment})
    try:
        server.start()
        before = server.pids()
        yield server
        assert server.pids() == before, "a process died of the outage"
        assert_logs_verified(server)
        assert server.stop() == 0
    finally:
        server.remove()


@pytest.fixture
def direct(database: Database) -> Iterator[Server]:
    yield from serve(database.server.url)


@pytest.fixture
def proxied(proxy: Proxy) -> Iterator[Server]:
    yield from serve(proxy.url)


def call(line: str, sleep_ms: int) -> Json:
    return {"tool": "probe.append", "args": {"line": line, "sleep_ms": sleep_ms}}


def assert_kept(client: Client, session_id: str) -> list[Json]:
    """The turn went through the outage in its one attempt."""
    events = client.wait_for_idle(session_id, seconds=60)
    assert [a["status"] for turn in client.turns(session_id) for a in turn["attempts"]] == [
        "completed"
    ]
    assert_replay_equals_state(client, session_id)
    return events


def ask(
    server: Server, method: str, path: str, *, is_person: bool = False, body: Json | None = None
) -> httpx.Response:
    """One request, not repeated, whose answer is read only where it ends."""
    client = server.client()
    headers = {"Cookie": "sederunt_login=" + "0" * 32}
    if not is_person:
        headers = {"Authorization": f"Bearer {client.key}"}
    with httpx.stream(
        method, f"{client.url}{path}", headers=headers, timeout=20, json=body
    ) as answer:
        if answer.status_code != 200:
            answer.read()
    return answer


def assert_says_it_is_away(server: Server, session_id: str) -> None:
    """For reading, sending and opening a stream alike, in a few seconds, and for pages too."""
    path = f"/v1/sessions/{session_id}"
    sent = {"events": [{"type": "user.message", "content": "Is anybody there?"}]}
    with ThreadPoolExecutor() as pool:
        answers = [
            pool.submit(ask, server, "GET", path),
            pool.submit(ask, server, "POST", f"{path}/events", body=sent),
            pool.submit(ask, server, "GET", f"{path}/events/stream"),
        ]
        page = pool.submit(ask, server, "GET", f"/s/{session_id}/", is_person=True)
        alive = pool.submit(ask, server, "GET", "/healthz")
        ready = pool.submit(ask, server, "GET", "/readyz")
    for asked in answers:
        answer = asked.result()
        assert answer.status_code == 503, answer.request.url
        assert answer.json()["error"]["type"] == "overloaded_error"
        assert int(answer.headers["retry-after"]) >= 1
        assert answer.elapsed.total_seconds() < 8
    assert page.result().status_code == 503
    assert int(page.result().headers["retry-after"]) >= 1
    assert "The database does not answer" in page.result().text
    assert (alive.result().status_code, ready.result().status_code) == (200, 503)


def while_it_works(
    server: Server, outage: Callable[[str], None], *, call_ms: int = 10_000
) -> tuple[list[Json], list[Json]]:
    """Two turns at work, of which one calls a tool that must not run twice, a prompt behind one of
    them, and a stream that stays open. Returns the events of the answer, and those of the call.
    """
    client = server.client()
    line = f"outage-{random.random()}"
    calling = client.start({"call": [call(line, call_ms)]}, {"say": "called"})
    answering = client.start(ANSWER)
    client.wait_for(answering, lambda log: count(log, "agent.message_delta") >= 3)
    client.wait_for(calling, lambda log: count(log, "agent.tool_use"))
    pool = ThreadPoolExecutor(1)
    reading = pool.submit(client.read_sse, answering, after=0)
    pool.shutdown(wait=False)  # a stream of a turn that is stuck would hold up the report of it
    time.sleep(0.5)
    outage(answering)
    answered = assert_kept(client, answering)
    assert [json.loads(text) for text in reading.result(30)] == answered
    assert texts(answered) == [WORDS]
    called = assert_kept(client, calling)
    assert texts(called) == ["called"]
    assert server.probed(line) <= 1
    assert (outcome(called) == "ok") is (server.probed(line) == 1)
    return answered, called


def outcome(events: list[Json]) -> str:
    return next(str(e["outcome"]) for e in events if e["type"] == "agent.tool_result")


def test_a_crash_of_the_database_loses_no_turn(database: Database, direct: Server) -> None:
    def crash(session_id: str) -> None:
        with ThreadPoolExecutor(1) as pool:
            asking = pool.submit(assert_says_it_is_away, direct, session_id)
            database.restart(9)
            asking.result()

    _, called = while_it_works(direct, crash)
    # Nobody could have taken the turn meanwhile: so the call was not cut.
    assert outcome(called) == "ok"


def test_a_failover_loses_no_turn(database: Database, direct: Server) -> None:
    """The server takes no more writes, ends its connections, goes, and comes back."""

    def fail_over(session_id: str) -> None:
        database.demote()
        time.sleep(2)
        body = {"events": [{"type": "user.message", "content": "Is anybody there?"}]}
        refused = ask(direct, "POST", f"/v1/sessions/{session_id}/events", body=body)
        assert (refused.status_code, "retry-after" in refused.headers) == (503, True)
        database.cut()
        assert_says_it_is_away(direct, session_id)
        database.promote()
        database.restart(2)

    _, called = while_it_works(direct, fail_over)
    assert outcome(called) == "ok"


def test_a_database_that_hangs_loses_no_turn(proxy: Proxy, proxied: Server) -> None:
    """Silence may be the network of this worker alone: a call that others might repeat is cut."""

    def hang(session_id: str) -> None:
        proxy.hold()
        time.sleep(8)
        proxy.release()

    _, called = while_it_works(proxied, hang, call_ms=60_000)
    assert outcome(called) == "unknown"


def test_answers_lost_at_commit_double_nothing(proxy: Proxy, proxied: Server) -> None:
    """Whether it was done is left open, for one statement in thirty of every process."""
    client, chance = proxied.client(), random.Random(7)
    guard = threading.Lock()

    def loses(sent: bytes) -> bool:
        with guard:
            writes = any(word in sent for word in (b"COMMIT", b"INSERT INTO", b"UPDATE "))
            return writes and chance.random() < 1 / 30

    sessions = [client.create(f"Lossy {number}") for number in range(6)]
    proxy.loses = loses
    lines = []
    for session_id in sessions:
        for _ in range(3):
            lines.append(f"lossy-{chance.random()}")
            step = {"say": WORDS, "chunks": 10, "every_ms": 30, "call": [call(lines[-1], 50)]}
            client.send(session_id, scripted(step, {"say": "done"}))
    for session_id in sessions:
        client.wait_for(session_id, lambda log: count(log, "turn.completed") >= 3, seconds=90)
    proxy.loses = lambda sent: False
    assert proxy.lost > 10
    for session_id in sessions:
        events = client.wait_for_idle(session_id)
        assert count(events, "user.message") == 3
        assert texts(events) == [WORDS, "done"] * 3
        assert_replay_equals_state(client, session_id)
        attempts = [a["status"] for turn in client.turns(session_id) for a in turn["attempts"]]
        assert attempts == ["completed"] * 3
    assert [proxied.probed(line) for line in lines] == [1] * len(lines)


@pytest.mark.proof
@pytest.mark.timeout(300)
def test_a_minute_without_a_database_with_the_leases_of_production(database: Database) -> None:
    slow = {**ANSWER, "every_ms": 2_000}
    for server in serve(database.server.url, LEASE_SECONDS="10", HEARTBEAT_SECONDS="3"):
        client = server.client()
        session_id = client.start(slow)
        client.wait_for(session_id, lambda log: count(log, "agent.message_delta") >= 3)
        database.restart(60)
        events = client.wait_for_idle(session_id, seconds=120)
        assert texts(events) == [WORDS]
        (turn,) = client.turns(session_id)
        assert [attempt["status"] for attempt in turn["attempts"]] == ["completed"]
