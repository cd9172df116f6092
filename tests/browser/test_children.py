"""Child sessions in a real browser: cards in two tabs, approvals from above, the tree, the list."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import SECONDS, WITHIN_TWO_SECONDS, NewPerson, shot, transcript
from tests.browser.test_accessibility import SIZES, violations
from tests.browser.test_answers import NO_SOCKETS
from tests.journeys.client import Client

WAIT = {"tool": "session.wait_children", "args": {}}
ASK = {"tool": "probe.append_asked", "args": {"line": "psql -f 0042_unique.sql"}}
ASKS = "[data-ask]"
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


@pytest.mark.parametrize("transport", ["socket", "stream"])
def test_a_card_follows_its_child_over_either_transport_also_in_a_fork(
    person: NewPerson, client: Client, transport: str
) -> None:
    """Before there is a result the parent's own log says nothing of what changes."""
    long = {"say": "word " * 400, "chunks": 400, "every_ms": 100}
    parent = client.start({"call": [child("Asks", {"call": [ASK]}, long)]}, {"say": "It began."})
    events = client.wait_for_idle(parent)
    inner = told(events, "child.started")[0]["child_id"]
    asked = told(client.wait_for(inner, lambda e: told(e, "turn.waiting")), "agent.tool_use")[0]
    last = told(events, "agent.message")[-1]["seq"]
    fork = client.call("POST", f"sessions/{parent}/fork", json={"from_seq": last})["id"]
    someone = person()
    if transport == "stream":
        someone.context.add_init_script(NO_SOCKETS)
    above, copy = someone.tab(f"/s/{parent}/"), someone.tab(f"/s/{fork}/")
    below = someone.tab(f"/s/{inner}/")
    expect(above.locator('[data-region="tree"]')).to_contain_text("Asks")
    expect(copy.locator('[data-region="tree"] *')).to_have_count(0)

    def both_say(word: str) -> None:
        for tab in (above, copy):
            expect(card(tab, inner)).to_contain_text(word)

    both_say("Needs you")
    allow = {"type": "user.tool_confirmation", "tool_use_id": asked["id"], "result": "allow"}
    client.call("POST", f"sessions/{inner}/events", json={"events": [allow]})
    both_say("Working")
    client.call("POST", f"sessions/{inner}", json={"title": "Renamed below"})
    client.call("POST", f"sessions/{parent}", json={"title": "Renamed above"})
    both_say("Renamed below")
    expect(above.locator('[data-region="tree"]')).to_contain_text("Renamed below")
    expect(below.locator(".crumbs")).to_contain_text("Renamed above")
    client.call("POST", f"sessions/{inner}/events", json={"events": [{"type": "user.interrupt"}]})
    both_say("Stopped")
    client.call("POST", f"sessions/{inner}/archive")
    both_say("Archived")


@WITHIN_TWO_SECONDS
@pytest.mark.parametrize("place", ["parent", "child", "api"])
def test_a_decision_clears_every_other_view_within_two_seconds(
    person: NewPerson, client: Client, place: str, most_seconds: int
) -> None:
    parent, ids = family(client)
    someone, reader = person("member"), person("viewer")
    above, inner = someone.tab(f"/s/{parent}/"), someone.tab(f"/s/{ids['Right']}/")
    inbox, seen = someone.tab("/inbox/"), reader.tab(f"/s/{parent}/")
    for tab in (above, inner, inbox, seen):
        expect(tab.locator(ASKS)).to_have_count(1)
    expect(seen.locator(f"{ASKS} form")).to_have_count(0)
    expect(seen.locator(".dock")).to_contain_text("Only people who may control this session")
    if place == "api":
        asked = above.locator(ASKS).get_attribute("data-ask")
        decision = {"type": "user.tool_confirmation", "tool_use_id": asked, "result": "allow"}
        client.call("POST", f"sessions/{ids['Right']}/events", json={"events": [decision]})
    else:
        {"parent": above, "child": inner}[place].click(f"{ASKS} [value=allow]")
    decided_at = time.monotonic()
    for tab in (above, inner, inbox, seen):
        expect(tab.locator(ASKS)).to_have_count(0, timeout=most_seconds * SECONDS)
    assert time.monotonic() - decided_at < most_seconds
    expect(above.locator(".answer").last).to_contain_text("Both are fine.")


def test_a_half_typed_answer_in_the_dock_outlives_what_others_decide(
    person: NewPerson, client: Client
) -> None:
    question = {"id": "note", "kind": "text", "text": "What should it say?"}
    parent = client.start(
        {"call": [
            child("Asks", {"call": [ASK]}, {"say": "a"}),
            child("Wants", {"call": [{"tool": "probe.ask", "args": {"questions": [question]}}]}),
        ]},
        {"say": "Started."},
    )  # fmt: skip
    page = person().tab(f"/s/{parent}/")
    expect(page.locator(ASKS)).to_have_count(2)
    expect(page.locator(".dock")).to_contain_text("Wants asks 1 question before it goes on")
    page.fill(".dock textarea[name=q1]", "half typed")
    page.click(f"{ASKS} [value=allow]")
    expect(page.locator(ASKS)).to_have_count(1)
    assert page.input_value(".dock textarea[name=q1]") == "half typed"
    page.get_by_role("button", name="Send answers").click()
    expect(page.locator(ASKS)).to_have_count(0)


def test_each_child_opens_live_and_back_returns_to_the_same_place(
    person: NewPerson, client: Client
) -> None:
    lines = "\n\n".join(f"Line {number} of a long answer." for number in range(120))
    long = {"say": "word " * 200, "chunks": 200, "every_ms": 100}
    parent = client.start(
        {"say": lines, "call": [
            child("Runs", long),
            child("Is done", {"say": "All of it."}),
            child("Failed", {"fail": {"status": 400, "message": "No such thing"}, "times": 9}),
        ]},
        {"say": lines},
    )  # fmt: skip
    client.wait_for_idle(parent)
    someone = person()
    page = someone.tab(f"/s/{parent}/")
    states = {"Runs": "Working", "Is done": "Done", "Failed": "Failed"}
    for title, state in states.items():
        shown = page.locator(".child", has_text=title)
        expect(shown).to_contain_text(state)
        shown.scroll_into_view_if_needed()
        page.mouse.move(700, 400)
        page.mouse.wheel(0, 60)
        page.wait_for_timeout(500)
        before = shown.bounding_box()
        shown.locator(".child-head").click()
        expect(page.locator("h1")).to_have_text(title)
        expect(page.locator(".crumbs a")).to_have_text("A journey")
        expect(page.locator(".prompt")).to_contain_text("Assistant")
        if title == "Runs":
            text = page.locator(".answer").inner_text()
            page.wait_for_function(
                "text => document.querySelector('.answer').innerText.length > text.length", arg=text
            )
        page.go_back()
        expect(shown).to_be_in_viewport()
        after = shown.bounding_box()
        assert before
        assert after
        assert abs(before["y"] - after["y"]) <= 2, title
        assert page.evaluate("document.querySelector('[data-scroll]').scrollTop") > 100
    end(client, parent)
    expect(page.locator(".child", has_text="Runs")).to_contain_text("Cancelled")


def test_children_open_below_their_row_live_and_stay_so(person: NewPerson, client: Client) -> None:
    parent, ids = family(client)
    someone = person()
    page = someone.tab(f"/w/{someone.workspace}/")
    row = page.locator(f'.row-item[data-key="{parent}"]')
    fold = row.locator(":scope > [data-unfold]")
    expect(fold).to_have_attribute("aria-expanded", "false")
    fold.focus()
    page.keyboard.press("Enter")
    inner = row.locator(f'.row-item[data-key="{ids["Right"]}"]')
    expect(inner).to_contain_text("Needs you")
    expect(fold).to_have_attribute("aria-expanded", "true")
    page.reload()
    expect(inner).to_contain_text("Needs you")
    asked = client.wait_for(ids["Right"], lambda found: told(found, "agent.tool_use"))
    decision = {
        "type": "user.tool_confirmation",
        "tool_use_id": told(asked, "agent.tool_use")[0]["id"],
        "result": "allow",
    }
    client.call("POST", f"sessions/{ids['Right']}/events", json={"events": [decision]})
    expect(inner).to_contain_text("Done")
    new = client.call(
        "POST", "sessions", json={"title": "Third", "workspace_id": client.workspace_id,
                                  "parent_id": parent},
    )["id"]  # fmt: skip
    expect(row.locator(f'[data-key="{new}"]')).to_contain_text("Third")
    client.call("POST", f"sessions/{new}", json={"title": "Renamed"})
    expect(row.locator(f'[data-key="{new}"]')).to_contain_text("Renamed")
    client.call("POST", f"sessions/{new}/archive")
    expect(row.locator(f'[data-key="{new}"]')).to_have_count(0)
    fold.click()
    expect(inner).to_have_count(0)
    page.reload()
    expect(fold).to_have_attribute("aria-expanded", "false")
    page.wait_for_timeout(300)
    expect(inner).to_have_count(0)


def test_kin_are_reached_without_a_script(person: NewPerson, client: Client) -> None:
    parent, ids = family(client)
    someone = person(java_script_enabled=False)
    page = someone.tab(f"/w/{someone.workspace}/")
    page.click(f'.row-item[data-key="{parent}"] > [data-unfold]')
    page.click(f'.tree [data-relative="{ids["Right"]}"]')
    page.click(".crumbs a")
    page.click(".dock [value=allow]")
    assert page.url.endswith(f"/s/{parent}/#end")
    client.wait_for_idle(parent)
    page.reload()
    expect(page.locator(ASKS)).to_have_count(0)
    expect(page.locator(".answer").last).to_contain_text("Both are fine.")


def test_a_dialog_and_the_notice_name_how_many_go_along(person: NewPerson, client: Client) -> None:
    parent, _ = family(client)
    someone = person()
    page = someone.tab(f"/s/{parent}/")
    page.click('.head [aria-label="Session menu"]')
    page.click(".head [data-cancel]")
    expect(page.locator('[data-dialog="cancel"]')).to_contain_text("2 child sessions")
    page.locator('[data-dialog="cancel"] [data-keep]').click()
    page.click('.head [aria-label="Session menu"]')
    page.get_by_role("button", name="Archive").click()
    dialog = page.locator('[data-dialog="stop-and-archive"]')
    expect(dialog).to_contain_text("2 child sessions go with it")
    dialog.locator("[data-go]").click()
    expect(page.locator(".toast")).to_contain_text("With 2 child sessions.")
    someone.problems.clear()  # the refusal that asked us


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_no_page_of_a_family_has_a_violation(
    person: NewPerson, client: Client, size: str, scheme: str
) -> None:
    width, height = SIZES[size]
    parent, ids = family(client)
    someone = person(viewport={"width": width, "height": height}, color_scheme=scheme)
    mixed = client.start(
        {"call": [
            child("Runs", {"say": "It goes on and on. " * 40, "chunks": 200, "every_ms": 100}),
            child("Failed", {"fail": {"status": 400, "message": "No such thing"}, "times": 9}),
            child("Asks me", {"call": [ASK, ASK]}),
            child("Delegates", {"call": [child("Deep", {"say": "d " * 300, "chunks": 300,
                                                        "every_ms": 100})]}, {"call": [WAIT]}),
        ]},
        {"say": "All started."},
    )  # fmt: skip
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
    many = someone.tab(f"/s/{mixed}/")
    expect(many.locator(".child", has_text="Delegates")).to_contain_text("Waiting for 1 child")
    expect(many.locator(".child", has_text="Failed")).to_contain_text("Failed")
    expect(many.locator(".dock [data-ask]")).to_have_count(2)
    shot(many, f"family-mixed-{size}-{scheme}")
    problems["mixed"] = violations(many)
    end(client, mixed)
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
