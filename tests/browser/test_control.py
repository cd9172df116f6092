"""Turns under control, in a real browser: the queue, steering, pausing, retrying, cancelling."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import NewPerson, shot
from tests.browser.test_accessibility import SIZES, violations
from tests.journeys.client import Client, scripted

LONG = {"say": "slow " * 900, "chunks": 900, "every_ms": 100}
PROMPTS = ("First: list the sheets", "Second: count the stations", "Third: draft a note")


def queued(page: Page) -> list[str]:
    return page.locator("[data-queued] .text").all_inner_texts()


def row(page: Page, text: str) -> str:
    """Selects the row of a prompt, wherever it stands by then."""
    turn = page.locator("[data-queued]", has_text=text).get_attribute("data-queued")
    return f'[data-queued="{turn}"]'


def busy(client: Client, *prompts: str) -> str:
    session = client.start(LONG)
    for prompt in prompts or PROMPTS:
        client.send(session, prompt)
    return session


def end(client: Client, session: str) -> None:
    client.call("POST", f"sessions/{session}/cancel", json={})


def test_editing_takes_the_text_into_the_composer_and_sends_it_to_its_old_place(
    person: NewPerson, client: Client
) -> None:
    session = busy(client, PROMPTS[0])
    page = person().tab(f"/s/{session}/")
    for prompt in PROMPTS[1:]:
        page.fill("textarea", prompt)
        page.press("textarea", "Enter")
    expect(page.locator("[data-queued]")).to_have_count(3)
    page.fill("textarea", "half a thought")
    page.click(f"{row(page, 'First')} [data-do=edit]")
    expect(page.locator("textarea")).to_have_value(f"{PROMPTS[0]}\n\nhalf a thought")
    expect(page.locator("textarea")).to_be_focused()
    expect(page.locator("[data-note]")).to_have_text("Keeps its place")
    expect(page.locator("[data-queued]")).to_have_count(2)
    page.fill("textarea", "First, better")
    page.press("textarea", "Enter")
    expect(page.locator("[data-queued]")).to_have_count(3)
    expect(page.locator("[data-queued] .text").first).to_have_text("First, better")
    assert queued(page) == ["First, better", *PROMPTS[1:]]
    expect(page.locator("[data-note]")).to_have_text("")
    end(client, session)


def test_moving_and_deleting_show_in_both_tabs(person: NewPerson, client: Client) -> None:
    session = busy(client)
    page = person().tab(f"/s/{session}/")
    other = person("member").tab(f"/s/{session}/")
    page.click(f"{row(page, 'Third')} [data-do=up]")
    page.click(f"{row(page, 'Third')} [data-do=up]")
    wanted = [PROMPTS[2], PROMPTS[0], PROMPTS[1]]
    for tab in (page, other):
        expect(tab.locator("[data-queued] .text")).to_have_text(wanted)
    other.click(f"{row(other, 'First')} [data-do=delete]")
    for tab in (page, other):
        expect(tab.locator("[data-queued] .text")).to_have_text([PROMPTS[2], PROMPTS[1]])
        expect(tab.locator("[data-queued] .why")).to_have_text(["after turn 1", "after 1"])
    end(client, session)


def test_send_now_takes_the_place_of_the_running_turn(person: NewPerson, client: Client) -> None:
    session = client.start(LONG)
    client.send(session, PROMPTS[0])
    client.send(session, scripted({"say": "this instead " * 40, "chunks": 40, "every_ms": 100}))
    page = person().tab(f"/s/{session}/")
    expect(page.locator(".answer")).to_contain_text("slow")
    page.click(f"{row(page, 'this instead')} [data-do=promote]")
    expect(page.locator("[data-busy]")).to_contain_text("Turn 3 is working")
    expect(page.locator("[data-transcript]")).to_contain_text("Replaced by a newer prompt")
    expect(page.locator(".answer").last).to_contain_text("this instead")
    assert queued(page) == [PROMPTS[0]]
    end(client, session)


def test_steering_in_mid_answer_by_button_and_by_key(person: NewPerson, client: Client) -> None:
    session = client.start(LONG)
    page = person().tab(f"/s/{session}/")
    expect(page.locator(".answer")).to_contain_text("slow")
    page.fill("textarea", scripted(LONG | {"say": "steered " * 900}))
    page.click("[data-steer]")
    expect(page.locator("[data-busy]")).to_contain_text("Turn 2 is working")
    expect(page.locator(".answer").last).to_contain_text("steered")
    page.fill("textarea", scripted({"say": "by key"}))
    page.press("textarea", "Control+Enter")
    expect(page.locator(".answer").last).to_contain_text("by key")
    expect(page.locator("[data-busy]")).to_have_count(0)
    expect(page.locator("[data-steer]")).to_be_hidden()
    expect(page.locator(".is-optimistic")).to_have_count(0)
    assert page.locator(".prompt").count() == 3
    states = [turn["status"] for turn in client.turns(session)]
    assert states == ["superseded", "superseded", "completed"]


def test_pausing_in_mid_answer_and_resuming_is_one_turn_in_two_tabs(
    person: NewPerson, client: Client
) -> None:
    first, second = person(), person("member")
    session = client.start({"say": "word " * 80, "chunks": 80, "every_ms": 60})
    page, other = first.tab(f"/s/{session}/"), second.tab(f"/s/{session}/")
    expect(page.locator(".answer")).to_contain_text("word")
    page.click("[data-do=pause] >> visible=true")
    for tab in (page, other):
        expect(tab.locator("[data-busy]")).to_contain_text("Paused")
        expect(tab.locator('[data-region="state"]')).to_have_text("Paused")
        expect(tab.locator(f'[data-key="{session}"] .row-state')).to_have_text("Paused")
        expect(tab.locator("[data-steer]")).to_be_hidden()
    page.fill("textarea", scripted({"say": "held until then"}))
    page.press("textarea", "Enter")
    expect(other.locator("[data-queued] .why")).to_have_text("after turn 1")
    other.click("[data-do=resume] >> visible=true")
    for tab in (page, other):
        expect(tab.locator("[data-busy]")).to_have_count(0, timeout=20_000)
        expect(tab.locator(".answer").last).to_contain_text("held until then")
    assert [turn["status"] for turn in client.turns(session)] == ["completed"] * 2


def test_a_queue_that_changed_elsewhere_is_told_and_shown_anew(
    person: NewPerson, client: Client
) -> None:
    session = busy(client)
    someone = person()
    page = someone.tab(f"/s/{session}/")
    page.evaluate("document.querySelector('[name=expected_version]').value = 1")
    page.click(f"{row(page, 'Second')} [data-do=delete]")
    expect(page.locator(".toast")).to_contain_text("The queue has changed since")
    expect(page.locator("[name=expected_version]")).not_to_have_value("1")
    page.click(f"{row(page, 'Second')} [data-do=delete]")
    expect(page.locator("[data-queued]")).to_have_count(2)
    end(client, session)
    someone.problems.clear()  # the refusal that we made


def test_keys_alone_move_edit_delete_and_pause(person: NewPerson, client: Client) -> None:
    session = busy(client)
    page = person().tab(f"/s/{session}/")
    page.focus(f"{row(page, 'Third')} [data-do=up]")
    page.keyboard.press("Enter")
    expect(page.locator("[data-queued] .text").nth(1)).to_have_text(PROMPTS[2])
    expect(page.locator(f"{row(page, 'Third')} [data-do=up]")).to_be_focused()
    page.keyboard.press("Alt+ArrowUp")
    expect(page.locator("[data-queued] .text").first).to_have_text(PROMPTS[2])
    expect(page.locator(f"{row(page, 'Third')} button:focus")).to_have_count(1)
    page.focus(f"{row(page, 'Third')} [data-do=delete]")
    page.keyboard.press("Enter")
    expect(page.locator("[data-queued]")).to_have_count(2)
    expect(page.locator(f"{row(page, 'First')} [data-do=delete]")).to_be_focused()
    page.focus("[data-do=pause] >> visible=true")
    page.keyboard.press("Enter")
    expect(page.locator("[data-do=resume] >> visible=true")).to_be_focused()
    page.focus(f"{row(page, 'First')} [data-do=edit]")
    page.keyboard.press("Enter")
    expect(page.locator("textarea")).to_be_focused()
    end(client, session)


def test_a_failed_turn_is_retried_once(person: NewPerson, client: Client) -> None:
    fails = {"fail": {"status": 400, "message": "no"}, "times": 1}
    session = client.start(fails | {"say": "well"})
    page = person().tab(f"/s/{session}/")
    expect(page.locator(".failure")).to_be_visible()
    page.click("[data-do=retry]")
    expect(page.locator("[data-do=retry]")).to_have_count(1)
    expect(page.locator(".failure")).to_have_count(2)
    expect(page.locator(".failure").last.locator("[data-do=retry]")).to_have_count(1)


def test_cancelling_asks_and_says_what_ends(person: NewPerson, client: Client) -> None:
    session = busy(client)
    page = person().tab(f"/s/{session}/")
    page.click("summary[aria-label='Session menu']")
    page.click("[data-cancel]")
    dialog = page.locator("[data-dialog=cancel]")
    expect(dialog).to_contain_text("3 queued prompts")
    expect(dialog.locator("[data-keep]")).to_be_focused()
    shot(page, "cancel")
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(page.locator("[data-queued]")).to_have_count(3)
    page.click("summary[aria-label='Session menu']")
    page.click("[data-cancel]")
    page.click("[data-dialog=cancel] [data-go]")
    expect(page.locator(".readonly")).to_contain_text("This session was cancelled")
    expect(page.locator("[data-busy]")).to_have_count(0)
    assert client.session(session)["status"] == "terminated"


def test_everything_works_without_scripts(person: NewPerson, client: Client) -> None:
    session = busy(client)
    page = person(java_script_enabled=False).tab(f"/s/{session}/")
    page.click(f"{row(page, 'Third')} [data-do=up]")
    assert queued(page) == [PROMPTS[0], PROMPTS[2], PROMPTS[1]]
    page.click(f"{row(page, 'Third')} [data-do=edit]")
    assert page.input_value("textarea") == PROMPTS[2]
    page.click("[data-do=pause] >> visible=true")
    expect(page.locator("[data-busy]")).to_contain_text("Paused")
    page.click("[data-do=resume] >> visible=true")
    page.click("summary[aria-label='Session menu']")
    page.click("[data-cancel]")
    page.click("text=Cancel session >> nth=-1")
    expect(page.locator(".readonly")).to_contain_text("This session was cancelled")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_neither_a_queue_nor_a_pause_has_a_violation(
    person: NewPerson, client: Client, size: str, scheme: str
) -> None:
    width, height = SIZES[size]
    someone = person(viewport={"width": width, "height": height}, color_scheme=scheme)
    session = busy(client)
    page = someone.tab(f"/s/{session}/")
    expect(page.locator(".answer")).to_contain_text("slow slow")
    problems = {}
    shot(page, f"queue-{size}-{scheme}")
    problems["queue"] = violations(page)
    if size == "phone":
        page.click(".queue > summary")
        page.locator(".queue-acts > summary").first.click()
        shot(page, f"queue-open-{size}-{scheme}")
        problems["open"] = violations(page)
    page.click("[data-do=pause] >> visible=true")
    expect(page.locator('[data-region="state"]')).to_have_text("Paused")
    shot(page, f"paused-{size}-{scheme}")
    problems["paused"] = violations(page)
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) <= 0
    end(client, session)
    assert {name: found for name, found in problems.items() if found} == {}
