"""A workspace's sidebar as Server-Sent Events: rows that change, as this viewer may see them.

Each frame's id is an opaque cursor. Nothing is kept for those who were away: whoever comes back
with a cursor is told to read the list again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from django.conf import settings
from django.db import Error as DatabaseError
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt
from rest_framework.exceptions import MethodNotAllowed

from core.api.errors import error_response, problem_of
from core.api.paths import id_in_path
from core.api.request_id import request_id_of
from core.clock import now
from core.cursors import decode_moment, encode_moment
from core.db import in_db_thread
from core.errors import DomainError, InvalidInput, NotFound
from core.ids import Prefix, decode_id
from sessions_app.streaming.followers import Viewer
from sessions_app.streaming.frames import Ended
from sessions_app.streaming.handoff import stream_response
from sessions_app.streaming.hub import current_hub
from sessions_app.streaming.metrics import streams_open
from sessions_app.streaming.outbox import workspace_ref
from sessions_app.streaming.sidebar import (
    Lost,
    ReadAgain,
    Rows,
    Watching,
    require_workspace,
    watch_rows,
)
from sessions_app.streaming.sse import ENDINGS, HEADERS, HEARTBEAT, IGNORED
from sessions_app.streaming.viewers import open_viewer

Told = Watching | Rows | ReadAgain | Lost


@dataclass(slots=True)
class _Stream:
    """`known`: the sessions that were told, of which a new one is told once as created."""

    viewer: Viewer
    workspace_id: UUID
    comes_back: bool
    began: datetime
    request_id: str
    known: set[str]


@csrf_exempt  # nothing but GET is answered, and the refusal is the API's own
async def workspace_stream_view(request: HttpRequest, workspace_id: str) -> HttpResponseBase:
    """GET /v1/workspaces/{id}/stream"""
    if request.method != "GET":
        return error_response(MethodNotAllowed(request.method or ""), request)
    try:
        pk = id_in_path(Prefix.WORKSPACE, workspace_id)
        comes_back = _read_cursor(request, pk)
        viewer = await in_db_thread(_open, request, pk)
    except (DomainError, DatabaseError) as error:
        return error_response(error, request)
    stream = _Stream(viewer, pk, comes_back, now(), request_id_of(request), set())
    return stream_response(request, _run(stream), content_type="text/event-stream", headers=HEADERS)


def _read_cursor(request: HttpRequest, workspace_id: UUID) -> bool:
    """Whether one is named. The header beats the query, as where a session is followed."""
    unknown = sorted(request.GET.keys() - {"cursor", *IGNORED})
    if unknown:
        raise InvalidInput("unknown_parameter", "There is no such parameter.", param=unknown[0])
    values = request.GET.getlist("cursor")
    if len(values) > 1:
        raise InvalidInput("repeated_parameter", "Name `cursor` once.", param="cursor")
    cursor = request.headers.get("last-event-id") or "".join(values)
    if cursor:
        try:
            decode_moment(_query(workspace_id), cursor)
        except InvalidInput as error:
            raise InvalidInput(error.code, error.message, param="cursor") from None
    return bool(cursor)


def _open(request: HttpRequest, workspace_id: UUID) -> Viewer:
    viewer = open_viewer(request)
    require_workspace(viewer.access, workspace_id)
    return viewer


async def _run(stream: _Stream) -> AsyncGenerator[bytes]:
    hub = current_hub()
    with streams_open.track_inprogress():
        async with hub.viewing(stream.viewer):
            rows = watch_rows(viewer=stream.viewer, workspace_id=stream.workspace_id)
            async with aclosing(rows):
                yield HEARTBEAT
                async with aclosing(_beating(rows)) as told:
                    async for each in told:
                        yield HEARTBEAT if each is None else _encode(each, stream)
                        if isinstance(each, Lost):
                            return
            if stream.viewer.is_revoked:
                yield _ended(Ended.REVOKED, stream)
            elif hub.is_draining:
                yield b": restart\n\n"


async def _beating(rows: AsyncGenerator[Told]) -> AsyncGenerator[Told | None]:
    """What is told, and None whenever nothing was for a while."""
    while True:
        following = asyncio.ensure_future(anext(rows, None))
        try:
            while not following.done():
                await asyncio.wait({following}, timeout=settings.STREAM_HEARTBEAT_SECONDS)
                if not following.done():
                    yield None
        finally:
            if not following.done():
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)
        told = following.result()
        if told is None:
            return
        yield told


def _encode(told: Told, stream: _Stream) -> bytes:
    match told:
        case Watching():
            ready = _message("ready", {}, stream)
            return ready + (_message("resync", {}, stream) if stream.comes_back else b"")
        case ReadAgain():
            return _message("resync", {}, stream)
        case Rows():
            rows = [{k: v for k, v in row.items() if k != "html"} for row in told.rows]
            created = [row for row in rows if _is_new(row["id"], stream)]
            stream.known.update(row["id"] for row in rows)
            body = {"rows": rows, "removed": told.removed}
            events = [_message("session.created", {"session": row}, stream) for row in created]
            return b"".join([*events, _message("sidebar", body, stream)])
        case Lost():
            return _ended(Ended.GONE, stream)


def _is_new(session_id: str, stream: _Stream) -> bool:
    """Made since the stream began, and not told yet. An id begins with when it was made."""
    made = decode_id(Prefix.SESSION, session_id).int >> 80
    return made >= int(stream.began.timestamp() * 1_000) and session_id not in stream.known


def _message(event: str, body: dict[str, Any], stream: _Stream) -> bytes:
    cursor = encode_moment(_query(stream.workspace_id), now(), stream.workspace_id)
    data = orjson.dumps({"workspace": workspace_ref(stream.workspace_id), **body}, default=str)
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (cursor.encode(), event.encode(), data)


def _ended(reason: Ended, stream: _Stream) -> bytes:
    problem = ENDINGS.get(reason) or NotFound()
    body = orjson.dumps(problem_of(problem).body(stream.request_id))
    return b"event: error\ndata: %s\n\n" % body


def _query(workspace_id: UUID) -> str:
    return f"workspace_stream:{workspace_id.hex}"
