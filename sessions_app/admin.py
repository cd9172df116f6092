"""The operators' admin for sessions: which there are and how they fare. What was said is shown
only where OPERATORS_READ_CONTENT allows it, and each look at it is in the audit log.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse

from orgs.admin.base import OperatorsAdmin, operator_of
from sessions_app import eventlog
from sessions_app.models import Attempt, Session, Turn
from sessions_app.services.operators_reading import may_be_read_by_operators, note_reading

MESSAGES_SHOWN_MAX = 200
MESSAGE_TYPES = ("user.message", "agent.message")


class ReadOnlyAdmin(OperatorsAdmin):
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

    def get_fields(self, request: HttpRequest, obj: Session | None = None) -> tuple[str, ...]:
        is_read = obj is not None and may_be_read_by_operators(obj)
        return (*self.fields, "title", "messages") if is_read else self.fields

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """The line is there before anything is shown: pages are rendered later."""
        session = self.get_object(request, object_id)
        if (
            session is not None
            and may_be_read_by_operators(session)
            and self.has_view_permission(request, session)
        ):
            note_reading(session, operator=operator_of(request))
        return super().change_view(request, object_id, form_url, extra_context)

    @admin.display(description="Newest messages")
    def messages(self, session: Session) -> str:
        found = eventlog.read_before(
            session_id=session.pk,
            before=session.head_seq + 1,
            limit=MESSAGES_SHOWN_MAX,
            types=MESSAGE_TYPES,
        )
        return "\n\n".join(
            f"{event.seq} {event.type}: {_text_of(event.data)}" for event in reversed(found)
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


def _text_of(event: dict[str, Any]) -> str:
    return "".join(block.get("text", "") for block in event["content"])
