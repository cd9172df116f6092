"""The operators' admin for the catalogue. Credentials are never shown."""

from __future__ import annotations

from typing import ClassVar

from django.contrib import admin

from catalog.models import Agent, Model, Provider


class ModelInline(admin.TabularInline):
    model = Model
    extra = 0


@admin.register(Provider)
class ProviderAdmin(admin.ModelAdmin):
    list_display = ("name", "slug", "kind", "organization", "is_enabled")
    list_filter = ("kind", "is_enabled")
    search_fields = ("name", "slug")
    inlines: ClassVar = [ModelInline]


@admin.register(Agent)
class AgentAdmin(admin.ModelAdmin):
    list_display = ("name", "workspace", "model", "is_default")
    search_fields = ("name",)
    raw_id_fields = ("workspace", "model")
