from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest
from websockets.asyncio.client import connect

from config.serve import DEAD_CLIENT_SECONDS, _notice_dead_clients
from core.db import in_db_thread
from core.ids import encode_id
from orgs.services.keys import revoke_api_key
from sessions_app.services.archiving import delete_session
from tests.factories import Cast, make_session, send
from tests.streaming.conftest import direct_url
from tests.streaming.helpers import sign_in, until, whole_log, write_async
from tests.streaming.servers import (
    HEARTBEAT_SECONDS,
    Server,
    Stream,
    key_of,
    read_events,
    socket_arguments,
    subscribe_to,
)

# What daphne is known not to do: it has no back-pressure, and accepts slowly.
only_uvicorn = pytest.mark.parametrize("server", ["uvicorn"], indirect=True)


def stream_url(server: Server, session: Any, query: str = "") -> str:
    return f"{server.url}/v1/sessions/{session.public_id}/events/stream{query}"


def open_stream(
    server: Server, cast: Cast, session: Any, query: str = "", **headers: str
) -> Stream:
    more = {name.replace("_", "-"): value for name, value in headers.items()}
    return Stream(stream_url(server, session, query), {**key_of(cast), **more}).start()


async def log_of(session: Any) -> list[str]:
    return [event.json for event in await in_db_thread(whole_log, session.pk)]


async def test_every_durable_event_has_its_seq_as_id_and_nothing_else_has(
    server: Server, committed_cast: Cast, postgres_bus: str
) -> None:
    session = await in_db_thread(make_session, committed_cast)
    await in_db_thread(send, committed_cast, session)
    stream = open_stream(server, committed_cast, session, "?after=0")
    await stream.until(lambda: stream.told("caught_up"))
    head = await write_async(session.pk, "live")
    await stream.until(lambda: stream.last_id == str(head))
    await stream.until(lambda: stream.comments >= 3, seconds=5)
    assert [int(event.id or 0) for event in stream.events] == list(range(1, head + 1))
    assert stream.texts == await log_of(session)
    for event in stream.events:
        body = json.loads(event.data)
        assert (body["type"], body["seq"]) == (event.event, int(event.id or 0))
    assert [m.event for m in stream.messages if m.id is None] == ["ready", "caught_up"]
    await stream.close()


async def test_nothing_between_may_buffer_or_compress_a_stream(
    server: Server, committed_cast: Cast, postgres_bus: str
) -> None:
    session = await in_db_thread(make_session, committed_cast)
    stream = open_stream(server, committed_cast, session, accept_encoding="gzip, br")
    await stream.until(lambda: stream.comments)
    headers = stream.response_headers
    assert headers["content-type"] == "text/event-stream"
    assert headers["cache-control"] == "no-cache, no-store, no-transform"
    assert headers["x-accel-buffering"] == "no"
    assert "content-encoding" not in headers
    assert "content-length" not in headers
    assert headers["request-id"]
    await stream.close()


async def test_a_dropped_reader_resumes_by_last_event_id_without_gap_or_repeat(
    server: Server, committed_cast: Cast, postgres_bus: str
) -> None:
    session = await in_db_thread(make_session, committed_cast)
    stayed = open_stream(server, committed_cast, session, "?after=0")
    first = open_stream(server, committed_cast, session, "?after=0")

    async def answer() -> None:
        for chunk in range(40):
            await write_async(session.pk, f"chunk {chunk}")
            await asyncio.sleep(0.02)

    writing = asyncio.create_task(answer())
    await first.until(lambda: len(first.events) >= 10)
    await first.close()
    await asyncio.sleep(0.2)
    # The header beats the query, as a reconnecting browser sends both.
    second = open_stream(server, committed_cast, session, "?after=0", last_event_id=first.last_id)
    late = open_stream(server, committed_cast, session, "?after=0")
    await writing
    log = await log_of(session)
    for stream in (stayed, late):
        await stream.until(lambda stream=stream: len(stream.events) == len(log))
        assert stream.texts == log
    await second.until(lambda: len(first.events) + len(second.events) >= len(log))
    assert first.texts + second.texts == log
    for stream in (stayed, late, second):
        await stream.close()


async def test_every_reader_of_a_run_gets_the_identical_sequence(
    server: Server, committed_cast: Cast, postgres_bus: str
) -> None:
    session = await in_db_thread(make_session, committed_cast)
    streams = [open_stream(server, committed_cast, session, "?after=0") for _ in range(3)]
    sockets = [await connect(**socket_arguments(server, committed_cast)) for _ in range(2)]
    for each in sockets:
        await each.send(subscribe_to(session))
    for chunk in range(30):
        await write_async(session.pk, f"chunk {chunk}")
    log = await log_of(session)
    for stream in streams:
        await stream.until(lambda stream=stream: len(stream.events) == len(log))
        assert stream.texts == log
        await stream.close()
    for each in sockets:
        told = await read_events(each, len(log))
        assert told == [json.loads(text) for text in log]
        await each.close()


# ── What is refused before the stream begins ──


@pytest.mark.parametrize(
    ("query", "headers", "status", "code", "param"),
    [
        ("?after=-1", {}, 400, "invalid_position", "after"),
        ("?after=", {}, 400, "invalid_position", "after"),
        ("?after=now", {}, 400, "invalid_position", "after"),
        ("?after=1&after=2", {}, 400, "invalid_position", "after"),
        ("?after=99", {}, 400, "cursor_ahead", "after"),
        ("?after=%00", {}, 400, "invalid_position", "after"),
        ("", {"last-event-id": "x"}, 400, "invalid_position", "Last-Event-ID"),
        ("?after=0", {"last-event-id": ""}, 400, "invalid_position", "Last-Event-ID"),
        ("?after=0", {"last-event-id": "99"}, 400, "cursor_ahead", "Last-Event-ID"),
        ("?types[]=agent.nonsense", {}, 400, "unknown_event_type", "types[][0]"),
        ("?since=3", {}, 400, "unknown_parameter", "since"),
        ("", {"authorization": "Bearer nonsense"}, 401, "invalid_api_key", None),
        ("", {"authorization": ""}, 401, "invalid_authorization", None),
    ],
)
async def test_a_wrong_beginning_is_an_error_body_and_no_stream(
    server: Server,
    committed_cast: Cast,
    query: str,
    headers: dict[str, str],
    status: int,
    code: str,
    param: str | None,
) -> None:
    session = await in_db_thread(make_session, committed_cast)
    async with httpx.AsyncClient() as client:
        answer = await client.get(
            stream_url(server, session, query), headers={**key_of(committed_cast), **headers}
        )
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/json")
    problem = answer.json()["error"]
    assert (problem["code"], problem["param"]) == (code, param)


async def test_a_session_that_is_not_visible_is_as_if_it_did_not_exist(
    server: Server, committed_cast: Cast
) -> None:
    hidden = await in_db_thread(
        make_session, committed_cast, by="outsider", workspace_id=committed_cast.other_workspace.pk
    )
    paths = [hidden.public_id, encode_id("ses", uuid4()), "nonsense", "ses_%00"]
    bodies = []
    async with httpx.AsyncClient(headers=key_of(committed_cast)) as client:
        for path in paths:
            url = f"{server.url}/v1/sessions/{path}/events/stream?after=0"
            answer = await client.get(url, headers={"x-request-id": "same-request"})
            assert answer.status_code == 404
            bodies.append(answer.json())
    assert all(body == bodies[0] for body in bodies)


async def test_a_login_streams_by_its_cookie_and_a_stranger_gets_401(
    server: Server, committed_cast: Cast, postgres_bus: str
) -> None:
    session = await in_db_thread(make_session, committed_cast)
    cookie = await in_db_thread(sign_in, committed_cast.viewer)
    stream = Stream(stream_url(server, session, "?after=0"), {"cookie": cookie}).start()
    await stream.until(lambda: stream.told("caught_up"))
    await stream.close()
    async with httpx.AsyncClient() as client:
        assert (await client.get(stream_url(server, session))).status_code == 401


async def test_other_methods_are_refused(server: Server, committed_cast: Cast) -> None:
    session = await in_db_thread(make_session, committed_cast)
    async with httpx.AsyncClient(headers=key_of(committed_cast)) as client:
        assert (await client.head(stream_url(server, session))).status_code == 405
        assert (await client.delete(stream_url(server, session))).status_code == 405


async def test_a_filtered_stream_says_so(
    server: Server, committed_cast: Cast, postgres_bus: str
) -> None:
    session = await in_db_thread(make_session, committed_cast)
    await write_async(session.pk, *"abc")
    query = "?after=0&types[]=session.created&types[]=user.message"
    stream = open_stream(server, committed_cast, session, query)
    await stream.until(lambda: stream.told("caught_up"))
    assert json.loads(stream.told("ready")[0].data)["filtered"] is True
    assert [event.event for event in stream.events] == ["session.created"]
    assert json.loads(stream.told("caught_up")[0].data)["seq"] == 4
    await stream.close()


# ── How a stream ends ──


async def test_a_revoked_key_ends_the_stream_with_the_apis_error_body(
    server: Server, committed_cast: Cast, postgres_bus: str
) -> None:
    session = await in_db_thread(make_session, committed_cast)
    stream = open_stream(server, committed_cast, session, "?after=0")
    await stream.until(lambda: stream.told("caught_up"))
    await in_db_thread(revoke_api_key, key=committed_cast.workspace_key.row)
    await stream.until(lambda: stream.has_ended, seconds=2)
    error = stream.told("error")[0]
    assert error.id is None
    body = json.loads(error.data)
    assert body["error"]["type"] == "authentication_error"
    assert body["request_id"] == stream.response_headers["request-id"]


async def test_a_deleted_session_says_so_and_ends(
    server: Server, committed_cast: Cast, postgres_bus: str
) -> None:
    session = await in_db_thread(make_session, committed_cast)
    stream = open_stream(server, committed_cast, session, "?after=0")
    await stream.until(lambda: stream.told("caught_up"))
    access = await in_db_thread(committed_cast.access, "owner")
    await in_db_thread(delete_session, access=access, session_id=session.pk)
    await stream.until(lambda: stream.has_ended, seconds=3)
    assert stream.messages[-1].event == "session.deleted"


async def test_streams_whose_clients_left_are_noticed_and_hold_nothing(
    server: Server, committed_cast: Cast, postgres_bus: str
) -> None:
    session = await in_db_thread(make_session, committed_cast)
    await until(lambda: server.gauge("sederunt_streams_open") == 0, 5)
    clients = [
        await asyncio.to_thread(_raw_stream, server, committed_cast, session) for _ in range(60)
    ]
    assert await asyncio.to_thread(server.gauge, "sederunt_streams_open") == 60
    for number, client in enumerate(clients):
        if number % 2:
            # A reset instead of a farewell.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
    await asyncio.sleep(2 * HEARTBEAT_SECONDS)
    assert await asyncio.to_thread(server.gauge, "sederunt_streams_open") == 0


def test_accepted_connections_notice_clients_that_vanished_without_a_word() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        _notice_dead_clients(listener)
        with socket.create_connection(listener.getsockname()), listener.accept()[0] as accepted:
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            timeout = accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
            assert timeout == DEAD_CLIENT_SECONDS * 1000


def _raw_stream(server: Server, cast: Cast, session: Any) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", server.port), timeout=10)
    path = stream_url(server, session, "?after=0").removeprefix(server.url)
    client.sendall(
        f"GET {path} HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: {key_of(cast)['authorization']}\r\n\r\n".encode()
    )
    answer = b""
    while b"caught_up" not in answer:
        got = client.recv(65_536)
        assert got, answer
        answer += got
    return client


@only_uvicorn
async def test_three_hundred_open_streams_hold_no_thread_and_no_database_connection(
    server: Server, committed_cast: Cast, postgres_bus: str
) -> None:
    sessions = [await in_db_thread(make_session, committed_cast) for _ in range(10)]
    clients = [
        await asyncio.to_thread(_raw_stream, server, committed_cast, sessions[number % 10])
        for number in range(300)
    ]
    url = f"{server.url}/v1/sessions/{sessions[0].public_id}"
    async with httpx.AsyncClient(headers=key_of(committed_cast), timeout=30) as client:
        for _ in range(10):
            answers = await asyncio.gather(*(client.get(url) for _ in range(20)))
            assert {answer.status_code for answer in answers} <= {200, 429}
    threads = len(os.listdir(f"/proc/{server.process.pid}/task"))
    assert threads < 40, f"{threads} threads for 300 streams"
    counts = await asyncio.to_thread(_connections, postgres_bus)
    assert counts.get("idle in transaction", 0) == 0
    assert sum(counts.values()) <= 20 + 20 + 6, counts
    for session in sessions:
        await write_async(session.pk, "to all")
    for number, client in enumerate(clients):
        text = await asyncio.to_thread(client.recv, 65_536)
        while b"to all" not in text:
            text += await asyncio.to_thread(client.recv, 65_536)
        assert sessions[number % 10].public_id.encode() in text
        client.close()


def _connections(url: str) -> dict[str, int]:
    with psycopg.connect(url, autocommit=True) as operator:
        rows = operator.execute(
            "SELECT state, count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid() GROUP BY state"
        )
        return dict(rows.fetchall())


@pytest.mark.parametrize("size", [7_900, 8_000, 8_100, 90_000])
async def test_bodies_larger_than_a_notification_arrive_live_elsewhere(
    server: Server, committed_cast: Cast, postgres_bus: str, size: int
) -> None:
    session = await in_db_thread(make_session, committed_cast)
    stream = open_stream(server, committed_cast, session, "?after=0")
    await stream.until(lambda: stream.told("caught_up"))
    for letter in ("x", "語"):
        text = letter * size
        receipt = await in_db_thread(send, committed_cast, session, text)
        await stream.until(lambda receipt=receipt: int(stream.last_id) >= receipt.seq)
        found = next(m for m in stream.events if m.id == str(receipt.seq))
        assert json.loads(found.data)["content"][0]["text"] == text
    await stream.close()


async def test_a_reader_that_pauses_gets_a_thousand_events_in_order(
    server: Server, committed_cast: Cast, postgres_bus: str
) -> None:
    session = await in_db_thread(make_session, committed_cast)
    each = await connect(**socket_arguments(server, committed_cast, max_queue=1))
    await each.send(subscribe_to(session))
    for part in range(20):
        await write_async(session.pk, *[f"{part}.{k} " + "x" * 3_000 for k in range(50)])
    await asyncio.sleep(1)
    told = await read_events(each, 1_001)
    assert told == [json.loads(text) for text in await log_of(session)]
    await each.close()


@only_uvicorn
async def test_a_reader_that_reads_nothing_costs_no_memory(
    server: Server, committed_cast: Cast, postgres_bus: str
) -> None:
    session = await in_db_thread(make_session, committed_cast)
    stuck = await asyncio.to_thread(_raw_stream, server, committed_cast, session)
    stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    before = _memory(server)
    big = "x" * 60_000
    for _ in range(40):
        await write_async(session.pk, *[big] * 25)
    await asyncio.sleep(1)
    assert _memory(server) - before < 40_000, "60 MB were written to a reader that takes none"
    stuck.close()


def _memory(server: Server) -> int:
    """Resident kilobytes."""
    with open(f"/proc/{server.process.pid}/status") as status:
        return int(next(line for line in status if line.startswith("VmRSS")).split()[1])


# ── Around it ──


async def test_health_tells_what_is_wrong(server: Server, committed_cast: Cast) -> None:
    async with httpx.AsyncClient() as client:
        assert (await client.get(f"{server.url}/healthz")).json() == {"status": "ok"}
        ready = await client.get(f"{server.url}/readyz")
        assert (ready.status_code, ready.json()["problems"]) == (200, {})
        session = await in_db_thread(make_session, committed_cast)
        await in_db_thread(send, committed_cast, session)
        await in_db_thread(_wait_for_ever, session.pk)
        ready = await client.get(f"{server.url}/readyz")
        assert (ready.status_code, list(ready.json()["problems"])) == (503, ["queue"])
        metrics = (await client.get(f"{server.url}/metrics")).text
        assert 'sederunt_turns{status="queued"} 1.0' in metrics
        assert "sederunt_queue_age_seconds" in metrics
        assert "sederunt_events_appended_total" in metrics
        assert "sederunt_stale_writes_refused_total" in metrics
        through_a_proxy = {"x-forwarded-for": "203.0.113.9"}
        answer = await client.get(f"{server.url}/metrics", headers=through_a_proxy)
        assert answer.status_code == 404


def _wait_for_ever(session_id: Any) -> None:
    from datetime import timedelta

    from core.clock import now
    from sessions_app.models import Session

    Session.objects.filter(pk=session_id).update(ready_at=now() - timedelta(hours=1))


@pytest.mark.parametrize("kind", ["uvicorn", "daphne"])
async def test_a_stopping_server_ends_streams_and_sockets_and_leaves(
    committed_cast: Cast, postgres_bus: str, kind: str
) -> None:
    session = await in_db_thread(make_session, committed_cast)
    server = Server(kind, direct_url())
    await asyncio.to_thread(server.start)
    stream = open_stream(server, committed_cast, session, "?after=0")
    await stream.until(lambda: stream.told("caught_up"))
    each = await connect(**socket_arguments(server, committed_cast))
    await each.send(subscribe_to(session))
    await read_events(each, 1)
    seconds = await asyncio.to_thread(server.stop)
    assert seconds < 3, server.log()
    await stream.until(lambda: stream.has_ended, seconds=1)
    await stream.close()
    assert stream.status == 200
    await each.wait_closed()
    if kind == "daphne":  # it allows no code below 3000, and its own shutdown logs a KeyError
        assert each.close_code == 4503
    else:
        assert each.close_code == 1012
        assert "Traceback" not in server.log(), server.log()
