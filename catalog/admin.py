"""The operators' admin for the catalogue. Credentials are never shown."""

from __future__ import annotations

from typing import ClassVar

from django import forms
from django.contrib import admin
from django.http import HttpRequest

from catalog.models import Agent, Model, Provider
from catalog.services.providers import set_credentials
from catalog.services.validation import require_base_url
from core.errors import InvalidInput


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
class ProviderAdmin(admin.ModelAdmin):
    form = ProviderForm
    list_display = ("name", "slug", "kind", "organization", "is_enabled")
    list_filter = ("kind", "is_enabled")
    search_fields = ("name", "slug")
    inlines: ClassVar = [ModelInline]

    def save_model(
        self, request: HttpRequest, obj: Provider, form: forms.ModelForm, change: bool
    ) -> None:
        if "base_url" in form.changed_data:
            obj.last_test = None
        super().save_model(request, obj, form, change)
        if api_key := form.cleaned_data.get("api_key"):
            set_credentials(provider=obj, api_key=api_key)


@admin.register(Agent)
class AgentAdmin(admin.ModelAdmin):
    list_display = ("name", "workspace", "model", "is_default")
    search_fields = ("name",)
    raw_id_fields = ("workspace", "model")
