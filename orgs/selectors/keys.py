"""Which API keys one looks after."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from orgs.access import Access
from orgs.models import ApiKey
from orgs.roles import Action, OrganizationAction

LIVE = Q(revoked_at=None) & (Q(expires_at=None) | Q(expires_at__gt=Now()))


def list_keys(*, access: Access, organization_id: UUID) -> QuerySet[ApiKey]:
    """Those of an organization that one looks after. Of keys only one that manages it may ask.

    Raises NotFound, Forbidden.
    """
    is_person = access.user_id is not None
    access.require_in(
        OrganizationAction.READ if is_person else OrganizationAction.MANAGE, organization_id
    )
    return keys_looked_after(access=access).filter(organization_id=organization_id)


def keys_looked_after(*, access: Access) -> QuerySet[ApiKey]:
    """One's own, those of workspaces that one administers, all of an organization that one
    manages; with workspace and owner.
    """
    belongs = access.organizations_with(OrganizationAction.READ)
    seen = Q(organization_id__in=access.organizations_with(OrganizationAction.MANAGE))
    seen |= Q(workspace_id__in=access.workspaces_with(Action.WORKSPACE_MANAGE))
    if access.user_id is not None:
        seen |= Q(created_by_id=access.user_id, organization_id__in=belongs)
    return ApiKey.objects.select_related("workspace", "created_by").filter(seen)
