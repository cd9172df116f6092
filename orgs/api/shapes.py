"""The shapes of bodies and query strings of organizations. Rules are in services."""

from __future__ import annotations

from typing import ClassVar

from rest_framework import serializers

from core.api.fields import Flag, Moment, PublicId, StrictSerializer, Text, Whole
from core.api.pagination import PageQuery
from core.ids import Prefix
from orgs.models.audit import ActorKind, AuditAction
from orgs.roles import OrganizationRole, WorkspaceRole

SCOPES_MAX = 20


def _choices(
    kind: type[OrganizationRole | WorkspaceRole | ActorKind | AuditAction],
) -> list[tuple[str, str]]:
    return [(each.value, each.value) for each in kind]


class UpdateOrganization(StrictSerializer):
    name = Text(required=False, max_length=1_000)
    allows_private_sessions = Flag(required=False)


class SetOrganizationRole(StrictSerializer):
    role = serializers.ChoiceField(choices=_choices(OrganizationRole))


class SetWorkspaceRole(StrictSerializer):
    role = serializers.ChoiceField(choices=_choices(WorkspaceRole))


class CreateInvitation(StrictSerializer):
    email = Text(max_length=1_000)
    role = serializers.ChoiceField(
        choices=_choices(OrganizationRole), default=OrganizationRole.MEMBER
    )
    workspace_id = PublicId(Prefix.WORKSPACE, required=False, allow_null=True)
    workspace_role = serializers.ChoiceField(
        choices=_choices(WorkspaceRole), required=False, allow_null=True
    )


class CreateServiceAccount(StrictSerializer):
    name = Text(max_length=1_000)
    role = serializers.ChoiceField(
        choices=_choices(OrganizationRole), default=OrganizationRole.MEMBER
    )


class CreateKey(StrictSerializer):
    name = Text(max_length=1_000)
    scopes = serializers.ListField(child=Text(max_length=100), max_length=SCOPES_MAX)
    workspace_id = PublicId(Prefix.WORKSPACE, required=False, allow_null=True)
    service_account_id = PublicId(Prefix.USER, required=False, allow_null=True)
    lifetime_days = Whole(min_value=1, max_value=36_500, required=False, allow_null=True)


class RotateKey(StrictSerializer):
    overlap_seconds = Whole(min_value=0, max_value=31_536_000, default=0)


class CreateWorkspace(StrictSerializer):
    organization_id = PublicId(Prefix.ORGANIZATION)
    name = Text(max_length=1_000)


class AuditListQuery(PageQuery):
    action = serializers.ChoiceField(choices=_choices(AuditAction), required=False)
    actor_kind = serializers.ChoiceField(choices=_choices(ActorKind), required=False)
    actor_id = Text(required=False, max_length=64, help_text="A `usr_` or `key_` id.")
    target_id = Text(required=False, max_length=64, help_text="The id of what was changed.")

    named: ClassVar = {
        "created_at[gte]": Moment(required=False),
        "created_at[lt]": Moment(required=False),
    }
