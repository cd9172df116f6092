"""A person's unsent text, per session, with a revision that tells stale writes."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from core.clock import now
from core.errors import Conflict, Forbidden, NotFound, TooLarge
from core.text import has_visible
from orgs.access import Access
from orgs.roles import Action
from sessions_app.eventlog.announce import announce_draft
from sessions_app.models import ComposerDraft, Session
from sessions_app.selectors import get_session
from sessions_app.services.keeping import require_kept
from sessions_app.services.validation import require_storable


def get_draft(*, access: Access, workspace_id: UUID, session_id: UUID | None) -> ComposerDraft:
    """An empty one at revision 0 where none was kept. Raises NotFound, Forbidden."""
    user_id = _require_person(access)
    _require_place(access, workspace_id, session_id)
    drafts = ComposerDraft.objects.filter(user_id=user_id, workspace_id=workspace_id)
    place = Q(session_id=session_id) if session_id else Q(session__isnull=True)
    return drafts.filter(place).first() or ComposerDraft(
        user_id=user_id, workspace_id=workspace_id, session_id=session_id
    )


@transaction.atomic
def save_draft(
    *,
    access: Access,
    workspace_id: UUID,
    session_id: UUID | None,
    text: str,
    expected_revision: int,
) -> ComposerDraft:
    """Raises Conflict `stale_version` with the current draft when another tab wrote since."""
    user_id = _require_person(access)
    session = _require_place(access, workspace_id, session_id)
    if session is not None:
        require_kept(session)
    require_storable(text, "text")
    if len(text) > settings.PROMPT_MAX_CHARACTERS:
        raise TooLarge(
            "prompt_too_long",
            f"A draft has at most {settings.PROMPT_MAX_CHARACTERS} characters.",
            param="text",
        )
    place: dict[str, Any] = {
        "user_id": user_id,
        "workspace_id": workspace_id,
        "session_id": session_id,
    }
    drafts = ComposerDraft.objects.select_for_update(no_key=True)
    draft, _ = drafts.get_or_create(**place)
    if draft.revision != expected_revision:
        raise Conflict(
            "stale_version",
            "This draft was changed in another tab; take its text or write over it.",
            param="expected_version",
            details={"current": {"text": draft.text, "revision": draft.revision}},
        )
    draft.text, draft.revision, draft.updated_at = text, draft.revision + 1, now()
    if not has_visible(text):
        draft.edits = None
    draft.save(update_fields=["text", "revision", "updated_at", "edits"])
    if session_id is not None:
        announce_draft(user_id=user_id, session_id=session_id, revision=draft.revision)
    return draft


def consume_draft(*, user_id: UUID, session: Session, sent_revision: int) -> None:
    """Empties the draft that was sent, and nothing newer."""
    rows = ComposerDraft.objects.filter(
        user_id=user_id, session_id=session.pk, revision=sent_revision
    )
    if rows.update(text="", revision=sent_revision + 1, updated_at=now(), edits=None):
        announce_draft(user_id=user_id, session_id=session.pk, revision=sent_revision + 1)


def consume_workspace_draft(*, access: Access, workspace_id: UUID, sent_revision: int) -> None:
    """The same for the draft of a session that was still to begin, within its transaction."""
    user_id = _require_person(access)
    _require_place(access, workspace_id, None)
    rows = ComposerDraft.objects.filter(
        user_id=user_id,
        workspace_id=workspace_id,
        session__isnull=True,
        revision=sent_revision,
    )
    rows.exclude(text="").update(text="", revision=sent_revision + 1, updated_at=now())


def _require_person(access: Access) -> UUID:
    if access.user_id is None:
        raise Forbidden("needs_a_person", "Drafts belong to signed-in people; keys have none.")
    return access.user_id


def _require_place(access: Access, workspace_id: UUID, session_id: UUID | None) -> Session | None:
    if session_id is None:
        if not access.may(Action.SESSION_READ, workspace_id):
            raise NotFound
        access.require(Action.SESSION_CREATE, workspace_id)
        return None
    session = get_session(access=access, session_id=session_id)
    if session.workspace_id != workspace_id:
        raise NotFound
    return session
