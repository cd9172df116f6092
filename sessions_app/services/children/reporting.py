"""A child that has come to rest tells its parent, once for each time that it worked.

"At rest": no turn has started and not ended, none is queued. A child that waits for a person is
not at rest. The parent is not woken, unless a call of its turn waits for this child.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.conf import settings

from core.clock import now
from core.ids import Prefix, encode_id
from sessions_app import eventlog
from sessions_app.domain.events import Draft
from sessions_app.domain.vocabulary import SessionStatus, TurnStatus, WaitKind, WaitStatus
from sessions_app.models import Session, Turn, Wait
from sessions_app.services.children.results import told_results
from sessions_app.services.settling import settle_wait

STATUSES = {TurnStatus.COMPLETED: "completed", TurnStatus.FAILED: "failed"}


def report_rest(session: Session) -> None:
    """Call it after whatever may have ended the last turn of a session that is held.

    Of a root, of a child that still has work, and of one that has reported, it does nothing.
    """
    if session.parent_id is None or not session.has_unreported_work:
        return
    if session.turns.filter(ended_at__isnull=True).exists():
        return
    turn = _deciding_turn(session)
    parent = _held(session.parent_id)
    is_told = parent.status != SessionStatus.TERMINATED
    session.reported_turns, session.result_seq = session.turn_count, None
    if is_told:
        result = _result(session, turn)
        (session.result_seq,) = eventlog.append(session_id=parent.pk, drafts=[result])
    session.save(update_fields=["reported_turns", "result_seq"])
    if is_told:
        _release(parent, session)


def release_from_waits(session: Session) -> None:
    """Nobody waits any longer for a child that is archived with held prompts: while it is, they
    do not run. The caller holds its parent and it. Of any other session it does nothing.
    """
    if session.parent_id is None or not session.has_unreported_work:
        return
    _release(_held(session.parent_id), session)


def _held(parent_id: UUID) -> Session:
    return Session.objects.select_for_update(no_key=True).get(pk=parent_id)


def _deciding_turn(session: Session) -> Turn:
    """The last that ran since the last report; one that was withdrawn only if none did."""
    ended = session.turns.filter(number__gt=session.reported_turns).order_by("-ended_at", "-number")
    return ended.exclude(status=TurnStatus.WITHDRAWN).first() or ended[0]


def _result(session: Session, turn: Turn) -> Draft:
    status = STATUSES.get(TurnStatus(turn.status), "cancelled")
    text = _final_text(session, turn) if status == "completed" else ""
    payload: dict[str, Any] = {
        "child_id": session.public_id,
        "title": session.title,
        "child_turn_id": encode_id(Prefix.TURN, turn.pk),
        "number": turn.number,
        "status": status,
        "text": text[: settings.CHILD_RESULT_MAX_CHARACTERS],
    }
    if status == "failed":
        payload["error"] = turn.error
    if len(text) > settings.CHILD_RESULT_MAX_CHARACTERS:
        payload["truncated"] = {"characters": len(text)}
    return Draft("child.result", payload)


def _final_text(session: Session, turn: Turn) -> str:
    """Of the turn's last message; empty where it said nothing."""
    last = eventlog.find_newest_of_turn(
        session_id=session.pk,
        turn_id=turn.pk,
        since=turn.started_seq or 0,
        kind="agent.message",
    )
    if last is None:
        return ""
    blocks = last.data["content"]
    return "\n\n".join(block["text"] for block in blocks if block.get("type") == "text")


def _release(parent: Session, child: Session) -> None:
    """Lets the calls go on that waited for this child alone."""
    answered = _last_awaited(parent, child)
    if not answered:
        return
    told = [told_results(wait) for wait in answered]
    Wait.objects.filter(pk__in=[wait.pk for wait in answered]).update(
        status=WaitStatus.ANSWERED, decided_at=now()
    )
    settle_wait(parent, answered[0].turn, told)


def _last_awaited(parent: Session, child: Session) -> list[Wait]:
    """Takes the child off the lists of all open waits; those that it leaves empty."""
    waits = parent.waits.filter(kind=WaitKind.CHILDREN, status=WaitStatus.OPEN)
    ordered = waits.select_related("turn").order_by("event_seq")
    return [wait for wait in ordered if _is_last(wait, child)]


def _is_last(wait: Wait, child: Session) -> bool:
    """Takes the child off the wait's list; whether the list is empty now."""
    remaining = wait.request["remaining"]
    if child.pk.hex not in remaining:
        return False
    remaining.remove(child.pk.hex)
    wait.save(update_fields=["request"])
    return not remaining
