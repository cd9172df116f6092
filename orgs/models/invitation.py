"""An invitation: bound to one e-mail address, good once, and for some days."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models.functions import Lower

from core.clock import now
from core.ids import Prefix, encode_id, uuid7
from orgs.models.organization import Organization
from orgs.models.user import User
from orgs.models.workspace import Workspace
from orgs.roles import OrganizationRole, WorkspaceRole

OPEN = models.Q(accepted_at__isnull=True, revoked_at__isnull=True)


class Invitation(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="invitations"
    )
    email = models.EmailField(max_length=254)
    role = models.CharField(max_length=16, choices=[(r.value, r.value) for r in OrganizationRole])
    workspace = models.ForeignKey(
        Workspace,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="invitations",
        help_text="Which they join as well.",
    )
    workspace_role = models.CharField(
        max_length=16, blank=True, choices=[(r.value, r.value) for r in WorkspaceRole]
    )
    digest = models.CharField(
        max_length=64,
        unique=True,
        null=True,
        editable=False,
        help_text="Of the link's token; empty once the link is dead and swept.",
    )
    invited_by = models.ForeignKey(
        User, on_delete=models.SET_NULL, null=True, related_name="+", editable=False
    )
    created_at = models.DateTimeField(default=now, editable=False)
    expires_at = models.DateTimeField(editable=False)
    accepted_at = models.DateTimeField(null=True, editable=False)
    accepted_by = models.ForeignKey(
        User, on_delete=models.SET_NULL, null=True, related_name="+", editable=False
    )
    revoked_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        ordering: ClassVar[list[str]] = ["-created_at"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                "organization", Lower("email"), condition=OPEN, name="one_open_invitation_per_email"
            ),
            models.CheckConstraint(
                condition=models.Q(workspace__isnull=True, workspace_role="")
                | models.Q(workspace__isnull=False) & ~models.Q(workspace_role=""),
                name="invitation_names_a_role_with_a_workspace",
            ),
        ]

    def __str__(self) -> str:
        return self.email

    @property
    def public_id(self) -> str:
        return encode_id(Prefix.INVITATION, self.pk)

    @property
    def name(self) -> str:
        return self.email

    @property
    def is_open(self) -> bool:
        return self.accepted_at is None and self.revoked_at is None and self.expires_at > now()
