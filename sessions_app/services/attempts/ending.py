"""How an attempt ends by its worker's word, or without it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import transaction

from core.clock import now
from sessions_app import eventlog
from sessions_app.domain.events import Draft
from sessions_app.domain.turns import AttemptCommand, TurnCommand, next_status
from sessions_app.domain.vocabulary import TurnStatus
from sessions_app.eventlog.announce import announce_turn
from sessions_app.models import Attempt, Session, Turn
from sessions_app.services.attempts.lease import Lease, hold_parent, hold_session, live_attempt
from sessions_app.services.children.reporting import report_rest
from sessions_app.services.closing import closing_drafts
from sessions_app.services.ending import Change, end_attempt, go_on, ready_at, turn_is_over

RECOVERY_SENTENCES = {
    "worker_stopped": "The worker was stopped; the turn goes on with another one.",
    "worker_lost": "The worker was lost; the turn goes on with another one.",
    "paused": "The session was paused; the turn goes on when it is resumed.",
}


@dataclass(frozen=True, slots=True)
class Completed:
    """The model answered without asking for more."""


@dataclass(frozen=True, slots=True)
class Failed:
    """`message` is for people: one sentence, redacted."""

    code: str
    message: str


@transaction.atomic
def finish_turn(*, lease: Lease, outcome: Completed | Failed) -> None:
    """The turn's one terminal event; then the next queued turn, or idle. Raises LeaseLost."""
    hold_parent(lease.parent_id)
    session = hold_session(lease)
    attempt = live_attempt(lease)
    turn = Turn.objects.get(pk=lease.turn_id)
    change = Change()
    if isinstance(outcome, Completed):
        change.add(end_attempt(attempt, AttemptCommand.COMPLETE))
        turn.status = next_status(TurnStatus(turn.status), TurnCommand.COMPLETE)
        change.add(Draft("turn.completed"))
        stop_reason: dict[str, Any] = {"type": "end_turn"}
    else:
        change.add(*closing_drafts(turn, attempt.number))
        change.add(end_attempt(attempt, AttemptCommand.FAIL))
        stop_reason = _fail(turn, outcome.code, outcome.message, change)
    _conclude(session, turn, change, stop_reason)


@transaction.atomic
def hand_over(*, lease: Lease) -> None:
    """The worker stops in good order, or the session was paused: no loss is counted.

    Raises LeaseLost.
    """
    session = hold_session(lease)
    attempt = live_attempt(lease)
    turn = Turn.objects.get(pk=lease.turn_id)
    ended = end_attempt(attempt, AttemptCommand.HAND_OVER)
    turn.status = next_status(TurnStatus(turn.status), TurnCommand.HAND_OVER)
    turn.save(update_fields=["status"])
    recover(session, turn, ended, reason="paused" if session.is_paused else "worker_stopped")


def recover(session: Session, turn: Turn, ended: Draft, *, reason: str) -> None:
    """The turn, now recovering, may be claimed again at once, unless its session is held."""
    why = {"code": reason, "message": RECOVERY_SENTENCES[reason]}
    change = Change([ended], {"live_attempt_id": None})
    change.add(
        Draft("turn.recovering", {"reason": reason, "losses": turn.losses}),
        Draft("session.status_rescheduled", {"reason": why}),
        ready_at=ready_at(session, change),
    )
    eventlog.append(session_id=session.pk, drafts=change.drafts, turn_id=turn.pk, row=change.row)
    announce_turn()


def fail_lost(session: Session, turn: Turn, attempt: Attempt, ended: Draft) -> None:
    """Too many workers were lost on this turn: it is taken out of the way."""
    change = Change([*closing_drafts(turn, attempt.number), ended])
    stop_reason = _fail(
        turn,
        "worker_lost",
        f"{turn.losses} workers in a row were lost while running this turn. "
        "Send the prompt again, or in smaller parts.",
        change,
    )
    _conclude(session, turn, change, stop_reason)


def fail_unstarted(session: Session, turn: Turn, *, code: str, message: str) -> None:
    """A queued turn that cannot start (its model is gone): it fails, the queue goes on."""
    change = Change()
    stop_reason = _fail(turn, code, message, change)
    _conclude(session, turn, change, stop_reason)


def _fail(turn: Turn, code: str, message: str, change: Change) -> dict[str, Any]:
    """The stop reason."""
    turn.status = next_status(TurnStatus(turn.status), TurnCommand.FAIL)
    turn.error = {"code": code, "message": message}
    change.add(
        Draft("session.error", {"error": turn.error}),
        Draft("turn.failed", {"error": turn.error}),
    )
    return {"type": "error", "error": turn.error}


def _conclude(session: Session, turn: Turn, change: Change, stop_reason: dict[str, Any]) -> None:
    turn.ended_at = now()
    turn.save()
    change.add(**turn_is_over(session))
    go_on(session, change, stop_reason=stop_reason)
    eventlog.append(session_id=session.pk, drafts=change.drafts, turn_id=turn.pk, row=change.row)
    if change.row["ready_at"] is not None:
        announce_turn()
    report_rest(session)
