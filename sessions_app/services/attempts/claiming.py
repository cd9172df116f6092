"""Taking up a turn: the turn table is the queue, and a session's `ready_at` its index."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.db.models.functions import Now

from catalog.kinds import ModelRef
from core.clock import now
from core.errors import DomainError
from sessions_app import eventlog
from sessions_app.domain.events import Draft
from sessions_app.domain.settings import PartialSettings, Source, TurnSettings, overlay
from sessions_app.domain.turns import TurnCommand, next_status
from sessions_app.domain.vocabulary import AttemptStatus, SessionStatus, TurnStatus
from sessions_app.eventlog.announce import announce_turn
from sessions_app.models import QUEUE_ORDER, Attempt, Session, Turn
from sessions_app.services.attempts.ending import fail_unstarted
from sessions_app.services.attempts.lease import Claim, Lease
from sessions_app.services.ending import find_started_turn
from sessions_app.services.holding import inherit_hold
from sessions_app.services.model_settings import settle_turn

PARENT_BUSY = timedelta(milliseconds=200)


def claim_turn(*, worker: str, token: UUID, may_risk: bool = True) -> Claim | None:
    """The next turn that may run, as a new attempt of this worker; None when there is none.

    `token` is unique to the worker's process, whatever its host is called. Unless it `may_risk`
    it, no turn that one more loss would end.
    """
    ready = Session.objects.filter(ready_at__lte=Now())
    if not may_risk:
        risky = Turn.objects.filter(
            pk=OuterRef("started_turn_id"), losses__gte=losses_before_last()
        )
        ready = ready.exclude(Exists(risky))
    while True:
        with transaction.atomic():
            session = (
                ready.order_by("ready_at").select_for_update(no_key=True, skip_locked=True).first()
            )
            if session is None:
                return None
            claim = _claim_in(session, worker, token)
        if claim is not None:
            return claim


def losses_before_last() -> int:
    """From so many losses on the next one ends a turn."""
    return max(1, settings.MAX_LOSSES - 1)


def find_claim(*, token: UUID, known: Collection[UUID]) -> Claim | None:
    """A claim that this worker was granted and never heard of: the answer was lost at commit.

    `known` are the attempts that it does run.
    """
    granted = Attempt.objects.filter(token=token, status=AttemptStatus.RUNNING)
    attempt = granted.exclude(pk__in=known).select_related("session", "turn").first()
    return None if attempt is None else _claim_of(attempt.session, attempt.turn, attempt)


def _claim_in(session: Session, worker: str, token: UUID) -> Claim | None:
    """None where the session had nothing to start after all, or its turn could not."""
    if inherit_hold(session):
        return None
    turn = _next_turn(session)
    if turn is None:
        Session.objects.filter(pk=session.pk).update(ready_at=None)
        return None
    if turn.status != TurnStatus.QUEUED:
        return _begin_attempt(session, turn, worker, token, [], {})
    try:
        chosen = settle_turn(session=session, turn=turn)
    except DomainError as error:
        if _hold_parent_at_once(session):
            fail_unstarted(session, turn, code=error.code, message=error.message)
        return None
    return _begin_turn(session, turn, chosen, worker, token)


def _hold_parent_at_once(session: Session) -> bool:
    """A child's failure is told its parent, whose row comes before the child's that is held here
    already: without waiting for it, or a little later.
    """
    if session.parent_id is None:
        return True
    parents = Session.objects.select_for_update(no_key=True, skip_locked=True)
    if parents.filter(pk=session.parent_id).exists():
        return True
    Session.objects.filter(pk=session.pk).update(ready_at=Now() + PARENT_BUSY)
    return False


def _next_turn(session: Session) -> Turn | None:
    """The turn to go on with, else the first in the queue."""
    started = find_started_turn(session)
    if started is not None:
        return started if started.may_be_claimed else None
    queued = session.turns.filter(status=TurnStatus.QUEUED).order_by(*QUEUE_ORDER)
    return queued.select_for_update(no_key=True).first()


def _begin_turn(
    session: Session,
    turn: Turn,
    chosen: tuple[TurnSettings, Source, ModelRef],
    worker: str,
    token: UUID,
) -> Claim:
    frozen, source, ref = chosen
    turn.settings = frozen.to_json()
    turn.model_reason = str(source)
    turn.started_at = now()
    turn.started_seq = session.head_seq + 1
    effort = frozen.reasoning_effort
    started = Draft(
        "turn.started",
        {
            "number": turn.number,
            "model": {
                "provider_id": frozen.provider_id,
                "model_id": frozen.model_id,
                "variant": effort,
                "display_name": ref.display_name,
            },
            "reasoning_effort": effort,
            "speed": frozen.speed,
            "model_reason": str(source),
        },
    )
    row = {
        "model_settings": turn.settings,
        "model_label": f"{ref.display_name} · {effort}" if effort else ref.display_name,
        "next_settings": {},
        "queue_version": session.queue_version + 1,
    }
    return _begin_attempt(session, turn, worker, token, [started], row)


def _begin_attempt(
    session: Session,
    turn: Turn,
    worker: str,
    token: UUID,
    drafts: list[Draft],
    row: dict[str, Any],
) -> Claim:
    turn.status = next_status(TurnStatus(turn.status), TurnCommand.CLAIM)
    turn.attempt_count += 1
    turn.save()
    attempt = Attempt.objects.create(
        session_id=session.pk,
        turn=turn,
        number=turn.attempt_count,
        worker=worker[:200],
        token=token,
        lease_expires_at=Now() + timedelta(seconds=settings.LEASE_SECONDS),
    )
    if session.status != SessionStatus.RUNNING:
        drafts = [*drafts, Draft("session.status_running")]
    drafts = [*drafts, Draft("attempt.started", {}, attempt=attempt.number)]
    eventlog.append(
        session_id=session.pk,
        drafts=drafts,
        turn_id=turn.pk,
        row={
            **row,
            "live_attempt_id": attempt.pk,
            "started_turn_id": turn.pk,
            "ready_at": None,
            "quiet_at": None,
        },
    )
    announce_turn()  # another session may be ready too, and one hint can wake one worker only
    return _claim_of(session, turn, attempt)


def _claim_of(session: Session, turn: Turn, attempt: Attempt) -> Claim:
    snapshot = session.agent_snapshot
    tools = snapshot.get("tools")
    frozen = TurnSettings.from_json(turn.settings or {})
    return Claim(
        lease=Lease(
            session.pk, turn.pk, attempt.pk, attempt.number, attempt.token, session.parent_id
        ),
        organization_id=session.organization_id,
        workspace_id=session.workspace_id,
        settings=overlay(frozen, PartialSettings.from_json(session.checkpoint_settings)),
        instructions=snapshot.get("instructions", ""),
        tools=None if tools is None else tuple(tools),
        tools_within_default=snapshot.get("tools_within_default", False),
        start_seq=turn.prompt_seq,
        step=turn.step_count + 1,
        is_last_chance=turn.losses >= losses_before_last(),
    )
