"""A session's log as Server-Sent Events.

What can be refused is refused before the stream begins, with the API's error body. The view holds
no thread and no database connection while it streams.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from uuid import UUID

import orjson
from django.db import Error as DatabaseError
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt
from rest_framework.exceptions import MethodNotAllowed

from core.api.errors import error_response, problem_of
from core.api.request_id import request_id_of
from core.db import in_db_thread
from core.errors import (
    Conflict,
    DomainError,
    InvalidInput,
    NotFound,
    Unauthenticated,
)
from core.ids import InvalidId, Prefix, decode_id
from sessions_app.streaming import outbox
from sessions_app.streaming.follow import follow
from sessions_app.streaming.followers import Viewer
from sessions_app.streaming.frames import CaughtUp, Closed, Ended, Events, Frame, Heartbeat, Ready
from sessions_app.streaming.handoff import stream_response
from sessions_app.streaming.hub import current_hub
from sessions_app.streaming.metrics import streams_open
from sessions_app.streaming.positions import Start, find_start, parse_position, parse_types
from sessions_app.streaming.viewers import open_viewer

HEARTBEAT = b": hb\n\n"
# A proxy that buffers or compresses would hold every event back until its buffer is full.
HEADERS = {"Cache-Control": "no-cache, no-store, no-transform", "X-Accel-Buffering": "no"}

# What the official client may add: deltas are always sent, and there is no beta here.
IGNORED = ("beta", "event_deltas[]", "event_deltas")

ENDINGS: Mapping[Ended, DomainError] = {
    Ended.GONE: NotFound(),
    Ended.REVOKED: Unauthenticated("unauthenticated", "This login or key is no longer valid."),
    Ended.CURSOR_AHEAD: Conflict(
        "cursor_ahead", "The log is shorter than what you have read; read the session again."
    ),
}


@dataclass(frozen=True, slots=True)
class Wish:
    session_id: UUID
    position: int | None
    types: frozenset[str] | None
    param: str  # where the position was named


@csrf_exempt  # nothing but GET is answered, and the refusal is the API's own
async def session_stream_view(request: HttpRequest, session_id: str) -> HttpResponseBase:
    """GET /v1/sessions/{id}/events/stream"""
    if request.method != "GET":
        return error_response(MethodNotAllowed(request.method or ""), request)
    try:
        wish = _read_wish(request, session_id)
        viewer, start = await in_db_thread(_open, request, wish)
    except (DomainError, DatabaseError) as error:
        return error_response(error, request)
    return stream_response(
        request,
        _stream(viewer, start, wish, request_id_of(request)),
        content_type="text/event-stream",
        headers=HEADERS,
    )


def _read_wish(request: HttpRequest, session_id: str) -> Wish:
    """The header beats the query: it is where a reconnecting browser says how far it is."""
    unknown = sorted(request.GET.keys() - {"after", "types[]", "types", *IGNORED})
    if unknown:
        raise InvalidInput("unknown_parameter", "There is no such parameter.", param=unknown[0])
    position, param = None, "after"
    if (header := request.headers.get("last-event-id")) is not None:
        param = "Last-Event-ID"
        position = parse_position(header, param=param)
    elif len(values := request.GET.getlist("after")) > 1:
        raise InvalidInput("invalid_position", "Name `after` once.", param=param)
    elif values:
        position = parse_position(values[0], param=param)
    types = [*request.GET.getlist("types[]"), *request.GET.getlist("types")]
    try:
        decoded = decode_id(Prefix.SESSION, session_id)
    except InvalidId:
        raise NotFound from None
    return Wish(decoded, position, parse_types(types, param="types[]"), param)


def _open(request: HttpRequest, wish: Wish) -> tuple[Viewer, Start]:
    viewer = open_viewer(request)
    start = find_start(
        access=viewer.access,
        session_id=wish.session_id,
        position=wish.position,
        param=wish.param,
    )
    return viewer, start


async def _stream(
    viewer: Viewer, start: Start, wish: Wish, request_id: str
) -> AsyncGenerator[bytes]:
    with streams_open.track_inprogress():
        async with current_hub().viewing(viewer):
            frames = follow(
                viewer=viewer, session_id=wish.session_id, start=start, types=wish.types
            )
            async with aclosing(frames):
                # From the first second on, so that a proxy sees that the stream lives.
                yield HEARTBEAT
                async for frame in frames:
                    yield _encode(frame, wish.session_id, request_id)


def _encode(frame: Frame, session_id: UUID, request_id: str) -> bytes:
    """Only durable events carry an `id:`, so that nothing else moves a client's position."""
    match frame:
        case Events(events=events):
            return b"".join(event.sse for event in events)
        case Ready():
            return _message("ready", outbox.ready(frame))
        case CaughtUp():
            return _message("caught_up", outbox.caught_up(session_id, frame))
        case Closed(reason=Ended.DELETED):
            return _message("session.deleted", outbox.session_deleted(session_id))
        case Closed(reason=Ended.RESTART):
            return b": restart\n\n"
        case Closed(reason=reason):
            body = problem_of(ENDINGS[reason]).body(request_id)
            return _message("error", orjson.dumps(body).decode())
        case Heartbeat():
            return HEARTBEAT


def _message(event: str, data: str) -> bytes:
    return f"event: {event}\ndata: {data}\n\n".encode()
