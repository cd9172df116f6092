"""The sidebar of a workspace over SSE, as each viewer may see it."""

from __future__ import annotations

import json
import time
from typing import Any

import httpx

from core.db import in_db_thread
from orgs.services.keys import revoke_api_key
from sessions_app.domain.vocabulary import Visibility
from sessions_app.services.archiving import archive_session
from sessions_app.services.folders import create_folder, move_session
from sessions_app.services.visibility import set_visibility
from tests.factories import Cast, make_session, send
from tests.services.test_children import allow_private
from tests.streaming.servers import Server, Stream, key_of


def url_of(server: Server, cast: Cast, query: str = "") -> str:
    return f"{server.url}/v1/workspaces/{cast.workspace.public_id}/stream{query}"


def told(stream: Stream, event: str) -> list[dict[str, Any]]:
    return [json.loads(message.data) for message in stream.told(event)]


def rows(stream: Stream) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for frame in told(stream, "sidebar") for row in frame["rows"]}


async def test_changes_are_told_and_what_is_new_once_as_created(
    server: Server, committed_cast: Cast, postgres_bus: str
) -> None:
    cast = committed_cast
    member = await in_db_thread(cast.access, "member")
    old = await in_db_thread(make_session, cast)
    stream = Stream(url_of(server, cast), key_of(cast)).start()
    await stream.until(lambda: stream.told("ready"), seconds=30)
    new = await in_db_thread(lambda: make_session(cast, title="Tide tables"))
    await stream.until(lambda: new.public_id in rows(stream), seconds=30)
    await in_db_thread(send, cast, old)
    await in_db_thread(send, cast, new)
    await stream.until(lambda: rows(stream)[new.public_id]["message_count"], seconds=30)
    await stream.until(lambda: old.public_id in rows(stream), seconds=30)
    created = told(stream, "session.created")
    assert [frame["session"]["id"] for frame in created] == [new.public_id]
    assert not any("html" in row for row in rows(stream).values())

    folder = await in_db_thread(
        lambda: create_folder(access=member, workspace_id=cast.workspace.pk, name="Tides")
    )
    await stream.until(lambda: stream.told("resync"), seconds=30)
    await in_db_thread(lambda: move_session(access=member, session_id=new.pk, folder_id=folder.pk))
    await stream.until(
        lambda: rows(stream)[new.public_id]["folder_id"] == folder.public_id, seconds=30
    )
    await in_db_thread(lambda: archive_session(access=member, session_id=old.pk, stop=True))
    await stream.until(
        lambda: any(old.public_id in f["removed"] for f in told(stream, "sidebar")), seconds=30
    )
    cursor = stream.last_id
    await stream.close()
    for query, header in ((f"?cursor={cursor}", {}), ("", {"Last-Event-ID": cursor})):
        back = Stream(url_of(server, cast, query), {**key_of(cast), **header}).start()
        await back.until(lambda back=back: back.told("resync"), seconds=30)
        assert [message.event for message in back.messages][:2] == ["ready", "resync"]
        await back.close()


async def test_what_one_keeps_is_told_to_nobody_else_and_a_dead_key_hears_no_more(
    server: Server, committed_cast: Cast, postgres_bus: str
) -> None:
    cast = committed_cast
    await in_db_thread(allow_private, cast)
    hidden = await in_db_thread(
        lambda: make_session(cast, visibility=Visibility.PRIVATE, title="Mine")
    )
    shared = await in_db_thread(make_session, cast)
    stream = Stream(url_of(server, cast), key_of(cast)).start()
    await stream.until(lambda: stream.told("ready"), seconds=30)
    await in_db_thread(send, cast, hidden)
    await in_db_thread(send, cast, shared)
    await stream.until(lambda: shared.public_id in rows(stream), seconds=30)
    member = await in_db_thread(cast.access, "member")
    await in_db_thread(lambda: archive_session(access=member, session_id=shared.pk, stop=True))
    await stream.until(
        lambda: any(shared.public_id in f["removed"] for f in told(stream, "sidebar")), seconds=30
    )
    assert hidden.public_id not in json.dumps([m.data for m in stream.messages])
    await in_db_thread(
        lambda: set_visibility(access=member, session_id=hidden.pk, visibility=Visibility.WORKSPACE)
    )
    await stream.until(lambda: hidden.public_id in rows(stream), seconds=30)
    began = time.monotonic()
    await in_db_thread(lambda: revoke_api_key(key=cast.workspace_key.row))
    await stream.until(lambda: stream.told("error") and stream.has_ended, seconds=30)
    assert time.monotonic() - began < 2
    assert told(stream, "error")[0]["error"]["code"] == "unauthenticated"


async def test_what_can_be_refused_is_refused_before_it_begins(
    server: Server, committed_cast: Cast
) -> None:
    cast = committed_cast
    key = key_of(cast)
    async with httpx.AsyncClient(headers=key) as client:
        for query, code in {
            "?cursor=abc": "invalid_cursor",
            "?cursor=%00": "invalid_cursor",
            "?cursor=a&cursor=b": "repeated_parameter",
            "?after=1": "unknown_parameter",
        }.items():
            answer = await client.get(url_of(server, cast, query))
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)
        other = url_of(server, cast).replace(
            cast.workspace.public_id, cast.other_workspace.public_id
        )
        never = url_of(server, cast).replace(cast.workspace.public_id, "wrk_" + "0" * 32)
        bodies = []
        for url in (other, never):
            answer = await client.get(url)
            assert answer.status_code == 404
            body = answer.json()
            body.pop("request_id", None)
            bodies.append(body)
        assert bodies[0] == bodies[1]
        assert (await client.post(url_of(server, cast))).status_code == 405
    async with httpx.AsyncClient() as client:
        assert (await client.get(url_of(server, cast))).status_code == 401
