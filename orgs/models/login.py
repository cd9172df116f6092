"""A login: one browser that somebody signed in with. Its row is what its cookie is good for."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from core.clock import now
from core.ids import Prefix, encode_id, uuid7
from orgs.models.user import User


class Login(models.Model):
    """Without its row a cookie is worth nothing: to end a login is to delete it."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    digest = models.CharField(max_length=64, unique=True, help_text="Of the cookie's value.")
    user = models.ForeignKey(
        User,
        on_delete=models.CASCADE,
        null=True,
        related_name="logins",
        help_text="Empty where nobody has signed in yet.",
    )
    data = models.TextField(help_text="What the server keeps for it, signed.")
    created_at = models.DateTimeField(default=now)
    last_used_at = models.DateTimeField(default=now)
    expires_at = models.DateTimeField(db_index=True)
    address = models.CharField(max_length=64, blank=True, help_text="From where it was last used.")
    user_agent = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering: ClassVar[list[str]] = ["-last_used_at"]

    def __str__(self) -> str:
        return self.public_id

    @property
    def public_id(self) -> str:
        return encode_id(Prefix.LOGIN, self.pk)
