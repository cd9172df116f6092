"""A key's life over HTTP: several of them, named and bounded, rotated with an overlap, ended."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F

from core.clock import now
from orgs.models import ApiKey, User
from orgs.principals import authenticate_key
from orgs.roles import Action, OrganizationAction
from sessions_app.models import Session
from tests.api.client import Caller, refusal
from tests.factories import Cast, make_session


@pytest.fixture
def path(cast: Cast) -> str:
    return f"/v1/organizations/{cast.organization.public_id}/api_keys"


def make(cast: Cast, path: str, by: str = "owner", **fields: Any) -> dict[str, Any]:
    answer = Caller(cast, by).post(path, {"name": "Shop", "scopes": ["read"], **fields})
    assert answer.status_code == 201, answer.content
    return dict(answer.json())


def use(secret: str, cast: Cast, method: str = "GET", at: str = "/v1/workspaces") -> Any:
    return Caller(cast, authorization=f"Bearer {secret}").request(method, at)


def pass_seconds(seconds: int) -> None:
    """As if so much time had gone by for all keys."""
    ago = timedelta(seconds=seconds)
    ApiKey.objects.update(created_at=F("created_at") - ago, expires_at=F("expires_at") - ago)


def test_several_keys_each_with_a_name_a_reach_and_an_end(cast: Cast, path: str) -> None:
    """BR-103."""
    place = cast.workspace.public_id
    wide = make(cast, path, name="Everything", scopes=["full"])
    narrow = make(cast, path, name="Shop", scopes=["write"], workspace_id=place)
    brief = make(cast, path, name="Report", scopes=["session.read"], lifetime_days=1)
    listed = Caller(cast, "owner").get(f"{path}?limit=100").json()["data"]
    names = {each["id"]: each["name"] for each in listed}
    assert [names[each["id"]] for each in (wide, narrow, brief)] == ["Everything", "Shop", "Report"]
    session = f"/v1/sessions/{make_session(cast).public_id}"
    expected = {"Everything": (200, 204), "Shop": (200, 200), "Report": (403, 403)}
    for key in (wide, narrow, brief):
        secret = key["key"]
        assert use(secret, cast, at=session).status_code == 200
        archived = use(secret, cast, "POST", f"{session}/archive").status_code
        assert archived == expected[key["name"]][0]
    assert use(narrow["key"], cast, at=path).status_code == 404
    assert use(wide["key"], cast, at=path).status_code == 200
    pass_seconds(86_401)
    assert refusal(use(brief["key"], cast)) == (401, "expired_api_key", None)
    assert use(wide["key"], cast).status_code == 200


def test_a_rotation_with_an_overlap_stops_nobody(cast: Cast, path: str) -> None:
    """BR-103: both work for a minute, then the old one is refused."""
    old = make(cast, path)
    fresh = Caller(cast, "owner").post(f"{path}/{old['id']}/rotate", {"overlap_seconds": 60}).json()
    assert fresh["key"] != old["key"]
    for key in (old, fresh):
        assert use(key["key"], cast).status_code == 200
    pass_seconds(59)
    assert use(old["key"], cast).status_code == 200
    pass_seconds(2)
    assert refusal(use(old["key"], cast)) == (401, "expired_api_key", None)
    assert use(fresh["key"], cast).status_code == 200


def test_the_keys_of_who_leaves_or_is_deactivated_stop_at_once(cast: Cast, path: str) -> None:
    """BR-103: and those of a service account do not."""
    owner = Caller(cast, "owner")
    account = owner.post(
        f"/v1/organizations/{cast.organization.public_id}/service_accounts",
        {"name": "CI", "role": "admin"},
    ).json()
    of_account = make(cast, path, "admin", service_account_id=account["id"])
    own = make(cast, path, "admin")
    User.objects.filter(pk=cast.admin.pk).update(is_active=False)
    assert refusal(use(own["key"], cast)) == (401, "revoked_api_key", None)
    assert use(of_account["key"], cast).status_code == 200
    User.objects.filter(pk=cast.admin.pk).update(is_active=True)
    members = f"/v1/organizations/{cast.organization.public_id}/members"
    assert owner.delete(f"{members}/{cast.admin.public_id}").status_code == 204
    assert refusal(use(own["key"], cast)) == (401, "revoked_api_key", None)
    assert use(of_account["key"], cast).status_code == 200


def test_full_is_a_rule_and_no_list(cast: Cast, path: str) -> None:
    """BR-101: what an old key may do is read when it is used, so actions to come are within it."""
    made = make(cast, path, scopes=["full"])
    assert ApiKey.objects.get(prefix=made["key"][:14]).scopes == ["full"]
    access = authenticate_key(made["key"])
    assert access.grants[cast.workspace.pk].actions == set(Action)
    assert access.organizations[cast.organization.pk].actions == set(OrganizationAction)
    assert Session.objects.count() == 0
    assert now() > ApiKey.objects.get(prefix=made["key"][:14]).created_at
