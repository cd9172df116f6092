"""A named configuration in a workspace; each session snapshots its own at creation."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models

from catalog.kinds import ReasoningEffort, Speed
from catalog.models.provider import Model
from core.clock import now
from core.ids import Prefix, encode_id, uuid7
from orgs.models import Workspace


class Agent(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="agents")
    name = models.CharField(max_length=100)
    instructions = models.TextField(blank=True, max_length=100_000)
    model = models.ForeignKey(
        Model,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="Empty: the organization's default.",
    )
    reasoning_effort = models.CharField(
        max_length=16, blank=True, choices=[(e.value, e.value) for e in ReasoningEffort]
    )
    speed = models.CharField(
        max_length=16,
        choices=[(s.value, s.value) for s in Speed],
        default=Speed.STANDARD,
    )
    tools = ArrayField(
        models.CharField(max_length=100),
        null=True,
        blank=True,
        help_text="Empty: the workspace's default tools, followed over time.",
    )
    is_default = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=now, editable=False)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["workspace"],
                condition=models.Q(is_default=True),
                name="one_default_agent_per_workspace",
            ),
            models.UniqueConstraint(
                fields=["workspace", "name"],
                name="agent_names_differ_within_a_workspace",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def public_id(self) -> str:
        return encode_id(Prefix.AGENT, self.pk)
