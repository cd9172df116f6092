"""The operators' admin for API keys: which there are, and an end for those that leaked."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from orgs.admin.base import OperatorsAdmin, operator_of
from orgs.models import ApiKey
from orgs.services.keys import revoke_api_key


@admin.register(ApiKey)
class ApiKeyAdmin(OperatorsAdmin):
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
        for key in queryset.order_by("organization_id", "pk"):
            revoke_api_key(key=key, by=operator_of(request))
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
