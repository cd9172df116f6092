"""Rows that a change of members needs for itself, and who may change them.

Whoever changes who may do what in an organization holds its row first, then what else it changes:
workspace, membership, key. What the caller may do is computed again once the row is held: a request
that waited for a change of its own caller's rights must not go by what they were before.
"""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from core.errors import Conflict, Forbidden, NotFound
from orgs.access import Access, PrincipalKind
from orgs.models import Organization, OrganizationMembership, Workspace
from orgs.principals import refresh
from orgs.roles import (
    ORGANIZATION_ROLE_ACTIONS,
    ROLE_ACTIONS,
    Action,
    OrganizationAction,
    OrganizationRole,
    WorkspaceKind,
    WorkspaceRole,
)


def lock_organization(*, organization_id: UUID) -> Organization | None:
    """The row alone, without asking anybody's access."""
    rows = Organization.objects.select_for_update(no_key=True)
    return rows.filter(pk=organization_id).first()


def lock_organizations(*, organization_ids: Collection[UUID]) -> list[UUID]:
    """Those that there are, in one order, so that two who want the same wait for no more."""
    rows = Organization.objects.select_for_update(no_key=True)
    return [row.pk for row in rows.filter(pk__in=organization_ids).order_by("pk")]


def hold_organization(
    *, access: Access, organization_id: UUID, action: OrganizationAction
) -> tuple[Organization, Access]:
    """The row, and what the caller may do now. Raises NotFound, Forbidden."""
    access.require_in(action, organization_id)
    organization = lock_organization(organization_id=organization_id)
    present = refresh(access)
    if organization is None or present is None:
        raise NotFound
    present.require_in(action, organization_id)
    return organization, present


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


def hold_shared_workspace(
    *, access: Access, workspace_id: UUID, leaving: bool = False
) -> tuple[Workspace, Access]:
    """For who manages the workspace or its organization; `leaving`: for whoever is in it.

    Raises NotFound, Forbidden.
    """
    rows = Workspace.objects.filter(kind=WorkspaceKind.SHARED, pk=workspace_id)
    found = rows.first()
    if found is None:
        raise NotFound
    _require_manages(access, found, leaving)
    lock_organization(organization_id=found.organization_id)
    present = refresh(access)
    workspace = rows.select_for_update(no_key=True).first()
    if present is None or workspace is None:
        raise NotFound
    _require_manages(present, workspace, leaving)
    return workspace, present


def require_may_grant(*, access: Access, organization_id: UUID, role: OrganizationRole) -> None:
    """Nobody, and no key, gives what they lack themselves. Raises Forbidden."""
    own = access.organizations[organization_id].actions
    if not ORGANIZATION_ROLE_ACTIONS[role] <= own:
        raise Forbidden("missing_role", "You cannot give a role that may do more than you may.")


def require_key_may_grant(*, access: Access, workspace_id: UUID, role: WorkspaceRole) -> None:
    """A person who manages may let anybody in, themselves too; a key gives no more than it has."""
    if access.principal.kind is PrincipalKind.USER:
        return
    grant = access.grants.get(workspace_id)
    if grant is None or not ROLE_ACTIONS[role] <= grant.actions:
        raise Forbidden("role_beyond_key", "This key cannot give a role that may do more than it.")


def _require_manages(access: Access, workspace: Workspace, leaving: bool) -> None:
    if access.may_in(OrganizationAction.MANAGE, workspace.organization_id):
        return
    if workspace.pk not in access.grants:
        raise NotFound
    if not leaving:
        access.require(Action.WORKSPACE_MANAGE, workspace.pk)
