"""Who may change who belongs to an organization and its workspaces, and that it is written down."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection

from core.errors import Conflict, DomainError, Forbidden, InvalidInput, NotFound
from orgs.models import AuditEntry, OrganizationMembership, WorkspaceMembership
from orgs.roles import Action, OrganizationAction, OrganizationRole, WorkspaceRole
from orgs.services.members import remove_organization_member, set_organization_role
from orgs.services.organizations import update_organization
from orgs.services.workspaces import (
    create_shared_workspace,
    remove_workspace_member,
    set_workspace_role,
)
from tests.factories import Cast

OWNER, ADMIN, MEMBER = OrganizationRole


def set_role(cast: Cast, by: str, whom: str, role: OrganizationRole) -> None:
    set_organization_role(
        access=cast.access(by),
        organization_id=cast.organization.pk,
        user_id=getattr(cast, whom).pk,
        role=role,
    )


def remove(cast: Cast, by: str, whom: str) -> None:
    remove_organization_member(
        access=cast.access(by),
        organization_id=cast.organization.pk,
        user_id=getattr(cast, whom).pk,
    )


def newest(cast: Cast) -> AuditEntry:
    found = AuditEntry.objects.filter(organization_id=cast.organization.pk).first()
    assert found is not None
    return found


def lines() -> int:
    return AuditEntry.objects.count()


@pytest.mark.parametrize(
    ("by", "whom", "role", "refusal"),
    [
        ("owner", "member", ADMIN, None),
        ("owner", "member", OWNER, None),
        ("owner", "admin", MEMBER, None),
        ("admin", "member", ADMIN, None),
        ("admin", "member", OWNER, Forbidden),
        ("admin", "owner", MEMBER, Forbidden),
        ("member", "viewer", ADMIN, Forbidden),
        ("member", "member", ADMIN, Forbidden),
        ("viewer", "member", MEMBER, Forbidden),
        ("outsider", "member", ADMIN, NotFound),
        ("workspace_key", "member", ADMIN, NotFound),
        ("organization_key", "member", ADMIN, None),
        ("read_only_key", "member", ADMIN, NotFound),
        ("owner", "outsider", ADMIN, NotFound),
        ("owner", "owner", MEMBER, Conflict),
    ],
)
def test_who_may_change_a_role(
    cast: Cast, by: str, whom: str, role: OrganizationRole, refusal: type[DomainError] | None
) -> None:
    before, written = list(OrganizationMembership.objects.order_by("pk").values()), lines()
    if refusal is None:
        set_role(cast, by, whom, role)
        row = OrganizationMembership.objects.get(
            organization=cast.organization, user=getattr(cast, whom)
        )
        assert row.role == role
        assert newest(cast).changes["role"][1] == role
    else:
        with pytest.raises(refusal):
            set_role(cast, by, whom, role)
        assert list(OrganizationMembership.objects.order_by("pk").values()) == before
        assert lines() == written


def test_a_role_that_is_already_there_changes_and_writes_nothing(cast: Cast) -> None:
    epoch, written = cast.access("owner").epochs, lines()
    set_role(cast, "owner", "member", MEMBER)
    assert (cast.access("owner").epochs, lines()) == (epoch, written)


@pytest.mark.parametrize(
    ("by", "whom", "refusal"),
    [
        ("owner", "member", None),
        ("admin", "member", None),
        ("member", "member", None),
        ("viewer", "viewer", None),
        ("admin", "owner", Forbidden),
        ("member", "viewer", Forbidden),
        ("outsider", "member", NotFound),
        ("owner", "owner", Conflict),
        ("owner", "outsider", NotFound),
    ],
)
def test_who_may_remove_whom(
    cast: Cast, by: str, whom: str, refusal: type[DomainError] | None
) -> None:
    if refusal is None:
        remove(cast, by, whom)
        access = cast.access(whom)
        assert cast.organization.pk not in access.organizations
        assert access.grants == {}
        line = newest(cast)
        assert line.action == ("member.left" if by == whom else "member.removed")
        assert line.changes["workspaces"] == [[f"Field notes ({whom})"], None]
    else:
        with pytest.raises(refusal):
            remove(cast, by, whom)


def test_whoever_comes_back_finds_their_personal_workspace_and_no_shared_one(cast: Cast) -> None:
    personal = cast.member.personal_workspaces.get()
    remove(cast, "owner", "member")
    OrganizationMembership.objects.create(
        organization=cast.organization, user=cast.member, role=MEMBER
    )
    assert set(cast.access("member").grants) == {personal.pk}


def test_two_owners_cannot_both_leave(committed_cast: Cast) -> None:
    cast = committed_cast
    set_role(cast, "owner", "admin", OWNER)
    barrier = threading.Barrier(2)

    def leave(name: str) -> str:
        try:
            access = cast.access(name)
            barrier.wait()
            remove_organization_member(
                access=access,
                organization_id=cast.organization.pk,
                user_id=getattr(cast, name).pk,
            )
        except Conflict as error:
            return error.code
        finally:
            connection.close()
        return "left"

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(leave, ("owner", "admin"))) == ["last_owner", "left"]
    assert cast.organization.memberships.filter(role=OWNER).count() == 1


@pytest.mark.parametrize(
    ("by", "refusal"),
    [
        ("owner", None),
        ("admin", None),
        ("organization_key", None),
        ("member", Forbidden),
        ("viewer", Forbidden),
        ("outsider", NotFound),
        ("read_only_key", Forbidden),
    ],
)
def test_who_may_change_the_members_of_a_workspace(
    cast: Cast, by: str, refusal: type[DomainError] | None
) -> None:
    change: dict[str, Any] = {
        "access": cast.access(by),
        "workspace_id": cast.workspace.pk,
        "user_id": cast.second_member.pk,
    }
    if refusal:
        with pytest.raises(refusal):
            set_workspace_role(**change, role=WorkspaceRole.VIEWER)
        with pytest.raises(refusal):
            remove_workspace_member(**change)
        return
    set_workspace_role(**change, role=WorkspaceRole.VIEWER)
    assert not cast.access("second_member").may(Action.SESSION_CONTROL, cast.workspace.pk)
    assert newest(cast).changes == {"role": ["member", "viewer"]}
    remove_workspace_member(**change)
    assert cast.workspace.pk not in cast.access("second_member").grants
    with pytest.raises(NotFound):
        remove_workspace_member(**change)


def test_one_may_leave_a_workspace_by_oneself(cast: Cast) -> None:
    remove_workspace_member(
        access=cast.access("viewer"), workspace_id=cast.workspace.pk, user_id=cast.viewer.pk
    )
    assert newest(cast).actor_name == cast.viewer.name


def test_nobody_is_added_to_a_personal_workspace_or_from_elsewhere(cast: Cast) -> None:
    personal = cast.owner.personal_workspaces.get()
    for workspace, user in (
        (personal, cast.member),
        (cast.workspace, cast.outsider),
        (cast.other_workspace, cast.outsider),
    ):
        with pytest.raises(NotFound):
            set_workspace_role(
                access=cast.access("owner"),
                workspace_id=workspace.pk,
                user_id=user.pk,
                role=WorkspaceRole.MEMBER,
            )
    assert not WorkspaceMembership.objects.filter(workspace=personal).exists()


def test_an_admin_without_a_role_in_a_workspace_manages_and_does_not_read(cast: Cast) -> None:
    workspace = create_shared_workspace(
        access=cast.access("owner"), organization_id=cast.organization.pk, name="Harbour"
    )
    access = cast.access("admin")
    assert access.may_in(OrganizationAction.MANAGE, cast.organization.pk)
    assert not access.may(Action.SESSION_READ, workspace.pk)
    set_workspace_role(
        access=access,
        workspace_id=workspace.pk,
        user_id=cast.member.pk,
        role=WorkspaceRole.MEMBER,
    )
    assert cast.access("member").may(Action.SESSION_READ, workspace.pk)


def test_only_an_owner_decides_whether_only_me_is_allowed(cast: Cast) -> None:
    chosen: dict[str, Any] = {"organization_id": cast.organization.pk}
    for name, refusal in (("admin", Forbidden), ("member", Forbidden), ("outsider", NotFound)):
        with pytest.raises(refusal):
            update_organization(
                access=cast.access(name), allows_private_sessions=True, name="Atlas", **chosen
            )
    cast.organization.refresh_from_db()
    assert cast.organization.name == "Lindqvist Atlas"
    update_organization(access=cast.access("owner"), allows_private_sessions=True, **chosen)
    assert newest(cast).changes == {"allows_private_sessions": [False, True]}
    update_organization(access=cast.access("admin"), name="Atlas", **chosen)
    assert newest(cast).changes == {"name": ["Lindqvist Atlas", "Atlas"]}
    for name in ("", " ", "x" * 101, "a\x00b", "\ud800"):
        with pytest.raises(InvalidInput):
            update_organization(access=cast.access("owner"), name=name, **chosen)


@pytest.mark.parametrize("becomes", [MEMBER, None])
def test_whoever_lost_their_rights_while_they_waited_goes_by_what_they_have_now(
    cast: Cast, becomes: OrganizationRole | None
) -> None:
    """Their access was computed before the row was held."""
    set_role(cast, "owner", "admin", OWNER)
    before = cast.access("admin")
    if becomes is None:
        remove(cast, "owner", "admin")
    else:
        set_role(cast, "owner", "admin", becomes)
    lost = Forbidden if becomes else NotFound
    for whom in (cast.admin, cast.member):
        with pytest.raises(lost):
            set_organization_role(
                access=before, organization_id=cast.organization.pk, user_id=whom.pk, role=OWNER
            )
    with pytest.raises(lost):
        update_organization(
            access=before, organization_id=cast.organization.pk, allows_private_sessions=True
        )
