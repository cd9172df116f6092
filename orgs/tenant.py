"""One organization, as one of its administrators may see it.

The owner's pages and the API take their rows from here and from nowhere else, so there is no query
that could reach a row of another organization.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count, F, Q, QuerySet

from core.api.paths import id_in_path
from core.clock import now
from core.errors import NotFound
from core.ids import Prefix
from orgs.access import Access
from orgs.models import (
    ApiKey,
    Invitation,
    Organization,
    OrganizationMembership,
    User,
    Workspace,
    WorkspaceMembership,
)
from orgs.models.invitation import OPEN
from orgs.roles import OrganizationAction, WorkspaceKind


@dataclass(frozen=True, slots=True)
class Tenant:
    access: Access
    organization: Organization

    @classmethod
    def open(cls, access: Access, public_id: str) -> Tenant:
        """Raises NotFound for whom it has nothing: nobody learns that it exists."""
        organization_id = id_in_path(Prefix.ORGANIZATION, public_id)
        if not access.may_in(OrganizationAction.MANAGE, organization_id):
            raise NotFound
        return cls(access, Organization.objects.get(pk=organization_id))

    @property
    def id(self) -> UUID:
        return self.organization.pk

    @property
    def home(self) -> str:
        return f"/owner/{self.organization.public_id}/"

    @property
    def is_owned(self) -> bool:
        return self.access.may_in(OrganizationAction.OWN, self.id)

    # ── People ──
    def memberships(self) -> QuerySet[OrganizationMembership]:
        """Service accounts, too."""
        rows = self.organization.memberships.select_related("user")
        return rows.order_by("user__name", "user_id")

    def people(self) -> QuerySet[OrganizationMembership]:
        return self.memberships().filter(user__service_of=None)

    def get_membership(self, public_id: str) -> OrganizationMembership:
        found = self.memberships().filter(user_id=id_in_path(Prefix.USER, public_id)).first()
        if found is None:
            raise NotFound
        return found

    def get_person(self, public_id: str) -> OrganizationMembership:
        found = self.get_membership(public_id)
        if found.user.is_service_account:
            raise NotFound
        return found

    def service_accounts(self) -> QuerySet[User]:
        alive = Q(api_keys__revoked_at=None, api_keys__expires_at__gt=now())
        rows = self.organization.service_accounts.filter(is_active=True)
        return rows.annotate(live_keys=Count("api_keys", filter=alive)).order_by("name", "pk")

    def get_service_account(self, public_id: str) -> User:
        found = self.service_accounts().filter(pk=id_in_path(Prefix.USER, public_id)).first()
        if found is None:
            raise NotFound
        return found

    def invitations(self) -> QuerySet[Invitation]:
        rows = self.organization.invitations.select_related("workspace", "invited_by")
        return rows.order_by("-created_at", "-pk")

    def open_invitations(self) -> QuerySet[Invitation]:
        return self.invitations().filter(OPEN, expires_at__gt=now())

    def get_invitation(self, public_id: str) -> Invitation:
        found = self.invitations().filter(pk=id_in_path(Prefix.INVITATION, public_id)).first()
        if found is None:
            raise NotFound
        return found

    # ── Access ──
    def keys(self) -> QuerySet[ApiKey]:
        """What works first, what was revoked last."""
        rows = self.organization.api_keys.select_related("workspace", "created_by")
        return rows.order_by(F("revoked_at").desc(nulls_first=True), "-created_at", "-pk")

    def get_key(self, public_id: str) -> ApiKey:
        found = self.keys().filter(pk=id_in_path(Prefix.KEY, public_id)).first()
        if found is None:
            raise NotFound
        return found

    def workspaces(self) -> QuerySet[Workspace]:
        """The shared ones. Personal workspaces are no matter of the organization's."""
        rows = self.organization.workspaces.filter(kind=WorkspaceKind.SHARED)
        return rows.order_by("name", "pk")

    def get_workspace(self, public_id: str) -> Workspace:
        found = self.workspaces().filter(pk=id_in_path(Prefix.WORKSPACE, public_id)).first()
        if found is None:
            raise NotFound
        return found

    def workspace_memberships(self) -> QuerySet[WorkspaceMembership]:
        rows = WorkspaceMembership.objects.filter(
            workspace__organization_id=self.id, workspace__kind=WorkspaceKind.SHARED
        )
        return rows.select_related("workspace", "user")
