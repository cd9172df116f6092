"""The audit log: every change of who may do what, and every look that needs to be known of.

Nothing is referred to by a foreign key: a line outlives what it tells of, names included.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from django.db import models

from core.clock import now
from core.ids import Prefix, encode_id, uuid7


class AuditAction(StrEnum):
    """What happened to the target. Stable words: filters and exports use them."""

    ORGANIZATION_CREATED = "organization.created"
    ORGANIZATION_UPDATED = "organization.updated"
    ORGANIZATION_REMOVED = "organization.removed"
    USER_UPDATED = "user.updated"
    USER_REMOVED = "user.removed"
    MEMBER_ADDED = "member.added"
    MEMBER_ROLE_CHANGED = "member.role_changed"
    MEMBER_REMOVED = "member.removed"
    MEMBER_LEFT = "member.left"
    INVITATION_CREATED = "invitation.created"
    INVITATION_REVOKED = "invitation.revoked"
    INVITATION_ACCEPTED = "invitation.accepted"
    WORKSPACE_CREATED = "workspace.created"
    WORKSPACE_UPDATED = "workspace.updated"
    WORKSPACE_REMOVED = "workspace.removed"
    WORKSPACE_MEMBER_ADDED = "workspace_member.added"
    WORKSPACE_MEMBER_ROLE_CHANGED = "workspace_member.role_changed"
    WORKSPACE_MEMBER_REMOVED = "workspace_member.removed"
    SERVICE_ACCOUNT_CREATED = "service_account.created"
    SERVICE_ACCOUNT_REMOVED = "service_account.removed"
    KEY_CREATED = "api_key.created"
    KEY_ROTATED = "api_key.rotated"
    KEY_REVOKED = "api_key.revoked"
    PROVIDER_CONNECTED = "provider.connected"
    PROVIDER_UPDATED = "provider.updated"
    PROVIDER_KEY_REPLACED = "provider.key_replaced"
    PROVIDER_REMOVED = "provider.removed"
    MODEL_ADDED = "model.added"
    MODEL_UPDATED = "model.updated"
    MODEL_REMOVED = "model.removed"
    AGENT_CREATED = "agent.created"
    AGENT_UPDATED = "agent.updated"
    AGENT_REMOVED = "agent.removed"
    SESSION_READ = "session.read"
    SESSION_REMOVED = "session.removed"
    ARCHIVE_CLEANED = "archive.cleaned"
    AUDIT_EXPORTED = "audit.exported"


class ActorKind(StrEnum):
    USER = "user"
    KEY = "key"
    OPERATOR = "operator"  # a person at /admin/
    SERVER = "server"  # a command of the operator, or the start of the demo


class AuditEntry(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization_id = models.UUIDField()
    workspace_id = models.UUIDField(null=True)
    at = models.DateTimeField(default=now)
    action = models.CharField(max_length=64, choices=[(a.value, a.value) for a in AuditAction])
    actor_kind = models.CharField(max_length=8, choices=[(k.value, k.value) for k in ActorKind])
    actor_id = models.UUIDField(null=True)
    actor_name = models.CharField(max_length=200)
    target_kind = models.CharField(max_length=32)
    target_id = models.CharField(max_length=64, help_text="Its public id.")
    target_name = models.CharField(max_length=300)
    changes = models.JSONField(default=dict, help_text="Field → [old, new]. Never a secret.")
    address = models.CharField(max_length=64, blank=True, help_text="Of the client.")
    request_id = models.CharField(max_length=64, blank=True)

    class Meta:
        verbose_name_plural = "audit entries"
        ordering: ClassVar[list[str]] = ["-at", "-id"]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["organization_id", "-at", "-id"], name="audit_by_time"),
            models.Index(
                fields=["organization_id", "-actor_id", "-at", "-id"], name="audit_by_actor"
            ),
            models.Index(
                fields=["organization_id", "action", "-at", "-id"], name="audit_by_action"
            ),
            models.Index(
                fields=["organization_id", "target_id", "-at", "-id"], name="audit_by_target"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.actor_name}: {self.action} {self.target_name}"

    @property
    def public_id(self) -> str:
        return encode_id(Prefix.AUDIT, self.pk)
