"""How a turn or an attempt ends, and what the session does next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import transaction

from core.clock import now
from sessions_app import eventlog
from sessions_app.domain.events import Draft
from sessions_app.domain.turns import TurnCommand, next_status
from sessions_app.domain.vocabulary import AttemptStatus, TurnStatus
from sessions_app.eventlog.announce import announce_turn
from sessions_app.models import Attempt, Session, Turn
from sessions_app.services.attempts.lease import Lease, hold_session, live_attempt
from sessions_app.services.interruption import closing_drafts


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
    session = hold_session(lease)
    attempt = live_attempt(lease)
    turn = Turn.objects.get(pk=lease.turn_id)
    if isinstance(outcome, Completed):
        _end_attempt(attempt, AttemptStatus.COMPLETED)
        turn.status = next_status(TurnStatus(turn.status), TurnCommand.COMPLETE)
        ending = [Draft("turn.completed")]
        stop_reason: dict[str, Any] = {"type": "end_turn"}
        closing: list[Draft] = []
    else:
        closing = closing_drafts(turn, attempt.number)
        _end_attempt(attempt, AttemptStatus.FAILED)
        ending, stop_reason = _fail(turn, outcome.code, outcome.message)
    ended = Draft("attempt.ended", {"outcome": attempt.status}, attempt=attempt.number)
    _conclude(session, turn, [*closing, ended, *ending], stop_reason)


@transaction.atomic
def hand_over(*, lease: Lease) -> None:
    """The worker stops in good order: another goes on at once, and no loss is counted.

    Raises LeaseLost.
    """
    session = hold_session(lease)
    attempt = live_attempt(lease)
    turn = Turn.objects.get(pk=lease.turn_id)
    _end_attempt(attempt, AttemptStatus.INTERRUPTED)
    turn.status = next_status(TurnStatus(turn.status), TurnCommand.HAND_OVER)
    turn.save(update_fields=["status"])
    recover(session, turn, attempt, reason="worker_stopped")


def recover(session: Session, turn: Turn, attempt: Attempt, *, reason: str) -> None:
    """The turn, now recovering, may be claimed again at once."""
    message = (
        "The worker was stopped; the turn goes on with another one."
        if reason == "worker_stopped"
        else "The worker was lost; the turn goes on with another one."
    )
    drafts = [
        Draft("attempt.ended", {"outcome": attempt.status}, attempt=attempt.number),
        Draft("turn.recovering", {"reason": reason, "losses": turn.losses}),
        Draft("session.status_rescheduled", {"reason": {"code": reason, "message": message}}),
    ]
    eventlog.append(
        session_id=session.pk,
        drafts=drafts,
        turn_id=turn.pk,
        row={"live_attempt_id": None, "ready_at": "now"},
    )
    announce_turn()


def fail_lost(session: Session, turn: Turn, attempt: Attempt) -> None:
    """Too many workers were lost on this turn: it is taken out of the way."""
    closing = closing_drafts(turn, attempt.number)
    ending, stop_reason = _fail(
        turn,
        "worker_lost",
        f"{turn.losses} workers in a row were lost while running this turn. "
        "Send the prompt again, or in smaller parts.",
    )
    ended = Draft("attempt.ended", {"outcome": attempt.status}, attempt=attempt.number)
    _conclude(session, turn, [*closing, ended, *ending], stop_reason)


def fail_unstarted(session: Session, turn: Turn, *, code: str, message: str) -> None:
    """A queued turn that cannot start (its model is gone): it fails, the queue goes on."""
    ending, stop_reason = _fail(turn, code, message)
    _conclude(session, turn, ending, stop_reason)


def _fail(turn: Turn, code: str, message: str) -> tuple[list[Draft], dict[str, Any]]:
    turn.status = next_status(TurnStatus(turn.status), TurnCommand.FAIL)
    turn.error = {"code": code, "message": message}
    drafts = [
        Draft("session.error", {"error": turn.error}),
        Draft("turn.failed", {"error": turn.error}),
    ]
    return drafts, {"type": "error", "error": turn.error}


def _conclude(
    session: Session, turn: Turn, drafts: list[Draft], stop_reason: dict[str, Any]
) -> None:
    """Idle is written only when nothing more can go on."""
    turn.ended_at = now()
    turn.save()
    has_more = session.turns.filter(status=TurnStatus.QUEUED).exists()
    if not has_more:
        drafts = [*drafts, Draft("session.status_idle", {"stop_reason": stop_reason})]
    eventlog.append(
        session_id=session.pk,
        drafts=drafts,
        turn_id=turn.pk,
        row={
            "live_attempt_id": None,
            "ready_at": "now" if has_more else None,
            "checkpoint_settings": {},
        },
    )
    if has_more:
        announce_turn()


def _end_attempt(attempt: Attempt, status: AttemptStatus) -> None:
    attempt.status = status
    attempt.ended_at = now()
    attempt.save(update_fields=["status", "ended_at"])
