"""The operators' admin for the catalogue. Credentials are never shown."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.contrib import admin
from django.http import HttpRequest

from catalog.models import Agent, Model, Provider
from catalog.services.providers import set_credentials
from catalog.services.validation import require_base_url
from core.errors import InvalidInput
from core.ids import Prefix, encode_id
from orgs.admin.base import AuditedAdmin, facts_of_rows
from orgs.models.audit import AuditAction
from orgs.services import operators
from orgs.services.audit import Target


class ModelInline(admin.TabularInline):
    model = Model
    extra = 0


class ProviderForm(forms.ModelForm):
    """Takes a new API key and never shows the stored one."""

    base_url = forms.URLField(label="Base URL", required=False, assume_scheme="https")
    api_key = forms.CharField(
        label="API key",
        required=False,
        strip=True,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="Stored encrypted. Left empty, the stored one stays as it is.",
    )

    def clean_base_url(self) -> str:
        try:
            return require_base_url(self.cleaned_data["base_url"])
        except InvalidInput as error:
            raise forms.ValidationError(error.message) from None

    class Meta:
        model = Provider
        fields = ("organization", "slug", "kind", "name", "base_url", "is_enabled")


@admin.register(Provider)
class ProviderAdmin(AuditedAdmin):
    told: ClassVar = (
        AuditAction.PROVIDER_CONNECTED,
        AuditAction.PROVIDER_UPDATED,
        AuditAction.PROVIDER_REMOVED,
    )
    moves_epoch = False
    form = ProviderForm
    list_display = ("name", "slug", "kind", "organization", "is_enabled")
    list_filter = ("kind", "is_enabled")
    search_fields = ("name", "slug")
    inlines: ClassVar = [ModelInline]

    def get_readonly_fields(
        self, request: HttpRequest, obj: Provider | None = None
    ) -> tuple[str, ...]:
        return () if obj is None else ("organization",)

    def organizations_of(self, row: Provider) -> set[UUID]:
        return {row.organization_id}

    def target_of(self, row: Provider) -> Target:
        return Target("provider", encode_id(Prefix.PROVIDER, row.pk), row.name)

    def changes_beside(self, row: Any, form: Any) -> dict[str, tuple[Any, Any]]:
        if not form.cleaned_data.get("api_key"):
            return {}
        return {"api_key": ("set", "replaced") if row.encrypted_credentials else (None, "set")}

    def save_model(self, request: HttpRequest, obj: Provider, form: Any, change: bool) -> None:
        if "base_url" in form.changed_data:
            obj.last_test = None
        super().save_model(request, obj, form, change)
        if api_key := form.cleaned_data.get("api_key"):
            set_credentials(provider=obj, api_key=api_key)

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        before = facts_of_rows(formset)
        removed = [_target_of_model(each.instance) for each in formset.deleted_forms]
        super().save_formset(request, form, formset, change)
        told = [
            *((row, AuditAction.MODEL_ADDED, {}) for row in formset.new_objects),
            *(
                (row, AuditAction.MODEL_UPDATED, before[row.pk])
                for row, _ in formset.changed_objects
            ),
        ]
        organization_id = form.instance.organization_id
        for row, action, was in told:
            fields = operators.fields_among(row, formset.empty_form.fields)
            changes = operators.differences(was, operators.facts(row, fields))
            self._write(request, organization_id, action, _target_of_model(row), changes, None)
        for target in removed:
            self._write(request, organization_id, AuditAction.MODEL_REMOVED, target, {}, None)


@admin.register(Agent)
class AgentAdmin(AuditedAdmin):
    told: ClassVar = (
        AuditAction.AGENT_CREATED,
        AuditAction.AGENT_UPDATED,
        AuditAction.AGENT_REMOVED,
    )
    moves_epoch = False
    list_display = ("name", "workspace", "model", "is_default")
    search_fields = ("name",)
    raw_id_fields = ("workspace", "model")

    def get_readonly_fields(
        self, request: HttpRequest, obj: Agent | None = None
    ) -> tuple[str, ...]:
        return () if obj is None else ("workspace",)

    def organizations_of(self, row: Agent) -> set[UUID]:
        return {row.workspace.organization_id}

    def workspace_of(self, row: Agent) -> UUID:
        return row.workspace_id

    def target_of(self, row: Agent) -> Target:
        return Target("agent", row.public_id, row.name)


def _target_of_model(row: Model) -> Target:
    return Target("model", encode_id(Prefix.MODEL, row.pk), f"{row.provider.slug}/{row.model_id}")
