"""A person's own page: their logins, their password, and the way back in without it."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.core import mail
from django.db import connection
from django.test import Client

from core.clock import now
from orgs.login_store import digest_of
from orgs.models import Login, User
from orgs.selectors.passwords import find_reset
from orgs.services.passwords import make_reset_mail
from orgs.services.service_accounts import create_service_account
from orgs.web.devices import device_of
from tests.factories import PASSWORD, Cast
from tests.orgs.test_logins import PHONE, cookie_of, is_in, sign_in

NEW = "a much longer password"
LAPTOP = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


def row_of(client: Client) -> Login:
    return Login.objects.get(digest=digest_of(cookie_of(client)))


def link_for(user: User) -> str:
    message = make_reset_mail(email=user.email, origin="https://sederunt.example")
    assert message is not None
    found = re.search(r"https://sederunt\.example(/password-reset/\S+)", str(message.body))
    assert found is not None
    return found[1]


# ── Devices ──


def test_the_page_tells_in_plain_words_what_is_signed_in(cast: Cast) -> None:
    laptop = sign_in(cast.member, HTTP_USER_AGENT=LAPTOP, REMOTE_ADDR="203.0.113.7")
    sign_in(cast.member, HTTP_USER_AGENT=PHONE, REMOTE_ADDR="198.51.100.3")
    sign_in(cast.outsider, HTTP_USER_AGENT="curl/8")
    page = laptop.get("/account/").content.decode()
    assert cast.member.name in page
    assert cast.member.email in page
    assert page.count('<ul class="table-rows devices"') == 1
    assert page.count("signed in <") == 2
    assert page.index("Firefox on Linux") < page.index("This one") < page.index("Safari on iPhone")
    assert "203.0.113.7" in page
    assert "198.51.100.3" in page


@pytest.mark.parametrize(
    ("told", "name", "is_mobile"),
    [
        (PHONE, "Safari on iPhone", True),
        (LAPTOP, "Firefox on Linux", False),
        (
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/140.0.0.0 Safari/537.36 Edg/140.0",
            "Edge on Windows",
            False,
        ),
        (
            "Mozilla/5.0 (Linux; Android 15; Pixel 9) Chrome/140.0.0.0 Mobile Safari/537.36",
            "Chrome on Android",
            True,
        ),
        (
            "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) Version/18 Safari/605",
            "Safari on Mac",
            False,
        ),
        ("", "Unknown device", False),
        ("<script>alert(1)</script>", "Unknown device", False),
    ],
)
def test_a_device_has_a_name(told: str, name: str, is_mobile: bool) -> None:
    device = device_of(told)
    assert (device.name, device.is_mobile) == (name, is_mobile)


def test_one_device_is_signed_out_and_the_others_stay(cast: Cast) -> None:
    laptop, phone, tablet = (sign_in(cast.member) for _ in range(3))
    answer = laptop.post(f"/account/logins/{row_of(phone).public_id}/end")
    assert answer["Location"] == "/account/?done=ended"
    assert [is_in(each) for each in (laptop, phone, tablet)] == [True, False, True]


def test_everything_else_and_everything_is_signed_out(cast: Cast) -> None:
    laptop, phone, other = (sign_in(cast.member) for _ in range(3))
    stranger = sign_in(cast.second_member)
    laptop.post("/account/logins/others/end")
    assert [is_in(each) for each in (laptop, phone, other)] == [True, False, False]
    phone = sign_in(cast.member)
    assert laptop.post("/account/logins/all/end")["Location"] == "/sign-in/"
    assert [is_in(each) for each in (laptop, phone, stranger)] == [False, False, True]


def test_this_one_leads_to_the_door(cast: Cast) -> None:
    laptop = sign_in(cast.member)
    answer = laptop.post(f"/account/logins/{row_of(laptop).public_id}/end")
    assert answer["Location"] == "/sign-in/"
    assert not is_in(laptop)


def test_the_login_of_somebody_else_is_as_if_it_did_not_exist(cast: Cast) -> None:
    theirs = sign_in(cast.member)
    row = row_of(theirs)
    for who in ("owner", "admin", "outsider"):
        client = sign_in(getattr(cast, who))
        other = client.post(f"/account/logins/{row.public_id}/end")
        never = client.post("/account/logins/lgn_00000000000000000000000000000000/end")
        assert (other.status_code, other.content) == (404, never.content)
    assert is_in(theirs)


ROUTES = [
    "/account/password",
    "/account/logins/others/end",
    "/account/logins/all/end",
    "/account/logins/lgn_00000000000000000000000000000000/end",
]


def test_each_act_is_for_the_signed_in_with_a_token_and_by_post_alone(cast: Cast) -> None:
    assert Client().get("/account/")["Location"] == "/sign-in/?next=/account/"
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(cast.member)
    for route in ROUTES:
        assert Client().post(route)["Location"].startswith("/sign-in/")
        assert strict.post(route).status_code == 403, route
        assert strict.get(route).status_code == 405, route
    assert is_in(strict)


def test_who_is_in_no_workspace_has_the_page_too(cast: Cast) -> None:
    nobody = User.objects.create_user("nobody@example.test", PASSWORD, name="Gita Rao")
    assert "Gita Rao" in sign_in(nobody).get("/account/").content.decode()


# ── Password ──


def test_a_new_password_keeps_this_login_and_ends_the_others(cast: Cast) -> None:
    laptop, phone = sign_in(cast.member), sign_in(cast.member)
    row, stranger = row_of(laptop), sign_in(cast.second_member)
    planted = Client()
    planted.cookies[settings.SESSION_COOKIE_NAME] = cookie_of(laptop)
    answer = laptop.post("/account/password", {"current": PASSWORD, "new": NEW})
    assert answer["Location"] == "/account/?done=password"
    assert [is_in(each) for each in (laptop, stranger)] == [True, True]
    assert [is_in(each) for each in (phone, planted)] == [False, False]
    assert row_of(laptop).pk == row.pk
    cast.member.refresh_from_db()
    assert cast.member.check_password(NEW)


@pytest.mark.parametrize(
    ("current", "new", "told"),
    [
        ("wrong", NEW, "not your present password"),
        ("", NEW, "not your present password"),
        ("x" * 5_000, NEW, "not your present password"),
        ("\x00", NEW, "not your present password"),
        (PASSWORD, "short", "at least 10 characters"),
        (PASSWORD, "", "at least 10 characters"),
        (PASSWORD, "1234567890", "too common"),
        (PASSWORD, "x" * 1_001, "at most 1,000 characters"),
        (PASSWORD, "a\x00bcdefghijkl", "at most 1,000 characters"),
    ],
)
def test_a_change_that_is_refused_changes_nothing(
    cast: Cast, current: str, new: str, told: str
) -> None:
    laptop, phone = sign_in(cast.member), sign_in(cast.member)
    answer = laptop.post("/account/password", {"current": current, "new": new})
    assert answer.status_code == 400
    assert told in answer.content.decode()
    assert is_in(laptop)
    assert is_in(phone)
    cast.member.refresh_from_db()
    assert cast.member.check_password(PASSWORD)


def test_whoever_found_an_open_page_cannot_guess_the_password_there(cast: Cast) -> None:
    client = sign_in(cast.member)
    wrong = {"current": "guess", "new": NEW}
    answers = [client.post("/account/password", wrong).status_code for _ in range(9)]
    assert answers == [400] * 8 + [429]
    refused = client.post("/account/password", {"current": PASSWORD, "new": NEW})
    assert refused.status_code == 429
    assert int(refused["Retry-After"]) > 0


# ── Without the password ──


def test_a_link_sets_the_password_and_ends_every_login(cast: Cast) -> None:
    laptop, stranger = sign_in(cast.member), sign_in(cast.second_member)
    link = link_for(cast.member)
    somewhere = Client()
    page = somewhere.get(link)
    assert page["Referrer-Policy"] == "strict-origin"
    assert "no-store" in page["Cache-Control"]
    assert cast.member.email in page.content.decode()
    assert somewhere.post(link, {"new": NEW})["Location"] == "/sign-in/?renewed"
    assert [is_in(each) for each in (laptop, somewhere, stranger)] == [False, False, True]
    cast.member.refresh_from_db()
    assert cast.member.check_password(NEW)


def test_a_link_is_good_once(cast: Cast) -> None:
    link = link_for(cast.member)
    assert Client().post(link, {"new": "short"}).status_code == 400
    assert Client().post(link, {"new": NEW}).status_code == 302
    assert Client().get(link).status_code == 404
    assert Client().post(link, {"new": "yet another password"}).status_code == 404
    cast.member.refresh_from_db()
    assert cast.member.check_password(NEW)


@pytest.mark.django_db(transaction=True)
def test_of_two_uses_at_once_one_counts(committed_cast: Cast) -> None:
    link = link_for(committed_cast.member)

    def use(number: int) -> int:
        try:
            return Client().post(link, {"new": f"{NEW} {number}"}).status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        answers = sorted(pool.map(use, range(4)))
    assert answers == [302, 404, 404, 404]


def test_a_link_is_good_for_an_hour_and_dies_with_a_sign_in(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.contrib.auth.tokens import default_token_generator

    assert settings.PASSWORD_RESET_TIMEOUT == 3_600
    made = {}
    for minutes in (59, 61):
        moment = now().replace(tzinfo=None) - timedelta(minutes=minutes)
        with monkeypatch.context() as patch:
            patch.setattr(default_token_generator, "_now", lambda moment=moment: moment)
            made[minutes] = link_for(cast.member)
    fresh = link_for(cast.member)
    found = {minutes: Client().get(link).status_code for minutes, link in made.items()}
    assert found == {59: 200, 61: 404}
    assert Client().get(fresh).status_code == 200
    sign_in(cast.member)
    assert Client().get(fresh).status_code == 404


@pytest.mark.parametrize("person", ["usr_0", "usr_" + "0" * 32, "x", "\x00"])
def test_a_bent_link_is_a_dead_link(cast: Cast, person: str) -> None:
    token = link_for(cast.member).split("/")[3]
    assert find_reset(person=person, token=token) is None
    assert find_reset(person=cast.member.public_id, token=token + "x") is None
    assert find_reset(person=cast.second_member.public_id, token=token) is None


def test_who_has_no_password_gets_no_link(cast: Cast) -> None:
    account = create_service_account(
        access=cast.access("owner"), organization_id=cast.organization.pk, name="Robot"
    )
    guest = User.objects.create_user("guest@example.test", None, name="Hana Sato")
    User.objects.filter(pk=cast.viewer.pk).update(is_active=False)
    for email in (account.email, guest.email, cast.viewer.email, "nobody@example.test", "", "@"):
        assert make_reset_mail(email=email, origin="https://sederunt.example") is None


def ask_for(client: Client, email: str) -> Any:
    return client.post("/password-reset/", {"email": email})


def until_sent(count: int) -> None:
    deadline = time.monotonic() + 5
    while len(mail.outbox) < count and time.monotonic() < deadline:
        time.sleep(0.01)


@pytest.mark.django_db(transaction=True)
def test_the_answer_does_not_tell_whether_an_address_is_known(
    committed_cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = committed_cast.member.email
    unknown = known.replace("@example", "@nowhere")
    pages = []
    for email in (known, unknown):
        answer = ask_for(Client(), email)
        pages.append((answer.status_code, answer.content.decode().replace(email, "…")))
    assert pages[0] == pages[1]
    assert pages[0][0] == 200
    until_sent(1)
    time.sleep(0.2)
    (message,) = mail.outbox
    assert message.to == [known]
    assert "http://testserver/password-reset/usr_" in message.body


@pytest.mark.django_db(transaction=True)
def test_no_answer_waits_for_the_mail_server(
    committed_cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(self: object, fail_silently: bool = False) -> int:
        time.sleep(1.5)
        mail.outbox.append(self)  # type: ignore[arg-type]
        return 1

    monkeypatch.setattr(mail.EmailMessage, "send", slow)
    started = time.monotonic()
    ask_for(Client(), committed_cast.member.email)
    assert time.monotonic() - started < 1
    until_sent(1)
    assert len(mail.outbox) == 1


@pytest.mark.django_db(transaction=True)
def test_a_mail_server_that_refuses_is_noted_and_hurts_nobody(
    committed_cast: Cast, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    assert ask_for(Client(), committed_cast.member.email).status_code == 200
    deadline = time.monotonic() + 5
    while "mail.not_sent" not in caplog.text and time.monotonic() < deadline:
        time.sleep(0.01)
    assert "mail.not_sent error=ConnectionRefusedError" in caplog.text
    assert committed_cast.member.email not in caplog.text


@pytest.mark.django_db(transaction=True)
def test_nobodys_mailbox_is_flooded_known_or_not(committed_cast: Cast) -> None:
    for email in (committed_cast.member.email, "nobody@nowhere.test"):
        answers = [ask_for(Client(), email).status_code for _ in range(4)]
        assert answers == [200, 200, 200, 429]
    until_sent(3)
    time.sleep(0.2)
    assert len(mail.outbox) == 3
