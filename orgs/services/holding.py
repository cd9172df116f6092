"""Rows that a change of members needs for itself, and who may change them.

Whoever changes the members of an organization holds its row, so that two owners who leave at once
are seen one after the other.
"""

from __future__ import annotations

from uuid import UUID

from core.errors import Conflict, NotFound
from orgs.access import Access
from orgs.models import Organization, OrganizationMembership, Workspace
from orgs.roles import Action, OrganizationAction, OrganizationRole, WorkspaceKind


def hold_organization(
    *, access: Access, organization_id: UUID, action: OrganizationAction
) -> Organization:
    """Raises NotFound, Forbidden. The caller is in a transaction."""
    access.require_in(action, organization_id)
    held = Organization.objects.select_for_update(no_key=True)
    organization = held.filter(pk=organization_id).first()
    if organization is None:
        raise NotFound
    return organization


def hold_membership(
    *, access: Access, organization: Organization, user_id: UUID
) -> OrganizationMembership:
    """Of a member, the organization being held. An owner's is for owners alone."""
    found = organization.memberships.select_related("user").filter(user_id=user_id).first()
    if found is None:
        raise NotFound
    if found.role == OrganizationRole.OWNER and user_id != access.user_id:
        access.require_in(OrganizationAction.OWN, organization.pk)
    return found


def require_another_owner(*, access: Access, membership: OrganizationMembership) -> None:
    """Raises Conflict `last_owner`: an organization without one could never be managed again."""
    if membership.role != OrganizationRole.OWNER:
        return
    owners = OrganizationMembership.objects.filter(
        organization_id=membership.organization_id,
        role=OrganizationRole.OWNER,
        user__is_active=True,
    )
    if not owners.exclude(pk=membership.pk).exists():
        raise Conflict("last_owner", "Make somebody else an owner first; this is the last one.")


def hold_shared_workspace(*, access: Access, workspace_id: UUID) -> Workspace:
    """For who manages the workspace or its organization. Raises NotFound, Forbidden."""
    rows = Workspace.objects.select_for_update(no_key=True).filter(kind=WorkspaceKind.SHARED)
    workspace = rows.filter(pk=workspace_id).first()
    if workspace is None:
        raise NotFound
    if access.may_in(OrganizationAction.MANAGE, workspace.organization_id):
        return workspace
    if workspace_id not in access.grants:
        raise NotFound
    access.require(Action.WORKSPACE_MANAGE, workspace_id)
    return workspace
