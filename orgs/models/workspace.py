"""Where sessions live: shared by members, or one person's own."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from core.clock import now
from core.ids import Prefix, encode_id, uuid7
from orgs.models.organization import Organization
from orgs.models.user import User
from orgs.roles import WorkspaceKind, WorkspaceRole


class Workspace(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="workspaces"
    )
    name = models.CharField(max_length=100)
    kind = models.CharField(
        max_length=8,
        choices=[(k.value, k.value) for k in WorkspaceKind],
        default=WorkspaceKind.SHARED,
    )
    person = models.ForeignKey(
        User,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="personal_workspaces",
        help_text="Whose personal workspace this is; empty for a shared one.",
    )
    created_at = models.DateTimeField(default=now, editable=False)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                condition=models.Q(kind=WorkspaceKind.PERSONAL, person__isnull=False)
                | models.Q(kind=WorkspaceKind.SHARED, person__isnull=True),
                name="personal_workspace_has_a_person",
            ),
            models.UniqueConstraint(
                fields=["organization", "person"],
                condition=models.Q(person__isnull=False),
                name="one_personal_workspace_per_person",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def public_id(self) -> str:
        return encode_id(Prefix.WORKSPACE, self.pk)


class WorkspaceMembership(models.Model):
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="workspace_memberships")
    role = models.CharField(max_length=16, choices=[(r.value, r.value) for r in WorkspaceRole])
    created_at = models.DateTimeField(default=now, editable=False)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["workspace", "user"], name="one_workspace_membership_per_user"
            ),
            models.CheckConstraint(
                condition=models.Q(role__in=[r.value for r in WorkspaceRole]),
                name="workspace_role_is_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user} · {self.role}"
