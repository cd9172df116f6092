"""The settings of an organization."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from orgs.access import Access
from orgs.models import Organization
from orgs.models.audit import AuditAction
from orgs.roles import OrganizationAction
from orgs.services import audit
from orgs.services.epochs import bump_access_epoch
from orgs.services.holding import hold_organization
from orgs.services.validation import require_name


@transaction.atomic
def update_organization(
    *,
    access: Access,
    organization_id: UUID,
    name: str | None = None,
    allows_private_sessions: bool | None = None,
) -> Organization:
    """What is None stays. Whether *Only me* is allowed is for owners alone; switching it off
    reveals nothing and hides nothing. Raises NotFound, Forbidden, InvalidInput.
    """
    organization, access = hold_organization(
        access=access, organization_id=organization_id, action=OrganizationAction.MANAGE
    )
    wanted = {
        "name": None if name is None else require_name(name),
        "allows_private_sessions": allows_private_sessions,
    }
    changes = {
        field: (getattr(organization, field), value)
        for field, value in wanted.items()
        if value is not None and value != getattr(organization, field)
    }
    if "allows_private_sessions" in changes:
        access.require_in(OrganizationAction.OWN, organization_id)
    if not changes:
        return organization
    for field, (_, value) in changes.items():
        setattr(organization, field, value)
    organization.save(update_fields=list(changes))
    audit.record(
        access=access,
        organization_id=organization_id,
        action=AuditAction.ORGANIZATION_UPDATED,
        target=audit.target_of(organization),
        changes=changes,
    )
    bump_access_epoch(organization_id=organization_id)
    return organization
