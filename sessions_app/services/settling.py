"""What follows when a wait is over: its turn goes on, unless more is to be decided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from core.clock import now
from sessions_app import eventlog
from sessions_app.domain.events import Draft
from sessions_app.domain.vocabulary import SessionStatus, TurnStatus, WaitKind, WaitStatus
from sessions_app.eventlog.announce import announce_turn, announce_waits
from sessions_app.models import Session, Turn, Wait
from sessions_app.services.children.results import told_results
from sessions_app.services.ending import Change, ready_at
from sessions_app.services.open_waits import closed, open_event_ids, requires_action, result

EXPIRED = (
    "Nobody answered before the question expired. Go on without an answer, and say which "
    "assumption you make."
)
EXPIRED_AT_ONCE = 100  # by one run of the chore


def settle_wait(session: Session, turn: Turn, drafts: Sequence[Draft]) -> range:
    """Appends what closed a wait, and lets the turn go on if that was the last one.

    A turn that still runs learns of it by itself, when it would wait.
    """
    change = Change(list(drafts))
    # Named in any case: the list row, which counts open waits, has changed.
    change.add(ready_at=session.ready_at)
    if turn.status == TurnStatus.WAITING:
        change.add(*_status(session, turn), ready_at=ready_at(session, change))
        announce_turn()
    return eventlog.append(
        session_id=session.pk, drafts=change.drafts, turn_id=turn.pk, row=change.row
    )


def _status(session: Session, turn: Turn) -> list[Draft]:
    """What is still to be decided; else that it goes on, or is held, unless its status says so."""
    if event_ids := open_event_ids(turn):
        return [requires_action(event_ids)]
    if session.is_paused:
        return [Draft("session.status_idle", {"stop_reason": {"type": "paused"}})]
    if session.status == SessionStatus.RUNNING:
        return []
    return [Draft("session.status_running")]


def expire_waits(*, after_each: Callable[[], None] = lambda: None) -> int:
    """Closes waits whose time is over, each in a transaction of its own. Returns how many.

    One whose session is held by somebody is left for the next run.
    """
    due = Wait.objects.filter(status=WaitStatus.OPEN, expires_at__lte=Now())
    closed_waits = 0
    for found in due.order_by("expires_at").values_list("pk", "session_id")[:EXPIRED_AT_ONCE]:
        closed_waits += _expire(*found)
        after_each()
    return closed_waits


@transaction.atomic
def _expire(wait_id: UUID, session_id: UUID) -> bool:
    """False where an answer, or the turn's end, came first, or may be just about to."""
    free = Session.objects.select_for_update(no_key=True, skip_locked=True)
    session = free.filter(pk=session_id).first()
    wait = Wait.objects.filter(pk=wait_id, status=WaitStatus.OPEN).select_related("turn").first()
    if session is None or wait is None:
        return False
    wait.status = WaitStatus.EXPIRED
    wait.decided_at = now()
    wait.save(update_fields=["status", "decided_at"])
    if wait.kind != WaitKind.CHILDREN:
        announce_waits(session=session)
    settle_wait(session, wait.turn, _expired(wait))
    return True


def _expired(wait: Wait) -> list[Draft]:
    if wait.kind == WaitKind.CHILDREN:
        return [told_results(wait)]
    return [closed(wait, WaitStatus.EXPIRED), result(wait, "expired", EXPIRED)]
