"""Pause and Resume of a whole workspace: the revisions of the last of each."""

from __future__ import annotations

from django.db import models

from orgs.models import Workspace


class WorkspaceHold(models.Model):
    workspace = models.OneToOneField(Workspace, on_delete=models.CASCADE, related_name="+")
    pause_revision = models.BigIntegerField(default=0)
    resume_revision = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"hold of {self.workspace_id}"

    @property
    def stands(self) -> bool:
        """A pause was the last word here."""
        return self.pause_revision > self.resume_revision
