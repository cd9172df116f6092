from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import psycopg
import pytest
from django.db import connection

from core.db import in_db_thread
from orgs.access import Access
from orgs.services.epochs import bump_access_epoch
from sessions_app import eventlog
from sessions_app.streaming import followers
from sessions_app.streaming import hub as hub_module
from sessions_app.streaming.followers import Track
from sessions_app.streaming.frames import CaughtUp
from sessions_app.streaming.hub import Hub
from tests.factories import Cast, make_session
from tests.streaming.helpers import (
    Reader,
    open_follow,
    until,
    viewer_of,
    whole_log,
    write,
    write_async,
)


class Counted:
    """Counts the calls of a reading function, and goes on to it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        self.calls: list[dict[str, Any]] = []
        self._real = getattr(eventlog, name)
        monkeypatch.setattr(eventlog, name, self)

    def __call__(self, **kwargs: Any) -> Any:
        self.calls.append(kwargs)
        return self._real(**kwargs)


async def test_two_hundred_followers_of_a_session_cost_one_read_and_one_encoding(
    committed_cast: Cast, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await in_db_thread(make_session, committed_cast)
    access = await in_db_thread(committed_cast.access, "member")
    readers = [Reader(await open_follow(viewer_of(access), session.pk)) for _ in range(200)]
    await until(lambda: all(reader.told(CaughtUp) for reader in readers))
    await asyncio.sleep(1.2)
    shared = Counted(monkeypatch, "read_after_each")
    own = Counted(monkeypatch, "read_after")
    head = await write_async(session.pk, "news")
    await until(lambda: all(reader.seqs[-1:] == [head] for reader in readers))
    reads = [call for call in shared.calls if session.pk in call["positions"]]
    assert len(reads) == 1
    assert own.calls == []
    frames = {id(reader.frames[-1].events[0].sse) for reader in readers}
    assert len(frames) == 1
    for reader in readers:
        await reader.close()


async def test_followers_who_come_back_together_share_their_pages(
    committed_cast: Cast, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await in_db_thread(make_session, committed_cast)
    await write_async(session.pk, *map(str, range(600)))
    access = await in_db_thread(committed_cast.access, "member")
    pages = Counted(monkeypatch, "read_after")
    frames = [await open_follow(viewer_of(access), session.pk, 0) for _ in range(50)]
    readers = [Reader(frame) for frame in frames]
    await until(lambda: all(reader.told(CaughtUp) for reader in readers))
    assert len(pages.calls) < 15
    assert all(reader.texts == readers[0].texts for reader in readers)
    for reader in readers:
        await reader.close()


async def test_many_followed_sessions_are_read_in_one_query(
    committed_cast: Cast, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = [await in_db_thread(make_session, committed_cast) for _ in range(30)]
    access = await in_db_thread(committed_cast.access, "member")
    viewer = viewer_of(access)
    readers = [Reader(await open_follow(viewer, session.pk)) for session in sessions]
    await until(lambda: all(reader.told(CaughtUp) for reader in readers))
    await asyncio.sleep(1.2)
    shared = Counted(monkeypatch, "read_after_each")
    await in_db_thread(_write_all, [session.pk for session in sessions])
    await until(lambda: all(reader.seqs for reader in readers))
    assert len(shared.calls) <= 4
    for reader in readers:
        await reader.close()


def _write_all(session_ids: list[Any]) -> None:
    from django.db import transaction

    with transaction.atomic():
        for session_id in session_ids:
            write(session_id, "together")


async def test_a_slow_reader_gets_everything_and_costs_no_queue(
    committed_cast: Cast, hub: Hub
) -> None:
    session = await in_db_thread(make_session, committed_cast)
    access = await in_db_thread(committed_cast.access, "member")
    frames = await open_follow(viewer_of(access), session.pk, 0)
    quick = Reader(await open_follow(viewer_of(access), session.pk, 0))
    first = await anext(frames)
    second = await anext(frames)
    for part in range(20):
        await write_async(session.pk, *[f"{part}.{k} " + "x" * 2_000 for k in range(100)])
    log = await in_db_thread(whole_log, session.pk)
    await quick.until(lambda: len(quick.texts) == len(log))
    track = hub._tracks[session.pk]
    assert len(track._events) <= followers.BUFFER_MAX_EVENTS
    assert track._bytes <= followers.BUFFER_MAX_BYTES
    slow = Reader(frames)
    await slow.until(lambda: len(slow.texts) + len(second.events) == len(log))
    told = [event.event.json for event in second.events] + slow.texts
    assert first.after == 0
    assert told == [event.json for event in log]
    await slow.close()
    await quick.close()


async def test_a_change_of_grants_is_looked_up_once_for_all_streams_of_a_key(
    committed_cast: Cast, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await in_db_thread(make_session, committed_cast)
    access = await in_db_thread(committed_cast.access, "workspace_key")
    viewers = [viewer_of(access) for _ in range(100)]
    async with AsyncExitStack() as stack:
        for viewer in viewers:
            await stack.enter_async_context(hub.viewing(viewer))
        readers = [Reader(await open_follow(viewer, session.pk, 0)) for viewer in viewers]
        await until(lambda: all(reader.told(CaughtUp) for reader in readers))
        asked: list[Access] = []
        monkeypatch.setattr(hub_module, "may_read", lambda **kwargs: asked.append(kwargs["access"]))
        await in_db_thread(bump_access_epoch, organization_id=committed_cast.organization.pk)
        await until(lambda: all(viewer.generation == 1 for viewer in viewers), 2)
        head = await write_async(session.pk, "after")
        await until(lambda: all(reader.seqs[-1] == head for reader in readers))
        assert len(asked) == 1
        for reader in readers:
            await reader.close()


async def test_nothing_is_kept_of_a_session_that_nobody_follows(
    committed_cast: Cast, hub: Hub
) -> None:
    session = await in_db_thread(make_session, committed_cast)
    access = await in_db_thread(committed_cast.access, "member")
    viewer = viewer_of(access)
    reader = Reader(await open_follow(viewer, session.pk, 0))
    await reader.until(lambda: reader.told(CaughtUp))
    await reader.close()
    assert hub._tracks == {}
    assert viewer.waiters == set()


async def test_waiting_followers_hold_no_database_connection(
    committed_cast: Cast, hub: Hub, postgres_bus: str
) -> None:
    sessions = [await in_db_thread(make_session, committed_cast) for _ in range(20)]
    access = await in_db_thread(committed_cast.access, "member")
    readers = [
        Reader(await open_follow(viewer_of(access), sessions[number % 20].pk, 0))
        for number in range(300)
    ]
    await until(lambda: all(reader.told(CaughtUp) for reader in readers), 30)
    with psycopg.connect(postgres_bus, autocommit=True) as operator:
        states = operator.execute(
            "SELECT state, count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid() GROUP BY state"
        ).fetchall()
    counts = dict(states)
    assert counts.get("idle in transaction", 0) == 0
    assert sum(counts.values()) < 30, counts
    for reader in readers:
        await reader.close()


async def test_followers_survive_the_loss_of_every_database_connection(
    committed_cast: Cast, hub: Hub, postgres_bus: str, own_backend: int
) -> None:
    session = await in_db_thread(make_session, committed_cast)
    access = await in_db_thread(committed_cast.access, "member")
    viewer = viewer_of(access)
    async with hub.viewing(viewer):
        reader = Reader(await open_follow(viewer, session.pk, 0))
        await reader.until(lambda: reader.told(CaughtUp))
        for number in range(3):
            with psycopg.connect(postgres_bus, autocommit=True) as operator:
                operator.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                    " AND pid <> %s",
                    [own_backend],
                )
            head = await _write_until_it_works(session.pk, f"after loss {number}")
            await reader.until(lambda head=head: reader.seqs[-1:] == [head], seconds=5)
    # What still lies broken in the pool is no business of the tests that follow.
    await in_db_thread(connection.close_pool)
    assert reader.texts == [event.json for event in await in_db_thread(whole_log, session.pk)]
    await reader.close()


async def _write_until_it_works(session_id: Any, text: str) -> int:
    from django.db import Error

    for _ in range(50):
        try:
            return await write_async(session_id, text)
        except Error:
            await asyncio.sleep(0.05)
    raise AssertionError("the database did not come back")


def test_a_hole_in_what_was_read_begins_the_buffer_anew() -> None:
    from uuid import uuid4

    from sessions_app.eventlog import StoredEvent

    def event(seq: int) -> StoredEvent:
        return StoredEvent(seq, "agent.message_delta", None, None, "{}", seq)

    track = Track(uuid4(), 3)
    track.extend([event(3), event(4), event(5)])
    assert [each.seq for each in track.after(3, 10)] == [4, 5]
    track.extend([event(8)])
    assert not track.covers(5)
    assert [each.seq for each in track.after(7, 10)] == [8]
