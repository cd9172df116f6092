"""Service accounts: principals that own keys and outlive people. Nobody signs in as one."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from core.errors import Conflict, Forbidden, NotFound
from core.ids import uuid7
from orgs.access import Access
from orgs.models import OrganizationMembership, User
from orgs.models.audit import AuditAction
from orgs.roles import OrganizationAction, OrganizationRole
from orgs.services import audit
from orgs.services.epochs import bump_access_epoch
from orgs.services.holding import hold_organization, require_may_grant
from orgs.services.members import take_out
from orgs.services.validation import require_name

ACCOUNTS_MAX = 1_000


@transaction.atomic
def create_service_account(
    *,
    access: Access,
    organization_id: UUID,
    name: str,
    role: OrganizationRole = OrganizationRole.MEMBER,
) -> User:
    """It belongs to this organization alone. What it may do in a workspace, `set_workspace_role`
    says. Raises NotFound, Forbidden, InvalidInput, Conflict `too_many_service_accounts`.
    """
    organization, access = hold_organization(
        access=access, organization_id=organization_id, action=OrganizationAction.MANAGE
    )
    if role is OrganizationRole.OWNER:
        raise Forbidden("not_a_person", "Only a person can be an owner.")
    require_may_grant(access=access, organization_id=organization_id, role=role)
    if organization.service_accounts.filter(is_active=True).count() >= ACCOUNTS_MAX:
        raise Conflict(
            "too_many_service_accounts", f"An organization has at most {ACCOUNTS_MAX} of them."
        )
    pk = uuid7()
    account = User(
        pk=pk, name=require_name(name), email=f"{pk.hex}@service.invalid", service_of=organization
    )
    account.set_unusable_password()
    account.save()
    OrganizationMembership.objects.create(organization=organization, user=account, role=role)
    audit.record(
        access=access,
        organization_id=organization_id,
        action=AuditAction.SERVICE_ACCOUNT_CREATED,
        target=audit.target_of(account),
        changes={"role": (None, role)},
    )
    bump_access_epoch(organization_id=organization_id)
    return account


@transaction.atomic
def remove_service_account(*, access: Access, organization_id: UUID, account_id: UUID) -> None:
    """It and its keys do nothing more, at once; its name stays with what it did.

    Raises NotFound, Forbidden.
    """
    organization, access = hold_organization(
        access=access, organization_id=organization_id, action=OrganizationAction.MANAGE
    )
    account = organization.service_accounts.filter(pk=account_id, is_active=True).first()
    if account is None:
        raise NotFound
    account.is_active = False
    account.save(update_fields=["is_active"])
    membership = organization.memberships.select_related("user").get(user=account)
    take_out(access, membership, AuditAction.SERVICE_ACCOUNT_REMOVED)
