"""Keys: who creates them, what they may do, how they are replaced; and accounts that own them."""

from __future__ import annotations

import secrets
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.db import connection
from django.db.models import F

from core.clock import now
from core.errors import Conflict, DomainError, Forbidden, InvalidInput, NotFound, Unauthenticated
from orgs.models import ApiKey, AuditEntry, User
from orgs.principals import authenticate_key
from orgs.roles import Action, OrganizationAction, OrganizationRole, WorkspaceRole
from orgs.selectors.keys import list_keys
from orgs.services import audit
from orgs.services.founding import join_organization
from orgs.services.invitations import NewInvitation, create_invitation
from orgs.services.keys import NewKey, create_key, revoke_key, rotate_key
from orgs.services.members import remove_organization_member, set_organization_role
from orgs.services.service_accounts import create_service_account, remove_service_account
from orgs.services.workspaces import create_shared_workspace, set_workspace_role
from tests.factories import Cast


def create(
    cast: Cast, by: str = "owner", *, scopes: Any = ("full",), **fields: Any
) -> tuple[ApiKey, str]:
    return create_key(
        access=cast.access(by),
        organization_id=cast.organization.pk,
        new=NewKey("Shop backend", list(scopes), **fields),
    )


@pytest.mark.parametrize(
    ("by", "of_workspace", "refusal"),
    [
        ("owner", True, None),
        ("owner", False, None),
        ("admin", True, None),
        ("admin", False, None),
        ("member", True, Forbidden),
        ("member", False, Forbidden),
        ("viewer", True, Forbidden),
        ("outsider", True, NotFound),
        ("outsider", False, NotFound),
        ("organization_key", False, Forbidden),
        ("workspace_key", True, NotFound),
    ],
)
def test_who_may_create_a_key(
    cast: Cast, by: str, of_workspace: bool, refusal: type[DomainError] | None
) -> None:
    place = {"workspace_id": cast.workspace.pk} if of_workspace else {}
    before = ApiKey.objects.count()
    if refusal:
        with pytest.raises(refusal):
            create(cast, by, **place)
        assert ApiKey.objects.count() == before
        return
    key, secret = create(cast, by, **place)
    assert authenticate_key(secret).may(Action.SESSION_CREATE, cast.workspace.pk)
    line = AuditEntry.objects.latest("at")
    assert (line.action, line.target_id) == ("api_key.created", key.public_id)
    assert line.changes["prefix"] == [None, key.prefix]
    assert line.changes["scopes"] == [None, list(key.scopes)]
    assert line.changes["expires_at"] == [None, audit.time_of(key.expires_at)]
    assert "service_account" not in line.changes
    assert secret not in str(list(AuditEntry.objects.values()))


def test_no_key_is_made_for_a_workspace_of_others_or_a_personal_one(cast: Cast) -> None:
    for workspace in (cast.other_workspace, cast.member.personal_workspaces.get()):
        with pytest.raises((NotFound, InvalidInput)):
            create(cast, workspace_id=workspace.pk)


def test_a_key_with_single_actions_does_those_alone(cast: Cast) -> None:
    _, secret = create(cast, scopes=["session.read", "organization.inventory"])
    access = authenticate_key(secret)
    assert access.grants[cast.workspace.pk].actions == {Action.SESSION_READ}
    granted = access.organizations[cast.organization.pk]
    assert granted.actions == {OrganizationAction.INVENTORY}


def test_an_admins_key_never_owns(cast: Cast) -> None:
    _, secret = create(cast, "admin", scopes=["full", "organization.own"])
    access = authenticate_key(secret)
    assert access.may_in(OrganizationAction.MANAGE, cast.organization.pk)
    assert not access.may_in(OrganizationAction.OWN, cast.organization.pk)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"scopes": []}, "scopes"),
        ({"scopes": ["read", "everything"]}, "scopes[1]"),
        ({"lifetime_days": -1}, "lifetime_days"),
        ({"lifetime_days": 0}, "lifetime_days"),
        ({"lifetime_days": 366}, "lifetime_days"),
    ],
)
def test_what_no_key_can_be(cast: Cast, fields: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        create(cast, **fields)
    assert refused.value.param == param


def test_a_rotated_key_goes_on_for_the_overlap_and_no_longer(cast: Cast) -> None:
    old, secret = create(cast, workspace_id=cast.workspace.pk)
    owner = cast.access("owner")
    fresh, fresh_secret = rotate_key(access=owner, key_id=old.pk, overlap_seconds=3_600)
    assert (fresh.name, fresh.scopes, fresh.workspace_id) == (
        old.name,
        old.scopes,
        old.workspace_id,
    )
    assert authenticate_key(secret).grants == authenticate_key(fresh_secret).grants
    ApiKey.objects.filter(pk=old.pk).update(expires_at=F("expires_at") - timedelta(seconds=3_600))
    with pytest.raises(Unauthenticated) as refused:
        authenticate_key(secret)
    assert refused.value.code == "expired_api_key"
    assert authenticate_key(fresh_secret)
    with pytest.raises(Conflict):
        rotate_key(access=owner, key_id=old.pk)


def test_a_key_is_replaced_once(cast: Cast) -> None:
    """Or two successors would be alive, and the life of one of them would be the overlap's."""
    old, _ = create(cast)
    owner = cast.access("owner")
    fresh, _ = rotate_key(access=owner, key_id=old.pk, overlap_seconds=3_600)
    with pytest.raises(Conflict, match=fresh.prefix) as refused:
        rotate_key(access=owner, key_id=old.pk, overlap_seconds=3_600)
    assert refused.value.code == "already_rotated"
    assert rotate_key(access=owner, key_id=fresh.pk, overlap_seconds=3_600)
    assert ApiKey.objects.get(pk=old.pk).replaced_by_id == fresh.pk


def test_of_two_who_rotate_a_key_at_once_one_does(committed_cast: Cast) -> None:
    old, _ = create(committed_cast)
    ready = threading.Barrier(2)

    def rotate() -> str:
        try:
            ready.wait(10)
            rotate_key(access=committed_cast.access("owner"), key_id=old.pk, overlap_seconds=3_600)
        except Conflict as error:
            return error.code
        finally:
            connection.close()
        return "rotated"

    with ThreadPoolExecutor(2) as pool:
        outcomes = [each.result(30) for each in [pool.submit(rotate) for _ in range(2)]]
    assert sorted(outcomes) == ["already_rotated", "rotated"]
    assert ApiKey.objects.filter(name=old.name).count() == 2


def test_everybody_lists_the_keys_they_look_after(cast: Cast) -> None:
    """Whoever may revoke a key finds it."""
    workspace = create_shared_workspace(
        access=cast.access("owner"), organization_id=cast.organization.pk, name="Harbour"
    )
    set_workspace_role(
        access=cast.access("owner"),
        workspace_id=workspace.pk,
        user_id=cast.member.pk,
        role=WorkspaceRole.ADMINISTRATOR,
    )
    of_harbour, _ = create(cast, workspace_id=workspace.pk)
    own, _ = create(cast, "member", workspace_id=workspace.pk)

    def listed(by: str) -> set[Any]:
        rows = list_keys(access=cast.access(by), organization_id=cast.organization.pk)
        return set(rows.values_list("pk", flat=True))

    assert listed("member") == {of_harbour.pk, own.pk}
    assert listed("viewer") == set()
    assert listed("owner") == listed("admin") == set(ApiKey.objects.values_list("pk", flat=True))
    set_workspace_role(
        access=cast.access("owner"),
        workspace_id=workspace.pk,
        user_id=cast.member.pk,
        role=WorkspaceRole.MEMBER,
    )
    assert listed("member") == {own.pk}
    for stranger in ("outsider", "workspace_key"):
        with pytest.raises(NotFound):
            listed(stranger)


@pytest.mark.parametrize(
    ("bound", "code"),
    [
        ("orgs.services.keys.KEYS_MAX", "too_many_keys"),
        ("orgs.services.service_accounts.ACCOUNTS_MAX", "too_many_service_accounts"),
        ("orgs.services.workspaces.WORKSPACES_MAX", "too_many_workspaces"),
        ("orgs.services.invitations.OPEN_MAX", "too_many_invitations"),
    ],
)
def test_what_an_organization_has_is_bounded(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, bound: str, code: str
) -> None:
    """Each request of its keys, and each look of its open pages, carries them all."""
    owner, organization_id = cast.access("owner"), cast.organization.pk
    acts: dict[str, Any] = {
        "too_many_keys": lambda: create(cast),
        "too_many_service_accounts": lambda: account(cast),
        "too_many_workspaces": lambda: create_shared_workspace(
            access=owner, organization_id=organization_id, name="Harbour"
        ),
        "too_many_invitations": lambda: create_invitation(
            access=owner,
            organization_id=organization_id,
            new=NewInvitation(f"{secrets.token_hex(4)}@example.test"),
        ),
    }
    acts[code]()
    rows = {
        "too_many_keys": ApiKey.objects.filter(organization=cast.organization),
        "too_many_service_accounts": cast.organization.service_accounts.all(),
        "too_many_workspaces": cast.organization.workspaces.filter(kind="shared"),
        "too_many_invitations": cast.organization.invitations.all(),
    }
    monkeypatch.setattr(bound, rows[code].count())
    with pytest.raises(Conflict) as refused:
        acts[code]()
    assert refused.value.code == code


def test_without_an_overlap_the_old_one_is_dead_at_once(cast: Cast) -> None:
    old, secret = create(cast)
    epoch = cast.access("owner").epochs[cast.organization.pk]
    rotate_key(access=cast.access("owner"), key_id=old.pk)
    with pytest.raises(Unauthenticated):
        authenticate_key(secret)
    assert cast.access("owner").epochs[cast.organization.pk] > epoch


def test_an_overlap_never_prolongs_a_key(cast: Cast) -> None:
    old, _ = create(cast, lifetime_days=1)
    ApiKey.objects.filter(pk=old.pk).update(expires_at=now() + timedelta(seconds=60))
    rotate_key(access=cast.access("owner"), key_id=old.pk, overlap_seconds=3_600)
    old.refresh_from_db()
    assert old.expires_at is not None
    assert old.expires_at < now() + timedelta(seconds=61)
    for wrong in (-1, 7 * 86_400 + 1):
        with pytest.raises(InvalidInput):
            rotate_key(access=cast.access("owner"), key_id=old.pk, overlap_seconds=wrong)


@pytest.mark.parametrize("by", ["member", "viewer", "outsider", "workspace_key"])
def test_the_keys_of_others_are_not_found(cast: Cast, by: str) -> None:
    key, secret = create(cast, workspace_id=cast.workspace.pk)
    for act in (revoke_key, rotate_key):
        with pytest.raises(NotFound):
            act(access=cast.access(by), key_id=key.pk)
    assert authenticate_key(secret)


def test_a_maker_revokes_their_own_key_while_they_belong(cast: Cast) -> None:
    key, secret = create(cast, "admin", workspace_id=cast.workspace.pk)
    set_organization_role(
        access=cast.access("owner"),
        organization_id=cast.organization.pk,
        user_id=cast.admin.pk,
        role=OrganizationRole.MEMBER,
    )
    for _ in range(2):
        revoke_key(access=cast.access("admin"), key_id=key.pk)
    with pytest.raises(Unauthenticated):
        authenticate_key(secret)
    assert AuditEntry.objects.filter(action="api_key.revoked").count() == 1


def account(cast: Cast, role: OrganizationRole = OrganizationRole.MEMBER) -> User:
    return create_service_account(
        access=cast.access("admin"), organization_id=cast.organization.pk, name="CI", role=role
    )


def test_a_service_accounts_key_outlives_whoever_made_it(cast: Cast) -> None:
    made = account(cast)
    set_workspace_role(
        access=cast.access("owner"),
        workspace_id=cast.workspace.pk,
        user_id=made.pk,
        role=WorkspaceRole.ADMINISTRATOR,
    )
    place = {"workspace_id": cast.workspace.pk, "service_account_id": made.pk}
    _, secret = create(cast, "admin", **place)
    remove_organization_member(
        access=cast.access("owner"), organization_id=cast.organization.pk, user_id=cast.admin.pk
    )
    assert authenticate_key(secret).may(Action.SESSION_CREATE, cast.workspace.pk)
    with pytest.raises(Forbidden):
        create(cast, "member", **place)


def test_a_service_account_has_no_more_than_it_was_given(cast: Cast) -> None:
    made = account(cast)
    for place in ({}, {"workspace_id": cast.workspace.pk}):
        with pytest.raises(Forbidden):
            create(cast, service_account_id=made.pk, **place)
    with pytest.raises(Forbidden):
        set_organization_role(
            access=cast.access("owner"),
            organization_id=cast.organization.pk,
            user_id=made.pk,
            role=OrganizationRole.OWNER,
        )
    with pytest.raises(Forbidden):
        account(cast, OrganizationRole.OWNER)


def test_nobody_signs_in_as_a_service_account(cast: Cast) -> None:
    made = account(cast)
    for password in ("", "!", made.password):
        assert authenticate(username=made.email, password=password) is None


def test_a_removed_service_account_and_its_keys_do_nothing_more(cast: Cast) -> None:
    made = account(cast, OrganizationRole.ADMIN)
    _, secret = create(cast, service_account_id=made.pk)
    assert authenticate_key(secret).organizations
    for name, refusal in (("member", Forbidden), ("outsider", NotFound)):
        with pytest.raises(refusal):
            remove_service_account(
                access=cast.access(name),
                organization_id=cast.organization.pk,
                account_id=made.pk,
            )
    remove = {
        "access": cast.access("owner"),
        "organization_id": cast.organization.pk,
        "account_id": made.pk,
    }
    remove_service_account(**remove)
    with pytest.raises(Unauthenticated):
        authenticate_key(secret)
    with pytest.raises(NotFound):
        remove_service_account(**remove)
    with pytest.raises(InvalidInput):
        create(cast, service_account_id=made.pk)


def test_only_its_owner_gets_the_successor_of_a_key(cast: Cast) -> None:
    """It may do what its owner may: whoever else held its secret would be more than they are."""
    key, secret = create(cast)
    with pytest.raises(Forbidden) as refused:
        rotate_key(access=cast.access("admin"), key_id=key.pk)
    assert refused.value.code == "not_your_key"
    assert authenticate_key(secret)
    made = account(cast, OrganizationRole.ADMIN)
    of_account, _ = create(cast, service_account_id=made.pk)
    rotate_key(access=cast.access("admin"), key_id=of_account.pk)


def test_a_successor_lives_as_long_as_the_key_was_meant_to(cast: Cast) -> None:
    key, _ = create(cast, lifetime_days=1)
    fresh, _ = rotate_key(access=cast.access("owner"), key_id=key.pk)
    assert fresh.expires_at is not None
    assert fresh.expires_at < now() + timedelta(days=1, seconds=1)


def test_the_keys_of_a_removed_member_stay_dead_when_they_come_back(cast: Cast) -> None:
    _, secret = create(cast, "admin")
    owner = cast.access("owner")
    remove_organization_member(
        access=owner, organization_id=cast.organization.pk, user_id=cast.admin.pk
    )
    join_organization(organization=cast.organization, user=cast.admin, role=OrganizationRole.ADMIN)
    with pytest.raises(Unauthenticated) as refused:
        authenticate_key(secret)
    assert refused.value.code == "revoked_api_key"
    assert AuditEntry.objects.filter(action="api_key.revoked").count() == 1


def test_lines_say_for_whom_a_key_is_and_until_when(cast: Cast) -> None:
    made = account(cast, OrganizationRole.ADMIN)
    key, _ = create(cast, service_account_id=made.pk, lifetime_days=30)
    line = AuditEntry.objects.latest("at")
    assert line.changes["service_account"] == [None, "CI"]
    ends = audit.time_of(key.expires_at)
    assert line.changes["expires_at"] == [None, ends]
    fresh, _ = rotate_key(access=cast.access("admin"), key_id=key.pk, overlap_seconds=3_600)
    key.refresh_from_db()
    assert AuditEntry.objects.latest("at").changes == {
        "prefix": [key.prefix, fresh.prefix],
        "expires_at": [ends, audit.time_of(fresh.expires_at)],
        "old_key_ends_at": [ends, audit.time_of(key.expires_at)],
    }
    remove_service_account(
        access=cast.access("owner"), organization_id=cast.organization.pk, account_id=made.pk
    )
    removed, *revoked = AuditEntry.objects.order_by("-at")[:3]
    assert (removed.action, removed.changes) == (
        "service_account.removed",
        {"role": ["admin", None]},
    )
    assert {(each.action, each.changes["prefix"][0]) for each in revoked} == {
        ("api_key.revoked", key.prefix),
        ("api_key.revoked", fresh.prefix),
    }


def test_a_service_account_is_not_removed_as_a_member(cast: Cast) -> None:
    made = account(cast)
    with pytest.raises(Forbidden) as refused:
        remove_organization_member(
            access=cast.access("owner"), organization_id=cast.organization.pk, user_id=made.pk
        )
    assert refused.value.code == "not_a_person"


def test_a_key_gives_nobody_what_it_lacks(cast: Cast) -> None:
    _, secret = create(cast, scopes=["organization.manage"])
    access = authenticate_key(secret)
    with pytest.raises(Forbidden):
        set_organization_role(
            access=access,
            organization_id=cast.organization.pk,
            user_id=cast.viewer.pk,
            role=OrganizationRole.ADMIN,
        )
    with pytest.raises(Forbidden):
        create_service_account(
            access=access,
            organization_id=cast.organization.pk,
            name="CI",
            role=OrganizationRole.ADMIN,
        )
    with pytest.raises(Forbidden):
        set_workspace_role(
            access=access,
            workspace_id=cast.workspace.pk,
            user_id=cast.viewer.pk,
            role=WorkspaceRole.ADMINISTRATOR,
        )
