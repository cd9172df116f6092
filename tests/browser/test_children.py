"""Child sessions in a real browser: cards in two tabs, approvals from above, the tree, the list."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import NewPerson, shot, transcript
from tests.browser.test_accessibility import SIZES, violations
from tests.journeys.client import Client

WAIT = {"tool": "session.wait_children", "args": {}}
ASK = {"tool": "probe.append_asked", "args": {"line": "psql -f 0042_unique.sql"}}
SLOW = {"say": "Left is fine, and here is why at some length.", "chunks": 20, "every_ms": 150}


def child(title: str, *script: dict[str, Any]) -> dict[str, Any]:
    prompt = json.dumps({"script": list(script)})
    return {"tool": "session.start_child", "args": {"title": title, "prompt": prompt}}


def family(client: Client) -> tuple[str, dict[str, str]]:
    """A parent that waits for one child that writes and one that asks; ids by title."""
    parent = client.start(
        {
            "say": "I ask two.",
            "call": [child("Left", SLOW), child("Right", {"call": [ASK]}, {"say": "Right is."})],
        },
        {"call": [WAIT]},
        {"say": "Both are fine."},
    )
    events = client.wait_for(parent, lambda found: told(found, "turn.waiting"))
    ids = {event["title"]: event["child_id"] for event in told(events, "child.started")}
    client.wait_for(ids["Right"], lambda found: told(found, "turn.waiting"))
    return parent, ids


def told(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event for event in events if event["type"] == kind]


def card(page: Page, child_id: str) -> Locator:
    return page.locator(f'[data-key="child-{child_id}"]')


def end(client: Client, session: str) -> None:
    client.call("POST", f"sessions/{session}/cancel", json={})


def test_cards_are_live_in_two_tabs_and_the_dock_decides(person: NewPerson, client: Client) -> None:
    parent, ids = family(client)
    page, other = person().tab(f"/s/{parent}/"), person("member").tab(f"/s/{parent}/")
    for tab in (page, other):
        expect(card(tab, ids["Right"])).to_contain_text("Needs you")
        expect(card(tab, ids["Left"])).to_contain_text("Done")
        expect(tab.locator('[data-region="state"]')).to_contain_text("Needs you")
        expect(tab.locator('[data-region="state"]')).to_contain_text("Right")
        expect(tab.locator("[data-busy]")).to_contain_text("Waiting for 1 child session")
        expect(tab.locator(".dock [data-ask]")).to_contain_text("Right asks to run")
    page.click(".dock [value=allow]")
    for tab in (page, other):
        expect(tab.locator(".dock [data-ask]")).to_have_count(0)
        expect(card(tab, ids["Right"])).to_contain_text("Done")
        expect(tab.locator(".answer").last).to_contain_text("Both are fine.")
        expect(tab.locator('[data-region="tree"]')).to_contain_text("Right")
        expect(tab.locator('[data-region="state"]')).to_have_text("")
    live = transcript(other)
    other.reload()
    assert transcript(other) == live


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_no_page_of_a_family_has_a_violation(
    person: NewPerson, client: Client, size: str, scheme: str
) -> None:
    width, height = SIZES[size]
    parent, ids = family(client)
    someone = person(viewport={"width": width, "height": height}, color_scheme=scheme)
    page = someone.tab(f"/s/{parent}/")
    expect(page.locator(".dock [data-ask]")).to_have_count(1)
    expect(card(page, ids["Left"])).to_contain_text("Done")
    problems = {}
    if size != "wide":
        page.click(".head [data-toggle-drawer]")
        shot(page, f"family-drawer-{size}-{scheme}")
        problems["drawer"] = violations(page)
        page.keyboard.press("Escape")
    page.wait_for_timeout(400)
    shot(page, f"family-asking-{size}-{scheme}")
    problems["asking"] = violations(page)
    inner = someone.tab(f"/s/{ids['Right']}/")
    shot(inner, f"family-child-{size}-{scheme}")
    problems["child"] = violations(inner)
    listed = someone.tab(f"/w/{someone.workspace}/")
    listed.click(f'.row-item[data-key="{parent}"] > [data-unfold]')
    expect(listed.locator(f'[data-children="{parent}"] > .row-item')).to_have_count(2)
    shot(listed, f"family-list-{size}-{scheme}")
    problems["list"] = violations(listed)
    tree = someone.tab(f"/s/{ids['Left']}/tree/")
    shot(tree, f"family-tree-{size}-{scheme}")
    problems["tree"] = violations(tree)
    page.click(".dock [value=allow]")
    expect(page.locator(".answer").last).to_contain_text("Both are fine.")
    page.locator(".child-result > summary").first.click()
    shot(page, f"family-done-{size}-{scheme}")
    problems["done"] = violations(page)
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert [tab.evaluate(wide) <= 0 for tab in (page, inner, listed, tree)] == [True] * 4
    assert {name: found for name, found in problems.items() if found} == {}
