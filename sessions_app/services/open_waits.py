"""Waits as they open and close by themselves. Who answers one is `services.waits`.

Each function runs in the transaction of the event that it belongs to, with the session held, so a
wait can be answered from the moment in which its event can be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from core.clock import now
from core.ids import Prefix, encode_id, parse_event_id
from sessions_app import eventlog
from sessions_app.domain.events import Draft
from sessions_app.domain.turns import TurnCommand, next_status
from sessions_app.domain.vocabulary import TurnStatus, WaitKind, WaitStatus
from sessions_app.eventlog.announce import announce_waits
from sessions_app.models import Session, Turn, Wait
from sessions_app.models.wait import ASKS_PEOPLE


def asks(draft: Draft) -> bool:
    """Whether somebody has to decide once this event is in the log."""
    if draft.type == "agent.tool_use":
        return bool(draft.payload["evaluated_permission"] == "ask")
    return draft.type == "agent.question"


def open_waits(session: Session, *, turn_id: UUID, written: Iterable[tuple[int, Draft]]) -> None:
    """The rows of those (seq, draft) that ask."""
    rows = []
    for seq, draft in written:
        if asks(draft):
            wait = Wait(session_id=session.pk, turn_id=turn_id, event_seq=seq)
            rows.append(_filled(wait, draft.payload))
    Wait.objects.bulk_create(rows)
    if rows:
        announce_waits(session=session)


def _filled(wait: Wait, payload: Mapping[str, Any]) -> Wait:
    if "questions" not in payload:
        wait.kind = WaitKind.APPROVAL
        wait.tool_use_seq = wait.event_seq
        wait.tool_name = payload["name"]
        wait.request = {"call_id": payload["call_id"], "input": payload["input"]}
        return wait
    _, wait.tool_use_seq = parse_event_id(payload["tool_use_id"])
    call = eventlog.read_after(session_id=wait.session_id, after=wait.tool_use_seq - 1, limit=1)[
        0
    ].data
    expires_at = payload.get("expires_at")
    wait.kind = WaitKind.QUESTION
    wait.tool_name = call["name"]
    wait.request = {
        "call_id": call["call_id"],
        "questions": list(payload["questions"]),
        "allow_skip": payload["allow_skip"],
    }
    wait.expires_at = datetime.fromisoformat(expires_at) if expires_at else None
    return wait


def open_event_ids(turn: Turn) -> list[str]:
    """The events that ask people and are not decided, oldest first."""
    return [wait.event_id for wait in turn.waits.filter(ASKS_PEOPLE).order_by("event_seq")]


def suspend(turn: Turn) -> list[Draft]:
    """The turn waits from here on: its new status, and the events that say so. Empty where
    nothing is open. A session whose turn waits for children alone goes on running.
    """
    waits = list(turn.waits.filter(status=WaitStatus.OPEN).order_by("event_seq"))
    if not waits:
        return []
    turn.status = next_status(TurnStatus(turn.status), TurnCommand.WAIT)
    turn.save(update_fields=["status"])
    asked = [wait.event_id for wait in waits if wait.kind != WaitKind.CHILDREN]
    remaining = [UUID(child) for wait in waits for child in wait.request.get("remaining", ())]
    # Several calls may wait for the same child.
    children = [encode_id(Prefix.SESSION, child) for child in dict.fromkeys(remaining)]
    waiting = Draft("turn.waiting", {"event_ids": asked, "child_ids": children})
    return [waiting, requires_action(asked)] if asked else [waiting]


def close_open_waits(turn: Turn) -> list[Draft]:
    """Cancels what the turn waits for, because the turn ends.

    The caller holds the session, and appends the drafts before its own. The results of the calls
    that waited are in `closing.closing_drafts`, which calls this.
    """
    waits = list(turn.waits.filter(status=WaitStatus.OPEN).order_by("event_seq"))
    turn.waits.filter(pk__in=[wait.pk for wait in waits]).update(
        status=WaitStatus.CANCELLED, decided_at=now()
    )
    if any(wait.kind != WaitKind.CHILDREN for wait in waits):
        announce_waits(session=turn.session)
    return [
        replace(closed(wait, WaitStatus.CANCELLED), turn_id=turn.pk)
        for wait in waits
        if wait.kind == WaitKind.QUESTION
    ]


def closed(wait: Wait, outcome: str) -> Draft:
    payload = {"question_id": wait.event_id, "tool_use_id": wait.tool_use_id}
    return Draft("agent.question_closed", {**payload, "outcome": str(outcome)})


def result(wait: Wait, outcome: str, text: str) -> Draft:
    """What the model is told of the call that waited."""
    return Draft(
        "agent.tool_result",
        {
            "tool_use_id": wait.tool_use_id,
            "call_id": wait.request["call_id"],
            "name": wait.tool_name,
            "content": [{"type": "text", "text": text}],
            "is_error": outcome != "ok",
            "outcome": outcome,
        },
    )


def requires_action(event_ids: Sequence[str]) -> Draft:
    reason = {"type": "requires_action", "event_ids": list(event_ids)}
    return Draft("session.status_idle", {"stop_reason": reason})
