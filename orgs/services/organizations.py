"""Organizations and workspaces come to be."""

from __future__ import annotations

from django.db import transaction

from core.errors import NotFound
from orgs.models import (
    Organization,
    OrganizationMembership,
    User,
    Workspace,
    WorkspaceMembership,
)
from orgs.roles import OrganizationRole, WorkspaceKind, WorkspaceRole
from orgs.services.epochs import bump_access_epoch


@transaction.atomic
def create_organization(*, name: str, owner: User) -> Organization:
    """A tenant with its first owner and the owner's personal workspace."""
    organization = Organization.objects.create(name=name)
    OrganizationMembership.objects.create(
        organization=organization, user=owner, role=OrganizationRole.OWNER
    )
    create_personal_workspace(organization=organization, person=owner)
    return organization


@transaction.atomic
def create_workspace(*, organization: Organization, name: str, administrator: User) -> Workspace:
    """A shared workspace, with one administrator. Raises NotFound for an outsider."""
    if not organization.memberships.filter(user=administrator).exists():
        raise NotFound
    workspace = Workspace.objects.create(organization=organization, name=name)
    WorkspaceMembership.objects.create(
        workspace=workspace, user=administrator, role=WorkspaceRole.ADMINISTRATOR
    )
    bump_access_epoch(organization_id=organization.pk)
    return workspace


def create_personal_workspace(*, organization: Organization, person: User) -> Workspace:
    workspace, _ = Workspace.objects.get_or_create(
        organization=organization,
        person=person,
        defaults={"name": "Personal", "kind": WorkspaceKind.PERSONAL},
    )
    bump_access_epoch(organization_id=organization.pk)
    return workspace
