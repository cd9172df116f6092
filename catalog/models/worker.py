"""Which workers live, and which kinds of providers they can reach."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models


class LiveWorker(models.Model):
    """A worker that says so every few seconds; one that fell silent is none."""

    token = models.UUIDField(primary_key=True)
    name = models.CharField(max_length=300)
    kinds = ArrayField(models.CharField(max_length=32))
    seen_at = models.DateTimeField(help_text="By the database's clock.")

    def __str__(self) -> str:
        return self.name
