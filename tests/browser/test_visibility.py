"""“Only me” in a real browser: begun so, shown to the workspace, hidden while others look."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import NewPerson, shot
from tests.browser.test_accessibility import SIZES, violations
from tests.journeys.client import Client, scripted


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_a_session_begins_for_oneself_alone(person: NewPerson, size: str, scheme: str) -> None:
    width, height = SIZES[size]
    someone = person("member", viewport={"width": width, "height": height}, color_scheme=scheme)
    page = someone.tab(f"/w/{someone.workspace}/new/")
    page.get_by_label("Only me").check()
    page.fill("textarea", scripted({"say": "It stays between us."}))
    shot(page, f"only-me-new-{size}-{scheme}")
    assert violations(page) == []
    page.get_by_role("button", name="Send").click()
    page.wait_for_url("**/s/ses_*/")
    expect(page.locator(".answer")).to_contain_text("It stays between us.")
    menu = page.locator(".head-actions .menu")
    menu.locator("summary").click()
    expect(menu.get_by_role("button", name="Let the workspace see it")).to_be_visible()
    shot(page, f"only-me-session-{size}-{scheme}")
    assert violations(page) == []


def test_others_lose_the_page_at_once_and_get_it_back(person: NewPerson, client: Client) -> None:
    maker, other = person("member"), person("owner")
    page = maker.tab(f"/w/{maker.workspace}/new/")
    page.fill("textarea", scripted({"say": "Everybody may read this."}))
    page.get_by_role("button", name="Send").click()
    page.wait_for_url("**/s/ses_*/")
    session_id = page.url.rstrip("/").rpartition("/")[2]
    client.wait_for_idle(session_id)
    theirs = other.tab(page.url.removeprefix(maker.server.url))
    expect(theirs.locator(".answer")).to_contain_text("Everybody may read this.")
    row = theirs.locator(f'[data-key="{session_id}"]')
    expect(row).to_have_count(1)
    page.locator(".head-actions .menu summary").click()
    page.get_by_role("button", name="Only me").click()
    expect(page.locator(".head-fact[data-region=seen_by]")).to_contain_text("Only me")
    expect(page.locator(".transcript")).to_contain_text("sees this session since")
    expect(row).to_have_count(0)
    expect(theirs.locator(".answer")).to_have_count(0)
    shot(theirs, "only-me-gone")
    page.locator(".head-actions .menu summary").click()
    page.get_by_role("button", name="Let the workspace see it").click()
    expect(row).to_have_count(1)
