"""How a turn ends and what its session does next; all that ends a turn goes through here.

The caller holds the session's row. Nothing here appends: it gives drafts and columns, so that a
command is one append.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from core.clock import now
from sessions_app.domain.events import Draft
from sessions_app.domain.settings import PartialSettings
from sessions_app.domain.turns import AttemptCommand, TurnCommand, ended_attempt, next_status
from sessions_app.domain.vocabulary import AttemptStatus, SessionStatus, TurnStatus
from sessions_app.eventlog.announce import announce_attempt
from sessions_app.models import QUEUE_ORDER, Attempt, Session, Turn
from sessions_app.services.closing import closing_drafts

ReadyAt = datetime | Literal["now"] | None


@dataclass(slots=True)
class Change:
    """Drafts of one append, in order, and the bookkeeping columns that go with them."""

    drafts: list[Draft] = field(default_factory=list)
    row: dict[str, Any] = field(default_factory=dict)

    def add(self, *drafts: Draft, **row: Any) -> None:
        self.drafts += drafts
        self.row |= row


def find_started_turn(session: Session) -> Turn | None:
    """The started turn that has not ended, for a caller that holds the session."""
    if session.started_turn_id is None:
        return None
    return Turn.objects.get(pk=session.started_turn_id)


def end_attempt(attempt: Attempt, command: AttemptCommand) -> Draft:
    attempt.status = ended_attempt(AttemptStatus(attempt.status), command)
    attempt.ended_at = now()
    attempt.save(update_fields=["status", "ended_at"])
    return Draft(
        "attempt.ended",
        {"outcome": str(attempt.status)},
        turn_id=attempt.turn_id,
        attempt=attempt.number,
    )


def end_started_turn(
    session: Session, turn: Turn, command: TurnCommand, ending: Draft, change: Change
) -> None:
    """Stop or supersede the started turn: from the commit on its attempt writes nothing more.

    Its partial text is sealed, its open calls are closed. The session is not claimed again until
    the attempt is quiet: it has said so, or its lease has run out (`quiet_at`).
    """
    turn.status = next_status(TurnStatus(turn.status), command)
    turn.ended_at = now()
    turn.save(update_fields=["status", "ended_at"])
    attempt = session.attempts.filter(status=AttemptStatus.RUNNING).first()
    change.add(*closing_drafts(turn, attempt.number if attempt else None))
    if attempt is not None:
        change.add(end_attempt(attempt, AttemptCommand(command)))
        change.add(quiet_at=attempt.lease_expires_at)
        announce_attempt(attempt_id=attempt.pk)
    change.add(ending, **turn_is_over(session))


def turn_is_over(session: Session) -> dict[str, Any]:
    """The columns of a session whose started turn has ended. A change of settings that met no
    checkpoint any more is the next turn's.
    """
    columns: dict[str, Any] = {"live_attempt_id": None, "started_turn_id": None}
    unread = PartialSettings.from_json(session.checkpoint_settings)
    if not unread.is_empty:
        following = unread.over(PartialSettings.from_json(session.next_settings))
        columns |= {"checkpoint_settings": {}, "next_settings": following.to_json()}
    return columns


def end_queue(
    session: Session, command: TurnCommand, ending: Callable[[], Draft], change: Change
) -> None:
    """Empty the queue: every turn in it ends as `command` says, with an event of its own."""
    queued = list(session.turns.filter(status=TurnStatus.QUEUED).order_by(*QUEUE_ORDER))
    if not queued:
        return
    status = next_status(TurnStatus.QUEUED, command)
    Turn.objects.filter(pk__in=[turn.pk for turn in queued]).update(status=status, ended_at=now())
    change.add(*(replace(ending(), turn_id=turn.pk) for turn in queued))
    change.add(queue_version=session.queue_version + 1)


def go_on(session: Session, change: Change, *, stop_reason: dict[str, Any]) -> None:
    """After a turn has ended: the queue, or idle. Idle is written only where nothing can go on.

    A session that required action does so no more, though the next turn may not start at once.
    """
    has_more = session.turns.filter(status=TurnStatus.QUEUED).exists()
    if has_more and not session.is_paused:
        if session.is_waiting:
            change.add(Draft("session.status_running"))
        change.add(ready_at=when_quiet(session, change))
        return
    # Without a queue the turn's own outcome says more than that the session is held.
    reason = {"type": "paused"} if has_more else stop_reason
    change.add(Draft("session.status_idle", {"stop_reason": reason}), ready_at=None)


def ready_at(session: Session, change: Change) -> ReadyAt:
    """From when the session may be claimed, as its rows and `change` stand."""
    is_held = session.is_paused or session.archived_at is not None
    if is_held or session.status == SessionStatus.TERMINATED:
        return None
    turn_id = change.row.get("started_turn_id", session.started_turn_id)
    if turn_id is not None:
        turn = Turn.objects.get(pk=turn_id)
        return when_quiet(session, change) if turn.may_be_claimed else None
    has_queue = session.turns.filter(status=TurnStatus.QUEUED).exists()
    return when_quiet(session, change) if has_queue else None


def when_quiet(session: Session, change: Change) -> ReadyAt:
    quiet_at: datetime | None = change.row.get("quiet_at", session.quiet_at)
    return quiet_at if quiet_at is not None and quiet_at > now() else "now"
