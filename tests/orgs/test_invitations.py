"""An invitation is for one address, once, for some days, and only while its sender may invite."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from core.clock import now
from core.errors import Conflict, DomainError, Forbidden, InvalidInput, NotFound, RateLimited
from orgs.models import AuditEntry, Invitation, User
from orgs.principals import access_for_user
from orgs.roles import Action, OrganizationRole, WorkspaceRole
from orgs.selectors.invitations import find_invitation
from orgs.services import audit, founding, invitations
from orgs.services.invitations import (
    NewInvitation,
    accept_as_member,
    accept_as_newcomer,
    create_invitation,
    revoke_invitation,
)
from orgs.services.members import remove_organization_member, set_organization_role
from tests.factories import PASSWORD, Cast

ADDRESS = "Greta.Olsen@example.test"


def invite(
    cast: Cast, email: str = ADDRESS, *, by: str = "admin", **fields: Any
) -> tuple[Invitation, str]:
    new = NewInvitation(email, **fields)
    return create_invitation(access=cast.access(by), organization_id=cast.organization.pk, new=new)


def come_in(token: str) -> User:
    return accept_as_newcomer(token=token, name="Greta Olsen", password=PASSWORD)


def test_a_newcomer_gets_a_login_a_role_and_a_workspace(cast: Cast) -> None:
    made, token = invite(cast, workspace_id=cast.workspace.pk, workspace_role=WorkspaceRole.MEMBER)
    user = come_in(token)
    access = access_for_user(user)
    assert user.email == ADDRESS
    assert access.organizations[cast.organization.pk].role == OrganizationRole.MEMBER
    assert access.may(Action.SESSION_CONTROL, cast.workspace.pk)
    assert len(access.grants) == 2  # and their personal one
    made.refresh_from_db()
    assert made.accepted_by == user
    line = AuditEntry.objects.latest("at")
    assert (line.action, line.actor_name) == ("invitation.accepted", "Greta Olsen")
    assert line.changes == {"role": [None, "member"], "workspace_role": [None, "member"]}


def test_lines_say_what_was_offered_and_what_was_taken_back(cast: Cast) -> None:
    made, _ = invite(cast, workspace_id=cast.workspace.pk, workspace_role=WorkspaceRole.VIEWER)
    line = AuditEntry.objects.latest("at")
    assert line.workspace_id == cast.workspace.pk
    assert line.changes == {
        "role": [None, "member"],
        "workspace_role": [None, "viewer"],
        "expires_at": [None, audit.time_of(made.expires_at)],
    }
    invite(cast, role=OrganizationRole.ADMIN)
    _, replaced = AuditEntry.objects.order_by("-at")[:2]
    assert (replaced.action, replaced.target_id) == ("invitation.revoked", made.public_id)
    assert replaced.changes == {"role": ["member", None], "workspace_role": ["viewer", None]}


def test_who_belongs_already_keeps_the_role_and_the_line_says_what_changed(cast: Cast) -> None:
    address = cast.second_member.email
    remove_organization_member(
        access=cast.access("owner"),
        organization_id=cast.organization.pk,
        user_id=cast.second_member.pk,
    )
    _, token = invite(
        cast, address, workspace_id=cast.workspace.pk, workspace_role=WorkspaceRole.VIEWER
    )
    for role in (OrganizationRole.ADMIN, OrganizationRole.MEMBER):
        founding.add_organization_member(
            organization=cast.organization, user=cast.second_member, role=role
        )
    assert AuditEntry.objects.latest("at").changes == {"role": ["admin", "member"]}
    founding.add_workspace_member(
        workspace=cast.workspace, user=cast.second_member, role=WorkspaceRole.MEMBER
    )
    accept_as_member(access=access_for_user(cast.second_member), token=token)
    line = AuditEntry.objects.latest("at")
    assert line.changes == {}
    place = cast.workspace.memberships.get(user=cast.second_member)
    assert place.role == WorkspaceRole.MEMBER


def test_no_older_link_lets_a_removed_member_back_in(cast: Cast) -> None:
    _, token = invite(cast)
    greta = founding.create_user(email=ADDRESS.lower(), name="Greta Olsen", password=PASSWORD)
    founding.add_organization_member(
        organization=cast.organization, user=greta, role=OrganizationRole.MEMBER
    )
    remove_organization_member(
        access=cast.access("owner"), organization_id=cast.organization.pk, user_id=greta.pk
    )
    with pytest.raises(NotFound):
        accept_as_member(access=access_for_user(greta), token=token)
    told = AuditEntry.objects.filter(action="invitation.revoked").values_list("target_name")
    assert list(told) == [(ADDRESS,)]


def test_an_organization_sends_so_many_invitations_in_an_hour(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mail server is everybody's."""
    monkeypatch.setattr(invitations, "INVITATIONS_PER_HOUR", 2)
    for number in range(2):
        invite(cast, f"greta-{number}@example.test")
    with pytest.raises(RateLimited) as refused:
        invite(cast)
    assert 0 < refused.value.retry_after_seconds <= 3_600


def test_a_link_is_good_once(cast: Cast) -> None:
    _, token = invite(cast)
    come_in(token)
    with pytest.raises(NotFound):
        come_in(token)
    assert find_invitation(token=token) is None


def test_somebody_with_a_login_joins_under_the_invited_address_alone(cast: Cast) -> None:
    _, token = invite(cast, cast.outsider.email.upper())
    with pytest.raises(Forbidden) as refused:
        accept_as_member(access=cast.access("member"), token=token)
    assert refused.value.code == "other_address"
    with pytest.raises(NotFound):
        accept_as_member(access=cast.access("member"), token=token + "x")
    with pytest.raises(Conflict) as taken:
        come_in(token)
    assert taken.value.code == "email_taken"
    accept_as_member(access=cast.access("outsider"), token=token)
    assert cast.organization.pk in cast.access("outsider").organizations
    assert cast.workspace.pk not in cast.access("outsider").grants


@pytest.mark.parametrize("reason", ["expired", "revoked", "replaced", "sender", "demoted"])
def test_a_dead_link_leads_nowhere_and_says_nothing(cast: Cast, reason: str) -> None:
    made, token = invite(cast)
    if reason == "expired":
        Invitation.objects.filter(pk=made.pk).update(expires_at=now() - timedelta(seconds=1))
    elif reason == "revoked":
        for _ in range(2):
            revoke_invitation(
                access=cast.access("owner"),
                organization_id=cast.organization.pk,
                invitation_id=made.pk,
            )
    elif reason == "replaced":
        invite(cast, ADDRESS.lower())
    elif reason == "sender":
        remove_organization_member(
            access=cast.access("owner"),
            organization_id=cast.organization.pk,
            user_id=cast.admin.pk,
        )
    else:
        set_organization_role(
            access=cast.access("owner"),
            organization_id=cast.organization.pk,
            user_id=cast.admin.pk,
            role=OrganizationRole.MEMBER,
        )
    assert find_invitation(token=token) is None
    with pytest.raises(NotFound):
        come_in(token)
    assert not User.objects.filter(email__iexact=ADDRESS).exists()


def test_of_two_who_use_a_link_at_once_one_comes_in(committed_cast: Cast) -> None:
    _, token = invite(committed_cast, committed_cast.outsider.email)
    access = committed_cast.access("outsider")
    barrier = threading.Barrier(2)

    def accept(_: int) -> str:
        try:
            barrier.wait()
            accept_as_member(access=access, token=token)
        except NotFound:
            return "dead"
        finally:
            connection.close()
        return "in"

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(accept, range(2))) == ["dead", "in"]
    assert AuditEntry.objects.filter(action="invitation.accepted").count() == 1


@pytest.mark.parametrize(
    ("by", "fields", "refusal"),
    [
        ("member", {}, Forbidden),
        ("viewer", {}, Forbidden),
        ("outsider", {}, NotFound),
        ("workspace_key", {}, NotFound),
        ("organization_key", {}, Forbidden),
        ("admin", {"role": OrganizationRole.OWNER}, Forbidden),
        ("admin", {"workspace_role": WorkspaceRole.MEMBER}, InvalidInput),
    ],
)
def test_who_may_not_invite(
    cast: Cast, by: str, fields: dict[str, Any], refusal: type[DomainError]
) -> None:
    with pytest.raises(refusal):
        invite(cast, by=by, **fields)
    assert Invitation.objects.count() == 0


def test_nobody_is_invited_into_a_workspace_of_others_or_a_personal_one(cast: Cast) -> None:
    for workspace in (cast.other_workspace, cast.owner.personal_workspaces.get()):
        with pytest.raises(InvalidInput) as refused:
            invite(cast, workspace_id=workspace.pk, workspace_role=WorkspaceRole.MEMBER)
        assert refused.value.code == "workspace_not_found"


@pytest.mark.parametrize(
    "email", ["", "nobody", "a@b", "a@example.test, b@example.test", "a\x00@example.test"]
)
def test_an_address_is_one_address(cast: Cast, email: str) -> None:
    with pytest.raises(InvalidInput):
        invite(cast, email)


def test_a_member_is_not_invited_again(cast: Cast) -> None:
    with pytest.raises(Conflict) as refused:
        invite(cast, cast.member.email.upper())
    assert refused.value.code == "already_member"


def test_the_token_is_kept_as_a_digest_alone(cast: Cast) -> None:
    made, token = invite(cast)
    columns = Invitation.objects.filter(pk=made.pk).values().get()
    assert token not in str(columns)
    assert token not in str(list(AuditEntry.objects.values()))


@pytest.mark.parametrize("token", ["", "x", "é", "\x00", "x" * 10_000])
def test_a_token_that_never_was_is_found_nowhere(cast: Cast, token: str) -> None:
    assert find_invitation(token=token) is None
