"""Who belongs to an organization, and as what."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from core.errors import Forbidden
from orgs.access import Access
from orgs.models import OrganizationMembership, WorkspaceMembership
from orgs.models.audit import AuditAction
from orgs.roles import OrganizationAction, OrganizationRole
from orgs.services import audit
from orgs.services.epochs import bump_access_epoch
from orgs.services.holding import (
    hold_membership,
    hold_organization,
    require_another_owner,
    require_may_grant,
)
from orgs.services.invitations import revoke_invitations_of
from orgs.services.keys import revoke_keys_of


@transaction.atomic
def set_organization_role(
    *, access: Access, organization_id: UUID, user_id: UUID, role: OrganizationRole
) -> OrganizationMembership:
    """Set, not toggled. Only an owner makes or unmakes owners.

    Raises NotFound, Forbidden, Conflict `last_owner`.
    """
    organization, access = hold_organization(
        access=access, organization_id=organization_id, action=OrganizationAction.MANAGE
    )
    membership = hold_membership(access=access, organization=organization, user_id=user_id)
    if membership.role == role:
        return membership
    if OrganizationRole.OWNER in {role, membership.role}:
        access.require_in(OrganizationAction.OWN, organization_id)
    require_may_grant(access=access, organization_id=organization_id, role=role)
    if membership.user.is_service_account and role is OrganizationRole.OWNER:
        raise Forbidden("not_a_person", "Only a person can be an owner.")
    require_another_owner(access=access, membership=membership)
    old, membership.role = membership.role, role
    membership.save(update_fields=["role"])
    audit.record(
        access=access,
        organization_id=organization_id,
        action=AuditAction.MEMBER_ROLE_CHANGED,
        target=audit.target_of(membership.user),
        changes={"role": (old, role)},
    )
    bump_access_epoch(organization_id=organization_id)
    return membership


@transaction.atomic
def remove_organization_member(*, access: Access, organization_id: UUID, user_id: UUID) -> None:
    """Out of the organization and all its workspaces, and their keys are dead for good. What they
    made stays; their personal workspace stays too, seen by nobody, for the day they come back.

    Raises NotFound, Forbidden, Conflict `last_owner`.
    """
    is_leaving = user_id == access.user_id
    action = OrganizationAction.READ if is_leaving else OrganizationAction.MANAGE
    organization, access = hold_organization(
        access=access, organization_id=organization_id, action=action
    )
    membership = hold_membership(access=access, organization=organization, user_id=user_id)
    if membership.user.is_service_account:
        raise Forbidden("not_a_person", "Remove the service account itself, with its keys.")
    require_another_owner(access=access, membership=membership)
    told = AuditAction.MEMBER_LEFT if is_leaving else AuditAction.MEMBER_REMOVED
    take_out(access, membership, told)


def take_out(by: audit.Actor, membership: OrganizationMembership, action: AuditAction) -> None:
    """Whoever asks holds the organization and has asked whether this may be."""
    organization_id = membership.organization_id
    places = WorkspaceMembership.objects.filter(
        workspace__organization_id=organization_id, user_id=membership.user_id
    ).select_related("workspace")
    worked = [f"{place.workspace.name} ({place.role})" for place in places]
    places.delete()
    membership.delete()
    revoke_keys_of(by, membership)
    revoke_invitations_of(by=by, membership=membership)
    lost = {"workspaces": (worked, None)} if worked else {}
    audit.record(
        access=by,
        organization_id=organization_id,
        action=action,
        target=audit.target_of(membership.user),
        changes={"role": (membership.role, None), **lost},
    )
    bump_access_epoch(organization_id=organization_id)
