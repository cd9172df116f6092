"""The socket through real servers: what a test communicator cannot show."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from core.db import in_db_thread
from orgs.services.keys import revoke_api_key
from tests.factories import Cast, make_session, send
from tests.streaming.helpers import sign_in, until, whole_log, write_async
from tests.streaming.servers import Server, read_events, socket_arguments, subscribe_to


async def read_until(each: ClientConnection, type_: str, seconds: float = 10) -> dict[str, Any]:
    async with asyncio.timeout(seconds):
        while True:
            frame = json.loads(await each.recv())
            if frame["type"] == type_:
                return frame


async def close_code(each: ClientConnection, seconds: float = 5) -> int | None:
    async with asyncio.timeout(seconds):
        try:
            while True:
                await each.recv()
        except ConnectionClosed:
            return each.close_code


async def test_a_browser_opens_it_from_our_own_pages_alone(
    server: Server, committed_cast: Cast, postgres_bus: str
) -> None:
    cookie = {"cookie": await in_db_thread(sign_in, committed_cast.member)}
    url = f"ws://127.0.0.1:{server.port}/v1/ws"
    for origin, code in [(None, 4403), ("http://evil.example", 4403)]:
        async with connect(url, additional_headers=cookie, origin=origin, proxy=None) as each:
            assert await close_code(each) == code
    async with connect(url, additional_headers=cookie, origin=server.url, proxy=None) as each:
        await each.send('{"type":"ping"}')
        await read_until(each, "pong")
    async with connect(url, proxy=None, origin=server.url) as each:
        assert await close_code(each) == 4401
    async with connect(f"{url}/other", proxy=None) as each:
        assert await close_code(each) == 4404


async def test_a_page_gets_markup_with_every_event(
    server: Server, committed_cast: Cast, postgres_bus: str
) -> None:
    session = await in_db_thread(make_session, committed_cast)
    arguments = socket_arguments(server, committed_cast)
    async with connect(**arguments) as each:
        wish = {"type": "subscribe", "session": session.public_id, "after": 1, "as": "html"}
        workspace = committed_cast.workspace.public_id
        await each.send(json.dumps({"type": "sidebar", "workspace": workspace}))
        await read_until(each, "ready")
        await each.send(json.dumps(wish))
        await read_until(each, "caught_up")
        await in_db_thread(send, committed_cast, session, "What is a **gnomon**?")
        # The two come from different watchers, in either order.
        shown, rows = "", []
        async with asyncio.timeout(10):
            while "gnomon" not in shown or not rows:
                frame = json.loads(await each.recv())
                if frame["type"] == "event":
                    shown += json.dumps(frame["html"])
                elif frame["type"] == "sidebar":
                    rows += frame["rows"]
        assert {row["id"] for row in rows} == {session.public_id}
        assert session.public_id in rows[0]["html"]


async def test_a_revoked_key_loses_its_socket_within_two_seconds(
    server: Server, committed_cast: Cast, postgres_bus: str
) -> None:
    async with connect(**socket_arguments(server, committed_cast)) as each:
        await each.send('{"type":"ping"}')
        await read_until(each, "pong")
        await in_db_thread(revoke_api_key, key=committed_cast.workspace_key.row)
        assert await close_code(each, seconds=2) == 4401


@pytest.mark.parametrize(("size", "codes"), [(70_000, {4400}), (3_000_000, {4400, 1009, 1006})])
async def test_a_message_that_is_too_large_ends_the_socket(
    server: Server, committed_cast: Cast, postgres_bus: str, size: int, codes: set[int]
) -> None:
    async with connect(**socket_arguments(server, committed_cast)) as each:
        with suppress(ConnectionClosed):  # it may be over before all of it is sent
            await each.send("x" * size)
        assert await close_code(each) in codes


async def test_a_half_open_socket_keeps_nothing_from_the_next_one(
    server: Server, committed_cast: Cast, postgres_bus: str
) -> None:
    session = await in_db_thread(make_session, committed_cast)
    stuck = await connect(**socket_arguments(server, committed_cast, max_queue=1))
    await stuck.send(subscribe_to(session))
    stuck.transport.pause_reading()
    await write_async(session.pk, *["x" * 10_000] * 100)
    async with connect(**socket_arguments(server, committed_cast)) as each:
        await each.send(subscribe_to(session))
        told = await read_events(each, 101)
    assert told == [event.data for event in await in_db_thread(whole_log, session.pk)]
    stuck.transport.abort()
    await until(lambda: server.gauge("sederunt_sockets_open") == 0, 5)


async def test_the_same_client_resumes_after_its_socket_dropped(
    server: Server, committed_cast: Cast, postgres_bus: str
) -> None:
    session = await in_db_thread(make_session, committed_cast)
    told: list[dict[str, Any]] = []
    for part in range(4):
        each = await connect(**socket_arguments(server, committed_cast))
        await each.send(subscribe_to(session, after=told[-1]["seq"] if told else 0))
        await write_async(session.pk, *[f"{part}.{k}" for k in range(10)])
        told += await read_events(each, 5)
        each.transport.abort()
    async with connect(**socket_arguments(server, committed_cast)) as each:
        await each.send(subscribe_to(session, after=told[-1]["seq"]))
        told += await read_events(each, 41 - len(told))
    assert told == [event.data for event in await in_db_thread(whole_log, session.pk)]
