"""Organizations over HTTP: members, invitations, service accounts, keys, the audit log."""

from __future__ import annotations

from typing import Any

import pytest
from django.core import mail

from core.ids import Prefix, encode_id
from tests.api.client import Caller, refusal
from tests.factories import Cast


@pytest.fixture
def owner(cast: Cast) -> Caller:
    return Caller(cast, "owner")


@pytest.fixture
def path(cast: Cast) -> str:
    return f"/v1/organizations/{cast.organization.public_id}"


def walk(caller: Caller, path: str) -> list[dict[str, Any]]:
    """Two rows a page, to the end."""
    found: list[dict[str, Any]] = []
    cursor = ""
    while True:
        mark = "&" if "?" in path else "?"
        page = caller.get(f"{path}{mark}limit=2&page={cursor}").json()
        found += page["data"]
        assert page["has_more"] is (page["next_page"] is not None)
        if not page["has_more"]:
            return found
        cursor = page["next_page"]


def test_everybody_sees_the_organizations_they_belong_to(cast: Cast) -> None:
    for name, role in (("owner", "owner"), ("member", "member"), ("organization_key", None)):
        (row,) = Caller(cast, name).get("/v1/organizations").json()["data"]
        assert (row["id"], row["role"]) == (cast.organization.public_id, role)
    assert Caller(cast, "workspace_key").get("/v1/organizations").json()["data"] == []


def test_settings_are_changed_and_written_down(cast: Cast, owner: Caller, path: str) -> None:
    changed = owner.post(path, {"name": "Atlas", "allows_private_sessions": True}).json()
    assert (changed["name"], changed["allows_private_sessions"]) == ("Atlas", True)
    assert owner.get(path).json() == changed
    newest = owner.get(f"{path}/audit?limit=1").json()["data"][0]
    assert newest["action"] == "organization.updated"
    assert newest["changes"]["allows_private_sessions"] == [False, True]
    assert newest["actor"]["name"] == cast.owner.name
    assert newest["address"] == "127.0.0.1"
    admin = Caller(cast, "admin")
    assert refusal(admin.post(path, {"allows_private_sessions": False}))[:2] == (
        403,
        "missing_role",
    )


def test_members_are_listed_and_get_roles(cast: Cast, owner: Caller, path: str) -> None:
    rows = walk(owner, f"{path}/members")
    assert {row["email"] for row in rows} >= {cast.owner.email, cast.viewer.email}
    assert len(rows) == len({row["id"] for row in rows}) == 6
    member = f"{path}/members/{cast.member.public_id}"
    assert owner.post(member, {"role": "admin"}).json()["role"] == "admin"
    assert Caller(cast, "member").get(path).status_code == 200
    assert owner.delete(member).status_code == 204
    assert refusal(owner.delete(member))[:2] == (404, "not_found")
    last = owner.delete(f"{path}/members/{cast.owner.public_id}")
    assert refusal(last)[:2] == (409, "last_owner")


def test_an_invitation_is_mailed_and_its_link_shown_to_nobody(
    cast: Cast, owner: Caller, path: str
) -> None:
    body = {
        "email": "greta@example.test",
        "workspace_id": encode_id(Prefix.WORKSPACE, cast.workspace.pk),
        "workspace_role": "member",
    }
    made = owner.post(f"{path}/invitations", body)
    assert made.status_code == 201
    (sent,) = mail.outbox
    assert sent.to == ["greta@example.test"]
    assert "http://testserver/invitation/" in sent.body
    assert made.json()["is_mailed"] is True
    assert "link" not in made.json()
    (listed,) = owner.get(f"{path}/invitations").json()["data"]
    assert listed.keys() == made.json().keys() - {"is_mailed"}
    assert owner.delete(f"{path}/invitations/{listed['id']}").status_code == 204
    assert owner.get(f"{path}/invitations").json()["data"] == []


def test_a_key_is_shown_once_works_is_rotated_and_revoked(
    cast: Cast, owner: Caller, path: str
) -> None:
    body = {"name": "Shop", "scopes": ["read"]}
    made = owner.post(f"{path}/api_keys", body).json()
    old = Caller(cast, authorization=f"Bearer {made['key']}")
    assert old.get("/v1/workspaces").status_code == 200
    assert all("key" not in row for row in walk(owner, f"{path}/api_keys"))
    place = f"{path}/api_keys/{made['id']}"
    fresh = owner.post(f"{place}/rotate", {"overlap_seconds": 60}).json()
    assert fresh["id"] != made["id"]
    assert old.get("/v1/workspaces").status_code == 200
    assert owner.delete(place).status_code == 204
    assert refusal(old.get("/v1/workspaces"))[:2] == (401, "revoked_api_key")
    new = Caller(cast, authorization=f"Bearer {fresh['key']}")
    assert new.get("/v1/workspaces").status_code == 200


def test_a_service_account_owns_keys(cast: Cast, owner: Caller, path: str) -> None:
    account = owner.post(f"{path}/service_accounts", {"name": "CI", "role": "admin"}).json()
    assert (account["kind"], account["email"]) == ("service", None)
    body = {"name": "CI", "scopes": ["full"], "service_account_id": account["id"]}
    key = owner.post(f"{path}/api_keys", body).json()
    assert key["owner_id"] == account["id"]
    caller = Caller(cast, authorization=f"Bearer {key['key']}")
    assert caller.get(path).status_code == 200
    assert owner.delete(f"{path}/service_accounts/{account['id']}").status_code == 204
    assert caller.get(path).status_code == 401


def test_a_workspace_is_made_and_filled(cast: Cast, owner: Caller) -> None:
    body = {"organization_id": cast.organization.public_id, "name": "Harbour"}
    made = owner.post("/v1/workspaces", body).json()
    assert (made["name"], made["role"]) == ("Harbour", "administrator")
    members = f"/v1/workspaces/{made['id']}/members"
    owner.post(f"{members}/{cast.viewer.public_id}", {"role": "viewer"})
    assert [row["role"] for row in walk(owner, members)] == ["administrator", "viewer"]
    assert Caller(cast, "viewer").get(members).status_code == 200
    assert owner.delete(f"{members}/{cast.viewer.public_id}").status_code == 204
    assert Caller(cast, "viewer").get(members).status_code == 404


def test_a_key_that_makes_a_workspace_works_in_it_through_its_owner(cast: Cast) -> None:
    caller = Caller(cast, "organization_key")
    body = {"organization_id": cast.organization.public_id, "name": "Harbour"}
    made = caller.post("/v1/workspaces", body).json()
    members = walk(caller, f"/v1/workspaces/{made['id']}/members")
    assert [(row["id"], row["role"]) for row in members] == [
        (cast.owner.public_id, "administrator")
    ]


def test_the_audit_log_is_paged_and_filtered(cast: Cast, owner: Caller, path: str) -> None:
    for role in ("admin", "member", "admin"):
        owner.post(f"{path}/members/{cast.member.public_id}", {"role": role})
    changed = walk(owner, f"{path}/audit?action=member.role_changed")
    assert [row["changes"]["role"][1] for row in changed] == ["admin", "member", "admin"]
    assert len(walk(owner, f"{path}/audit")) > 3
    about = walk(owner, f"{path}/audit?target_id={cast.member.public_id}")
    assert {row["target"]["id"] for row in about} == {cast.member.public_id}
    mine = walk(owner, f"{path}/audit?actor_id={cast.owner.public_id}")
    assert mine == changed
    for query, param in (
        ("action=none", "action"),
        ("actor_id=ses_1", "actor_id"),
        ("page=AAAA", "page"),
    ):
        assert refusal(owner.get(f"{path}/audit?{query}"))[::2] == (400, param)


@pytest.mark.parametrize(
    ("route", "body", "param"),
    [
        ("", {"name": ""}, "name"),
        ("", {"name": "a\x00b"}, "name"),
        ("", {"name": "x" * 101}, "name"),
        ("", {"name": 5}, "name"),
        ("", {"owner": "me"}, "owner"),
        ("/invitations", {"email": "nobody"}, "email"),
        ("/invitations", {"email": "a@example.test", "role": "king"}, "role"),
        ("/api_keys", {"name": "x", "scopes": []}, "scopes"),
        ("/api_keys", {"name": "x", "scopes": ["all"]}, "scopes[0]"),
        ("/api_keys", {"name": "x", "scopes": ["read"] * 21}, "scopes"),
        ("/api_keys", {"name": "x", "scopes": ["read"], "lifetime_days": 0}, "lifetime_days"),
        ("/service_accounts", {"name": " "}, "name"),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(
    owner: Caller, path: str, route: str, body: dict[str, Any], param: str
) -> None:
    before = walk(owner, f"{path}/audit")
    assert refusal(owner.post(f"{path}{route}", body))[::2] == (400, param)
    assert walk(owner, f"{path}/audit") == before


def test_the_rows_of_another_tenant_are_not_found(cast: Cast, owner: Caller, path: str) -> None:
    other = Caller(cast, "outsider")
    theirs = f"/v1/organizations/{cast.other_organization.public_id}"
    key = other.post(f"{theirs}/api_keys", {"name": "K", "scopes": ["read"]}).json()
    invitation = other.post(f"{theirs}/invitations", {"email": "g@example.test"}).json()
    for place in (path, theirs):
        for call in (
            lambda p=place: owner.delete(f"{p}/api_keys/{key['id']}"),
            lambda p=place: owner.post(f"{p}/api_keys/{key['id']}/rotate", {}),
            lambda p=place: owner.delete(f"{p}/invitations/{invitation['id']}"),
            lambda p=place: owner.delete(f"{p}/members/{cast.outsider.public_id}"),
        ):
            assert refusal(call())[:2] == (404, "not_found")
    # Not even one's own key at another organization's address.
    own = owner.post(f"{path}/api_keys", {"name": "K", "scopes": ["read"]}).json()
    assert refusal(owner.delete(f"{theirs}/api_keys/{own['id']}"))[:2] == (404, "not_found")


@pytest.mark.parametrize(
    ("method", "route"),
    [
        ("POST", ""),
        ("POST", "/invitations"),
        ("POST", "/service_accounts"),
        ("POST", "/api_keys"),
        ("DELETE", "/members/usr_0"),
        ("DELETE", "/api_keys/key_0"),
    ],
)
def test_what_changes_something_takes_no_query(
    owner: Caller, path: str, method: str, route: str
) -> None:
    answer = owner.request(method, f"{path}{route}?force=1", {})
    assert refusal(answer) == (400, "unknown_parameter", "force")
