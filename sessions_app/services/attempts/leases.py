"""Leases: prolonged while a worker lives, ended when it does not. The database's clock decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models.functions import Now

from sessions_app.domain.turns import AttemptCommand, TurnCommand, next_status
from sessions_app.domain.vocabulary import AttemptStatus, TurnStatus
from sessions_app.eventlog.announce import announce_turn
from sessions_app.models import Attempt, Session, Turn
from sessions_app.services.attempts.ending import fail_lost, recover
from sessions_app.services.attempts.lease import Lease
from sessions_app.services.ending import end_attempt

REAPED_AT_ONCE = 100
# It waits for no row: what ends a tree holds many of them, in an order of its own.
PROLONG = """
WITH free AS (
    SELECT id FROM sessions_app_attempt
    WHERE id = ANY(%(asked)s) AND status = 'running'
    FOR NO KEY UPDATE SKIP LOCKED
), prolonged AS (
    UPDATE sessions_app_attempt AS attempt
    SET lease_expires_at = clock_timestamp() + make_interval(secs => %(seconds)s)
    FROM free WHERE attempt.id = free.id
    RETURNING attempt.id
)
SELECT attempt.id, attempt.id IN (SELECT id FROM prolonged), session.paused_at IS NOT NULL
FROM sessions_app_attempt AS attempt
JOIN sessions_app_session AS session ON session.id = attempt.session_id
WHERE attempt.id = ANY(%(asked)s) AND attempt.status = 'running'
"""


@dataclass(frozen=True, slots=True)
class Heartbeats:
    """Attempt ids: those whose lease was prolonged, of these those whose session was paused, and
    those that may write no more. One that somebody is changing just now is in none of them.
    """

    alive: frozenset[UUID]
    held: frozenset[UUID]
    fenced: frozenset[UUID]


def heartbeat(*, leases: Sequence[Lease]) -> Heartbeats:
    """Prolong all leases of a worker in one statement.

    A lease that ran out is prolonged too, as long as nobody has ended its attempt: until then no
    other can begin. So a worker keeps its turns when the database was away for longer than that.
    """
    asked = frozenset(lease.attempt_id for lease in leases)
    if not asked:
        return Heartbeats(frozenset(), frozenset(), frozenset())
    with connection.cursor() as cursor:
        cursor.execute(PROLONG, {"seconds": settings.LEASE_SECONDS, "asked": sorted(asked)})
        found = cursor.fetchall()
    alive = frozenset(pk for pk, is_prolonged, _ in found if is_prolonged)
    held = frozenset(pk for pk, _, is_held in found if is_held and pk in alive)
    return Heartbeats(alive, held, asked - {pk for pk, *_ in found})


@transaction.atomic
def acknowledge_quiet(*, lease: Lease) -> None:
    """A fenced attempt says that it has stopped: the next turn need not wait for its lease."""
    session = Session.objects.select_for_update(no_key=True).filter(pk=lease.session_id).first()
    ended = Attempt.objects.exclude(status=AttemptStatus.RUNNING).filter(pk=lease.attempt_id)
    attempt = ended.first()
    # A late word of an attempt whose lease ran out must not hide that a newer one is at work.
    if session is None or attempt is None or session.quiet_at != attempt.lease_expires_at:
        return
    session.quiet_at = None
    if session.ready_at is not None:
        session.ready_at = Now()
        announce_turn()
    session.save(update_fields=["quiet_at", "ready_at"])


def reap_expired(*, at: datetime, after_each: Callable[[], None] = lambda: None) -> int:
    """Ends attempts whose lease had run out at that moment; each in a transaction of its own.

    `at` is by the database's clock, and shortly ago: a statement that the database answers late
    must not end what ran out while it hung. One whose session or parent is held by somebody is
    left for the next run, so that it keeps up no other. Returns how many were ended.
    """
    expired = Attempt.objects.filter(
        status=AttemptStatus.RUNNING, lease_expires_at__lt=at
    ).values_list("pk", "session_id", "session__parent_id")
    reaped = 0
    for found in expired[:REAPED_AT_ONCE]:
        reaped += _reap(*found, at)
        after_each()
    return reaped


@transaction.atomic
def _reap(attempt_id: UUID, session_id: UUID, parent_id: UUID | None, at: datetime) -> bool:
    """False where a late heartbeat, an end or another reaper came first, or may be about to."""
    free = Session.objects.select_for_update(no_key=True, skip_locked=True)
    if parent_id is not None and free.filter(pk=parent_id).first() is None:
        return False
    session = free.filter(pk=session_id).first()
    attempt = (
        Attempt.objects.select_for_update(no_key=True)
        .filter(pk=attempt_id, status=AttemptStatus.RUNNING, lease_expires_at__lt=at)
        .select_related("turn")
        .first()
    )
    if session is None or attempt is None:
        return False
    turn: Turn = attempt.turn
    ended = end_attempt(attempt, AttemptCommand.LOSE)
    turn.losses += 1
    if turn.losses >= settings.MAX_LOSSES:
        fail_lost(session, turn, attempt, ended)
        return True
    turn.status = next_status(TurnStatus(turn.status), TurnCommand.LOSE)
    turn.save(update_fields=["status", "losses"])
    recover(session, turn, ended, reason="worker_lost")
    return True
