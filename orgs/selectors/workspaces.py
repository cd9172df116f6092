"""Who belongs to a shared workspace."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet

from core.errors import NotFound
from orgs.access import Access
from orgs.models import Workspace, WorkspaceMembership
from orgs.roles import Action, OrganizationAction, WorkspaceKind


def list_workspace_members(*, access: Access, workspace_id: UUID) -> QuerySet[WorkspaceMembership]:
    """For whoever reads there, or manages the organization. Raises NotFound, Forbidden."""
    rows = WorkspaceMembership.objects.filter(
        workspace_id=workspace_id, workspace__kind=WorkspaceKind.SHARED
    )
    if not access.may(Action.WORKSPACE_READ, workspace_id):
        managed = access.organizations_with(OrganizationAction.MANAGE)
        there = Workspace.objects.filter(pk=workspace_id, organization_id__in=managed)
        if not there.filter(kind=WorkspaceKind.SHARED).exists():
            if workspace_id not in access.grants:
                raise NotFound
            access.require(Action.WORKSPACE_READ, workspace_id)
    return rows.select_related("user").order_by("user_id")
