"""API keys come, are replaced, and go."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction

from core.clock import now
from core.errors import Conflict, Forbidden, InvalidInput, NotFound
from orgs.access import Access
from orgs.models import ApiKey, Organization, OrganizationMembership, User, Workspace
from orgs.models.audit import AuditAction
from orgs.principals import KEY_PREFIX_LENGTH, digest_secret, refresh
from orgs.roles import (
    Action,
    OrganizationAction,
    OrganizationRole,
    WorkspaceKind,
    WorkspaceRole,
    is_scope,
)
from orgs.selectors.keys import LIVE, keys_looked_after
from orgs.services import audit
from orgs.services.epochs import bump_access_epoch
from orgs.services.holding import hold_organization, lock_organization
from orgs.services.validation import require_name

KEYS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class NewKey:
    """`workspace_id` None: for all shared workspaces. `scopes`: `read`, `write`, `full`, or single
    actions. `lifetime_days` None: KEY_LIFETIME_DAYS. `service_account_id` None: one's own key.
    """

    name: str
    scopes: Sequence[str]
    workspace_id: UUID | None = None
    lifetime_days: int | None = None
    service_account_id: UUID | None = None


@transaction.atomic
def create_key(*, access: Access, organization_id: UUID, new: NewKey) -> tuple[ApiKey, str]:
    """The key's row, and its secret, which is shown this once.

    Raises NotFound; Forbidden where one lacks the role: administrator for a workspace, owner or
    admin for the organization; InvalidInput.
    """
    access.require_in(OrganizationAction.READ, organization_id)
    if access.user_id is None:
        raise Forbidden("not_a_person", "Only a person who is signed in can create keys.")
    action = OrganizationAction.READ if new.workspace_id else OrganizationAction.MANAGE
    organization, access = hold_organization(
        access=access, organization_id=organization_id, action=action
    )
    key, secret = issue_key(
        maker=_maker_of(access, organization, new),
        name=require_name(new.name),
        scopes=new.scopes,
        organization=organization,
        workspace=_workspace_of(access, organization, new),
        lifetime_days=new.lifetime_days,
    )
    audit.record(
        access=access,
        organization_id=organization_id,
        workspace_id=key.workspace_id,
        action=AuditAction.KEY_CREATED,
        target=audit.target_of(key),
        changes=_told_of_new(key),
    )
    return key, secret


@transaction.atomic
def rotate_key(
    *, access: Access, key_id: UUID, organization_id: UUID | None = None, overlap_seconds: int = 0
) -> tuple[ApiKey, str]:
    """A new key in place of this one, with as long a life; the old one goes on for
    `overlap_seconds`, at most KEY_OVERLAP_MAX_SECONDS.

    For its owner alone, and for who manages the organization where that is a service account:
    anybody else would hold a secret that may do what its owner may. Raises NotFound, Forbidden
    `not_your_key`, Conflict `key_is_dead` or `already_rotated`, InvalidInput.
    """
    most = settings.KEY_OVERLAP_MAX_SECONDS
    if not 0 <= overlap_seconds <= most:
        raise InvalidInput(
            "out_of_range", f"An overlap is 0 to {most} seconds.", param="overlap_seconds"
        )
    key, access = _hold_key(access, key_id, organization_id)
    _require_may_take_over(access, key)
    moment = now()
    if key.revoked_at is not None or (key.expires_at is not None and key.expires_at <= moment):
        raise Conflict("key_is_dead", "It was revoked or has expired; create a new key.")
    if key.replaced_by is not None:
        raise Conflict(
            "already_rotated",
            f"{key.replaced_by.prefix}… took its place already. Rotate that one.",
        )
    ended_at = key.expires_at
    fresh, secret = issue_key(
        maker=key.created_by,
        name=key.name,
        scopes=key.scopes,
        organization=key.organization,
        workspace=key.workspace,
    )
    if key.expires_at is not None:
        fresh.expires_at = moment + (key.expires_at - key.created_at)
        fresh.save(update_fields=["expires_at"])
    _replace(key, fresh, moment, overlap_seconds)
    audit.record(
        access=access,
        organization_id=key.organization_id,
        workspace_id=key.workspace_id,
        action=AuditAction.KEY_ROTATED,
        target=audit.target_of(key),
        changes=_told_of_rotation(key, fresh, ended_at),
    )
    bump_access_epoch(organization_id=key.organization_id)
    return fresh, secret


def _replace(key: ApiKey, fresh: ApiKey, moment: datetime, overlap_seconds: int) -> None:
    """An overlap never prolongs a key."""
    if overlap_seconds:
        until = moment + timedelta(seconds=overlap_seconds)
        key.expires_at = min(key.expires_at or until, until)
    else:
        key.revoked_at = moment
    key.replaced_by = fresh
    key.save(update_fields=["expires_at", "revoked_at", "replaced_by"])


@transaction.atomic
def revoke_key(*, access: Access, key_id: UUID, organization_id: UUID | None = None) -> None:
    """At once, open streams included. Repeating it changes nothing. Raises NotFound."""
    key, access = _hold_key(access, key_id, organization_id)
    if key.revoked_at is not None:
        return
    revoke_api_key(key=key, by=access)


@transaction.atomic
def issue_key(
    *,
    maker: User,
    name: str,
    scopes: Sequence[str],
    organization: Organization,
    workspace: Workspace | None = None,
    lifetime_days: int | None = None,
) -> tuple[ApiKey, str]:
    """The row and its secret, for a maker who may have such a key now. The server's own door: no
    access is asked and nothing is audited.

    Raises Forbidden, InvalidInput, Conflict `too_many_keys`.
    """
    days = settings.KEY_LIFETIME_DAYS if lifetime_days is None else lifetime_days
    if not 1 <= days <= settings.KEY_LIFETIME_MAX_DAYS:
        raise InvalidInput(
            "out_of_range",
            f"A key lives 1 to {settings.KEY_LIFETIME_MAX_DAYS} days.",
            param="lifetime_days",
        )
    _require_scopes(scopes)
    _require_room(organization)
    _require_may_have(maker, organization, workspace)
    kind = "o" if workspace is None else "w"
    prefix = f"sed_{kind}_{secrets.token_hex(4)}"
    assert len(prefix) == KEY_PREFIX_LENGTH
    secret = f"{prefix}_{secrets.token_urlsafe(24)}"
    key = ApiKey.objects.create(
        organization=organization,
        workspace=workspace,
        name=name,
        prefix=prefix,
        digest=digest_secret(secret),
        scopes=[str(scope) for scope in scopes],
        created_by=maker,
        expires_at=now() + timedelta(days=days),
    )
    return key, secret


@transaction.atomic
def revoke_api_key(*, key: ApiKey, by: audit.Actor = None) -> None:
    """No access is asked: the server's own door, and the operators'; see `revoke_key`."""
    lock_organization(organization_id=key.organization_id)
    if ApiKey.objects.filter(pk=key.pk, revoked_at__isnull=True).update(revoked_at=now()):
        tell_of_revoked(by, key)
    bump_access_epoch(organization_id=key.organization_id)


def revoke_keys_of(by: audit.Actor, membership: OrganizationMembership) -> None:
    """All that a member who goes had in the organization: coming back revives none of them."""
    keys = ApiKey.objects.filter(
        organization_id=membership.organization_id,
        created_by_id=membership.user_id,
        revoked_at__isnull=True,
    )
    for key in keys:
        tell_of_revoked(by, key)
    keys.update(revoked_at=now())


def tell_of_revoked(by: audit.Actor, key: ApiKey) -> None:
    audit.record(
        access=by,
        organization_id=key.organization_id,
        workspace_id=key.workspace_id,
        action=AuditAction.KEY_REVOKED,
        target=audit.target_of(key),
        changes={"prefix": (key.prefix, None)},
    )


def _told_of_rotation(key: ApiKey, fresh: ApiKey, ended_at: datetime | None) -> audit.Changes:
    """`ended_at`: when the old key would have expired."""
    ends = audit.time_of(ended_at)
    return {
        "prefix": (key.prefix, fresh.prefix),
        "expires_at": (ends, audit.time_of(fresh.expires_at)),
        "old_key_ends_at": (ends, audit.time_of(key.revoked_at or key.expires_at)),
    }


def _told_of_new(key: ApiKey) -> audit.Changes:
    owner = key.created_by
    account = {"service_account": (None, owner.name)} if owner.is_service_account else {}
    return account | {
        "prefix": (None, key.prefix),
        "scopes": (None, list(key.scopes)),
        "expires_at": (None, audit.time_of(key.expires_at)),
    }


def _hold_key(access: Access, key_id: UUID, organization_id: UUID | None) -> tuple[ApiKey, Access]:
    """For its maker, and for who administers its workspace or organization."""
    found = _find_own(access, key_id)
    if found is None or organization_id not in {None, found.organization_id}:
        raise NotFound
    lock_organization(organization_id=found.organization_id)
    present = refresh(access)
    if present is None or (key := _find_own(present, key_id)) is None:
        raise NotFound
    return key, present


def _find_own(access: Access, key_id: UUID) -> ApiKey | None:
    """Keys look after no keys."""
    if access.user_id is None:
        return None
    rows = keys_looked_after(access=access).select_related("organization", "replaced_by")
    return rows.filter(pk=key_id).first()


def _require_may_take_over(access: Access, key: ApiKey) -> None:
    is_own = key.created_by_id == access.user_id
    manages = access.may_in(OrganizationAction.MANAGE, key.organization_id)
    if not is_own and not (key.created_by.is_service_account and manages):
        raise Forbidden("not_your_key", "Only its owner can rotate a key; you can revoke it.")


def _maker_of(access: Access, organization: Organization, new: NewKey) -> User:
    if new.service_account_id is None:
        return User.objects.get(pk=access.principal.id)
    access.require_in(OrganizationAction.MANAGE, organization.pk)
    account = organization.service_accounts.filter(pk=new.service_account_id).first()
    if account is None or not account.is_active:
        raise InvalidInput(
            "service_account_not_found",
            "There is no such service account.",
            param="service_account_id",
        )
    return account


def _workspace_of(access: Access, organization: Organization, new: NewKey) -> Workspace | None:
    if new.workspace_id is None:
        return None
    manages_all = access.may_in(OrganizationAction.MANAGE, organization.pk)
    if not manages_all and new.workspace_id not in access.grants:
        raise NotFound
    if not manages_all:
        access.require(Action.WORKSPACE_MANAGE, new.workspace_id)
    workspace = organization.workspaces.filter(pk=new.workspace_id).first()
    if workspace is None:
        raise NotFound
    return workspace


def _require_scopes(scopes: Sequence[str]) -> None:
    if not scopes:
        raise InvalidInput("scopes_required", "Name at least one scope.", param="scopes")
    for number, scope in enumerate(scopes):
        if not is_scope(scope):
            raise InvalidInput(
                "unknown_scope",
                "A scope is read, write, full, or one action.",
                param=f"scopes[{number}]",
            )


def _require_room(organization: Organization) -> None:
    if organization.api_keys.filter(LIVE).count() >= KEYS_MAX:
        raise Conflict("too_many_keys", f"An organization has at most {KEYS_MAX} live keys.")


def _require_may_have(maker: User, organization: Organization, workspace: Workspace | None) -> None:
    """A key can do no more than its maker: one that could do nothing is refused."""
    if workspace is None:
        roles = [OrganizationRole.OWNER, OrganizationRole.ADMIN]
        may = organization.memberships.filter(user=maker, role__in=roles).exists()
    else:
        if workspace.kind != WorkspaceKind.SHARED or workspace.organization_id != organization.pk:
            raise InvalidInput(
                "workspace_not_shared",
                "Keys are for shared workspaces.",
                param="workspace_id",
            )
        may = workspace.memberships.filter(user=maker, role=WorkspaceRole.ADMINISTRATOR).exists()
    if not may:
        raise Forbidden(
            "missing_role",
            "The key's maker must administer what it is for: its workspace, or the organization.",
        )
