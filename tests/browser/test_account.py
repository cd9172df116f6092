"""One's own page in a real browser: devices, password, and what Back shows after signing out."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import SECONDS, WITHIN_TWO_SECONDS, NewPerson, Person, shot
from tests.browser.test_accessibility import SIZES, violations
from tests.journeys.client import Client
from tests.journeys.server import Server


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_the_page_fits_and_has_no_violation(person: NewPerson, size: str, scheme: str) -> None:
    width, height = SIZES[size]
    someone = person(viewport={"width": width, "height": height}, color_scheme=scheme)
    for path, name in {"/account/": "account", "/password-reset/": "reset"}.items():
        page = someone.tab(path)
        shot(page, f"{name}-{size}-{scheme}")
        assert violations(page) == []
        overflow = page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert overflow <= 0
        if name == "account":
            first = page.locator(".devices li").first
            expect(first.locator("time").first).to_be_visible()
            icon = first.locator("svg").bounding_box()
            button = first.locator("button").bounding_box()
            assert icon is not None
            assert button is not None
            assert button["y"] < icon["y"] + icon["height"], "a row is one row"
        page.close()


@WITHIN_TWO_SECONDS
def test_one_device_ends_another_and_its_open_page_says_so(
    person: NewPerson, client: Client, most_seconds: int
) -> None:
    session = client.start({"say": "Good morning."})
    laptop = person("member")
    phone = person("member", user_agent=PHONE)
    open_page = phone.tab(f"/s/{session}/")
    expect(open_page.locator("[data-transcript]")).to_be_visible()
    page = laptop.tab()
    page.goto(f"{laptop.server.url}/s/{session}/")
    page.click(".person summary")
    page.get_by_role("link", name="Your account").click()
    row = page.locator(".devices li", has_text="Safari on iPhone").first
    expect(row).to_be_visible()
    row.get_by_role("button").click()
    expect(page.get_by_role("status")).to_have_text("That device is signed out.")
    expect(open_page.locator("[data-connection]")).to_be_visible(timeout=most_seconds * SECONDS)
    open_page.reload()
    assert "/sign-in/" in open_page.url
    phone.problems.clear()


PHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) Version/18.1 Mobile Safari/604.1"


def test_back_shows_nothing_after_signing_out(person: NewPerson, client: Client) -> None:
    session = client.start({"say": "A secret of the house."})
    client.wait_for_idle(session)
    someone = person("member")
    page = someone.tab(f"/s/{session}/")
    page.goto(f"{someone.server.url}/account/")
    page.get_by_role("button", name="this one").click()
    page.wait_for_url(re.compile("/sign-in/"))
    for _ in range(2):
        page.go_back()
        page.wait_for_load_state()
        assert "A secret of the house" not in page.content()
    expect(page.locator("[name=password]")).to_be_visible()


def test_a_password_is_changed_and_a_wrong_one_refused(
    server: Server, chromium: Browser, person: NewPerson
) -> None:
    someone: Person = person("viewer")
    user: Any = next(u for u in server.demo["users"] if u["role"] == "viewer")
    page = someone.tab("/account/")
    change(page, "not the one", "another long password")
    expect(page.get_by_role("alert")).to_have_text("That is not your present password.")
    assert violations(page) == []
    someone.problems.clear()  # the answer's status
    change(page, user["password"], "another long password")
    expect(page.get_by_role("status")).to_contain_text("Your password is changed.")
    change(page, "another long password", user["password"])  # the one that other tests know
    expect(page.get_by_role("status")).to_contain_text("Your password is changed.")


def test_a_link_from_a_mail_sets_a_new_password(
    server: Server, chromium: Browser, person: NewPerson
) -> None:
    """By a browser's own form: what it sends along is what the CSRF check asks for."""
    user: Any = next(u for u in server.demo["users"] if u["role"] == "viewer")
    context = chromium.new_context()
    page = context.new_page()
    page.goto(f"{server.url}/password-reset/")
    page.fill("[name=email]", user["email"])
    page.keyboard.press("Enter")
    expect(page.get_by_text("mail").first).to_be_visible()
    link = re.compile(r"http\S+/password-reset/usr_\w+/\S+/")
    server.wait_until(lambda: link.search(mails(server)), 20, "no mail came")
    page.goto(link.findall(mails(server))[-1])
    page.fill("[name=new]", user["password"])  # the one that other tests know
    page.get_by_role("button", name="Set the password").click()
    page.wait_for_url(re.compile(r"/sign-in/\?renewed"))
    context.close()
    assert "/w/" in person("viewer").tab("/").url


def test_the_tabs_of_an_expired_login_stop_asking_and_lead_to_the_door(
    server: Server, person: NewPerson, client: Client
) -> None:
    """BR-088: at most three attempts each; once somebody is signed in again all of them go on."""
    session = client.create("Expired")
    someone = person("admin")
    tabs = [someone.tab(f"/s/{session}/") for _ in "abc"]
    opened: list[list[str]] = [[] for _ in tabs]
    for tab, seen in zip(tabs, opened, strict=True):
        tab.on("websocket", lambda socket, each=seen: each.append(socket.url))
    tabs[0].fill("textarea", "kept text")
    tabs[0].wait_for_timeout(1_200)
    expired = "UPDATE orgs_login SET expires_at = now() - interval '1 second' RETURNING id"
    assert server.query(expired)
    for tab in tabs:
        expect(tab.locator("[data-connection]")).to_contain_text("You are signed out")
    tabs[0].wait_for_timeout(6_000)
    assert max(map(len, opened)) <= 3
    tabs[0].get_by_role("link", name="Sign in again").click()
    user: Any = next(u for u in server.demo["users"] if u["role"] == "admin")
    tabs[0].fill("[name=email]", user["email"])
    tabs[0].fill("[name=password]", user["password"])
    tabs[0].keyboard.press("Enter")
    tabs[0].wait_for_url(re.compile(f"/s/{session}/"))
    expect(tabs[0].locator("textarea").first).to_have_value("kept text")
    for tab in tabs[1:]:
        tab.reload()
        expect(tab.locator("[data-transcript]")).to_be_visible()
        expect(tab.locator("[data-connection]")).to_be_hidden()
        expect(tab.locator("textarea").first).to_have_value("kept text")
    someone.problems.clear()  # what was refused meanwhile


def mails(server: Server) -> str:
    """Without a mail server they are in the log."""
    return "".join(path.read_text() for path in sorted((server.home / "logs").glob("web*.log")))


def change(page: Any, current: str, new: str) -> None:
    page.get_by_label("Present password").fill(current)
    page.get_by_label("New password").fill(new)
    page.get_by_role("button", name="Change password").click()
