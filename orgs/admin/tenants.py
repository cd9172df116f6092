"""The operators' admin for organizations and workspaces, and who belongs to them.

A row stays in the organization that it was made in: sessions belong to one tenant for ever.
"""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.contrib import admin
from django.http import HttpRequest

from orgs.admin.base import AuditedAdmin, operator_of
from orgs.models import Organization, OrganizationMembership, Workspace, WorkspaceMembership
from orgs.models.audit import AuditAction
from orgs.roles import OrganizationRole, WorkspaceKind, WorkspaceRole
from orgs.services import founding, operators
from orgs.services.keys import revoke_api_key


class PlaceForm(forms.ModelForm):
    """Whose place it is stays: another person gets one of their own."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.instance._state.adding and "user" in self.fields:
            self.fields["user"].disabled = True


class PlacesInWorkspace(forms.BaseInlineFormSet):
    """Only members of the organization come in, and nobody into a personal workspace."""

    def clean(self) -> None:
        super().clean()
        workspace: Workspace = self.instance
        for form in self.extra_forms:
            user = getattr(form, "cleaned_data", {}).get("user")
            if user is None:
                continue
            belongs = user.organization_memberships.filter(
                organization_id=workspace.organization_id
            )
            if workspace.kind == WorkspaceKind.PERSONAL:
                form.add_error("user", "A personal workspace is its person's alone.")
            elif not belongs.exists():
                form.add_error("user", "Add this person to the organization first.")


class OrganizationMembershipInline(admin.TabularInline):
    model = OrganizationMembership
    form = PlaceForm
    extra = 0
    autocomplete_fields = ("user",)


@admin.register(Organization)
class OrganizationAdmin(AuditedAdmin):
    told: ClassVar = (
        AuditAction.ORGANIZATION_CREATED,
        AuditAction.ORGANIZATION_UPDATED,
        AuditAction.ORGANIZATION_REMOVED,
    )
    list_display = ("name", "allows_private_sessions", "created_at")
    search_fields = ("name",)
    ordering = ("name", "pk")
    inlines: ClassVar = [OrganizationMembershipInline]

    def organizations_of(self, row: Organization) -> set[UUID]:
        return {row.pk}

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        formset.save(commit=False)
        operator = operator_of(request)
        for membership in formset.deleted_objects:
            operators.remove_member(operator=operator, membership=membership)
        for membership in [*formset.new_objects, *(row for row, _ in formset.changed_objects)]:
            founding.add_organization_member(
                organization=form.instance,
                user=membership.user,
                role=OrganizationRole(membership.role),
                by=operator,
            )


class WorkspaceMembershipInline(admin.TabularInline):
    model = WorkspaceMembership
    form = PlaceForm
    formset = PlacesInWorkspace
    extra = 0
    autocomplete_fields = ("user",)


@admin.register(Workspace)
class WorkspaceAdmin(AuditedAdmin):
    told: ClassVar = (
        AuditAction.WORKSPACE_CREATED,
        AuditAction.WORKSPACE_UPDATED,
        AuditAction.WORKSPACE_REMOVED,
    )
    list_display = ("name", "organization", "kind", "created_at")
    list_filter = ("kind",)
    search_fields = ("name",)
    ordering = ("name", "pk")
    autocomplete_fields = ("organization", "person")
    inlines: ClassVar = [WorkspaceMembershipInline]

    def get_readonly_fields(
        self, request: HttpRequest, obj: Workspace | None = None
    ) -> tuple[str, ...]:
        return () if obj is None else ("organization", "kind", "person")

    def organizations_of(self, row: Workspace) -> set[UUID]:
        return {row.organization_id}

    def workspace_of(self, row: Workspace) -> UUID:
        return row.pk

    def end_with(self, request: HttpRequest, row: Workspace) -> None:
        for key in row.api_keys.filter(revoked_at=None):
            revoke_api_key(key=key, by=operator_of(request))

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        formset.save(commit=False)
        operator = operator_of(request)
        for place in formset.deleted_objects:
            operators.remove_workspace_member(operator=operator, place=place)
        for place in [*formset.new_objects, *(row for row, _ in formset.changed_objects)]:
            founding.add_workspace_member(
                workspace=form.instance,
                user=place.user,
                role=WorkspaceRole(place.role),
                by=operator,
            )
