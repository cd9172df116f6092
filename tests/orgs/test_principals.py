"""Access is granted here alone, from what holds now."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from core.clock import now
from core.errors import Conflict, Forbidden, InvalidInput, Unauthenticated
from orgs.models import ApiKey
from orgs.principals import access_for_user, authenticate_key, current_epochs, refresh
from orgs.roles import (
    Action,
    OrganizationAction,
    OrganizationRole,
    Scope,
    WorkspaceKind,
    WorkspaceRole,
)
from orgs.services.founding import (
    add_organization_member,
    add_workspace_member,
    create_user,
    create_workspace,
)
from orgs.services.keys import issue_key, revoke_api_key
from orgs.services.service_accounts import create_service_account
from orgs.services.workspaces import remove_workspace_member
from tests.factories import PASSWORD, Cast, make_key


def test_a_person_has_their_roles_and_a_personal_workspace(cast: Cast) -> None:
    access = cast.access("member")
    kinds = {grant.kind: grant for grant in access.grants.values()}
    assert kinds[WorkspaceKind.SHARED].role == WorkspaceRole.MEMBER
    assert kinds[WorkspaceKind.PERSONAL].role == WorkspaceRole.ADMINISTRATOR
    assert access.grants[access.default_workspace_id].kind == WorkspaceKind.PERSONAL


def test_a_viewer_reads_and_no_more(cast: Cast) -> None:
    access = cast.access("viewer")
    assert access.may(Action.SESSION_READ, cast.workspace.pk)
    assert not access.may(Action.SESSION_CONTROL, cast.workspace.pk)
    assert not access.may(Action.SESSION_CREATE, cast.workspace.pk)
    # Not even to a session that they made before they became a viewer.
    assert not access.may(Action.SESSION_CONTROL, cast.workspace.pk, maker_id=cast.viewer.pk)


def test_a_member_administers_their_own_sessions_alone(cast: Cast) -> None:
    access, workspace = cast.access("member"), cast.workspace.pk
    assert access.may(Action.SESSION_ADMINISTER, workspace, maker_id=cast.member.pk)
    assert not access.may(Action.SESSION_ADMINISTER, workspace, maker_id=cast.owner.pk)
    assert not access.may(Action.SESSION_ADMINISTER, workspace, maker_id=None)


def test_an_outsider_has_nothing_here(cast: Cast) -> None:
    assert cast.workspace.pk not in cast.access("outsider").grants


def test_a_key_reaches_no_personal_workspace(cast: Cast) -> None:
    kinds = {grant.kind for grant in cast.access("organization_key").grants.values()}
    assert kinds == {WorkspaceKind.SHARED}
    personal = cast.owner.personal_workspaces.get()
    with pytest.raises(InvalidInput, match="workspace_not_shared"):
        make_key(cast.owner, cast.organization, personal, [Scope.FULL])


def test_a_key_does_no_more_than_its_maker_may_now(cast: Cast) -> None:
    assert cast.access("workspace_key").may(Action.SESSION_CONTROL, cast.workspace.pk)
    add_workspace_member(workspace=cast.workspace, user=cast.owner, role=WorkspaceRole.VIEWER)
    narrowed = cast.access("workspace_key")
    assert narrowed.may(Action.SESSION_READ, cast.workspace.pk)
    assert not narrowed.may(Action.SESSION_CONTROL, cast.workspace.pk)
    remove_workspace_member(
        access=cast.access("owner"), workspace_id=cast.workspace.pk, user_id=cast.owner.pk
    )
    assert not cast.access("workspace_key").grants


@pytest.mark.parametrize("kind", ["person", "service account"])
def test_an_organizations_key_reads_only_where_its_maker_has_a_role(cast: Cast, kind: str) -> None:
    """Its maker administers the organization, and reads no transcript for that."""
    if kind == "person":
        maker = create_user(email="ines@example.test", name="Ines Roy", password=PASSWORD)
        add_organization_member(
            organization=cast.organization, user=maker, role=OrganizationRole.ADMIN
        )
    else:
        maker = create_service_account(
            access=cast.access("owner"),
            organization_id=cast.organization.pk,
            name="Shop",
            role=OrganizationRole.ADMIN,
        )
    key = make_key(maker, cast.organization, None, [Scope.FULL])
    assert key.access.may_in(OrganizationAction.MANAGE, cast.organization.pk)
    assert not key.access.grants
    add_workspace_member(workspace=cast.workspace, user=maker, role=WorkspaceRole.VIEWER)
    assert list(key.access.grants) == [cast.workspace.pk]
    assert key.access.may(Action.SESSION_READ, cast.workspace.pk)
    assert not key.access.may(Action.SESSION_CONTROL, cast.workspace.pk)


def test_an_organization_key_stops_when_its_maker_is_no_admin_any_more(cast: Cast) -> None:
    assert cast.access("organization_key").grants
    add_organization_member(
        organization=cast.organization, user=cast.owner, role=OrganizationRole.MEMBER
    )
    assert not cast.access("organization_key").grants


@pytest.mark.parametrize("maker", ["member", "viewer", "outsider"])
def test_only_administrators_make_keys(cast: Cast, maker: str) -> None:
    for workspace in (cast.workspace, None):
        with pytest.raises(Forbidden):
            make_key(getattr(cast, maker), cast.organization, workspace, [Scope.READ])


def test_a_secret_is_kept_as_a_digest_alone(cast: Cast) -> None:
    key = cast.workspace_key
    stored = ApiKey.objects.values().get(pk=key.row.pk)
    assert key.secret not in {str(value) for value in stored.values()}
    assert key.secret.startswith(f"{stored['prefix']}_")


def test_dead_keys_are_refused_each_for_its_reason(cast: Cast) -> None:
    key = cast.workspace_key
    with pytest.raises(Unauthenticated, match="invalid_api_key"):
        authenticate_key(key.secret[:-1] + "!")
    with pytest.raises(Unauthenticated, match="invalid_api_key"):
        authenticate_key("sed_w_\ud800\x00")
    ApiKey.objects.filter(pk=key.row.pk).update(expires_at=now() - timedelta(seconds=1))
    with pytest.raises(Unauthenticated, match="expired_api_key"):
        authenticate_key(key.secret)
    revoke_api_key(key=key.row)
    with pytest.raises(Unauthenticated, match="revoked_api_key"):
        authenticate_key(key.secret)


def test_last_use_is_written_at_most_once_a_minute(cast: Cast) -> None:
    secret = cast.workspace_key.secret
    authenticate_key(secret)
    with CaptureQueriesContext(connection) as queries:
        authenticate_key(secret)
    assert not [q for q in queries if q["sql"].startswith("UPDATE")]


def test_a_deactivated_person_and_a_revoked_key_refresh_to_nothing(cast: Cast) -> None:
    member, key = cast.access("member"), cast.access("workspace_key")
    cast.member.is_active = False
    cast.member.save()
    revoke_api_key(key=cast.workspace_key.row)
    assert refresh(member) is None
    assert refresh(key) is None


def test_every_change_of_a_grant_moves_the_epoch(cast: Cast) -> None:
    organization = cast.organization
    changes = [
        lambda: add_workspace_member(
            workspace=cast.workspace, user=cast.viewer, role=WorkspaceRole.MEMBER
        ),
        lambda: remove_workspace_member(
            access=cast.access("owner"), workspace_id=cast.workspace.pk, user_id=cast.viewer.pk
        ),
        lambda: revoke_api_key(key=cast.workspace_key.row),
        lambda: add_organization_member(
            organization=organization, user=cast.viewer, role=OrganizationRole.ADMIN
        ),
        lambda: create_workspace(organization=organization, name="Lab", administrator=cast.owner),
    ]
    for change in changes:
        before = current_epochs([organization.pk])[organization.pk]
        change()
        assert current_epochs([organization.pk])[organization.pk] > before


def test_access_costs_the_same_whatever_the_number_of_workspaces(cast: Cast) -> None:
    counts = set()
    for number in range(3):
        create_workspace(
            organization=cast.organization, name=f"Lab {number}", administrator=cast.owner
        )
        with CaptureQueriesContext(connection) as queries:
            access_for_user(cast.owner)
        counts.add(len(queries))
    assert counts == {3}


def test_an_address_signs_in_one_person_whatever_its_case(cast: Cast) -> None:
    with pytest.raises(Conflict, match="email_taken"):
        create_user(email=cast.owner.email.upper(), name="Twin", password=PASSWORD)


def test_a_key_needs_a_scope(cast: Cast) -> None:
    with pytest.raises(InvalidInput, match="scopes_required"):
        issue_key(maker=cast.owner, name="Key", scopes=[], organization=cast.organization)
