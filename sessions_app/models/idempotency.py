"""The first answer to a request that carried an idempotency key."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from core.clock import now


class IdempotencyRecord(models.Model):
    principal = models.CharField(max_length=64)
    route = models.CharField(max_length=100)
    target = models.CharField(max_length=64, blank=True)
    key = models.CharField(max_length=255)
    fingerprint = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(default=0)
    response = models.TextField(
        blank=True, help_text="Empty: the session it told of was deleted since."
    )
    session_id = models.UUIDField(null=True)
    created_at = models.DateTimeField(default=now)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["principal", "route", "target", "key"],
                name="idempotency_keys_differ",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["created_at"], name="idempotency_by_age"),
            models.Index(fields=["session_id"], name="idempotency_by_session"),
        ]
