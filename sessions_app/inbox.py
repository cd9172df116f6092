"""What waits for people: in one session, and over all that one sees and may control."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

import orjson
from django.conf import settings
from django.db.models import QuerySet

from core.cursors import decode_cursor, encode_cursor
from core.errors import InvalidInput
from orgs.access import Access
from orgs.roles import Action
from sessions_app.models import Session, Wait
from sessions_app.models.wait import ASKS_PEOPLE
from sessions_app.selectors import get_session


@dataclass(frozen=True, slots=True)
class WaitPage:
    rows: list[Wait]
    next_page: str | None


def list_inbox(
    *,
    access: Access,
    workspace_id: UUID | None = None,
    descending: bool = False,
    limit: int = 20,
    page: str = "",
) -> WaitPage:
    """Open approvals and questions, the longest wait first unless `descending`. One query.

    A workspace that one may not control has none. Raises InvalidInput for a bent cursor.
    """
    waits = _open_waits(access, workspace_id)
    return _page(waits, f"inbox:{workspace_id}:{descending}", limit, page, descending=descending)


def list_pending(*, access: Access, session_id: UUID, limit: int = 20, page: str = "") -> WaitPage:
    """What this session asks people and nobody has decided, oldest first.

    Raises NotFound, and InvalidInput for a bent cursor.
    """
    session = get_session(access=access, session_id=session_id)
    waits = session.waits.filter(ASKS_PEOPLE)
    return _page(waits, f"pending:{session.pk}", limit, page)


def _page(
    waits: QuerySet[Wait], fingerprint: str, limit: int, page: str, *, descending: bool = False
) -> WaitPage:
    if page:
        side = "pk__lt" if descending else "pk__gt"
        waits = waits.filter(**{side: _position(fingerprint, page)})
    ordered = waits.select_related("session").defer("session__agent_snapshot", "session__metadata")
    found = list(ordered.order_by("-pk" if descending else "pk")[: limit + 1])
    kept = _within_bounds(found[:limit])
    more = len(found) > len(kept)
    return WaitPage(kept, encode_cursor(fingerprint, [kept[-1].pk.hex]) if more else None)


def count_inbox(*, access: Access, at_most: int = 100) -> int:
    """How many wait, counted no further than `at_most`."""
    return _open_waits(access, None)[:at_most].count()


def _open_waits(access: Access, workspace_id: UUID | None) -> QuerySet[Wait]:
    sessions = Session.objects.visible_to(access).filter(
        workspace_id__in=access.workspaces_with(Action.SESSION_CONTROL)
    )
    if workspace_id is not None:
        sessions = sessions.filter(workspace_id=workspace_id)
    return Wait.objects.filter(ASKS_PEOPLE, session__in=sessions)


def _within_bounds(waits: list[Wait]) -> list[Wait]:
    """At most PAGE_MAX_BYTES of what is asked, but one at least."""
    kept: list[Wait] = []
    size = 0
    for wait in waits:
        size += len(orjson.dumps(wait.request))
        if kept and size > settings.PAGE_MAX_BYTES:
            break
        kept.append(wait)
    return kept


def _position(fingerprint: str, page: str) -> UUID:
    (position,) = decode_cursor(fingerprint, page, [str])
    try:
        return UUID(hex=position)
    except ValueError:
        raise InvalidInput(
            "invalid_cursor",
            "Send the page cursor exactly as the last answer gave it.",
            param="page",
        ) from None
