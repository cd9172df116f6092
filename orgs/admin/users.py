"""The operators' admin for people."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from django.contrib import admin
from django.http import HttpRequest

from orgs.admin.base import AuditedAdmin, operator_of
from orgs.models import User
from orgs.models.audit import AuditAction
from orgs.services.keys import revoke_keys_of


@admin.register(User)
class UserAdmin(AuditedAdmin):
    """A change is told in every organization that the person belongs to."""

    told: ClassVar = (None, AuditAction.USER_UPDATED, AuditAction.USER_REMOVED)
    list_display = ("email", "name", "is_active", "is_staff", "created_at")
    search_fields = ("email", "name")
    ordering = ("email", "pk")
    fields = ("email", "name", "is_active", "is_staff", "is_superuser", "last_login")
    readonly_fields = ("last_login",)

    def organizations_of(self, row: User) -> set[UUID]:
        return {each.organization_id for each in row.organization_memberships.all()}

    def lost_with(self, row: User, organization_id: UUID) -> dict[str, tuple[Any, Any]]:
        role = row.organization_memberships.get(organization_id=organization_id).role
        return {"role": (role, None)}

    def end_with(self, request: HttpRequest, row: User) -> None:
        for membership in row.organization_memberships.all():
            revoke_keys_of(operator_of(request), membership)
