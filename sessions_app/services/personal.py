"""Pins and read marks: one person's own, seen by nobody else."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.db.models.functions import Greatest

from core.clock import now
from core.errors import Forbidden, InvalidInput
from orgs.access import Access
from sessions_app.eventlog.announce import announce
from sessions_app.models import PersonalState, Session
from sessions_app.selectors import get_session
from sessions_app.services.keeping import require_kept


@transaction.atomic
def set_pinned(*, access: Access, session_id: UUID, pinned: bool) -> Session:
    """Set, not toggled; pinning again keeps the place."""
    state, session = _state(access, session_id)
    if pinned != (state.pinned_at is not None):
        state.pinned_at = now() if pinned else None
        state.save(update_fields=["pinned_at"])
        _announce(session)
    return get_session(access=access, session_id=session_id)


@transaction.atomic
def mark_read(*, access: Access, session_id: UUID, seq: int) -> Session:
    """Everything up to `seq` was seen. A mark never moves back."""
    state, session = _state(access, session_id)
    if not 0 <= seq <= session.head_seq:
        raise InvalidInput(
            "seq_ahead", f"The session's newest seq is {session.head_seq}.", param="seq"
        )
    if seq > state.read_seq:
        rows = PersonalState.objects.filter(pk=state.pk)
        rows.update(read_seq=Greatest("read_seq", seq))
        _announce(session)
    return get_session(access=access, session_id=session_id)


def _state(access: Access, session_id: UUID) -> tuple[PersonalState, Session]:
    session = get_session(access=access, session_id=session_id)
    if access.user_id is None:
        raise Forbidden("needs_a_person", "Pins and read marks belong to signed-in people.")
    require_kept(session)
    state, _ = PersonalState.objects.get_or_create(session=session, user_id=access.user_id)
    return state, session


def _announce(session: Session) -> None:
    """The person's other tabs re-read the row."""
    announce(
        session_id=session.pk,
        seq=session.head_seq,
        workspace_id=session.workspace_id,
        row_changed=True,
    )
