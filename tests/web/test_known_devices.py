"""What strangers guess locks out strangers, and nobody in a browser that they know."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from orgs.web import throttle
from orgs.web.known_devices import COOKIE
from tests.factories import PASSWORD, Cast

HOME = "203.0.113.9"


def try_as(
    email: str, *, address: str = HOME, password: str = "no", client: Client | None = None
) -> int:
    answer: Any = (client or Client()).post(
        "/sign-in/", {"email": email, "password": password}, REMOTE_ADDR=address
    )
    return int(answer.status_code)


def guess_from_everywhere(email: str) -> None:
    for number in range(throttle.FAILURES_PER_ACCOUNT):
        made = throttle.try_password(email, f"198.51.100.{number}")
        assert made.wait_seconds == 0


def test_guesses_from_one_network_lock_the_account_there_alone(cast: Cast) -> None:
    email = cast.member.email
    guesses = [try_as(email, address="198.51.100.7") for _ in range(9)]
    assert guesses == [401] * 8 + [429]
    assert try_as(email, password=PASSWORD) == 302


def test_guesses_from_everywhere_lock_out_no_browser_that_its_person_used_before(
    cast: Cast,
) -> None:
    email = cast.member.email
    known = Client()
    assert try_as(email, password=PASSWORD, client=known) == 302
    guess_from_everywhere(email)
    assert try_as(email, password=PASSWORD) == 429
    assert try_as(email, password=PASSWORD, client=known) == 302


def test_in_a_known_browser_guessing_is_slow_too(cast: Cast) -> None:
    email = cast.member.email
    known = Client()
    assert try_as(email, password=PASSWORD, client=known) == 302
    guesses = [try_as(email, client=known, address=f"198.51.100.{n}") for n in range(9)]
    assert guesses == [401] * 8 + [429]


@pytest.mark.parametrize("whose", ["nobody", "another", "changed"])
def test_what_a_browser_says_of_itself_does_not_make_it_known(cast: Cast, whose: str) -> None:
    email = cast.member.email
    client = Client()
    if whose == "nobody":
        client.cookies[COOKIE] = "made-up:1:x"
    else:
        person = cast.viewer.email if whose == "another" else email
        assert try_as(person, password=PASSWORD, client=client) == 302
    if whose == "changed":
        client.cookies[COOKIE] = client.cookies[COOKIE].value[::-1]
    guess_from_everywhere(email)
    assert try_as(email, password=PASSWORD, client=client) == 429


def test_who_knew_an_older_password_is_a_stranger_in_every_browser(cast: Cast) -> None:
    email = cast.member.email
    client = Client()
    assert try_as(email, password=PASSWORD, client=client) == 302
    cast.member.set_password("a much longer password")
    cast.member.save()
    guess_from_everywhere(email)
    assert try_as(email, client=client) == 429


def test_it_is_sent_to_the_sign_in_page_alone_and_no_script_reads_it(cast: Cast) -> None:
    client = Client()
    assert try_as(cast.member.email, password=PASSWORD, client=client) == 302
    cookie = client.cookies[COOKIE]
    assert (cookie["path"], cookie["httponly"], cookie["samesite"]) == ("/sign-in/", True, "Lax")
    assert cast.member.email.partition("@")[0] not in cookie.value
