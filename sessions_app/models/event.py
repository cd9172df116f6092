"""An immutable fact. The database refuses update and delete, and any gap in the numbering."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from django.db import models
from django.db.models.fields.json import KeyTextTransform

from sessions_app.models.session import Session


class AppendOnly(TypeError):
    """Events are written by `eventlog.append` alone, and never changed."""


class Event(models.Model):
    pk = models.CompositePrimaryKey("session_id", "seq")
    # No constraint in the database: the trigger that checks the numbering looks at the session
    # too, once a statement instead of once a row.
    session = models.ForeignKey(
        Session,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="+",
    )
    seq = models.BigIntegerField()
    type = models.CharField(max_length=64)
    version = models.PositiveSmallIntegerField(default=1)
    turn_id = models.UUIDField(null=True)
    attempt = models.PositiveIntegerField(null=True)
    payload = models.JSONField(default=dict)
    created_at = models.DateTimeField()

    class Meta:
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                "session",
                KeyTextTransform("child_id", "payload"),
                "seq",
                name="newest_child_result",
                condition=models.Q(type="child.result"),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type} #{self.seq}"

    def save(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise AppendOnly

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise AppendOnly
