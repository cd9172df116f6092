"""What the API shows of organizations: for the answers and for their description."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from rest_framework import serializers

from core.api.pagination import PageObject
from core.clock import rfc3339
from core.ids import Prefix, encode_id
from orgs.access import OrganizationGrant
from orgs.mail import Delivery
from orgs.models import (
    ApiKey,
    AuditEntry,
    Invitation,
    Organization,
    OrganizationMembership,
    User,
    WorkspaceMembership,
)


def _kind(name: str) -> serializers.ChoiceField:
    return serializers.ChoiceField(choices=[(name, name)])


class OrganizationObject(serializers.Serializer[Any]):
    id = serializers.CharField()
    type = _kind("organization")
    name = serializers.CharField()
    role = serializers.CharField(allow_null=True, help_text="Null for keys: their scopes decide.")
    actions = serializers.ListField(child=serializers.CharField())


class OrganizationSettingsObject(OrganizationObject):
    allows_private_sessions = serializers.BooleanField()
    created_at = serializers.DateTimeField()


class MemberObject(serializers.Serializer[Any]):
    id = serializers.CharField()
    type = _kind("member")
    kind = serializers.ChoiceField(choices=[("person", "person"), ("service", "service")])
    name = serializers.CharField()
    email = serializers.CharField(allow_null=True, help_text="Null for a service account.")
    role = serializers.CharField()
    created_at = serializers.DateTimeField(help_text="Since when.")


class InvitationObject(serializers.Serializer[Any]):
    id = serializers.CharField()
    type = _kind("invitation")
    email = serializers.CharField()
    role = serializers.CharField()
    workspace_id = serializers.CharField(allow_null=True)
    workspace_role = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()
    is_mailed = serializers.BooleanField(
        required=False,
        help_text="In the answer to its creation alone: whether the mail server took the mail. If "
        "not, it may yet; inviting the address again sends another.",
    )
    link = serializers.CharField(
        required=False,
        help_text="In the answer to its creation alone, and only where no mail "
        "server is set: pass it on to whom you invite. It is not shown again.",
    )


class ApiKeyObject(serializers.Serializer[Any]):
    id = serializers.CharField()
    type = _kind("api_key")
    name = serializers.CharField()
    prefix = serializers.CharField(help_text="What the key begins with.")
    scopes = serializers.ListField(child=serializers.CharField())
    workspace_id = serializers.CharField(allow_null=True)
    owner_id = serializers.CharField(help_text="The person or service account it acts for.")
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)
    revoked_at = serializers.DateTimeField(allow_null=True)
    last_used_at = serializers.DateTimeField(allow_null=True)
    replaced_by_id = serializers.CharField(
        allow_null=True, help_text="The key that was made in its place."
    )
    key = serializers.CharField(
        required=False, help_text="In the answer to its creation alone: it is kept as a digest."
    )


class AuditEntryObject(serializers.Serializer[Any]):
    id = serializers.CharField()
    type = _kind("audit_entry")
    at = serializers.DateTimeField()
    action = serializers.CharField()
    actor = serializers.JSONField(help_text="{kind, id, name}")
    target = serializers.JSONField(help_text="{kind, id, name}")
    workspace_id = serializers.CharField(allow_null=True)
    changes = serializers.JSONField(help_text="Field → [old, new].")
    address = serializers.CharField(allow_null=True, help_text="Of the client.")


class OrganizationPageObject(PageObject):
    data = OrganizationObject(many=True)  # type: ignore[assignment]


class MemberPageObject(PageObject):
    data = MemberObject(many=True)  # type: ignore[assignment]


class InvitationPageObject(PageObject):
    data = InvitationObject(many=True)  # type: ignore[assignment]


class ApiKeyPageObject(PageObject):
    data = ApiKeyObject(many=True)  # type: ignore[assignment]


class AuditPageObject(PageObject):
    data = AuditEntryObject(many=True)  # type: ignore[assignment]


def organization_json(pk: UUID, grant: OrganizationGrant) -> dict[str, Any]:
    return {
        "id": encode_id(Prefix.ORGANIZATION, pk),
        "type": "organization",
        "name": grant.name,
        "role": grant.role,
        "actions": sorted(grant.actions),
    }


def settings_json(organization: Organization, grant: OrganizationGrant) -> dict[str, Any]:
    return organization_json(organization.pk, grant) | {
        "name": organization.name,
        "allows_private_sessions": organization.allows_private_sessions,
        "created_at": rfc3339(organization.created_at),
    }


def member_json(membership: OrganizationMembership | WorkspaceMembership) -> dict[str, Any]:
    user: User = membership.user
    return {
        "id": user.public_id,
        "type": "member",
        "kind": "service" if user.is_service_account else "person",
        "name": user.name,
        "email": None if user.is_service_account else user.email,
        "role": membership.role,
        "created_at": rfc3339(membership.created_at),
    }


def invitation_json(invitation: Invitation, delivery: Delivery | None = None) -> dict[str, Any]:
    shown = {
        "id": invitation.public_id,
        "type": "invitation",
        "email": invitation.email,
        "role": invitation.role,
        "workspace_id": _workspace_id(invitation.workspace_id),
        "workspace_role": invitation.workspace_role or None,
        "created_at": rfc3339(invitation.created_at),
        "expires_at": rfc3339(invitation.expires_at),
    }
    if delivery is None:
        return shown
    link = {"link": delivery.link} if delivery.link else {}
    return {**shown, "is_mailed": delivery.is_mailed, **link}


def key_json(key: ApiKey, secret: str | None = None) -> dict[str, Any]:
    shown = {
        "id": key.public_id,
        "type": "api_key",
        "name": key.name,
        "prefix": key.prefix,
        "scopes": key.scopes,
        "workspace_id": _workspace_id(key.workspace_id),
        "owner_id": encode_id(Prefix.USER, key.created_by_id),
        "created_at": rfc3339(key.created_at),
        "expires_at": rfc3339(key.expires_at),
        "revoked_at": rfc3339(key.revoked_at),
        "last_used_at": rfc3339(key.last_used_at),
        "replaced_by_id": encode_id(Prefix.KEY, key.replaced_by_id) if key.replaced_by_id else None,
    }
    return shown if secret is None else {**shown, "key": secret}


def audit_json(entry: AuditEntry) -> dict[str, Any]:
    prefix = Prefix.KEY if entry.actor_kind == "key" else Prefix.USER
    actor_id = encode_id(prefix, entry.actor_id) if entry.actor_id else None
    return {
        "id": entry.public_id,
        "type": "audit_entry",
        "at": rfc3339(entry.at),
        "action": entry.action,
        "actor": {"kind": entry.actor_kind, "id": actor_id, "name": entry.actor_name},
        "target": {"kind": entry.target_kind, "id": entry.target_id, "name": entry.target_name},
        "workspace_id": _workspace_id(entry.workspace_id),
        "changes": entry.changes,
        "address": entry.address or None,
    }


def _workspace_id(pk: UUID | None) -> str | None:
    return encode_id(Prefix.WORKSPACE, pk) if pk else None
