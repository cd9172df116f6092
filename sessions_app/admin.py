"""The operators' admin for sessions: which there are and how they fare, never what was said."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest

from sessions_app.models import Attempt, Session, Turn


class ReadOnlyAdmin(admin.ModelAdmin):
    """Sessions change through services alone; a purge erases the log too."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


@admin.register(Session)
class SessionAdmin(ReadOnlyAdmin):
    list_display = ("id", "organization", "workspace", "status", "head_seq", "created_at")
    list_filter = ("status", "visibility")
    fields = (
        "id",
        "organization",
        "workspace",
        "visibility",
        "status",
        "head_seq",
        "message_count",
        "live_attempt_id",
        "ready_at",
        "created_at",
        "activity_at",
        "archived_at",
    )


@admin.register(Turn)
class TurnAdmin(ReadOnlyAdmin):
    list_display = ("id", "session_id", "number", "status", "attempt_count", "losses")
    list_filter = ("status",)
    fields = (
        "id",
        "session_id",
        "number",
        "status",
        "attempt_count",
        "step_count",
        "losses",
        "created_at",
        "started_at",
        "ended_at",
    )


@admin.register(Attempt)
class AttemptAdmin(ReadOnlyAdmin):
    list_display = ("id", "session_id", "number", "status", "worker", "lease_expires_at")
    list_filter = ("status",)
    fields = ("id", "session_id", "number", "status", "worker", "lease_expires_at", "ended_at")
