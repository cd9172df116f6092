"""Logins: what a cookie is good for, what its row tells, and how it ends."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.conf import settings
from django.contrib.sessions.backends.base import UpdateError
from django.test import Client

from core.clock import now
from core.errors import NotFound
from orgs import login_store
from orgs.login_store import SessionStore, signed_in_user
from orgs.models import Login, User
from orgs.selectors.logins import list_logins
from orgs.services import logins
from orgs.services.sweeping import sweep
from tests.factories import PASSWORD, Cast

PHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) Version/18.1 Mobile Safari/604.1"


def sign_in(user: User, **told: str) -> Client:
    client = Client(**told)
    answer = client.post("/sign-in/", {"email": user.email, "password": PASSWORD})
    assert answer.status_code == 302
    return client


def cookie_of(client: Client) -> str:
    return str(client.cookies[settings.SESSION_COOKIE_NAME].value)


def is_in(client: Client) -> bool:
    return not client.get("/").headers["Location"].startswith("/sign-in/")


def test_a_login_tells_who_from_where_and_with_what(cast: Cast) -> None:
    before = now()
    sign_in(cast.member, REMOTE_ADDR="203.0.113.7", HTTP_USER_AGENT=PHONE)
    login = Login.objects.get()
    assert (login.user, login.address, login.user_agent) == (cast.member, "203.0.113.7", PHONE)
    assert before <= login.created_at <= login.last_used_at <= now()


def test_what_a_client_calls_itself_is_cut_and_cleaned(cast: Cast) -> None:
    sign_in(cast.member, HTTP_USER_AGENT="a\tb" + "x" * 5_000)
    assert Login.objects.get().user_agent == "ab" + "x" * 297


def test_the_table_holds_no_cookie_that_could_be_sent(cast: Cast) -> None:
    cookie = cookie_of(sign_in(cast.member))
    row = Login.objects.values().get()
    assert cookie not in str(row)
    stolen = Client()
    stolen.cookies[settings.SESSION_COOKIE_NAME] = row["digest"]
    assert not is_in(stolen)


def test_use_is_noted_once_a_minute_and_not_more(cast: Cast) -> None:
    client = sign_in(cast.member, REMOTE_ADDR="203.0.113.7")
    used = Login.objects.get().last_used_at
    is_in(client)
    assert Login.objects.get().last_used_at == used
    long_ago = used - login_store.LAST_USED_RESOLUTION - timedelta(seconds=1)
    Login.objects.update(last_used_at=long_ago)
    client.get("/", REMOTE_ADDR="203.0.113.8")
    login = Login.objects.get()
    assert login.last_used_at >= used
    assert login.address == "203.0.113.8"


def test_a_page_that_lies_open_is_no_use(cast: Cast) -> None:
    sign_in(cast.member)
    long_ago = now() - timedelta(hours=1)
    Login.objects.update(last_used_at=long_ago)
    assert signed_in_user(Login.objects.get().pk) == cast.member
    assert Login.objects.get().last_used_at == long_ago


def test_signing_out_removes_the_row_and_the_cookie_is_dead(cast: Cast) -> None:
    client = sign_in(cast.member)
    cookie = cookie_of(client)
    client.post("/sign-out/")
    assert not Login.objects.exists()
    client.cookies[settings.SESSION_COOKIE_NAME] = cookie
    assert not is_in(client)


def test_ending_one_login_leaves_the_others(cast: Cast) -> None:
    laptop, phone = sign_in(cast.member), sign_in(cast.member)
    row = Login.objects.get(digest=login_store.digest_of(cookie_of(phone)))
    logins.end_login(access=cast.access("member"), login_id=row.pk)
    assert is_in(laptop)
    assert not is_in(phone)


def test_nobody_ends_or_lists_the_login_of_somebody_else(cast: Cast) -> None:
    member = sign_in(cast.member)
    row = Login.objects.get()
    for who in ("owner", "admin", "second_member", "outsider", "workspace_key"):
        assert list_logins(access=cast.access(who)) == []
        with pytest.raises(NotFound):
            logins.end_login(access=cast.access(who), login_id=row.pk)
        assert logins.end_logins(access=cast.access(who)) == 0
    assert is_in(member)
    assert list_logins(access=cast.access("member")) == [row]


def test_an_expired_login_is_not_good_not_listed_and_cleared(cast: Cast) -> None:
    client = sign_in(cast.member)
    Login.objects.update(expires_at=now() - timedelta(seconds=1))
    assert not is_in(client)
    assert list_logins(access=cast.access("member")) == []
    sweep()
    assert not Login.objects.exists()


def test_whoever_signs_in_again_and_again_fills_no_table(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logins, "LOGINS_MAX", 3)
    clients = [sign_in(cast.member) for _ in range(5)]
    assert [is_in(client) for client in clients] == [False, False, True, True, True]


def test_signing_in_gives_a_value_that_nobody_knew_before(cast: Cast) -> None:
    """Session fixation: a cookie that was planted, made up or known is worth nothing."""
    for planted in ("a" * 32, cookie_of(sign_in(cast.outsider)), cookie_of(sign_in(cast.member))):
        client = Client()
        client.cookies[settings.SESSION_COOKIE_NAME] = planted
        client.post("/sign-in/", {"email": cast.member.email, "password": PASSWORD})
        assert cookie_of(client) != planted
        assert is_in(client)
        thief = Client()
        thief.cookies[settings.SESSION_COOKIE_NAME] = planted
        assert not is_in(thief)


def test_a_request_that_ends_late_does_not_bring_a_login_back(cast: Cast) -> None:
    client = sign_in(cast.member)
    late = SessionStore(cookie_of(client))
    late["theme"] = "dark"
    logins.end_logins(access=cast.access("member"))
    with pytest.raises(UpdateError):
        late.save()
    assert not is_in(client)


def test_a_new_value_keeps_the_login_and_kills_the_old_one(cast: Cast) -> None:
    client = sign_in(cast.member)
    row, old = Login.objects.get(), cookie_of(client)
    store = SessionStore(old)
    store.cycle_key()
    store.save()
    assert Login.objects.get().pk == row.pk
    assert SessionStore(old).load() == {}
    assert SessionStore(store.session_key).load()["_auth_user_id"] == str(cast.member.pk)
