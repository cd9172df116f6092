"""API keys come and go."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import timedelta

from django.conf import settings
from django.db import transaction

from core.clock import now
from core.errors import Forbidden, InvalidInput
from orgs.models import ApiKey, Organization, User, Workspace
from orgs.principals import KEY_PREFIX_LENGTH, digest_key
from orgs.roles import OrganizationRole, Scope, WorkspaceKind, WorkspaceRole
from orgs.services.epochs import bump_access_epoch


@transaction.atomic
def create_api_key(
    *,
    maker: User,
    name: str,
    scopes: Sequence[Scope],
    organization: Organization,
    workspace: Workspace | None = None,
    lifetime_days: int | None = None,
) -> tuple[ApiKey, str]:
    """The key's row, and its secret, which is shown this once.

    `lifetime_days` defaults to KEY_LIFETIME_DAYS. Raises Forbidden where the maker lacks the
    role: administrator for a workspace key, owner or admin for one of the organization.
    """
    if not scopes:
        raise InvalidInput("scopes_required", "Name at least one scope.", param="scopes")
    _require_may_make(maker, organization, workspace)
    kind = "o" if workspace is None else "w"
    prefix = f"sed_{kind}_{secrets.token_hex(4)}"
    assert len(prefix) == KEY_PREFIX_LENGTH
    secret = f"{prefix}_{secrets.token_urlsafe(24)}"
    key = ApiKey.objects.create(
        organization=organization,
        workspace=workspace,
        name=name,
        prefix=prefix,
        digest=digest_key(secret),
        scopes=[str(scope) for scope in scopes],
        created_by=maker,
        expires_at=now() + timedelta(days=lifetime_days or settings.KEY_LIFETIME_DAYS),
    )
    return key, secret


@transaction.atomic
def revoke_api_key(*, key: ApiKey) -> None:
    """At once, open streams included. Repeating it changes nothing."""
    ApiKey.objects.filter(pk=key.pk, revoked_at__isnull=True).update(revoked_at=now())
    bump_access_epoch(organization_id=key.organization_id)


def _require_may_make(maker: User, organization: Organization, workspace: Workspace | None) -> None:
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
        raise Forbidden("missing_role", "Only an administrator may create this key.")
