"""What a live attempt writes: checkpoints, text, calls and results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db import transaction

from catalog.selectors import find_model
from core.clock import now, rfc3339
from sessions_app import eventlog
from sessions_app.domain.events import DELTA_TYPES, EVENT_TYPES, Draft
from sessions_app.domain.settings import PartialSettings, TurnSettings, overlay
from sessions_app.eventlog import Fenced, StoredEvent
from sessions_app.models import Session, Turn
from sessions_app.services.attempts.lease import Lease, hold_session, refuse

LOG_PAGE = 1_000
CONTEXT_TYPES = frozenset(EVENT_TYPES) - DELTA_TYPES


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """Attempt ids by what became of their drafts. `locked` ones are to be tried again."""

    written: frozenset[UUID]
    locked: frozenset[UUID]
    fenced: frozenset[UUID]


@transaction.atomic
def open_step(*, lease: Lease, step: int) -> TurnSettings:
    """The checkpoint: what the session is configured to is read here, and only here.

    A step beyond those that came before is progress: losses in a row are forgotten.
    Raises LeaseLost.
    """
    session = hold_session(lease)
    turn = Turn.objects.get(pk=lease.turn_id)
    frozen = TurnSettings.from_json(turn.settings or {})
    change = PartialSettings.from_json(session.checkpoint_settings)
    settings = overlay(frozen, change)
    row: dict[str, object] = {}
    if not change.is_empty:
        turn.settings = settings.to_json()
        row = {
            "model_settings": turn.settings,
            "model_label": _label(session, settings),
            "checkpoint_settings": {},
        }
    if step > turn.step_count:
        turn.losses = 0 if turn.step_count else turn.losses
        turn.step_count = step
    turn.save(update_fields=["settings", "step_count", "losses"])
    model = {"provider_id": settings.provider_id, "model_id": settings.model_id}
    checkpoint = {"step": step, "directory": None, "model": model}
    _append(lease, [Draft("step.checkpoint", checkpoint)], row)
    return settings


def record(*, lease: Lease, drafts: Sequence[Draft]) -> range:
    """Append to the turn's session. One statement. Raises LeaseLost."""
    return _append(lease, drafts, None)


def record_groups(*, groups: Sequence[tuple[Lease, Sequence[Draft]]]) -> GroupRecord:
    """The deltas of many turns in one statement and commit; two where some were not written."""
    stamped = [
        (lease.session_id, lease.attempt_id, [_stamp(draft, lease) for draft in drafts])
        for lease, drafts in groups
    ]
    result = eventlog.append_groups(groups=stamped)
    missing = [lease for lease, _ in groups if lease.attempt_id in result.skipped]
    live: set[UUID] = set()
    if missing:
        rows = Session.objects.filter(live_attempt_id__in=[m.attempt_id for m in missing])
        live = {pk for pk in rows.values_list("live_attempt_id", flat=True) if pk}
    fenced = [lease.attempt_id for lease in missing if lease.attempt_id not in live]
    eventlog.count_refused(len(fenced))
    return GroupRecord(
        written=result.written,
        locked=frozenset(lease.attempt_id for lease in missing if lease.attempt_id in live),
        fenced=frozenset(fenced),
    )


def mark_rescheduling(
    *, lease: Lease, code: str, message: str, retry_after_seconds: float | None
) -> None:
    """The turn waits for the provider's capacity, and keeps its worker. Raises LeaseLost."""
    retry_at = None
    if retry_after_seconds is not None:
        retry_at = rfc3339(now() + timedelta(seconds=retry_after_seconds))
    reason = {"code": code, "message": message}
    payload = {"reason": reason, "retry_at": retry_at}
    _append(lease, [Draft("session.status_rescheduled", payload)], None)


def mark_running(*, lease: Lease) -> None:
    """The wait for the provider is over. Raises LeaseLost."""
    _append(lease, [Draft("session.status_running")], None)


@transaction.atomic
def read_own_log(*, lease: Lease, types: Sequence[str]) -> list[StoredEvent]:
    """What the attempt has written of its turn, of these types.

    A write of which the outcome was lost holds the session's row until it is committed or undone:
    it is waited for.
    """
    Session.objects.select_for_update(no_key=True).filter(pk=lease.session_id).first()
    events = eventlog.read_turn(
        session_id=lease.session_id, turn_id=lease.turn_id, since=0, types=types
    )
    return [event for event in events if event.attempt == lease.attempt]


def read_turn_log(*, lease: Lease, after: int = 0) -> list[StoredEvent]:
    """The session's log beyond the seq `after`, without deltas, for the model's context."""
    events: list[StoredEvent] = []
    while True:
        page = eventlog.read_after(
            session_id=lease.session_id,
            after=events[-1].seq if events else after,
            limit=LOG_PAGE,
            types=CONTEXT_TYPES,
        )
        events += page
        if len(page) < LOG_PAGE:
            return events


def _append(lease: Lease, drafts: Sequence[Draft], row: dict[str, object] | None) -> range:
    try:
        return eventlog.append(
            session_id=lease.session_id,
            drafts=drafts,
            turn_id=lease.turn_id,
            attempt=lease.attempt,
            fence=lease.attempt_id,
            row=row,
        )
    except Fenced:
        raise refuse() from None


def _stamp(draft: Draft, lease: Lease) -> Draft:
    return Draft(draft.type, draft.payload, lease.turn_id, lease.attempt)


def _label(session: Session, settings: TurnSettings) -> str:
    ref = find_model(
        organization_id=session.organization_id,
        provider_id=settings.provider_id,
        model_id=settings.model_id,
    )
    name = ref.display_name if ref else settings.model_id
    return f"{name} · {settings.reasoning_effort}" if settings.reasoning_effort else name
