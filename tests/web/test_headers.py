"""What every answer tells a browser to forbid, whatever it answers."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.http import HttpResponseBase
from django.test import Client

from orgs.models import User
from orgs.roles import Scope
from sessions_app.web import pages
from tests.factories import PASSWORD, Cast, make_key, make_session, send

FORBIDDEN = re.compile(
    r"<script(?![^>]*\bsrc=)[^>]*>|<style|\sstyle=|\son[a-z]+=|javascript:", re.IGNORECASE
)


@pytest.fixture
def operator(cast: Cast) -> Client:
    operator = User.objects.create_superuser("operator@example.test", PASSWORD, name="Ines Berg")
    client = Client(raise_request_exception=False)
    client.force_login(operator)
    return client


@pytest.fixture
def member(cast: Cast) -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(cast.member)
    return client


def is_guarded(answer: HttpResponseBase) -> list[str]:
    """What is missing."""
    policy = dict(
        each.strip().partition(" ")[::2]
        for each in answer.headers.get("Content-Security-Policy", "").split(";")
    )
    found = {
        "scripts": policy.get("script-src") == "'self'",
        "styles": policy.get("style-src") == "'self'",
        "default": policy.get("default-src") == "'none'",
        "frames": policy.get("frame-ancestors") == "'none'",
        "forms": policy.get("form-action") == "'self'",
        "base": policy.get("base-uri") == "'none'",
        "framing": answer.headers.get("X-Frame-Options") == "DENY",
        "sniffing": answer.headers.get("X-Content-Type-Options") == "nosniff",
        "referrer": answer.headers.get("Referrer-Policy") in {"same-origin", "strict-origin"},
        "opener": answer.headers.get("Cross-Origin-Opener-Policy") == "same-origin",
        "storing": "no-store" in answer.headers.get("Cache-Control", ""),
    }
    return [name for name, is_there in found.items() if not is_there]


def test_every_page_is_guarded_and_has_nothing_inline(
    cast: Cast, member: Client, operator: Client
) -> None:
    session = make_session(cast)
    send(cast, session)
    workspace = cast.workspace.public_id
    asked: list[tuple[Client, str, int]] = [
        (Client(), "/sign-in/", 200),
        (Client(), "/password-reset/", 200),
        (Client(), "/password-reset/usr_0/x/", 404),
        (Client(), "/docs", 200),
        (Client(), "/healthz", 200),
        (Client(), "/nothing-here", 404),
        (Client(), "/v1/sessions", 401),
        (Client(), "/v1/openapi.json", 200),
        (Client(), "/", 302),
        (Client(), "/admin/", 302),
        (member, "/account/", 200),
        (member, "/inbox/", 200),
        (member, f"/w/{workspace}/", 200),
        (member, f"/w/{workspace}/archived/", 200),
        (member, f"/s/{session.public_id}/", 200),
        (member, f"/s/{session.public_id}/events/2/", 200),
        (member, "/s/ses_0/", 404),
        (member, "/v1/sessions", 200),
        (operator, "/admin/", 200),
        (operator, "/admin/orgs/user/", 200),
        (operator, f"/admin/orgs/user/{cast.member.pk}/change/", 200),
        (operator, "/admin/orgs/organization/add/", 200),
    ]
    missing = {}
    for client, path, status in asked:
        answer = client.get(path)
        assert answer.status_code == status, path
        if found := is_guarded(answer):
            missing[path] = found
        if answer.headers.get("Content-Type", "").startswith("text/html"):
            assert FORBIDDEN.findall(answer.content.decode()) == [], path
    assert missing == {}


def test_errors_are_guarded_too(
    cast: Cast, member: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    strict = Client(enforce_csrf_checks=True, raise_request_exception=False)
    strict.force_login(cast.member)
    answers = {403: strict.post("/account/password"), 405: member.get("/sign-out/")}
    answers[400] = member.get("/", HTTP_HOST="evil.example")

    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError

    monkeypatch.setattr(pages, "find_home", broken)
    answers[500] = member.get("/")
    for status, answer in answers.items():
        assert answer.status_code == status
        assert is_guarded(answer) == [], status


def test_text_that_people_wrote_is_never_a_page_of_its_own(cast: Cast, member: Client) -> None:
    session = make_session(cast)
    send(cast, session, "<script>alert(1)</script>")
    answer = member.get(f"/s/{session.public_id}/events/2/")
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert answer["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "wanted",
    [
        "https://evil.test/",
        "//evil.test/",
        "///evil.test/",
        "/\\evil.test/",
        "\\\\evil.test",
        "http:evil.test",
        "javascript:alert(1)",
        "https:///evil.test",
        " //evil.test",
        "\x00//evil.test",
        "http://testserver@evil.test/",
        "http://testserver.evil.test/",
    ],
)
def test_next_never_leads_elsewhere(cast: Cast, member: Client, wanted: str) -> None:
    form = {"email": cast.viewer.email, "password": PASSWORD, "next": wanted}
    assert Client().post("/sign-in/", form)["Location"] == "/"
    assert member.get("/sign-in/", {"next": wanted})["Location"] == "/"
    operators = Client().get("/admin/login/", {"next": wanted})["Location"]
    assert operators == "/sign-in/?next=%2F"


def test_operators_come_in_by_the_door_that_counts_wrong_passwords(cast: Cast) -> None:
    client = Client()
    assert client.get("/admin/")["Location"] == "/admin/login/?next=/admin/"
    door = client.get("/admin/login/?next=/admin/orgs/user/")["Location"]
    assert door == "/sign-in/?next=%2Fadmin%2Forgs%2Fuser%2F"
    User.objects.create_superuser("operator@example.test", PASSWORD, name="Ines Berg")
    guess = {"username": "operator@example.test", "password": PASSWORD}
    client.post("/admin/login/", guess)
    assert client.get("/admin/").status_code == 302
    form = {"email": guess["username"], "password": PASSWORD, "next": "/admin/orgs/user/"}
    assert client.post("/sign-in/", form)["Location"] == "/admin/orgs/user/"
    assert client.get("/admin/").status_code == 200
    assert client.get("/admin/password_change/")["Location"] == "/account/"


def test_who_is_no_operator_is_not_sent_round_in_circles(cast: Cast, member: Client) -> None:
    answer = member.get("/admin/", follow=True)
    assert answer.redirect_chain[-1][0] == f"/w/{cast.workspace.public_id}/"


def test_keys_look_as_secret_scanners_are_told(cast: Cast) -> None:
    from tests.unit.test_docs import DOCS

    (pattern,) = re.findall(r"`(sed_\[[^`]+)`", (DOCS / "operations.md").read_text())
    for workspace in (cast.workspace, None):
        key = make_key(cast.owner, cast.organization, workspace, [Scope.READ])
        assert re.fullmatch(pattern, key.secret)
        assert re.findall(pattern, f'KEY="{key.secret}";') == [key.secret]
    assert not re.search(pattern, f"{cast.workspace.public_id} sed_w_short")
