"""The audit log, as who administers the organization reads it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import connection
from django.db.models import Q, QuerySet

from core.clock import rfc3339
from core.cursors import decode_moment, encode_moment
from orgs.access import Access
from orgs.models import AuditEntry
from orgs.models.audit import ActorKind, AuditAction
from orgs.roles import OrganizationAction

ACTORS_MAX = 500
# One step in the index for each actor, instead of a pass over every line there is.
_ACTORS = """
WITH RECURSIVE actor AS (
    (SELECT actor_kind, actor_id, actor_name FROM orgs_auditentry
     WHERE organization_id = %(organization)s AND actor_id IS NOT NULL
     ORDER BY actor_id DESC, at DESC, id DESC LIMIT 1)
    UNION ALL
    SELECT other.* FROM actor CROSS JOIN LATERAL (
        SELECT actor_kind, actor_id, actor_name FROM orgs_auditentry
        WHERE organization_id = %(organization)s AND actor_id < actor.actor_id
        ORDER BY actor_id DESC, at DESC, id DESC LIMIT 1
    ) AS other
)
SELECT actor_kind, actor_id, actor_name FROM actor LIMIT %(limit)s
"""


@dataclass(frozen=True, slots=True)
class AuditActor:
    """`name`: in the newest line. `id` is None for the server."""

    kind: ActorKind
    id: UUID | None
    name: str


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """What is None is not asked for. The server has no `actor_id`. `about`: the public id of what
    was changed. `until` is not within.
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
    if query.actor_kind is ActorKind.SERVER:
        rows = rows.filter(actor_id__isnull=True)  # which the index finds
    return rows.order_by("-at", "-id")


def list_actors(
    *, access: Access, organization_id: UUID, asked: UUID | None = None
) -> list[AuditActor]:
    """Who has a line, by name: the ACTORS_MAX who came last, whoever is `asked` for, the server.

    Raises NotFound, Forbidden.
    """
    access.require_in(OrganizationAction.MANAGE, organization_id)
    with connection.cursor() as cursor:
        cursor.execute(_ACTORS, {"organization": organization_id, "limit": ACTORS_MAX})
        found = [AuditActor(ActorKind(kind), pk, name) for kind, pk, name in cursor]
    rows = AuditEntry.objects.filter(organization_id=organization_id)
    wanted = {None, asked} - {actor.id for actor in found}
    for actor_id in wanted:
        alone = rows.filter(actor_id=actor_id) if actor_id else rows.filter(actor_id__isnull=True)
        if line := alone.order_by("-at", "-id").first():
            found.append(AuditActor(ActorKind(line.actor_kind), actor_id, line.actor_name))
    return sorted(found, key=lambda actor: (actor.name, str(actor.id)))


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
