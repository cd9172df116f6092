"""The sessions of all shared workspaces of an organization, for who administers it.

Rows and never content: whoever has no role in a workspace is shown no word of its messages. What
people keep for themselves is in no inventory.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.db.models import Q

from core.cursors import decode_moment, encode_moment
from orgs.access import Access
from orgs.roles import Action, OrganizationAction
from sessions_app.models import Session
from sessions_app.querysets import SessionQuerySet


@dataclass(frozen=True, slots=True)
class InventoryPage:
    rows: list[Session]
    next_page: str | None


def list_inventory(
    *,
    access: Access,
    organization_id: UUID,
    include_archived: bool = False,
    limit: int = 20,
    page: str = "",
) -> InventoryPage:
    """Roots, the newest first. Raises NotFound, Forbidden, InvalidInput for a bent cursor."""
    access.require_in(OrganizationAction.INVENTORY, organization_id)
    sessions = Session.objects.in_inventory(organization_id).with_tree_state()
    if not include_archived:
        sessions = sessions.filter(archived_at__isnull=True)
    name = f"inventory {organization_id} {include_archived}"
    if page:
        sessions = _before(sessions, name, page)
    found = list(sessions.order_by("-created_at", "-id")[: limit + 1])
    rows = found[:limit]
    for row in rows:
        if not access.may(Action.SESSION_READ, row.workspace_id):
            row.preview_text = ""
    if len(found) == len(rows):
        return InventoryPage(rows, None)
    last = rows[-1]
    return InventoryPage(rows, encode_moment(name, last.created_at, last.pk))


def _before(sessions: SessionQuerySet, name: str, page: str) -> SessionQuerySet:
    at, session_id = decode_moment(name, page)
    beyond = Q(created_at__lt=at) | Q(created_at=at, id__lt=session_id)
    return sessions.filter(Q(created_at__lte=at) & beyond)
