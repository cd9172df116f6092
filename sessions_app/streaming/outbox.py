"""What a socket says: the frames other than events, as JSON texts."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import orjson

from core.errors import DomainError
from core.ids import Prefix, encode_id
from sessions_app.streaming.frames import CaughtUp, Ended, LogEvent, Ready
from sessions_app.streaming.sidebar import Rows

# What a subscription that ended tells its client, where the socket itself stays open.
ENDINGS = {
    Ended.GONE: ("not_found", "There is nothing here that you may see."),
    Ended.DELETED: ("session_deleted", "This session was deleted."),
    Ended.CURSOR_AHEAD: (
        "cursor_ahead",
        "The log is shorter than what you have read; read the session again.",
    ),
}


def encode(type_: str, **fields: Any) -> str:
    return orjson.dumps({"type": type_, **fields}, default=str).decode()


def session_ref(session_id: UUID) -> str:
    return encode_id(Prefix.SESSION, session_id)


def workspace_ref(workspace_id: UUID) -> str:
    return encode_id(Prefix.WORKSPACE, workspace_id)


def ready(frame: Ready) -> str:
    return encode(
        "ready",
        session=session_ref(frame.session_id),
        after=frame.after,
        head=frame.head,
        filtered=frame.filtered,
    )


def draft(session_id: UUID, revision: int) -> str:
    """The reader's own unsent text in a session is at this revision; it is read over HTTP."""
    return encode("draft", session=session_ref(session_id), revision=revision)


def caught_up(session_id: UUID, frame: CaughtUp) -> str:
    return encode("caught_up", session=session_ref(session_id), seq=frame.seq)


def event_with_html(session_id: UUID, event: LogEvent, html: Any) -> str:
    """The shared frame, and what this viewer's page shows for it."""
    return f'{event.socket(session_id)[:-1]},"html":{orjson.dumps(html).decode()}}}'


def error(problem: DomainError, **about: str) -> str:
    """`about` names the session or workspace that the error concerns."""
    return encode(
        "error",
        code=problem.code,
        message=problem.message,
        param=problem.param,
        details=dict(problem.details),
        **about,
    )


def ended(session_id: UUID, reason: Ended) -> str:
    code, message = ENDINGS[reason]
    return encode(
        "error",
        code=code,
        message=message,
        param=None,
        details={},
        session=session_ref(session_id),
    )


def session_deleted(session_id: UUID) -> str:
    return encode("session.deleted", session=session_ref(session_id))


def sidebar(workspace_id: UUID, rows: Rows) -> str:
    return encode(
        "sidebar", workspace=workspace_ref(workspace_id), rows=rows.rows, removed=rows.removed
    )


def resync(workspace_id: UUID) -> str:
    return encode("resync", workspace=workspace_ref(workspace_id))
