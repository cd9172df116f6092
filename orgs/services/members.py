"""People and their memberships."""

from __future__ import annotations

from django.db import transaction

from core.errors import Conflict, NotFound
from orgs.models import (
    Organization,
    OrganizationMembership,
    User,
    Workspace,
    WorkspaceMembership,
)
from orgs.roles import OrganizationRole, WorkspaceRole
from orgs.services.epochs import bump_access_epoch
from orgs.services.organizations import create_personal_workspace


def create_user(*, email: str, name: str, password: str) -> User:
    """Raises Conflict `email_taken`, whatever the case of the letters."""
    if User.objects.filter(email__iexact=email).exists():
        raise Conflict("email_taken", "Someone already signs in with this address.", param="email")
    return User.objects.create_user(email, password, name=name)


@transaction.atomic
def add_organization_member(
    *, organization: Organization, user: User, role: OrganizationRole
) -> OrganizationMembership:
    """Set, not toggled: an existing member gets the role."""
    membership, _ = OrganizationMembership.objects.update_or_create(
        organization=organization, user=user, defaults={"role": role}
    )
    create_personal_workspace(organization=organization, person=user)
    bump_access_epoch(organization_id=organization.pk)
    return membership


@transaction.atomic
def add_workspace_member(
    *, workspace: Workspace, user: User, role: WorkspaceRole
) -> WorkspaceMembership:
    """Raises NotFound for a person outside the organization."""
    if not workspace.organization.memberships.filter(user=user).exists():
        raise NotFound
    membership, _ = WorkspaceMembership.objects.update_or_create(
        workspace=workspace, user=user, defaults={"role": role}
    )
    bump_access_epoch(organization_id=workspace.organization_id)
    return membership


@transaction.atomic
def remove_workspace_member(*, workspace: Workspace, user: User) -> None:
    WorkspaceMembership.objects.filter(workspace=workspace, user=user).delete()
    bump_access_epoch(organization_id=workspace.organization_id)
