"""Who a request is from: keys in either header, logins with a CSRF token, and nothing leaks."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from core.clock import now
from orgs.roles import Scope
from orgs.services.keys import revoke_api_key
from tests.api.client import Caller, refusal
from tests.factories import PASSWORD, Cast, make_key

MARKER = "sed_w_MARKER00_very-secret-text"


def test_a_key_is_taken_from_either_header(cast: Cast, caller: Any) -> None:
    secret = cast.workspace_key.secret
    for headers in (
        {"authorization": f"Bearer {secret}"},
        {"authorization": f"bearer   {secret}"},
        {"x_api_key": secret},
        {"authorization": f"Bearer {secret}", "x_api_key": "another"},
    ):
        assert caller().get("/v1/workspaces", **headers).status_code == 200


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, "unauthenticated"),
        ({"authorization": "Bearer"}, "invalid_api_key"),
        ({"authorization": "Bearer "}, "invalid_api_key"),
        ({"authorization": f"Basic {MARKER}"}, "invalid_authorization"),
        ({"authorization": f"Bearer {MARKER}"}, "invalid_api_key"),
        ({"authorization": "Bearer " + "x" * 5000}, "invalid_api_key"),
        ({"authorization": "Bearer clé"}, "invalid_api_key"),
        ({"x_api_key": MARKER}, "invalid_api_key"),
        ({"x_api_key": ""}, "invalid_api_key"),
    ],
)
def test_what_is_no_key_is_401(caller: Any, headers: dict[str, str], code: str) -> None:
    response = caller().get("/v1/workspaces", **headers)
    assert refusal(response) == (401, code, None)
    assert response["www-authenticate"].startswith("Bearer")


def test_expired_and_revoked_keys_are_401(cast: Cast, caller: Any) -> None:
    key = make_key(cast.owner, cast.organization, cast.workspace, [Scope.FULL])
    bearer = {"authorization": f"Bearer {key.secret}"}
    key.row.expires_at = now() - timedelta(seconds=1)
    key.row.save()
    assert refusal(caller().get("/v1/workspaces", **bearer)) == (401, "expired_api_key", None)
    key.row.expires_at = None
    key.row.save()
    assert caller().get("/v1/workspaces", **bearer).status_code == 200
    revoke_api_key(key=key.row)
    assert refusal(caller().get("/v1/workspaces", **bearer)) == (401, "revoked_api_key", None)


def test_a_wrong_key_stands_in_no_answer_and_no_log(
    cast: Cast, caller: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """BR-098."""
    secrets = [MARKER, cast.workspace_key.secret + "MARKER", "Bearer MARKER MARKER"]
    answers = []
    with caplog.at_level(logging.DEBUG):
        for secret in secrets:
            answers.append(caller().get("/v1/sessions", authorization=f"Bearer {secret}"))
            answers.append(caller().get("/v1/sessions", authorization=secret))
            answers.append(caller().post("/v1/sessions", {"title": 1}, x_api_key=secret))
        known = caller("workspace_key")
        answers.append(known.get(f"/v1/sessions?page={MARKER}"))
        answers.append(known.get(f"/v1/sessions?api_key={MARKER}"))
        answers.append(known.post("/v1/sessions", {"api_key": MARKER, "speed": MARKER}))
    for answer in answers:
        assert 400 <= answer.status_code < 500
        assert b"MARKER" not in answer.content
        assert "MARKER" not in str(answer.headers)
    assert not [record for record in caplog.records if "MARKER" in record.getMessage()]


def test_a_missing_scope_is_named(cast: Cast, caller: Any, session_path: str) -> None:
    """BR-101."""
    response = caller("read_only_key").post(f"{session_path}/archive")
    assert refusal(response) == (403, "missing_scope", None)
    details = response.json()["error"]["details"]
    assert details["required_scope"] == "write"
    assert details["granted_actions"] == ["session.read", "workspace.read"]


def test_a_login_needs_its_csrf_token_to_change_things(cast: Cast, session_path: str) -> None:
    browser = Client(enforce_csrf_checks=True)
    assert browser.login(email=cast.member.email, password=PASSWORD)
    assert browser.get(session_path).status_code == 200
    body = {"title": "Stolen"}
    refused = browser.post(session_path, body, content_type="application/json")
    assert refusal(refused) == (403, "csrf_failed", None)
    browser.cookies["csrftoken"] = token = "a" * 32
    accepted = browser.post(
        session_path, body, content_type="application/json", headers={"x-csrftoken": token}
    )
    assert accepted.status_code == 200


def test_a_key_needs_no_csrf_token(cast: Cast, session_path: str) -> None:
    product = Client(enforce_csrf_checks=True)
    response = product.post(
        session_path,
        {"title": "New"},
        content_type="application/json",
        headers={"authorization": f"Bearer {cast.workspace_key.secret}"},
    )
    assert response.status_code == 200


def test_a_deactivated_person_is_nobody(cast: Cast, member: Caller) -> None:
    cast.member.is_active = False
    cast.member.save()
    assert refusal(member.get("/v1/workspaces")) == (401, "unauthenticated", None)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("nonsense", (400, "invalid_id", "anthropic-workspace-id")),
        ("wrk_" + "0" * 32, (404, "workspace_not_found", "anthropic-workspace-id")),
    ],
)
def test_a_workspace_header_must_name_ones_own(
    member: Caller, value: str, expected: tuple[int, str, str]
) -> None:
    assert refusal(member.get("/v1/sessions", anthropic_workspace_id=value)) == expected
