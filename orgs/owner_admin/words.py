"""How roles, actions and changes are called on pages."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from orgs.models import AuditEntry
from orgs.models.audit import AuditAction
from orgs.roles import OrganizationRole, WorkspaceRole

ORGANIZATION_ROLE_WORDS: Mapping[OrganizationRole, str] = {
    OrganizationRole.MEMBER: "Member",
    OrganizationRole.ADMIN: "Admin",
    OrganizationRole.OWNER: "Owner",
}
WORKSPACE_ROLE_WORDS: Mapping[WorkspaceRole, str] = {
    WorkspaceRole.VIEWER: "Viewer",
    WorkspaceRole.MEMBER: "Member",
    WorkspaceRole.ADMINISTRATOR: "Administrator",
}
ACTION_WORDS: Mapping[AuditAction, str] = {
    AuditAction.ORGANIZATION_CREATED: "made organization",
    AuditAction.ORGANIZATION_UPDATED: "changed settings of",
    AuditAction.ORGANIZATION_REMOVED: "removed organization",
    AuditAction.USER_UPDATED: "changed the login of",
    AuditAction.USER_REMOVED: "removed the login of",
    AuditAction.MEMBER_ADDED: "added member",
    AuditAction.MEMBER_ROLE_CHANGED: "changed role of",
    AuditAction.MEMBER_REMOVED: "removed member",
    AuditAction.MEMBER_LEFT: "left:",
    AuditAction.INVITATION_CREATED: "invited",
    AuditAction.INVITATION_REVOKED: "revoked invitation of",
    AuditAction.INVITATION_ACCEPTED: "accepted invitation",
    AuditAction.WORKSPACE_CREATED: "made workspace",
    AuditAction.WORKSPACE_UPDATED: "changed workspace",
    AuditAction.WORKSPACE_REMOVED: "removed workspace",
    AuditAction.WORKSPACE_MEMBER_ADDED: "added workspace member",
    AuditAction.WORKSPACE_MEMBER_ROLE_CHANGED: "changed workspace role of",
    AuditAction.WORKSPACE_MEMBER_REMOVED: "removed workspace member",
    AuditAction.SERVICE_ACCOUNT_CREATED: "made service account",
    AuditAction.SERVICE_ACCOUNT_REMOVED: "removed service account",
    AuditAction.KEY_CREATED: "made key",
    AuditAction.KEY_ROTATED: "rotated key",
    AuditAction.KEY_REVOKED: "revoked key",
    AuditAction.PROVIDER_CONNECTED: "connected provider",
    AuditAction.PROVIDER_UPDATED: "changed provider",
    AuditAction.PROVIDER_KEY_REPLACED: "replaced the key of",
    AuditAction.PROVIDER_REMOVED: "removed provider",
    AuditAction.MODEL_ADDED: "added model",
    AuditAction.MODEL_UPDATED: "changed model",
    AuditAction.MODEL_REMOVED: "removed model",
    AuditAction.AGENT_CREATED: "made agent",
    AuditAction.AGENT_UPDATED: "changed agent",
    AuditAction.AGENT_REMOVED: "removed agent",
    AuditAction.SESSION_READ: "read session",
    AuditAction.SESSION_REMOVED: "removed session",
    AuditAction.ARCHIVE_CLEANED: "removed archived sessions of",
    AuditAction.AUDIT_EXPORTED: "exported the audit log of",
}
FIELD_WORDS: Mapping[str, str] = {
    "allows_private_sessions": "Only me",
    "expires_at": "expires",
    "old_key_ends_at": "the old key ends",
    "prefix": "begins with",
    "workspace_role": "role in the workspace",
    "base_url": "base URL",
    "key_ends_with": "key ends with",
    "is_enabled": "switched",
    "is_default": "default",
    "model_id": "model",
    "display_name": "name",
    "context_size": "context",
    "input_price": "price of input",
    "output_price": "price of output",
}


def label_of(action: AuditAction) -> str:
    """On its own, without whom it was done to."""
    return ACTION_WORDS[action].removesuffix(" of").removesuffix(":").capitalize()


def say_action(entry: AuditEntry) -> str:
    """The word for it; what a newer version wrote stands under its own name."""
    known = {action.value: word for action, word in ACTION_WORDS.items()}
    return known.get(entry.action, entry.action)


def say_changes(entry: AuditEntry) -> list[dict[str, str]]:
    said = (
        (field, _say(field, old), _say(field, new)) for field, (old, new) in entry.changes.items()
    )
    return [
        {"field": FIELD_WORDS.get(field, field.replace("_", " ")), "old": old, "new": new}
        for field, old, new in said
        if old or new
    ]


def _say(field: str, value: Any) -> str:
    if field.endswith("_at") and isinstance(value, str):
        return f"{datetime.fromisoformat(value):%Y-%m-%d %H:%M} UTC"
    return say_value(value)


def say_value(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(f"{name} {inner}" for name, inner in value.items())
    return "" if value is None else str(value)
