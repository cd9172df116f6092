"""The audit log, as who administers the organization reads it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet

from core.clock import rfc3339
from core.cursors import decode_moment, encode_moment
from orgs.access import Access
from orgs.models import AuditEntry
from orgs.models.audit import ActorKind, AuditAction
from orgs.roles import OrganizationAction


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """What is None is not asked for. `actor_id` comes with `actor_kind`, except the server's, who
    has none. `about`: the public id of what was changed. `until` is not within.
    """

    actor_kind: ActorKind | None = None
    actor_id: UUID | None = None
    action: AuditAction | None = None
    since: datetime | None = None
    until: datetime | None = None
    about: str | None = None

    def told(self) -> dict[str, str]:
        """What was asked for, JSON-ready."""
        words = {
            "actor_kind": self.actor_kind,
            "actor_id": self.actor_id,
            "action": self.action,
            "since": rfc3339(self.since),
            "until": rfc3339(self.until),
            "about": self.about,
        }
        return {name: str(value) for name, value in words.items() if value is not None}


def list_audit(*, access: Access, organization_id: UUID, query: AuditQuery) -> QuerySet[AuditEntry]:
    """The newest first. Raises NotFound, Forbidden."""
    access.require_in(OrganizationAction.MANAGE, organization_id)
    wanted = {
        "actor_kind": query.actor_kind,
        "actor_id": query.actor_id,
        "action": query.action,
        "at__gte": query.since,
        "at__lt": query.until,
        "target_id": query.about,
    }
    asked = {lookup: value for lookup, value in wanted.items() if value is not None}
    rows = AuditEntry.objects.filter(organization_id=organization_id, **asked)
    return rows.order_by("-at", "-id")


def read_audit_page(
    *, access: Access, organization_id: UUID, query: AuditQuery, limit: int, page: str = ""
) -> tuple[list[AuditEntry], str | None]:
    """The lines, and the cursor of those before them; None at the end.

    Raises NotFound, Forbidden, InvalidInput for a bent cursor.
    """
    rows = list_audit(access=access, organization_id=organization_id, query=query)
    name = f"audit {organization_id} {sorted(query.told().items())}"
    if page:
        at, pk = decode_moment(name, page)
        rows = rows.filter(Q(at__lt=at) | Q(at=at, pk__lt=pk))
    found = list(rows[: limit + 1])
    lines = found[:limit]
    if len(found) == len(lines):
        return lines, None
    return lines, encode_moment(name, lines[-1].at, lines[-1].pk)
