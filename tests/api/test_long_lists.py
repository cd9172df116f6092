"""Long lists of an organization are paged by the database: a page costs the same in any."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from core.clock import now
from core.cursors import encode_cursor
from orgs.models import (
    ApiKey,
    Invitation,
    OrganizationMembership,
    User,
    Workspace,
    WorkspaceMembership,
)
from tests.api.client import Caller, refusal
from tests.api.test_organizations import walk
from tests.factories import Cast

FEW = 3
MORE = 130  # more than the largest page of the API, and two pages of the owner's


def fill(cast: Cast, first: int = 0) -> None:
    numbers = range(first, MORE if first else FEW)
    people = User.objects.bulk_create(
        User(email=f"greta-{number}@example.test", name=f"Greta {number:03}") for number in numbers
    )
    OrganizationMembership.objects.bulk_create(
        OrganizationMembership(organization=cast.organization, user=each, role="member")
        for each in people
    )
    WorkspaceMembership.objects.bulk_create(
        WorkspaceMembership(workspace=cast.workspace, user=each, role="viewer") for each in people
    )
    ApiKey.objects.bulk_create(
        ApiKey(
            organization=cast.organization,
            name=f"Key {number}",
            prefix=f"sed_o_{number:08}",
            digest=f"{number}",
            scopes=["read"],
            created_by=cast.owner,
        )
        for number in numbers
    )
    Invitation.objects.bulk_create(
        Invitation(
            organization=cast.organization,
            email=f"iris-{number}@example.test",
            role="member",
            digest=f"{number}",
            expires_at=now() + timedelta(days=1),
        )
        for number in numbers
    )
    Workspace.objects.bulk_create(
        Workspace(organization=cast.organization, name=f"Room {number:03}") for number in numbers
    )


def addresses(cast: Cast) -> dict[str, int]:
    """Each list of the API, and how many it has once it is filled."""
    organization = f"/v1/organizations/{cast.organization.public_id}"
    return {
        f"{organization}/members": MORE + 6,
        f"{organization}/api_keys": MORE + 4,
        f"{organization}/invitations": MORE,
        f"/v1/workspaces/{cast.workspace.public_id}/members": MORE + 5,
    }


def test_a_page_costs_the_same_and_reads_no_more_than_it_shows(cast: Cast) -> None:
    owner = Caller(cast, "owner")
    fill(cast)
    statements(owner, next(iter(addresses(cast))))  # the first request opens a budget, once
    few = {path: statements(owner, f"{path}?limit=2") for path in addresses(cast)}
    fill(cast, FEW)
    for path, before in few.items():
        after = statements(owner, f"{path}?limit=2")
        assert len(after) == len(before) < 20, path
        assert sum("LIMIT 3" in each for each in after) == 1, path


def test_every_row_comes_once_in_one_order(cast: Cast) -> None:
    fill(cast)
    fill(cast, FEW)
    for path, count in addresses(cast).items():
        rows = [row["id"] for row in walk(Caller(cast, "owner"), path)]
        assert rows == sorted(set(rows)), path
        assert len(rows) == count, path
        whole = Caller(cast, "owner").get(f"{path}?limit=100").json()
        assert [row["id"] for row in whole["data"]] == rows[:100]


@pytest.mark.parametrize("place", ["x", "", "0" * 33, "{", "\x00"])
def test_a_cursor_that_names_no_place_is_refused(cast: Cast, place: str) -> None:
    organization = cast.organization
    scope = f'["members","{organization.pk.hex}"]'
    cursor = encode_cursor(scope, [place])
    path = f"/v1/organizations/{organization.public_id}/members?page={cursor}"
    assert refusal(Caller(cast, "owner").get(path)) == (400, "invalid_cursor", "page")


def test_a_cursor_of_one_list_opens_no_other(cast: Cast) -> None:
    fill(cast)
    first, *others = addresses(cast)
    owner = Caller(cast, "owner")
    cursor = owner.get(f"{first}?limit=2").json()["next_page"]
    for path in others:
        answer = refusal(owner.get(f"{path}?limit=2&page={cursor}"))
        assert answer == (400, "cursor_of_another_query", "page")


def test_the_owners_pages_cost_the_same_too(cast: Cast) -> None:
    client = Client()
    client.force_login(cast.owner)
    home = f"/owner/{cast.organization.public_id}"
    pages = ("members", "keys", "invitations", "workspaces", "audit")
    fill(cast)
    few = {page: len(statements(client, f"{home}/{page}/")) for page in pages}
    fill(cast, FEW)
    for page, before in few.items():
        shown = statements(client, f"{home}/{page}/")
        assert len(shown) <= before, page
        assert any("LIMIT 5" in each for each in shown), page  # 50 rows, or 51 lines
    answer = client.get(f"{home}/members/?page=3").content.decode()
    assert answer.count("Greta ") >= 30
    assert "Ada Moreau" not in answer.split("<table")[1]


def statements(caller: Caller | Client, path: str) -> list[str]:
    with CaptureQueriesContext(
        connection,
    ) as captured:
        assert caller.get(path).status_code == 200
    return [each["sql"] for each in captured.captured_queries]
