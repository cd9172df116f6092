from __future__ import annotations

import asyncio
import random
import time
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from core.clock import now
from core.db import in_db_thread
from core.errors import InvalidInput, NotFound
from orgs.models import ApiKey
from orgs.services.keys import revoke_api_key
from sessions_app import eventlog
from sessions_app.services.archiving import delete_session
from sessions_app.streaming.frames import CaughtUp, Closed, Ended, Heartbeat, Ready
from sessions_app.streaming.hub import Hub
from sessions_app.streaming.positions import find_start, parse_position, parse_types
from tests.factories import Cast, make_session, send
from tests.streaming.conftest import Redis
from tests.streaming.helpers import (
    Reader,
    open_follow,
    until,
    viewer_of,
    whole_log,
    write,
    write_async,
)


def start_at(cast: Cast, session: Any, position: int | None = None) -> int:
    return find_start(
        access=cast.access("member"), session_id=session.pk, position=position, param="after"
    ).after


def test_without_a_position_an_idle_session_is_followed_from_its_head(cast: Cast) -> None:
    session = make_session(cast)
    head = write(session.pk, "a", "b")
    assert start_at(cast, session) == head


def test_without_a_position_a_stream_begins_at_the_oldest_unfinished_turns_prompt(
    cast: Cast,
) -> None:
    session = make_session(cast)
    first = send(cast, session, "One")
    send(cast, session, "Two")
    write(session.pk, "a")
    after = start_at(cast, session)
    assert after == first.seq - 1
    event = eventlog.read_after(session_id=session.pk, after=after, limit=1)[0]
    assert event.type == "user.message"


def test_zero_is_the_beginning_and_the_head_is_a_position(cast: Cast) -> None:
    session = make_session(cast)
    head = write(session.pk, "a")
    assert start_at(cast, session, 0) == 0
    assert start_at(cast, session, head) == head


def test_a_position_beyond_the_head_is_an_error_that_names_the_head(cast: Cast) -> None:
    session = make_session(cast)
    head = write(session.pk, "a")
    with pytest.raises(InvalidInput) as caught:
        start_at(cast, session, head + 1)
    assert caught.value.code == "cursor_ahead"
    assert caught.value.details == {"head": head}


@pytest.mark.parametrize(
    "value",
    [
        *("", " 1", "-1", "+1", "1.0", "1e3", "0x1", "٣", "99999999999999999999", "null", "evt_1"),
        *(-1, True, 1.0, 2**63, [], {}),
    ],
)
def test_a_malformed_position_is_an_error(value: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_position(value, param="Last-Event-ID")
    assert (caught.value.code, caught.value.param) == ("invalid_position", "Last-Event-ID")


def test_a_type_that_does_not_exist_is_an_error_with_its_place() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_types(["agent.message", "agent.nonsense"], param="types[]")
    assert (caught.value.code, caught.value.param) == ("unknown_event_type", "types[][1]")


def test_a_session_that_is_not_visible_has_no_start(cast: Cast) -> None:
    session = make_session(cast)
    with pytest.raises(NotFound):
        find_start(access=cast.access("outsider"), session_id=session.pk, position=0, param="after")
    with pytest.raises(NotFound):
        find_start(access=cast.access("member"), session_id=uuid4(), position=0, param="after")


async def test_a_stream_says_where_it_begins_replays_says_that_it_is_level_and_goes_on(
    committed_cast: Cast, hub: Hub
) -> None:
    session = await in_db_thread(make_session, committed_cast)
    head = await write_async(session.pk, "a", "b", "c")
    access = await in_db_thread(committed_cast.access, "member")
    reader = Reader(await open_follow(viewer_of(access), session.pk, 0))
    await reader.until(lambda: reader.told(CaughtUp))
    assert reader.frames[0] == Ready(session.pk, 0, head, filtered=False)
    assert reader.told(CaughtUp) == [CaughtUp(head)]
    assert reader.seqs == list(range(1, head + 1))
    await write_async(session.pk, "d")
    await reader.until(lambda: reader.seqs[-1] == head + 1, seconds=0.5)
    assert reader.texts == [event.json for event in await in_db_thread(whole_log, session.pk)]
    await reader.close()


async def test_live_and_replay_are_identical_under_eight_writers_with_rollbacks(
    committed_cast: Cast, hub: Hub
) -> None:
    session = await in_db_thread(make_session, committed_cast)
    access = await in_db_thread(committed_cast.access, "member")
    viewer = viewer_of(access)
    stayed = Reader(await open_follow(viewer, session.pk, 0))
    slow = Reader(await open_follow(viewer, session.pk, 0), pause=0.02)

    async def writer(number: int) -> None:
        chance = random.Random(number)
        for turn in range(40):
            texts = [f"{number}.{turn}.{k}" for k in range(chance.randint(1, 4))]
            try:
                await in_db_thread(_write_or_fail, session.pk, texts, chance.random() < 0.2)
            except ZeroDivisionError:
                continue

    writing = [asyncio.create_task(writer(number)) for number in range(8)]
    await asyncio.sleep(0.1)
    late = Reader(await open_follow(viewer, session.pk, 0))
    await asyncio.sleep(0.1)
    position = stayed.seqs[-1]
    resumed = Reader(await open_follow(viewer, session.pk, position))
    await asyncio.gather(*writing)
    log = await in_db_thread(whole_log, session.pk)
    expected = [event.json for event in log]
    assert [event.seq for event in log] == list(range(1, len(log) + 1))
    for reader in (stayed, slow, late):
        await reader.until(lambda reader=reader: len(reader.texts) >= len(expected))
        assert reader.texts == expected
    await resumed.until(lambda: resumed.seqs[-1] == log[-1].seq)
    assert resumed.texts == expected[position:]
    for reader in (stayed, slow, late, resumed):
        await reader.close()


def _write_or_fail(session_id: Any, texts: list[str], fails: bool) -> None:
    from django.db import transaction

    with transaction.atomic():
        write(session_id, *texts)
        if fails:
            raise ZeroDivisionError


async def test_a_filtered_stream_says_so_and_tells_only_those_types(
    committed_cast: Cast, hub: Hub
) -> None:
    session = await in_db_thread(make_session, committed_cast)
    await in_db_thread(send, committed_cast, session)
    await write_async(session.pk, *"abc")
    access = await in_db_thread(committed_cast.access, "viewer")
    types = {"user.message"}
    reader = Reader(await open_follow(viewer_of(access), session.pk, 0, types))
    await reader.until(lambda: reader.told(CaughtUp))
    assert reader.told(Ready)[0].filtered
    await in_db_thread(send, committed_cast, session, "Again")
    await reader.until(lambda: len(reader.seqs) == 2)
    assert all('"type": "user.message"' in text for text in reader.texts)
    await reader.close()


async def test_silence_is_filled_with_heartbeats(
    committed_cast: Cast, hub: Hub, settings: Any
) -> None:
    settings.STREAM_HEARTBEAT_SECONDS = 0.2
    session = await in_db_thread(make_session, committed_cast)
    access = await in_db_thread(committed_cast.access, "member")
    reader = Reader(await open_follow(viewer_of(access), session.pk))
    await reader.until(lambda: len(reader.told(Heartbeat)) >= 3, seconds=2)
    await reader.close()


async def test_a_revoked_key_ends_its_streams_within_two_seconds_and_nobody_elses(
    committed_cast: Cast, hub: Hub
) -> None:
    session = await in_db_thread(make_session, committed_cast)
    key = committed_cast.workspace_key
    gone = viewer_of(await in_db_thread(committed_cast.access, "workspace_key"))
    stays = viewer_of(await in_db_thread(committed_cast.access, "read_only_key"))
    async with hub.viewing(gone), hub.viewing(stays):
        reader = Reader(await open_follow(gone, session.pk, 0))
        other = Reader(await open_follow(stays, session.pk, 0))
        await reader.until(lambda: reader.told(CaughtUp))
        started = time.monotonic()
        await in_db_thread(revoke_api_key, key=key.row)
        await reader.until(lambda: reader.has_ended)
        assert time.monotonic() - started < 2
        assert reader.frames[-1] == Closed(Ended.REVOKED)
        head = await write_async(session.pk, "after")
        await other.until(lambda: other.seqs[-1] == head)
        assert head not in reader.seqs
        await other.close()


async def test_a_key_that_expires_ends_its_streams_as_soon_although_nothing_is_written(
    committed_cast: Cast, hub: Hub
) -> None:
    session = await in_db_thread(make_session, committed_cast)
    await in_db_thread(_expire_in, committed_cast.workspace_key.row, 1.5)
    viewer = viewer_of(await in_db_thread(committed_cast.access, "workspace_key"))
    async with hub.viewing(viewer):
        reader = Reader(await open_follow(viewer, session.pk, 0))
        await reader.until(lambda: reader.told(CaughtUp))
        await reader.until(lambda: reader.has_ended, seconds=3.5)
        assert reader.frames[-1] == Closed(Ended.REVOKED)


def _expire_in(key: ApiKey, seconds: float) -> None:
    key.expires_at = now() + timedelta(seconds=seconds)
    key.save(update_fields=["expires_at"])


async def test_who_leaves_the_workspace_loses_the_stream_within_two_seconds(
    committed_cast: Cast, hub: Hub
) -> None:
    session = await in_db_thread(make_session, committed_cast)
    viewer = viewer_of(await in_db_thread(committed_cast.access, "viewer"))
    async with hub.viewing(viewer):
        reader = Reader(await open_follow(viewer, session.pk, 0))
        await reader.until(lambda: reader.told(CaughtUp))
        await in_db_thread(_leave_workspace, committed_cast)
        await reader.until(lambda: reader.has_ended, seconds=2)
        assert reader.frames[-1] == Closed(Ended.GONE)


async def test_access_lost_before_the_first_read_ends_a_stream_that_stalled_at_ready(
    committed_cast: Cast, hub: Hub
) -> None:
    session = await in_db_thread(make_session, committed_cast)
    viewer = viewer_of(await in_db_thread(committed_cast.access, "viewer"))
    async with hub.viewing(viewer):
        frames = await open_follow(viewer, session.pk, 0)
        assert isinstance(await anext(frames), Ready)
        await in_db_thread(_leave_workspace, committed_cast)
        await until(lambda: viewer.generation == 1, 2)
        await write_async(session.pk, "after")
        assert [frame async for frame in frames] == [Closed(Ended.GONE)]


def _leave_workspace(cast: Cast) -> None:
    from orgs.services.epochs import bump_access_epoch

    cast.workspace.memberships.filter(user=cast.viewer).delete()
    bump_access_epoch(organization_id=cast.organization.pk)


async def test_access_is_noticed_without_any_hint(
    committed_cast: Cast, hub: Hub, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.DATABASE_DIRECT_URL = "postgresql://nobody@127.0.0.1:9/none"
    session = await in_db_thread(make_session, committed_cast)
    viewer = viewer_of(await in_db_thread(committed_cast.access, "workspace_key"))
    async with hub.viewing(viewer):
        reader = Reader(await open_follow(viewer, session.pk, 0))
        await reader.until(lambda: reader.told(CaughtUp))
        head = await write_async(session.pk, "unheard")
        await reader.until(lambda: reader.seqs[-1] == head, seconds=2)
        await in_db_thread(revoke_api_key, key=committed_cast.workspace_key.row)
        await reader.until(lambda: reader.has_ended, seconds=2)


async def test_a_bus_that_is_away_costs_time_and_no_event(
    committed_cast: Cast, hub: Hub, redis_bus: Redis
) -> None:
    session = await in_db_thread(make_session, committed_cast)
    access = await in_db_thread(committed_cast.access, "member")
    reader = Reader(await open_follow(viewer_of(access), session.pk, 0))
    await reader.until(lambda: reader.told(CaughtUp))
    await until(lambda: hub.hears_the_bus)
    redis_bus.stop()
    for number in range(3):
        head = await write_async(session.pk, f"away {number}")
        await reader.until(lambda head=head: reader.seqs[-1] == head, seconds=3)
    redis_bus.start()
    await until(lambda: hub.hears_the_bus)
    head = await write_async(session.pk, "back")
    await reader.until(lambda: reader.seqs[-1] == head, seconds=0.9)
    assert reader.texts == [event.json for event in await in_db_thread(whole_log, session.pk)]
    await reader.close()


async def test_a_deleted_session_ends_its_streams(committed_cast: Cast, hub: Hub) -> None:
    session = await in_db_thread(make_session, committed_cast)
    access = await in_db_thread(committed_cast.access, "member")
    reader = Reader(await open_follow(viewer_of(access), session.pk, 0))
    await reader.until(lambda: reader.told(CaughtUp))
    owner = await in_db_thread(committed_cast.access, "owner")
    await in_db_thread(delete_session, access=owner, session_id=session.pk)
    await reader.until(lambda: reader.has_ended, seconds=3)
    assert reader.frames[-1] == Closed(Ended.DELETED)


async def test_a_log_that_became_shorter_is_told_instead_of_skipping(
    committed_cast: Cast, hub: Hub
) -> None:
    session = await in_db_thread(make_session, committed_cast)
    head = await write_async(session.pk, *"abcdef")
    access = await in_db_thread(committed_cast.access, "member")
    reader = Reader(await open_follow(viewer_of(access), session.pk, 0))
    await reader.until(lambda: reader.told(CaughtUp))
    await in_db_thread(_restore_to, session.pk, head - 3)
    await reader.until(lambda: reader.has_ended, seconds=4)
    assert reader.frames[-1] == Closed(Ended.CURSOR_AHEAD)


def _restore_to(session_id: Any, seq: int) -> None:
    """As if the database came back from an earlier backup: behind the log's own rules."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute(
            "DELETE FROM sessions_app_event WHERE session_id = %s AND seq > %s", [session_id, seq]
        )
        cursor.execute(
            "UPDATE sessions_app_session SET head_seq = %s WHERE id = %s", [seq, session_id]
        )
        cursor.execute("SET session_replication_role = DEFAULT")


async def test_stopping_the_process_ends_every_stream_at_once(
    committed_cast: Cast, hub: Hub
) -> None:
    session = await in_db_thread(make_session, committed_cast)
    viewer = viewer_of(await in_db_thread(committed_cast.access, "member"))
    async with hub.viewing(viewer):
        reader = Reader(await open_follow(viewer, session.pk, 0))
        await reader.until(lambda: reader.told(CaughtUp))
        hub.drain()
        await reader.until(lambda: reader.has_ended, seconds=0.5)
    assert reader.frames[-1] == Closed(Ended.RESTART)
