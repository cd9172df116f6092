"""What is one person's own about a session: pin, read mark, unsent text."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from core.clock import now
from orgs.models import User, Workspace
from sessions_app.models.session import Session
from sessions_app.models.turn import Turn


class PersonalState(models.Model):
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="personal_states")
    pinned_at = models.DateTimeField(null=True)
    follows = models.BooleanField(default=False, help_text="Made it, sent to it, or chose to.")
    read_seq = models.BigIntegerField(default=0)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["session", "user"], name="one_state_per_person"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["user", "-pinned_at"],
                condition=models.Q(pinned_at__isnull=False),
                name="state_by_pin",
            ),
        ]


class ComposerDraft(models.Model):
    """A person's unsent text: of one session, or (session empty) of a workspace's new one."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    session = models.ForeignKey(Session, on_delete=models.CASCADE, null=True, related_name="+")
    text = models.TextField(blank=True)
    revision = models.PositiveIntegerField(default=0)
    edits = models.ForeignKey(
        Turn,
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
        help_text="The prompt taken out of the queue for this; sent again, it has that place.",
    )
    updated_at = models.DateTimeField(default=now)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["user", "workspace", "session"],
                nulls_distinct=False,
                name="one_composer_draft_per_place",
            ),
        ]
