"""Leases: prolonged while a worker lives, ended when it does not. The database's clock decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models.functions import Now

from core.clock import now
from sessions_app.domain.turns import TurnCommand, next_status
from sessions_app.domain.vocabulary import AttemptStatus, TurnStatus
from sessions_app.eventlog.announce import announce_turn
from sessions_app.models import Attempt, Session, Turn
from sessions_app.services.attempts.ending import fail_lost, recover
from sessions_app.services.attempts.lease import Lease

PROLONG = """
UPDATE sessions_app_attempt
SET lease_expires_at = clock_timestamp() + make_interval(secs => %s)
WHERE id = ANY(%s) AND status = 'running' AND lease_expires_at > clock_timestamp()
RETURNING id
"""


@dataclass(frozen=True, slots=True)
class Heartbeats:
    """Attempt ids: those whose lease was prolonged, and those that may write no more."""

    alive: frozenset[UUID]
    fenced: frozenset[UUID]


def heartbeat(*, leases: Sequence[Lease]) -> Heartbeats:
    """Prolong all leases of a worker in one statement. A lease that ran out is not revived."""
    asked = frozenset(lease.attempt_id for lease in leases)
    if not asked:
        return Heartbeats(frozenset(), frozenset())
    with connection.cursor() as cursor:
        cursor.execute(PROLONG, [settings.LEASE_SECONDS, sorted(asked)])
        alive = frozenset(row[0] for row in cursor.fetchall())
    return Heartbeats(alive, asked - alive)


@transaction.atomic
def acknowledge_quiet(*, lease: Lease) -> None:
    """A fenced attempt says that it has stopped: the next turn need not wait for its lease."""
    rows = Attempt.objects.exclude(status=AttemptStatus.RUNNING).filter(pk=lease.attempt_id)
    if not rows.update(lease_expires_at=Now()):
        return
    ready = Session.objects.filter(
        pk=lease.session_id, ready_at__isnull=False, live_attempt_id__isnull=True
    )
    if ready.update(ready_at=Now()):
        announce_turn()


def reap_expired() -> int:
    """Ends attempts whose lease ran out; each in a transaction of its own. Returns how many."""
    expired = Attempt.objects.filter(
        status=AttemptStatus.RUNNING, lease_expires_at__lt=Now()
    ).values_list("pk", "session_id")
    return sum(_reap(attempt_id, session_id) for attempt_id, session_id in expired[:100])


@transaction.atomic
def _reap(attempt_id: UUID, session_id: UUID) -> bool:
    """False where a late heartbeat, an end or another reaper came first."""
    session = Session.objects.select_for_update(no_key=True).filter(pk=session_id).first()
    attempt = (
        Attempt.objects.select_for_update(no_key=True)
        .filter(pk=attempt_id, status=AttemptStatus.RUNNING, lease_expires_at__lt=Now())
        .select_related("turn")
        .first()
    )
    if session is None or attempt is None:
        return False
    turn: Turn = attempt.turn
    attempt.status = AttemptStatus.LOST
    attempt.ended_at = now()
    attempt.save(update_fields=["status", "ended_at"])
    turn.losses += 1
    if turn.losses >= settings.MAX_LOSSES:
        fail_lost(session, turn, attempt)
        return True
    turn.status = next_status(TurnStatus(turn.status), TurnCommand.LOSE)
    turn.save(update_fields=["status", "losses"])
    recover(session, turn, attempt, reason="worker_lost")
    return True
