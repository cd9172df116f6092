"""Whoever belongs somewhere finds the way out by themselves, and is asked once."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from orgs.models import AuditEntry
from tests.factories import Cast
from tests.orgs.test_logins import sign_in


def path_of(cast: Cast, kind: str) -> str:
    row: Any = cast.organization if kind == "organizations" else cast.workspace
    return f"/account/{kind}/{row.public_id}/leave"


def test_ones_own_page_says_where_one_belongs(cast: Cast) -> None:
    page = sign_in(cast.member).get("/account/").content.decode()
    assert cast.organization.name in page
    assert cast.workspace.name in page
    assert path_of(cast, "organizations") in page
    assert path_of(cast, "workspaces") in page
    assert cast.other_organization.name not in page


@pytest.mark.parametrize("kind", ["workspaces", "organizations"])
def test_one_is_asked_and_then_out(cast: Cast, kind: str) -> None:
    client = sign_in(cast.member)
    asked = client.get(path_of(cast, kind))
    assert asked.status_code == 200
    assert "Leave" in asked.content.decode()
    assert cast.workspace.memberships.filter(user=cast.member).exists()
    answer = client.post(path_of(cast, kind))
    assert answer["Location"] == "/account/?done=left"
    assert not cast.workspace.memberships.filter(user=cast.member).exists()
    belongs = cast.organization.memberships.filter(user=cast.member).exists()
    assert belongs is (kind == "workspaces")
    assert AuditEntry.objects.latest("at").actor_id == cast.member.pk
    assert client.get(path_of(cast, kind)).status_code == 404
    assert client.get("/account/?done=left").status_code == 200


def test_the_last_owner_is_told_why_they_stay(cast: Cast) -> None:
    client = sign_in(cast.owner)
    refused = client.post(path_of(cast, "organizations"))
    assert refused.status_code == 409
    assert "Make somebody else an owner first" in refused.content.decode()
    assert cast.organization.memberships.filter(user=cast.owner).exists()


def test_a_personal_workspace_and_those_of_others_are_not_left(cast: Cast) -> None:
    client = sign_in(cast.member)
    personal = cast.member.personal_workspaces.get().public_id
    for path in (
        f"/account/workspaces/{personal}/leave",
        f"/account/workspaces/{cast.other_workspace.public_id}/leave",
        f"/account/organizations/{cast.other_organization.public_id}/leave",
        "/account/organizations/org_nothing/leave",
    ):
        assert client.get(path).status_code == client.post(path).status_code == 404


@pytest.mark.parametrize("kind", ["workspaces", "organizations"])
def test_nobody_leaves_who_is_not_signed_in_or_did_not_press_the_button(
    cast: Cast, kind: str
) -> None:
    path = path_of(cast, kind)
    assert Client().post(path).status_code in {302, 401, 403}
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(cast.member)
    assert strict.post(path).status_code == 403
    assert cast.workspace.memberships.filter(user=cast.member).exists()
