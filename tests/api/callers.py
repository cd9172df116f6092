"""The keys of the access matrix beyond those of the cast, each as it comes to be."""

from __future__ import annotations

from datetime import timedelta

from core.clock import now
from orgs.models import User
from orgs.roles import Action, OrganizationRole, Scope, WorkspaceRole
from orgs.services.founding import add_organization_member, add_workspace_member, create_user
from orgs.services.keys import NewKey, create_key, revoke_api_key
from orgs.services.members import remove_organization_member
from orgs.services.service_accounts import create_service_account
from orgs.services.workspaces import set_workspace_role
from tests.factories import PASSWORD, Cast, Key, make_key


def secrets_of_keys(cast: Cast) -> dict[str, str]:
    """By the names of the matrix' columns."""
    owner, organization, workspace = cast.owner, cast.organization, cast.workspace
    expired, revoked = (make_key(owner, organization, workspace, [Scope.FULL]) for _ in "ab")
    expired.row.expires_at = now() - timedelta(seconds=1)
    expired.row.save()
    revoke_api_key(key=revoked.row)
    keys = {
        "write_key": make_key(owner, organization, workspace, [Scope.WRITE]),
        "action_key": make_key(owner, organization, workspace, [Action.SESSION_READ]),
        "organization_read_key": make_key(owner, organization, None, [Scope.READ]),
        "demoted_key": _of_somebody_demoted(cast),
        "expired_key": expired,
        "revoked_key": revoked,
        "removed_key": _of_somebody_removed(cast),
    }
    return {name: key.secret for name, key in keys.items()} | {"service_key": _of_service(cast)}


def _administrator(cast: Cast, name: str) -> User:
    user = create_user(email=f"{name.lower()}@example.test", name=name, password=PASSWORD)
    add_organization_member(organization=cast.organization, user=user, role=OrganizationRole.MEMBER)
    add_workspace_member(workspace=cast.workspace, user=user, role=WorkspaceRole.ADMINISTRATOR)
    return user


def _of_somebody_demoted(cast: Cast) -> Key:
    maker = _administrator(cast, "Henrik")
    key = make_key(maker, cast.organization, cast.workspace, [Scope.FULL])
    _set_role(cast, maker, WorkspaceRole.VIEWER)
    return key


def _of_somebody_removed(cast: Cast) -> Key:
    maker = _administrator(cast, "Ingrid")
    key = make_key(maker, cast.organization, cast.workspace, [Scope.FULL])
    remove_organization_member(
        access=cast.access("owner"), organization_id=cast.organization.pk, user_id=maker.pk
    )
    return key


def _of_service(cast: Cast) -> str:
    owner, organization_id = cast.access("owner"), cast.organization.pk
    account = create_service_account(access=owner, organization_id=organization_id, name="CI")
    _set_role(cast, account, WorkspaceRole.ADMINISTRATOR)
    new = NewKey("CI", ["full"], workspace_id=cast.workspace.pk, service_account_id=account.pk)
    _, secret = create_key(access=owner, organization_id=organization_id, new=new)
    _set_role(cast, account, WorkspaceRole.MEMBER)
    return secret


def _set_role(cast: Cast, user: User, role: WorkspaceRole) -> None:
    set_workspace_role(
        access=cast.access("owner"),
        workspace_id=cast.workspace.pk,
        user_id=user.pk,
        role=role,
    )
