"""Shared workspaces, and who belongs to them."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from core.errors import Conflict, NotFound
from orgs.access import Access, PrincipalKind
from orgs.models import ApiKey, User, Workspace, WorkspaceMembership
from orgs.models.audit import AuditAction
from orgs.roles import OrganizationAction, WorkspaceKind, WorkspaceRole
from orgs.services import audit
from orgs.services.epochs import bump_access_epoch
from orgs.services.holding import (
    hold_organization,
    hold_shared_workspace,
    require_key_may_grant,
)
from orgs.services.validation import require_name

WORKSPACES_MAX = 1_000


@transaction.atomic
def create_shared_workspace(*, access: Access, organization_id: UUID, name: str) -> Workspace:
    """Its maker administers it; made with a key, the key's owner does, and the key through them.

    Raises NotFound, Forbidden, InvalidInput, Conflict `too_many_workspaces`.
    """
    organization, access = hold_organization(
        access=access, organization_id=organization_id, action=OrganizationAction.MANAGE
    )
    if organization.workspaces.filter(kind=WorkspaceKind.SHARED).count() >= WORKSPACES_MAX:
        raise Conflict(
            "too_many_workspaces", f"An organization has at most {WORKSPACES_MAX} shared ones."
        )
    workspace = Workspace.objects.create(organization=organization, name=require_name(name))
    maker = _person_behind(access)
    WorkspaceMembership.objects.create(
        workspace=workspace, user=maker, role=WorkspaceRole.ADMINISTRATOR
    )
    audit.record(
        access=access,
        organization_id=organization_id,
        workspace_id=workspace.pk,
        action=AuditAction.WORKSPACE_CREATED,
        target=audit.target_of(workspace),
        changes={"administrator": (None, maker.name)},
    )
    bump_access_epoch(organization_id=organization_id)
    return workspace


@transaction.atomic
def set_workspace_role(
    *, access: Access, workspace_id: UUID, user_id: UUID, role: WorkspaceRole
) -> WorkspaceMembership:
    """Set, not toggled: whoever belongs to the organization is added, or gets the role.

    Raises NotFound, Forbidden.
    """
    workspace, access = hold_shared_workspace(access=access, workspace_id=workspace_id)
    require_key_may_grant(access=access, workspace_id=workspace_id, role=role)
    user = User.objects.filter(
        pk=user_id, organization_memberships__organization_id=workspace.organization_id
    ).first()
    if user is None:
        raise NotFound
    membership = workspace.memberships.filter(user=user).first()
    if membership is not None and membership.role == role:
        return membership
    old = membership.role if membership else None
    membership, _ = WorkspaceMembership.objects.update_or_create(
        workspace=workspace, user=user, defaults={"role": role}
    )
    is_new = old is None
    audit.record(
        access=access,
        organization_id=workspace.organization_id,
        workspace_id=workspace_id,
        action=AuditAction.WORKSPACE_MEMBER_ADDED
        if is_new
        else AuditAction.WORKSPACE_MEMBER_ROLE_CHANGED,
        target=audit.target_of(user),
        changes={"role": (old, role)},
    )
    bump_access_epoch(organization_id=workspace.organization_id)
    return membership


@transaction.atomic
def remove_workspace_member(*, access: Access, workspace_id: UUID, user_id: UUID) -> None:
    """Oneself, too. Who does not belong to it is not found. Raises NotFound, Forbidden."""
    workspace, access = hold_shared_workspace(
        access=access, workspace_id=workspace_id, leaving=user_id == access.user_id
    )
    found = workspace.memberships.select_related("user").filter(user_id=user_id).first()
    if found is None:
        raise NotFound
    take_out_of_workspace(access, found)


def take_out_of_workspace(by: audit.Actor, place: WorkspaceMembership) -> None:
    """Whoever asks holds the organization and has asked whether this may be."""
    organization_id = place.workspace.organization_id
    place.delete()
    audit.record(
        access=by,
        organization_id=organization_id,
        workspace_id=place.workspace_id,
        action=AuditAction.WORKSPACE_MEMBER_REMOVED,
        target=audit.target_of(place.user),
        changes={"role": (place.role, None)},
    )
    bump_access_epoch(organization_id=organization_id)


def _person_behind(access: Access) -> User:
    """A key's owner may be a service account."""
    if access.principal.kind is PrincipalKind.USER:
        return User.objects.get(pk=access.principal.id)
    return ApiKey.objects.select_related("created_by").get(pk=access.principal.id).created_by
