"""Folders, which all of a workspace share; and which groups each person keeps shut."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models.functions import Lower

from core.clock import now
from core.ids import Prefix, encode_id, uuid7
from orgs.models import User, Workspace

FOLDER_NAME_MAX_CHARACTERS = 100


class Folder(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="folders")
    name = models.CharField(max_length=FOLDER_NAME_MAX_CHARACTERS)
    position = models.PositiveIntegerField(help_text="From 1, without gaps.")
    created_at = models.DateTimeField(default=now, editable=False)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint("workspace", Lower("name"), name="one_folder_per_name"),
        ]

    def __str__(self) -> str:
        return self.public_id

    @property
    def public_id(self) -> str:
        return encode_id(Prefix.FOLDER, self.pk)


class FoldedGroup(models.Model):
    """A group of the sidebar that one person keeps shut: a folder, or one of the others."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    folder = models.ForeignKey(Folder, on_delete=models.CASCADE, null=True, related_name="+")
    group = models.CharField(max_length=16, blank=True, help_text="Empty for a folder.")

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["user", "workspace", "folder", "group"],
                nulls_distinct=False,
                name="one_fold_per_group",
            ),
        ]

    def __str__(self) -> str:
        return f"fold of {self.user_id}"
