"""Invitations: who is asked into an organization, and how they come in.

The link carries a token of which only the digest is kept. It is good once, for some days, for the
address that it was sent to, and only as long as who sent it may still invite.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction

from core.clock import now
from core.errors import Conflict, Forbidden, InvalidInput, NotFound, RateLimited
from core.tries import count_try
from orgs.access import Access
from orgs.models import Invitation, Organization, OrganizationMembership, User, Workspace
from orgs.models.audit import AuditAction
from orgs.models.invitation import OPEN
from orgs.principals import access_of, digest_secret
from orgs.roles import OrganizationAction, OrganizationRole, WorkspaceKind, WorkspaceRole
from orgs.selectors.invitations import find_invitation
from orgs.services import audit, founding
from orgs.services.holding import hold_organization, lock_organization
from orgs.services.passwords import require_password
from orgs.services.validation import require_email, require_name

INVITATIONS_PER_HOUR = 200
OPEN_MAX = 1_000


@dataclass(frozen=True, slots=True)
class NewInvitation:
    """`workspace_id` and `workspace_role` come together, or not at all."""

    email: str
    role: OrganizationRole = OrganizationRole.MEMBER
    workspace_id: UUID | None = None
    workspace_role: WorkspaceRole | None = None


@transaction.atomic
def create_invitation(
    *, access: Access, organization_id: UUID, new: NewInvitation
) -> tuple[Invitation, str]:
    """The invitation, and its token, which goes into the mail alone. It takes the place of an
    open one to the same address.

    Raises NotFound, Forbidden, InvalidInput, Conflict `already_member` or
    `too_many_invitations`, RateLimited.
    """
    organization, access = hold_organization(
        access=access, organization_id=organization_id, action=OrganizationAction.MANAGE
    )
    if access.user_id is None:
        raise Forbidden("not_a_person", "Only a person who is signed in can invite people.")
    if new.role is OrganizationRole.OWNER:
        access.require_in(OrganizationAction.OWN, organization_id)
    email = require_email(new.email)
    if organization.memberships.filter(user__email__iexact=email).exists():
        raise Conflict("already_member", f"{email} belongs to the organization already.")
    workspace = _workspace_of(organization, new)
    _require_room(organization)
    _ration(organization)
    for replaced in organization.invitations.filter(OPEN, email__iexact=email):
        _revoke(access, replaced)
    token = secrets.token_urlsafe(32)
    invitation = Invitation.objects.create(
        organization=organization,
        email=email,
        role=new.role,
        workspace=workspace,
        workspace_role=new.workspace_role or "",
        digest=digest_secret(token),
        invited_by_id=access.user_id,
        expires_at=now() + timedelta(days=settings.INVITATION_LIFETIME_DAYS),
    )
    audit.record(
        access=access,
        organization_id=organization_id,
        workspace_id=workspace.pk if workspace else None,
        action=AuditAction.INVITATION_CREATED,
        target=audit.target_of(invitation),
        changes=_told_of_new(invitation),
    )
    return invitation, token


@transaction.atomic
def revoke_invitation(*, access: Access, organization_id: UUID, invitation_id: UUID) -> None:
    """Its link is dead at once. Repeating it changes nothing. Raises NotFound, Forbidden."""
    organization, access = hold_organization(
        access=access, organization_id=organization_id, action=OrganizationAction.MANAGE
    )
    invitation = organization.invitations.filter(pk=invitation_id).first()
    if invitation is None:
        raise NotFound
    if invitation.accepted_at is not None:
        raise Conflict("invitation_accepted", "It was accepted; remove the member instead.")
    if invitation.revoked_at is not None:
        return
    _revoke(access, invitation)


def revoke_invitations_of(*, by: audit.Actor, membership: OrganizationMembership) -> None:
    """All that are open to the address of a member who goes: no older link lets them back in."""
    address = membership.user.email
    for invitation in membership.organization.invitations.filter(OPEN, email__iexact=address):
        _revoke(by, invitation)


@transaction.atomic
def accept_as_member(*, access: Access, token: str) -> Organization:
    """By somebody who is signed in under the address that was invited.

    Raises NotFound for a dead link, Forbidden `other_address`.
    """
    invitation = _hold(token)
    user = User.objects.get(pk=access.user_id) if access.user_id else None
    if user is None or user.email.casefold() != invitation.email.casefold():
        raise Forbidden(
            "other_address",
            f"This invitation is for {invitation.email}. Sign in with that address.",
        )
    _join(invitation, user)
    return invitation.organization


@transaction.atomic
def accept_as_newcomer(*, token: str, name: str, password: str) -> User:
    """By somebody who has no login yet; they get one for the invited address.

    Raises NotFound for a dead link, Conflict `email_taken`, InvalidInput `invalid_name`,
    `weak_password`.
    """
    invitation = _hold(token)
    user = founding.create_user(
        email=invitation.email, name=require_name(name), password=require_password(password)
    )
    _join(invitation, user)
    return user


def _workspace_of(organization: Organization, new: NewInvitation) -> Workspace | None:
    if (new.workspace_id is None) != (new.workspace_role is None):
        raise InvalidInput(
            "role_required", "Name a workspace and the role in it.", param="workspace_role"
        )
    if new.workspace_id is None:
        return None
    shared = organization.workspaces.filter(kind=WorkspaceKind.SHARED, pk=new.workspace_id)
    workspace = shared.first()
    if workspace is None:
        raise InvalidInput(
            "workspace_not_found", "There is no such shared workspace.", param="workspace_id"
        )
    return workspace


def _require_room(organization: Organization) -> None:
    if organization.invitations.filter(OPEN, expires_at__gt=now()).count() >= OPEN_MAX:
        raise Conflict(
            "too_many_invitations", f"At most {OPEN_MAX} invitations of an organization are open."
        )


def _ration(organization: Organization) -> None:
    """All organizations share one mail server, and its good name."""
    tried = count_try(
        limits={f"invitations of {organization.pk}": INVITATIONS_PER_HOUR}, window_seconds=3_600
    )
    if tried.wait_seconds:
        raise RateLimited(
            tried.wait_seconds,
            f"An organization invites at most {INVITATIONS_PER_HOUR} people in an hour.",
        )


def _revoke(access: audit.Actor, invitation: Invitation) -> None:
    invitation.revoked_at = now()
    invitation.save(update_fields=["revoked_at"])
    audit.record(
        access=access,
        organization_id=invitation.organization_id,
        workspace_id=invitation.workspace_id,
        action=AuditAction.INVITATION_REVOKED,
        target=audit.target_of(invitation),
        changes={name: (value, None) for name, value in _offered(invitation).items()},
    )


def _told_of_new(invitation: Invitation) -> audit.Changes:
    offered = _offered(invitation) | {"expires_at": audit.time_of(invitation.expires_at)}
    return {name: (None, value) for name, value in offered.items()}


def _offered(invitation: Invitation) -> dict[str, str | None]:
    if not invitation.workspace_role:
        return {"role": invitation.role}
    return {"role": invitation.role, "workspace_role": invitation.workspace_role}


def _hold(token: str) -> Invitation:
    """For one accept alone: of two at once the second finds it accepted."""
    found = find_invitation(token=token)
    if found is None:
        raise NotFound
    lock_organization(organization_id=found.organization_id)
    again = find_invitation(token=token)
    if again is None:
        raise NotFound
    return again


def _join(invitation: Invitation, user: User) -> None:
    changes = _join_organization(invitation, user) | _join_workspace(invitation, user)
    invitation.accepted_at, invitation.accepted_by = now(), user
    invitation.save(update_fields=["accepted_at", "accepted_by"])
    audit.record(
        access=access_of(user_id=user.pk, key_id=None),
        organization_id=invitation.organization_id,
        workspace_id=invitation.workspace_id,
        action=AuditAction.INVITATION_ACCEPTED,
        target=audit.target_of(invitation),
        changes=changes,
    )


def _join_organization(invitation: Invitation, user: User) -> dict[str, tuple[str | None, str]]:
    """What changed: who belongs already keeps the role."""
    organization = invitation.organization
    if organization.memberships.filter(user=user).exists():
        return {}
    role = OrganizationRole(invitation.role)
    founding.join_organization(organization=organization, user=user, role=role)
    return {"role": (None, role)}


def _join_workspace(invitation: Invitation, user: User) -> dict[str, tuple[str | None, str]]:
    """What changed: who is in it already keeps the role."""
    if invitation.workspace is None:
        return {}
    if invitation.workspace.memberships.filter(user=user).exists():
        return {}
    role = WorkspaceRole(invitation.workspace_role)
    founding.join_workspace(workspace=invitation.workspace, user=user, role=role)
    return {"workspace_role": (None, role)}
