"""An attempt asks people, and ends while they think or children work: a wait holds no worker."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from sessions_app import eventlog
from sessions_app.domain.events import Draft
from sessions_app.domain.turns import AttemptCommand
from sessions_app.models import Turn
from sessions_app.services import open_waits
from sessions_app.services.attempts.lease import Lease, hold_session, live_attempt
from sessions_app.services.ending import end_attempt


@transaction.atomic
def record_ask(*, lease: Lease, drafts: Sequence[Draft]) -> range:
    """Append drafts of which some ask, each with the wait that can be answered at once.

    Raises LeaseLost.
    """
    session = hold_session(lease)
    seqs = eventlog.append(
        session_id=lease.session_id,
        drafts=drafts,
        turn_id=lease.turn_id,
        attempt=lease.attempt,
        # It is empty while an attempt lives; named, because the list row counts one wait more.
        row={"ready_at": None},
    )
    open_waits.open_waits(
        session,
        turn_id=lease.turn_id,
        written=zip(seqs, drafts, strict=True),
    )
    return seqs


@transaction.atomic
def suspend_turn(*, lease: Lease) -> bool:
    """The turn waits for people or children, and the attempt is over.

    False, with nothing written, where all has been decided meanwhile: the attempt reads the log
    and goes on. Raises LeaseLost.
    """
    session = hold_session(lease)
    attempt = live_attempt(lease)
    turn = Turn.objects.get(pk=lease.turn_id)
    waiting = open_waits.suspend(turn)
    if not waiting:
        return False
    eventlog.append(
        session_id=session.pk,
        drafts=[end_attempt(attempt, AttemptCommand.WAIT), *waiting],
        turn_id=turn.pk,
        row={"live_attempt_id": None, "ready_at": None},
    )
    return True
