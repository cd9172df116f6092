"""The operators' admin for people and tenants. Keys show their prefix, never a secret."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.forms import BaseModelForm
from django.http import HttpRequest

from orgs.models import (
    ApiKey,
    Organization,
    OrganizationMembership,
    User,
    Workspace,
    WorkspaceMembership,
)
from orgs.services.epochs import bump_access_epoch
from orgs.services.keys import revoke_api_key


class EpochMovingAdmin(admin.ModelAdmin):
    """Whatever an operator changes here may be a grant: open streams look at it again."""

    def organizations_of(self, changed: Model) -> set[UUID]:
        raise NotImplementedError

    def save_related(
        self, request: HttpRequest, form: BaseModelForm, formsets: Any, change: bool
    ) -> None:
        super().save_related(request, form, formsets, change)
        self._move(form.instance)

    def delete_model(self, request: HttpRequest, obj: Model) -> None:
        organizations = self.organizations_of(obj)
        super().delete_model(request, obj)
        self._bump(organizations)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        organizations = {pk for obj in queryset for pk in self.organizations_of(obj)}
        super().delete_queryset(request, queryset)
        self._bump(organizations)

    def _move(self, changed: Model) -> None:
        self._bump(self.organizations_of(changed))

    def _bump(self, organizations: set[UUID]) -> None:
        for organization_id in organizations:
            bump_access_epoch(organization_id=organization_id)


@admin.register(User)
class UserAdmin(EpochMovingAdmin):
    list_display = ("email", "name", "is_active", "is_staff", "created_at")
    search_fields = ("email", "name")
    fields = ("email", "name", "is_active", "is_staff", "is_superuser", "last_login")
    readonly_fields = ("last_login",)

    def organizations_of(self, changed: Model) -> set[UUID]:
        rows = OrganizationMembership.objects.filter(user_id=changed.pk)
        return set(rows.values_list("organization_id", flat=True))


class OrganizationMembershipInline(admin.TabularInline):
    model = OrganizationMembership
    extra = 0
    autocomplete_fields = ("user",)


@admin.register(Organization)
class OrganizationAdmin(EpochMovingAdmin):
    list_display = ("name", "allows_private_sessions", "created_at")
    search_fields = ("name",)
    inlines: ClassVar = [OrganizationMembershipInline]

    def organizations_of(self, changed: Model) -> set[UUID]:
        return {changed.pk}


class WorkspaceMembershipInline(admin.TabularInline):
    model = WorkspaceMembership
    extra = 0
    autocomplete_fields = ("user",)


@admin.register(Workspace)
class WorkspaceAdmin(EpochMovingAdmin):
    list_display = ("name", "organization", "kind", "created_at")
    list_filter = ("kind",)
    search_fields = ("name",)
    autocomplete_fields = ("organization", "person")
    inlines: ClassVar = [WorkspaceMembershipInline]

    def organizations_of(self, changed: Model) -> set[UUID]:
        assert isinstance(changed, Workspace)
        return {changed.organization_id}

    def save_model(
        self, request: HttpRequest, obj: Workspace, form: BaseModelForm, change: bool
    ) -> None:
        """A move to another organization changes who may do what in the one that it leaves."""
        left = set(Workspace.objects.filter(pk=obj.pk).values_list("organization_id", flat=True))
        super().save_model(request, obj, form, change)
        self._bump(left - {obj.organization_id})


@admin.register(ApiKey)
class ApiKeyAdmin(admin.ModelAdmin):
    list_display = (
        "name",
        "prefix",
        "organization",
        "workspace",
        "expires_at",
        "revoked_at",
    )
    search_fields = ("name", "prefix")
    fields = (
        "name",
        "prefix",
        "organization",
        "workspace",
        "scopes",
        "created_by",
        "expires_at",
    )
    readonly_fields = fields
    actions = ("revoke",)

    @admin.action(description="Revoke the selected keys", permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        for key in queryset:
            revoke_api_key(key=key)
        self.message_user(request, f"Revoked {len(queryset)}: they stopped working at once.")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: ApiKey | None = None) -> bool:
        return False

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("orgs.change_apikey")

    def has_delete_permission(self, request: HttpRequest, obj: ApiKey | None = None) -> bool:
        """By itself a key is revoked, and stays; it goes with its workspace or organization."""
        place = request.resolver_match
        is_own_page = place is not None and (place.url_name or "").startswith("orgs_apikey_")
        return not is_own_page and super().has_delete_permission(request, obj)
