"""Turns and their attempts. The database referees: one started turn, one live attempt."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from core.clock import now
from core.ids import Prefix, encode_id, uuid7
from orgs.models import ApiKey, User
from sessions_app.domain.vocabulary import (
    STARTED_UNFINISHED,
    AttemptStatus,
    TurnSource,
    TurnStatus,
    WaitStatus,
)
from sessions_app.models.choices import choices_of, known
from sessions_app.models.session import Session

# People's prompts before machines', and before both what took the place of a running turn.
QUEUE_ORDER = ("-is_steering", "source", "rank", "number")


class Turn(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="turns")
    number = models.PositiveIntegerField()
    status = models.CharField(
        max_length=16, choices=choices_of(TurnStatus), default=TurnStatus.QUEUED
    )
    source = models.CharField(
        max_length=16, choices=choices_of(TurnSource), default=TurnSource.HUMAN
    )
    rank = models.BigIntegerField(help_text="Order in the queue, within its source.")
    is_steering = models.BooleanField(
        default=False, help_text="It took the place of the running turn: it goes before the queue."
    )
    retry_of = models.OneToOneField(
        "self", on_delete=models.SET_NULL, null=True, related_name="retried_by"
    )
    author = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    author_key = models.ForeignKey(ApiKey, on_delete=models.SET_NULL, null=True, related_name="+")
    prompt_seq = models.BigIntegerField(help_text="The seq of its user.message.")
    preview_text = models.CharField(max_length=200, blank=True)
    requested_settings = models.JSONField(default=dict)
    settings = models.JSONField(null=True, help_text="Frozen when it starts.")
    model_reason = models.CharField(max_length=32, blank=True)
    attempt_count = models.PositiveIntegerField(default=0)
    step_count = models.PositiveIntegerField(default=0)
    losses = models.PositiveIntegerField(default=0, help_text="Attempts lost in a row.")
    error = models.JSONField(null=True)
    started_seq = models.BigIntegerField(null=True)
    created_at = models.DateTimeField(default=now, editable=False)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            known("status", TurnStatus, "turn_status_is_known"),
            models.UniqueConstraint(fields=["session", "number"], name="turn_numbers_differ"),
            models.UniqueConstraint(
                fields=["session"],
                condition=models.Q(status__in=sorted(STARTED_UNFINISHED)),
                name="one_unfinished_started_turn_per_session",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["session", "-is_steering", "source", "rank", "number"],
                condition=models.Q(status=TurnStatus.QUEUED),
                name="turn_queue",
            ),
        ]

    def __str__(self) -> str:
        return f"turn {self.number} · {self.status}"

    @property
    def may_be_claimed(self) -> bool:
        """It has started, and nothing but a worker is missing."""
        if self.status == TurnStatus.WAITING:
            return not self.waits.filter(status=WaitStatus.OPEN).exists()
        return self.status == TurnStatus.RECOVERING

    @property
    def public_id(self) -> str:
        return encode_id(Prefix.TURN, self.pk)


class Attempt(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="attempts")
    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="attempts")
    number = models.PositiveIntegerField()
    status = models.CharField(
        max_length=16, choices=choices_of(AttemptStatus), default=AttemptStatus.RUNNING
    )
    worker = models.CharField(max_length=200)
    token = models.UUIDField(help_text="Unique per worker process, whatever its host is called.")
    lease_expires_at = models.DateTimeField()
    started_at = models.DateTimeField(default=now)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            known("status", AttemptStatus, "attempt_status_is_known"),
            models.UniqueConstraint(fields=["turn", "number"], name="attempt_numbers_differ"),
            models.UniqueConstraint(
                fields=["session"],
                condition=models.Q(status=AttemptStatus.RUNNING),
                name="one_live_attempt_per_session",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["lease_expires_at"],
                condition=models.Q(status=AttemptStatus.RUNNING),
                name="attempt_by_lease",
            ),
        ]

    def __str__(self) -> str:
        return f"attempt {self.number} · {self.status}"

    @property
    def public_id(self) -> str:
        return encode_id(Prefix.ATTEMPT, self.pk)
