"""The operators' admin for people and tenants. Keys show their prefix, never a secret."""

from __future__ import annotations

from typing import ClassVar

from django.contrib import admin
from django.http import HttpRequest

from orgs.models import (
    ApiKey,
    Organization,
    OrganizationMembership,
    User,
    Workspace,
    WorkspaceMembership,
)


@admin.register(User)
class UserAdmin(admin.ModelAdmin):
    list_display = ("email", "name", "is_active", "is_staff", "created_at")
    search_fields = ("email", "name")
    fields = ("email", "name", "is_active", "is_staff", "is_superuser", "last_login")
    readonly_fields = ("last_login",)


class OrganizationMembershipInline(admin.TabularInline):
    model = OrganizationMembership
    extra = 0
    autocomplete_fields = ("user",)


@admin.register(Organization)
class OrganizationAdmin(admin.ModelAdmin):
    list_display = ("name", "allows_private_sessions", "created_at")
    search_fields = ("name",)
    inlines: ClassVar = [OrganizationMembershipInline]


class WorkspaceMembershipInline(admin.TabularInline):
    model = WorkspaceMembership
    extra = 0
    autocomplete_fields = ("user",)


@admin.register(Workspace)
class WorkspaceAdmin(admin.ModelAdmin):
    list_display = ("name", "organization", "kind", "created_at")
    list_filter = ("kind",)
    search_fields = ("name",)
    autocomplete_fields = ("organization", "person")
    inlines: ClassVar = [WorkspaceMembershipInline]


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

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: ApiKey | None = None) -> bool:
        return False
