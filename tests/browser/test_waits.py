"""Approvals and questions, in a real browser: two tabs, the list of what waits, keys, axe."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import NewPerson, shot, transcript
from tests.browser.test_accessibility import SIZES, violations
from tests.journeys.client import Client

APPEND = {"tool": "probe.append_asked", "args": {"line": "psql -f 0042_unique.sql"}}
QUESTIONS = [
    {"id": "date", "kind": "single_select", "text": "Which date decides the price?",
     "options": [{"label": "The booking date", "description": "Old table."}, "The departure date"],
     "allow_other": True},
    {"id": "carriers", "kind": "multi_select", "text": "Which carriers may switch?",
     "options": ["Northsea Line", "Baltic Feeder", "Danube Barge"], "required": False},
    {"id": "note", "kind": "text", "text": "What should a changed quote say?"},
]  # fmt: skip
ASK = {"tool": "probe.ask", "args": {"questions": QUESTIONS, "allow_skip": True}}
CARD = "[data-ask]"


def waiting(client: Client, *calls: dict[str, Any], say: str = "All done.") -> str:
    session = client.start({"say": "One moment.", "call": list(calls)}, {"say": say})
    client.wait_for(session, lambda events: any(e["type"] == "turn.waiting" for e in events))
    return session


def end(client: Client, session: str) -> None:
    client.call("POST", f"sessions/{session}/cancel", json={})


def row_state(page: Page, session: str) -> Any:
    return page.locator(f'[data-key="{session}"] .row-state')


def test_allowing_in_one_tab_settles_the_card_in_the_other(
    person: NewPerson, client: Client
) -> None:
    session = waiting(client, APPEND)
    page, other = person().tab(f"/s/{session}/"), person("member").tab(f"/s/{session}/")
    for tab in (page, other):
        expect(tab.locator(CARD)).to_contain_text("psql -f 0042_unique.sql")
        expect(tab.locator('[data-region="state"]')).to_have_text("Needs you")
        expect(row_state(tab, session)).to_have_text("Needs you")
        expect(tab.locator("[data-busy]")).to_contain_text("Waiting for you")
    page.click(f"{CARD} [value=allow]")
    for tab in (page, other):
        expect(tab.locator(".is-settled")).to_contain_text("Allowed by")
        expect(tab.locator(CARD)).to_have_count(0)
        expect(tab.locator(".answer").last).to_contain_text("All done.")
        expect(tab.locator('[data-region="state"]')).to_have_text("")
        expect(row_state(tab, session)).not_to_contain_text("Needs you")
    live = transcript(other)
    other.reload()
    assert transcript(other) == live


def test_a_denial_carries_its_reason_by_keys_alone(person: NewPerson, client: Client) -> None:
    session = waiting(client, APPEND)
    page = person().tab(f"/s/{session}/")
    page.focus(f"{CARD} .deny > summary")
    page.keyboard.press("Enter")
    expect(page.locator(f"{CARD} [name=reason]")).to_be_focused()
    page.keyboard.type("Not on a Friday")
    page.keyboard.press("Enter")
    expect(page.locator(".is-settled")).to_contain_text("Denied by")
    expect(page.locator(".is-settled")).to_contain_text("Not on a Friday")
    expect(page.locator(".is-settled")).to_be_focused()
    results = client.events(session, "agent.tool_result")
    assert "Not on a Friday" in results[-1]["content"][0]["text"]


def test_a_question_is_answered_and_errors_stay_at_their_field(
    person: NewPerson, client: Client
) -> None:
    session = waiting(client, ASK)
    someone = person()
    page = someone.tab(f"/s/{session}/")
    page.fill("[name=q1-other]", "The day of loading")
    expect(page.locator('[name=q1][value="other"]')).to_be_checked()
    page.get_by_label("Baltic Feeder").check()
    page.get_by_role("button", name="Send answers").click()
    expect(page.locator('[data-problem="3"]')).to_have_text("This question needs an answer.")
    expect(page.locator("[name=q3]")).to_be_focused()
    page.keyboard.type("Prices of 2026")
    page.keyboard.press("Control+Enter")
    settled = page.locator(".is-settled")
    for said in ("The day of loading", "Baltic Feeder", "Prices of 2026", "Answered by"):
        expect(settled).to_contain_text(said)
    expect(page.locator(".answer").last).to_contain_text("All done.")
    assert [p for p in someone.problems if "400" not in p] == []
    someone.problems.clear()  # the refusal that we made


def test_what_was_decided_elsewhere_is_told(person: NewPerson, client: Client) -> None:
    session = waiting(client, APPEND, APPEND)
    someone = person()
    page = someone.tab(f"/s/{session}/")
    expect(page.locator(CARD)).to_have_count(2)
    first = page.locator(CARD).first.get_attribute("data-ask")
    decision = {"type": "user.tool_confirmation", "tool_use_id": first, "result": "allow"}
    page.evaluate(
        "() => { const send = fetch; window.fetch = (url, options) => options?.method === 'POST'"
        " ? new Promise((go) => { window.release = () => go(send(url, options)); })"
        " : send(url, options); }"
    )
    page.locator(CARD).first.get_by_text("Allow in this session").click()
    client.call("POST", f"sessions/{session}/events", json={"events": [decision]})
    page.evaluate("window.release()")
    expect(page.locator(".toast")).to_contain_text("the first answer counts")
    expect(page.locator(CARD)).to_have_count(1)
    end(client, session)
    someone.problems.clear()  # the refusal that we made


def test_the_inbox_empties_as_things_are_decided(person: NewPerson, client: Client) -> None:
    someone = person()
    before = someone.tab("/inbox/").locator("[data-row]").count()
    first, second = waiting(client, APPEND), waiting(client, ASK)
    page, other = someone.tab("/inbox/"), person("admin").tab("/inbox/")
    for tab in (page, other):
        expect(tab.locator("[data-row]")).to_have_count(before + 2)
        expect(tab.locator(".side [data-waiting-count]")).to_have_text(str(before + 2))
    title = page.title()
    page.fill(f'form[action*="{second}"] [name=q3]', "half typed")
    page.click(f'form[action*="{first}"] [value=allow]')
    for tab in (page, other):
        expect(tab.locator("[data-row]")).to_have_count(before + 1)
        expect(tab.locator(f'form[action*="{first}"]')).to_have_count(0)
    assert page.input_value(f'form[action*="{second}"] [name=q3]') == "half typed"
    other.click(f'form[action*="{second}"] [value=skip]')
    for tab in (page, other):
        expect(tab.locator("[data-row]")).to_have_count(before)
    third = waiting(client, APPEND)
    expect(page.locator(f'form[action*="{third}"]')).to_have_count(2)
    assert page.title() == title
    page.click(f'[data-row]:has(form[action*="{third}"]) .inbox-place a')
    expect(page.locator(CARD)).to_be_in_viewport()
    end(client, third)


def test_a_card_works_without_scripts(person: NewPerson, client: Client) -> None:
    session = waiting(client, APPEND, ASK)
    someone = person(java_script_enabled=False)
    page = someone.tab(f"/s/{session}/")
    page.get_by_label("The departure date").check()
    page.get_by_role("button", name="Send answers").click()
    expect(page.locator('[data-problem="3"]')).to_have_text("This question needs an answer.")
    expect(page.locator('[name=q1][value="1"]')).to_be_checked()
    page.fill("[name=q3]", "x")
    page.get_by_role("button", name="Send answers").click()
    expect(page.locator(".is-settled")).to_contain_text("Answered by")
    page.click(f"{CARD} .deny > summary")
    page.fill("[name=reason]", "no")
    page.click(f"{CARD} .deny button")
    expect(page.locator(".is-settled")).to_have_count(2)
    assert [problem for problem in someone.problems if "400" not in problem] == []
    someone.problems.clear()  # the refusal that we made


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_neither_cards_nor_inbox_have_a_violation(
    person: NewPerson, client: Client, size: str, scheme: str
) -> None:
    width, height = SIZES[size]
    session = waiting(client, APPEND, ASK)
    someone = person(viewport={"width": width, "height": height}, color_scheme=scheme)
    page = someone.tab(f"/s/{session}/")
    expect(page.locator(CARD)).to_have_count(2)
    problems = {}
    shot(page, f"question-{size}-{scheme}")
    problems["cards"] = violations(page)
    page.click(f"{CARD} .deny > summary")
    shot(page, f"approval-{size}-{scheme}")
    problems["denying"] = violations(page)
    page.get_by_role("button", name="Send answers").click()
    expect(page.locator('[data-problem="1"]')).not_to_have_text("")
    problems["refused"] = violations(page)
    inbox = someone.tab("/inbox/")
    shot(inbox, f"inbox-{size}-{scheme}")
    problems["inbox"] = violations(inbox)
    page.get_by_role("button", name="Skip").click()
    page.click(f"{CARD} [value=allow]")
    expect(page.locator(".is-settled")).to_have_count(2)
    shot(page, f"settled-{size}-{scheme}")
    problems["settled"] = violations(page)
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert [tab.evaluate(wide) <= 0 for tab in (page, inbox)] == [True, True]
    someone.problems.clear()  # the refusal that we made
    assert {name: found for name, found in problems.items() if found} == {}
