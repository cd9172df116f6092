"""Folding a session's log from 1 must give what its rows show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from core.ids import event_id
from sessions_app import eventlog
from sessions_app.domain.events import DELTA_TYPES, EVENT_TYPES
from sessions_app.domain.projection import project
from sessions_app.domain.vocabulary import TERMINAL_TURN, TurnStatus, WaitStatus
from sessions_app.eventlog import StoredEvent
from sessions_app.models import Session

PAGE = 1_000
COMPARED_COLUMNS = ("status", "stop_reason", "title", "metadata", "preview_text")
TURN_STATUS_AFTER = {
    "turn.queued": TurnStatus.QUEUED,
    "turn.started": TurnStatus.RUNNING,
    "attempt.started": TurnStatus.RUNNING,
    "turn.waiting": TurnStatus.WAITING,
    "turn.recovering": TurnStatus.RECOVERING,
    "turn.completed": TurnStatus.COMPLETED,
    "turn.failed": TurnStatus.FAILED,
    "turn.cancelled": TurnStatus.CANCELLED,
    "turn.superseded": TurnStatus.SUPERSEDED,
    "turn.withdrawn": TurnStatus.WITHDRAWN,
}
TERMINAL_EVENTS = frozenset(
    name for name, status in TURN_STATUS_AFTER.items() if status in TERMINAL_TURN
)


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
            *_turns(session, events),
            *_waits(session, events),
        ]


def _whole_log(session_id: UUID) -> Iterator[StoredEvent]:
    after = 0
    while page := eventlog.read_after(session_id=session_id, after=after, limit=PAGE):
        yield from page
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
    problems += [
        f"{column} disagrees with the log"
        for column in ("archived_at", "paused_at")
        if (getattr(session, column) is not None) != folded.times.get(column, False)
    ]
    return problems


def _unset(column: str) -> Any:
    return "" if column == "preview_text" else None


def _turns(session: Session, events: list[StoredEvent]) -> list[str]:
    folded: dict[UUID, TurnStatus] = {}
    endings: dict[UUID, int] = {}
    for event in events:
        if event.turn_id is None or event.type not in TURN_STATUS_AFTER:
            continue
        folded[event.turn_id] = TURN_STATUS_AFTER[event.type]
        endings[event.turn_id] = endings.get(event.turn_id, 0) + (event.type in TERMINAL_EVENTS)
    rows = dict(session.turns.values_list("pk", "status"))
    problems = [
        f"turn {turn_id} is {status}, the log says {folded.get(turn_id)}"
        for turn_id, status in rows.items()
        if folded.get(turn_id) != status
    ]
    problems += [f"turn {turn_id} has no row" for turn_id in folded.keys() - rows.keys()]
    twice = [turn_id for turn_id, count in endings.items() if count > 1]
    return problems + [f"turn {turn_id} ended more than once" for turn_id in twice]


def _waits(session: Session, events: list[StoredEvent]) -> list[str]:
    """What asks and was not decided is what the rows say is open."""
    asked: dict[str, int] = {}  # tool_use_id → seq of the event that asks
    for event in events:
        if event.type == "agent.tool_use" and event.data["evaluated_permission"] == "ask":
            asked[event_id(session.pk, event.seq)] = event.seq
        elif event.type == "agent.question":
            asked[event.data["tool_use_id"]] = event.seq
        elif event.type in {"user.tool_confirmation", "agent.tool_result"}:
            asked.pop(event.data["tool_use_id"], None)
    rows = set(session.waits.filter(status=WaitStatus.OPEN).values_list("event_seq", flat=True))
    wrong = sorted(rows ^ set(asked.values()))
    return [f"the wait of event {seq} is open in the row or the log alone" for seq in wrong]
