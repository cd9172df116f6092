"""What a turn waits for: an approval or a question, from the event that asks until it is closed."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from core.clock import now
from core.ids import event_id, uuid7
from orgs.models import ApiKey, User
from sessions_app.domain.vocabulary import WaitKind, WaitStatus
from sessions_app.models.choices import choices_of, known
from sessions_app.models.session import Session
from sessions_app.models.turn import Turn

OPEN = models.Q(status=WaitStatus.OPEN)
ASKS_PEOPLE = OPEN & ~models.Q(kind=WaitKind.CHILDREN)


class Wait(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="waits")
    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="waits")
    kind = models.CharField(max_length=16, choices=choices_of(WaitKind))
    status = models.CharField(
        max_length=16, choices=choices_of(WaitStatus), default=WaitStatus.OPEN
    )
    event_seq = models.BigIntegerField(
        help_text="Of the event that asks: agent.tool_use, or agent.question."
    )
    tool_use_seq = models.BigIntegerField()
    tool_name = models.CharField(max_length=128)
    request = models.JSONField(default=dict, help_text="{call_id, input} or {call_id, questions…}.")
    answer = models.JSONField(null=True)
    decided_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    decided_by_key = models.ForeignKey(
        ApiKey, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    expires_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=now, editable=False)
    decided_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            known("kind", WaitKind, "wait_kind_is_known"),
            known("status", WaitStatus, "wait_status_is_known"),
            models.UniqueConstraint(fields=["session", "event_seq"], name="one_wait_per_event"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["session", "id"], condition=OPEN, name="wait_open"),
            models.Index(
                fields=["expires_at"],
                condition=OPEN & models.Q(expires_at__isnull=False),
                name="wait_by_expiry",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} · {self.status}"

    @property
    def event_id(self) -> str:
        """The id of the event that asks: what a stop reason names and an answer refers to."""
        return event_id(self.session_id, self.event_seq)

    @property
    def tool_use_id(self) -> str:
        return event_id(self.session_id, self.tool_use_seq)
