"""Folding a session's log from 1 must give what its rows show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from core.ids import Prefix, encode_id
from sessions_app import eventlog
from sessions_app.domain.events import DELTA_TYPES, EVENT_TYPES
from sessions_app.domain.projection import project
from sessions_app.eventlog import StoredEvent
from sessions_app.models import Session
from sessions_app.services.turn_verification import turn_problems, wait_problems
from sessions_app.wire import end_user_json

PAGE = 1_000
COMPARED_COLUMNS = ("status", "stop_reason", "title", "metadata", "preview_text", "visibility")


def verify_session(*, session_id: UUID) -> list[str]:
    """Sentences, one per disagreement; empty where log and rows tell the same story.

    Reads in one snapshot, so that a working session can be looked at.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            if not connection.in_atomic_block or len(connection.savepoint_ids) == 0:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        session = Session.objects.get(pk=session_id)
        events = list(_whole_log(session_id))
        return [
            *_numbering(session, events),
            *_columns(session, events),
            *_frozen(session, events),
            *turn_problems(session, events),
            *wait_problems(session, events),
        ]


def _whole_log(session_id: UUID) -> Iterator[StoredEvent]:
    after = 0
    while page := eventlog.read_after(session_id=session_id, after=after, limit=PAGE):
        yield from page
        if len(page) < PAGE:
            return
        after = page[-1].seq


def _numbering(session: Session, events: list[StoredEvent]) -> list[str]:
    seqs = [event.seq for event in events]
    problems = []
    if seqs != list(range(1, len(seqs) + 1)):
        problems.append("the seqs are not contiguous from 1")
    if session.head_seq != len(seqs):
        problems.append(f"head_seq is {session.head_seq}, the log has {len(seqs)} events")
    unknown = {event.type for event in events} - EVENT_TYPES.keys()
    return problems + [f"the type {name} is not registered" for name in sorted(unknown)]


def _columns(session: Session, events: list[StoredEvent]) -> list[str]:
    facts = [(e.type, e.data) for e in events if e.type not in DELTA_TYPES]
    folded = project(facts)
    problems = [
        f"{column} is {getattr(session, column)!r}, the log says {folded.columns.get(column)!r}"
        for column in COMPARED_COLUMNS
        if getattr(session, column) != folded.columns.get(column, _unset(column))
    ]
    if session.message_count != folded.messages:
        problems.append(f"message_count is {session.message_count}, not {folded.messages}")
    newest = max((event.seq for event in events if event.type == "agent.message"), default=0)
    if session.agent_message_seq != newest:
        problems.append(f"agent_message_seq is {session.agent_message_seq}, not {newest}")
    problems += [
        f"{column} disagrees with the log"
        for column in ("archived_at", "paused_at")
        if (getattr(session, column) is not None) != folded.times.get(column, False)
    ]
    return problems


def _unset(column: str) -> Any:
    return "" if column == "preview_text" else None


def _frozen(session: Session, events: list[StoredEvent]) -> list[str]:
    """What was settled when the session was made. Logs of older versions tell less of it."""
    if not events or events[0].type != "session.created":
        return ["the log does not begin with session.created"]
    told = events[0].data
    parent = session.parent_id
    shown = {
        "workspace_id": encode_id(Prefix.WORKSPACE, session.workspace_id),
        "parent_id": encode_id(Prefix.SESSION, parent) if parent else None,
        "origin": session.origin,
        "agent_access": session.agent_access,
        "memory_scope": session.memory_scope,
        "end_user": end_user_json(session),
    }
    if session.origin_type != told["origin"]["type"]:
        shown["origin_type"] = session.origin_type
    maker = session.maker_id or session.maker_key_id
    by_agent = (told.get("author") or {}).get("type") == "agent"
    if maker is not None and not by_agent:  # empty once that person or key was erased
        shown["author"] = encode_id(Prefix.USER if session.maker_id else Prefix.KEY, maker)
        told["author"] = (told.get("author") or {}).get("id", shown["author"])
    told.setdefault("end_user", shown["end_user"])
    return [
        f"{name} is {value!r}, the log says {told.get(name)!r}"
        for name, value in shown.items()
        if value != told.get(name)
    ]
