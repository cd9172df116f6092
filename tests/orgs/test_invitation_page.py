"""The page that an invitation's link leads to."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from orgs.models import Invitation, User
from orgs.roles import OrganizationRole, WorkspaceRole
from orgs.services.invitations import NewInvitation, create_invitation, revoke_invitation
from tests.factories import PASSWORD, Cast

WELCOME = {"name": "Iris Falk", "password": "a long enough one"}


def invite(cast: Cast, email: str = "iris@example.test") -> str:
    new = NewInvitation(email, OrganizationRole.MEMBER, cast.workspace.pk, WorkspaceRole.VIEWER)
    _, token = create_invitation(
        access=cast.access("owner"), organization_id=cast.organization.pk, new=new
    )
    return f"/invitation/{token}/"


def browser(user: User | None = None) -> Client:
    client = Client()
    if user is not None:
        client.force_login(user)
    return client


def test_a_newcomer_joins_and_is_signed_in(cast: Cast) -> None:
    link, client = invite(cast), browser()
    page = client.get(link)
    assert page.status_code == 200
    assert "no-store" in page["cache-control"]
    assert page["referrer-policy"] == "strict-origin"
    assert "Ada Moreau" in page.content.decode()
    assert client.post(link, WELCOME)["location"] == "/"
    user = User.objects.get(email="iris@example.test")
    assert user.check_password(WELCOME["password"])
    assert cast.workspace.memberships.get(user=user).role == "viewer"
    home = client.get("/", follow=True)
    assert "Iris Falk" in home.content.decode()


def test_a_link_is_good_once_and_a_dead_one_tells_nothing(cast: Cast) -> None:
    used, revoked = invite(cast), invite(cast, "jo@example.test")
    browser().post(used, WELCOME)
    revoke_invitation(
        access=cast.access("owner"),
        organization_id=cast.organization.pk,
        invitation_id=Invitation.objects.get(email="jo@example.test").pk,
    )
    never = browser().get("/invitation/never-was/")
    assert never.status_code == 404
    for link in (used, revoked, f"/invitation/{'x' * 300}/", "/invitation/%C3%A9/"):
        for answer in (browser().get(link), browser().post(link, WELCOME)):
            assert answer.status_code == 404
            assert answer.content == never.content
    assert User.objects.filter(name=WELCOME["name"]).count() == 1


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"name": " "}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"password": "short"}, "password"),
        ({"password": "password123"}, "password"),
        ({"password": "x" * 1001}, "password"),
        ({"password": "long enough \x00 but"}, "password"),
    ],
)
def test_what_is_wrong_stands_at_its_field(cast: Cast, fields: dict[str, Any], place: str) -> None:
    answer = browser().post(link := invite(cast), {**WELCOME, **fields})
    assert answer.status_code == 400
    assert f'id="{place}-problem"' in answer.content.decode()
    assert not User.objects.filter(email="iris@example.test").exists()
    assert browser().get(link).status_code == 200


def test_who_has_a_login_signs_in_and_comes_back(cast: Cast) -> None:
    link = invite(cast, cast.outsider.email.upper())
    client = browser()
    page = client.get(link).content.decode()
    assert f"/sign-in/?next={link}" in page
    assert 'name="password"' not in page
    refused = client.post(link, WELCOME)  # nobody takes over a login by an invitation to it
    assert refused.status_code == 409
    client.post("/sign-in/", {"email": cast.outsider.email, "password": PASSWORD, "next": link})
    assert client.post(link)["location"] == "/"
    assert cast.organization.memberships.filter(user=cast.outsider).exists()


def test_nobody_joins_under_another_address(cast: Cast) -> None:
    link = invite(cast)
    client = browser(cast.outsider)
    assert cast.outsider.email in client.get(link).content.decode()
    assert client.post(link).status_code == 403
    assert not cast.organization.memberships.filter(user=cast.outsider).exists()
    assert browser().get(link).status_code == 200
