"""What the server itself does: organizations, people and memberships come to be.

Commands, the demo and the operators' admin call this. There is no access to ask, and the audit log
names the server, or the operator (`by`).
"""

from __future__ import annotations

from django.db import IntegrityError, transaction

from core.errors import Conflict, NotFound
from orgs.models import (
    Organization,
    OrganizationMembership,
    User,
    Workspace,
    WorkspaceMembership,
)
from orgs.models.audit import AuditAction
from orgs.roles import OrganizationRole, WorkspaceKind, WorkspaceRole
from orgs.services import audit
from orgs.services.epochs import bump_access_epoch
from orgs.services.holding import lock_organization


def create_user(*, email: str, name: str, password: str) -> User:
    """Raises Conflict `email_taken`, whatever the case of the letters."""
    if User.objects.filter(email__iexact=email).exists():
        raise Conflict("email_taken", "Someone already signs in with this address.", param="email")
    try:
        with transaction.atomic():
            return User.objects.create_user(email, password, name=name)
    except IntegrityError as error:  # somebody else was as quick
        raise Conflict(
            "email_taken", "Someone already signs in with this address.", param="email"
        ) from error


@transaction.atomic
def create_organization(*, name: str, owner: User) -> Organization:
    """A tenant with its first owner and the owner's personal workspace."""
    organization = Organization.objects.create(name=name)
    OrganizationMembership.objects.create(
        organization=organization, user=owner, role=OrganizationRole.OWNER
    )
    create_personal_workspace(organization=organization, person=owner)
    audit.record(
        access=None,
        organization_id=organization.pk,
        action=AuditAction.ORGANIZATION_CREATED,
        target=audit.target_of(organization),
        changes={"owner": (None, audit.target_of(owner).name)},
    )
    return organization


@transaction.atomic
def create_workspace(*, organization: Organization, name: str, administrator: User) -> Workspace:
    """A shared workspace, with one administrator. Raises NotFound for an outsider."""
    if not organization.memberships.filter(user=administrator).exists():
        raise NotFound
    lock_organization(organization_id=organization.pk)
    workspace = Workspace.objects.create(organization=organization, name=name)
    WorkspaceMembership.objects.create(
        workspace=workspace, user=administrator, role=WorkspaceRole.ADMINISTRATOR
    )
    audit.record(
        access=None,
        organization_id=organization.pk,
        workspace_id=workspace.pk,
        action=AuditAction.WORKSPACE_CREATED,
        target=audit.target_of(workspace),
        changes={"administrator": (None, administrator.name)},
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


@transaction.atomic
def add_organization_member(
    *,
    organization: Organization,
    user: User,
    role: OrganizationRole,
    by: audit.Operator | None = None,
) -> OrganizationMembership:
    """Set, not toggled: an existing member gets the role."""
    lock_organization(organization_id=organization.pk)
    old = organization.memberships.filter(user=user).values_list("role", flat=True).first()
    membership = join_organization(organization=organization, user=user, role=role)
    if old != role:
        audit.record(
            access=by,
            organization_id=organization.pk,
            action=AuditAction.MEMBER_ROLE_CHANGED if old else AuditAction.MEMBER_ADDED,
            target=audit.target_of(user),
            changes={"role": (old, role)},
        )
    return membership


@transaction.atomic
def add_workspace_member(
    *,
    workspace: Workspace,
    user: User,
    role: WorkspaceRole,
    by: audit.Operator | None = None,
) -> WorkspaceMembership:
    """Set, not toggled. Raises NotFound for a person outside the organization."""
    lock_organization(organization_id=workspace.organization_id)
    if not workspace.organization.memberships.filter(user=user).exists():
        raise NotFound
    old = workspace.memberships.filter(user=user).values_list("role", flat=True).first()
    membership = join_workspace(workspace=workspace, user=user, role=role)
    if old != role:
        audit.record(
            access=by,
            organization_id=workspace.organization_id,
            workspace_id=workspace.pk,
            action=AuditAction.WORKSPACE_MEMBER_ROLE_CHANGED
            if old
            else AuditAction.WORKSPACE_MEMBER_ADDED,
            target=audit.target_of(user),
            changes={"role": (old, role)},
        )
    return membership


def join_organization(
    *, organization: Organization, user: User, role: OrganizationRole
) -> OrganizationMembership:
    """The rows alone; the caller says in the audit log why."""
    membership, _ = OrganizationMembership.objects.update_or_create(
        organization=organization, user=user, defaults={"role": role}
    )
    create_personal_workspace(organization=organization, person=user)
    bump_access_epoch(organization_id=organization.pk)
    return membership


def join_workspace(*, workspace: Workspace, user: User, role: WorkspaceRole) -> WorkspaceMembership:
    """The row alone; the caller says in the audit log why."""
    membership, _ = WorkspaceMembership.objects.update_or_create(
        workspace=workspace, user=user, defaults={"role": role}
    )
    bump_access_epoch(organization_id=workspace.organization_id)
    return membership
