"""An API key: shown once, kept as a digest, found by its prefix."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models

from core.clock import now
from core.ids import Prefix, encode_id, uuid7
from orgs.models.organization import Organization
from orgs.models.user import User
from orgs.models.workspace import Workspace


class ApiKey(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="api_keys"
    )
    workspace = models.ForeignKey(
        Workspace,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="api_keys",
        help_text="Empty: a key of the organization, for its maker's shared workspaces.",
    )
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=16, unique=True, editable=False)
    digest = models.CharField(max_length=64, editable=False)
    scopes = ArrayField(models.CharField(max_length=32))
    created_by = models.ForeignKey(
        User, on_delete=models.CASCADE, related_name="api_keys", editable=False
    )
    created_at = models.DateTimeField(default=now, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    replaced_by = models.OneToOneField(
        "self",
        on_delete=models.SET_NULL,
        null=True,
        editable=False,
        related_name="replaces",
        help_text="The key that was made in place of this one.",
    )

    class Meta:
        ordering: ClassVar[list[str]] = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    @property
    def public_id(self) -> str:
        return encode_id(Prefix.KEY, self.pk)
