"""The owner's admin in a real browser: a key shown once, an invitation, Only me, the audit log."""

from __future__ import annotations

import re
import uuid

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import NewPerson, shot
from tests.browser.test_accessibility import SIZES, violations

SECRET = re.compile(r"sed_[wo]_[0-9a-f]{8}_[\w-]{20,}")


def home(page: Page) -> str:
    """Through the menu of the account, as its owner goes there."""
    page.click(".side-foot .person > summary")
    page.click(".side-foot .person >> text=Manage Lindqvist Atlas")
    expect(page.locator("h1")).to_have_text("Members")
    return re.sub(r"members/$", "", page.url)


def make_key(page: Page, name: str) -> str:
    page.click("text=New key")
    page.fill("[name=name]", name)
    page.click("text=Make key")
    return page.locator("[data-once]").inner_text()


def test_an_owner_makes_a_key_invites_switches_and_finds_it_all_in_the_audit_log(
    person: NewPerson,
) -> None:
    someone = person()
    someone.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = someone.tab(f"/w/{someone.workspace}/")
    root = home(page)
    name = f"nightly-{uuid.uuid4().hex[:6]}"

    page.click("text=API keys")
    secret = make_key(page, name)
    assert SECRET.fullmatch(secret)
    page.click("[data-copy]")
    assert page.evaluate("navigator.clipboard.readText()") == secret
    page.click("text=I have stored it")
    expect(page.locator("[data-once]")).to_have_count(0)
    row = page.locator("tr", has_text=name)
    expect(row).to_contain_text(secret[:14])
    assert secret not in page.content()

    page.goto(f"{root}invitations/new/")
    email = f"{name}@example.test"
    page.fill("[name=email]", email)
    page.click("text=Send invitation")
    link = page.locator("[data-once]").inner_text()
    assert "/invitation/" in link

    page.click("text=Name and privacy")
    before = page.locator("[role=switch]").get_attribute("aria-checked")
    for expected in ("false" if before == "true" else "true", before):
        page.click("[role=switch]")
        expect(page.locator("[role=switch]")).to_have_attribute("aria-checked", str(expected))

    page.goto(f"{root}keys/")
    row = page.locator("tr", has_text=name)
    row.locator("summary").click()
    row.locator("text=Revoke…").click()
    expect(page.locator("h1")).to_have_text(f"Revoke {name}?")
    page.click("main button:has-text('Revoke')")
    expect(page.locator(".note")).to_contain_text("is revoked")

    page.click("text=Audit log")
    lines = page.locator("tbody tr")
    for text in (f"made key {name}", f"revoked key {name}", f"invited {email}", "Only me: on"):
        expect(lines.filter(has_text=text).first).to_be_visible()
    page.select_option("select[name=what]", "api_key.revoked")
    page.click("text=Filter")
    expect(lines.filter(has_text=f"revoked key {name}")).to_have_count(1)
    expect(lines.filter(has_text="invited")).to_have_count(0)
    with page.expect_download() as download:
        page.click("text=Export")
    assert name in download.value.path().read_text()
    assert secret not in download.value.path().read_text()


def test_an_invited_person_joins(person: NewPerson) -> None:
    someone = person()
    page = someone.tab(f"/w/{someone.workspace}/")
    root = home(page)
    page.goto(f"{root}invitations/new/")
    email = f"iris-{uuid.uuid4().hex[:6]}@example.test"
    page.fill("[name=email]", email)
    page.click("text=Send invitation")
    link = page.locator("[data-once]").inner_text()
    someone.context.clear_cookies()
    page = someone.tab()
    page.goto(link)
    shot(page, "invitation")
    assert violations(page) == []
    page.fill("[name=name]", "Iris Falk")
    page.fill("[name=password]", "a long enough one")
    page.click("button:has-text('Join')")
    expect(page.locator(".side-foot .person")).to_contain_text("Iris Falk")


def test_it_works_without_scripts(person: NewPerson) -> None:
    page = person(java_script_enabled=False).tab("/owner/")
    page.click("text=API keys")
    name = f"plain-{uuid.uuid4().hex[:6]}"
    secret = make_key(page, name)
    assert SECRET.fullmatch(secret)
    expect(page.locator("[data-copy]")).to_be_hidden()
    page.click("text=I have stored it")
    assert secret not in page.content()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_no_page_has_a_violation_or_scrolls_sideways(
    person: NewPerson, size: str, scheme: str
) -> None:
    width, height = SIZES[size]
    someone = person(viewport={"width": width, "height": height}, color_scheme=scheme)
    page = someone.tab("/owner/")
    root = re.sub(r"members/$", "", page.url)
    problems: dict[str, list[str]] = {}

    def look(name: str) -> None:
        page.wait_for_timeout(200)
        shot(page, f"owner-{name}-{size}-{scheme}")
        problems[name] = violations(page)
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.evaluate(wide) <= 0, f"{name} scrolls sideways"

    look("members")
    page.locator(".owner-table .is-main a", has_text="Chiara").click()
    look("member")
    for name in ("invitations", "service-accounts", "workspaces", "settings", "keys", "audit"):
        page.goto(f"{root}{name}/")
        look(name)
    page.goto(f"{root}workspaces/")
    page.click(".owner-table .is-main a")
    look("workspace")
    page.goto(f"{root}keys/new/")
    look("new-key")
    page.fill("[name=name]", f"import-{size}-{scheme}")
    page.check("[value=single]")
    page.click("text=Make key")
    look("new-key-wrong")
    page.check("[value=write]")
    page.click("text=Make key")
    expect(page.locator("[data-once]")).to_be_visible()
    look("key-shown")
    row = page.locator("tr", has_text=f"import-{size}-{scheme}")
    row.locator("summary").click()
    look("key-menu")
    row.locator("text=Rotate…").click()
    look("rotate")
    page.goto(f"{root}invitations/new/")
    look("invite")
    someone.problems.clear()  # a form that was filled in wrongly answers 400
    assert {name: found for name, found in problems.items() if found} == {}
