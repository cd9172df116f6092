"""An export of the audit log, which is a line in it."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from core.errors import Conflict
from orgs.access import Access
from orgs.models import AuditEntry, Organization
from orgs.models.audit import AuditAction
from orgs.selectors.audit import AuditQuery, list_audit
from orgs.services import audit

EXPORT_MAX_ROWS = 50_000


@transaction.atomic
def export_audit(*, access: Access, organization_id: UUID, query: AuditQuery) -> list[AuditEntry]:
    """All the lines that were asked for, at most EXPORT_MAX_ROWS, the newest first.

    Raises NotFound, Forbidden, Conflict `export_too_large`.
    """
    found = list_audit(access=access, organization_id=organization_id, query=query)
    lines = list(found[: EXPORT_MAX_ROWS + 1])
    if len(lines) > EXPORT_MAX_ROWS:
        raise Conflict(
            "export_too_large",
            f"One export has at most {EXPORT_MAX_ROWS:,} lines; choose a shorter time.",
        )
    audit.record(
        access=access,
        organization_id=organization_id,
        action=AuditAction.AUDIT_EXPORTED,
        target=audit.target_of(Organization.objects.get(pk=organization_id)),
        changes={"lines": (None, len(lines)), "filters": (None, query.told())},
    )
    return lines
