"""What all processes of an installation count together. Nothing here outlives a crash, or needs to:
the tables are unlogged, so that counting costs no flush to disk.
"""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models


class Budget(models.Model):
    """How many requests a principal may still make: see `core.rate_limit`."""

    key = models.CharField(primary_key=True, max_length=64)
    tokens = models.FloatField()
    at = models.DateTimeField(db_index=True)


class RecentTries(models.Model):
    """When something was tried lately: see `core.tries`."""

    key = models.CharField(primary_key=True, max_length=64)
    times = ArrayField(models.FloatField(), help_text="Seconds since 1970, rising.")
    last_at = models.DateTimeField(db_index=True)
