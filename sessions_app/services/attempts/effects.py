"""Calls whose effect is in our own database: it and what the log says of it are one commit."""

from __future__ import annotations

from collections.abc import Callable

from django.db import transaction

from core.errors import DomainError
from sessions_app import eventlog
from sessions_app.domain.events import Draft
from sessions_app.models import Session, Turn
from sessions_app.services.attempts.lease import Lease, hold_session
from sessions_app.services.calls import Call

ENDING_TYPES = ("agent.tool_result", "child.awaited")


@transaction.atomic
def record_effect(
    *,
    lease: Lease,
    call: Call,
    effect: Callable[[Session, Turn], Draft],
) -> None:
    """Do it, and append what it gives: the call's result, or for whom the call waits.

    `effect` has the held session and its turn. A DomainError undoes what it did, and is told the
    model. Safe to call again after an outage that hid whether it was committed. Raises LeaseLost.
    """
    session = hold_session(lease)
    if _is_over(lease, call):
        return
    turn = Turn.objects.get(pk=lease.turn_id)
    try:
        with transaction.atomic():
            draft = effect(session, turn)
    except DomainError as error:
        draft = call.refusal(error)
    eventlog.append(
        session_id=session.pk,
        drafts=[draft],
        turn_id=lease.turn_id,
        attempt=lease.attempt,
        fence=lease.attempt_id,
        # Empty while an attempt lives; named, so that lists are told that the row has changed: it
        # says for how many children the turn waits.
        row={"ready_at": None},
    )


def _is_over(lease: Lease, call: Call) -> bool:
    since = eventlog.read_turn(
        session_id=lease.session_id,
        turn_id=lease.turn_id,
        since=call.tool_use_seq,
        types=ENDING_TYPES,
    )
    return any(event.data["tool_use_id"] == call.tool_use_id for event in since)
