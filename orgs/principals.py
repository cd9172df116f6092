"""The one place where access is granted: from a person's roles, or a key and its maker's roles."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from django.db.models import Q

from core.clock import now
from core.errors import Unauthenticated
from orgs.access import Access, OrganizationGrant, Principal, PrincipalKind, WorkspaceGrant
from orgs.models import ApiKey, Login, Organization, OrganizationMembership, User, Workspace
from orgs.roles import (
    ORGANIZATION_ROLE_ACTIONS,
    ROLE_ACTIONS,
    OrganizationRole,
    WorkspaceKind,
    WorkspaceRole,
    actions_of_scopes,
    organization_actions_of_scopes,
)

KEY_PREFIX_LENGTH = 14  # sed_w_ or sed_o_, and eight characters
KEY_MAX_LENGTH = 200
LAST_USED_RESOLUTION = timedelta(minutes=1)
ADMINISTRATORS = frozenset({OrganizationRole.OWNER, OrganizationRole.ADMIN})


def access_for_user(user: User) -> Access:
    """What this person may do now. Three statements whatever the number of workspaces."""
    belongs = list(user.organization_memberships.select_related("organization"))
    epochs = {each.organization_id: each.organization.access_epoch for each in belongs}
    organizations = {each.organization_id: _organization_grant(each) for each in belongs}
    grants = _grants_of_user(user, epochs)
    personal = [pk for pk, grant in grants.items() if grant.kind is WorkspaceKind.PERSONAL]
    principal = Principal(PrincipalKind.USER, user.pk, user.name, user.pk)
    default = next(iter([*personal, *grants]), None)
    return Access(principal, grants, default, epochs, organizations)


def authenticate_key(secret: str) -> Access:
    """The access of an API key. Raises Unauthenticated; the text sent is never echoed."""
    key = _find_key(secret)
    if key is None or not hmac.compare_digest(key.digest, digest_secret(secret)):
        raise Unauthenticated("invalid_api_key", "This API key is not known here; check it.")
    _require_live(key)
    _note_use(key)
    return _access_for_key(key)


def refresh(access: Access) -> Access | None:
    """The same principal's access now; None when the person or key may act no more."""
    principal = access.principal
    if principal.kind is PrincipalKind.USER:
        return access_of(user_id=principal.id, key_id=None)
    return access_of(user_id=None, key_id=principal.id)


def access_of(*, user_id: UUID | None, key_id: UUID | None) -> Access | None:
    """What this person, or this key, may do now; None when neither may act any more."""
    if user_id is not None:
        user = User.objects.filter(pk=user_id, is_active=True).first()
        return access_for_user(user) if user else None
    keys = ApiKey.objects.select_related("created_by", "organization", "workspace")
    key = keys.filter(pk=key_id).first() if key_id else None
    if key is None:
        return None
    try:
        _require_live(key)
    except Unauthenticated:
        return None
    return _access_for_key(key)


def current_state(
    organization_ids: Collection[UUID], login_ids: Collection[UUID]
) -> tuple[dict[UUID, int], set[UUID]]:
    """The epochs of these organizations, and which of these logins still are: for all that a
    process has open, in two queries.
    """
    logins = Login.objects.filter(pk__in=login_ids, expires_at__gt=now())
    return current_epochs(organization_ids), set(logins.values_list("pk", flat=True))


def current_epochs(organization_ids: Collection[UUID]) -> dict[UUID, int]:
    rows = Organization.objects.filter(pk__in=organization_ids)
    return dict(rows.values_list("pk", "access_epoch"))


def digest_secret(secret: str) -> str:
    """SHA-256: keys and tokens are random bits, so a slow hash would add nothing but cost."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _organization_grant(membership: OrganizationMembership) -> OrganizationGrant:
    role = OrganizationRole(membership.role)
    return OrganizationGrant(membership.organization.name, role, ORGANIZATION_ROLE_ACTIONS[role])


def _grants_of_user(user: User, organizations: Collection[UUID]) -> dict[UUID, WorkspaceGrant]:
    """Only within organizations that the person still belongs to."""
    workspaces = (
        Workspace.objects.filter(organization_id__in=organizations)
        .filter(Q(memberships__user=user) | Q(person=user))
        .distinct()
        .order_by("pk")
    )
    roles = dict(user.workspace_memberships.values_list("workspace_id", "role"))
    grants = {}
    for workspace in workspaces:
        is_own = workspace.person_id == user.pk
        role = WorkspaceRole.ADMINISTRATOR if is_own else WorkspaceRole(roles[workspace.pk])
        grants[workspace.pk] = WorkspaceGrant(
            workspace.organization_id,
            WorkspaceKind(workspace.kind),
            workspace.name,
            role,
            ROLE_ACTIONS[role],
        )
    return grants


def _access_for_key(key: ApiKey) -> Access:
    """The intersection of the key's scopes with what its maker may do now."""
    maker = access_for_user(key.created_by)
    organizations = _organizations_of_key(key, maker)
    scoped = actions_of_scopes(key.scopes)
    grants = {
        workspace_id: replace(own, role=None, actions=scoped & own.actions)
        for workspace_id, own in maker.grants.items()
        if _is_for(key, workspace_id, own) and scoped & own.actions
    }
    if key.workspace_id is None and not organizations:
        grants = {}
    principal = Principal(PrincipalKind.KEY, key.pk, key.name, None)
    epochs = {key.organization_id: key.organization.access_epoch}
    return Access(
        principal, grants, key.workspace_id, epochs, organizations, expires_at=key.expires_at
    )


def _is_for(key: ApiKey, workspace_id: UUID, grant: WorkspaceGrant) -> bool:
    """Keys never reach a personal workspace."""
    if grant.organization_id != key.organization_id or grant.kind is not WorkspaceKind.SHARED:
        return False
    return key.workspace_id in {None, workspace_id}


def _find_key(secret: str) -> ApiKey | None:
    if not secret.isascii() or "\x00" in secret or len(secret) > KEY_MAX_LENGTH:
        return None
    rows = ApiKey.objects.select_related("created_by", "organization", "workspace")
    return rows.filter(prefix=secret[:KEY_PREFIX_LENGTH]).first()


def _organizations_of_key(key: ApiKey, maker: Access) -> dict[UUID, OrganizationGrant]:
    """Empty for a key of a workspace, and where the maker administers the organization no more."""
    own = maker.organizations.get(key.organization_id)
    if key.workspace_id is not None or own is None or own.role not in ADMINISTRATORS:
        return {}
    actions = own.actions & organization_actions_of_scopes(key.scopes)
    return {key.organization_id: OrganizationGrant(own.name, None, actions)}


def _require_live(key: ApiKey | None) -> None:
    if key is None or key.revoked_at is not None:
        raise Unauthenticated("revoked_api_key", "This API key was revoked; use another one.")
    if key.expires_at is not None and key.expires_at <= now():
        raise Unauthenticated("expired_api_key", "This API key has expired; create a new one.")
    if not key.created_by.is_active:
        raise Unauthenticated("revoked_api_key", "The maker of this API key was deactivated.")


def _note_use(key: ApiKey) -> None:
    """At most one write a minute; two requests at once write once."""
    moment = now()
    stale = Q(last_used_at__isnull=True) | Q(last_used_at__lt=moment - LAST_USED_RESOLUTION)
    if key.last_used_at is None or key.last_used_at < moment - LAST_USED_RESOLUTION:
        ApiKey.objects.filter(stale, pk=key.pk).update(last_used_at=moment)
