"""The view moves only for those who stand at its end."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.conftest import NewPerson
from tests.journeys.client import Client, count, scripted

LINES = "\n\n".join(f"Line {number} of a long answer." for number in range(120))


def top_of(page: Page, text: str) -> float:
    box = page.locator(".answer p", has_text=text).first.bounding_box()
    assert box is not None
    return box["y"]


def distance_to_end(page: Page) -> float:
    return float(
        page.eval_on_selector(
            "[data-scroll]", "it => it.scrollHeight - it.scrollTop - it.clientHeight"
        )
    )


def test_it_follows_at_the_end_and_holds_still_above_it(person: NewPerson, client: Client) -> None:
    session = client.create("Long answer")
    page = person().tab(f"/s/{session}/")
    page.fill("textarea", scripted({"say": LINES, "chunks": 120, "every_ms": 60}))
    page.press("textarea", "Enter")
    expect(page.locator(".answer")).to_contain_text("Line 40 of")
    assert distance_to_end(page) < 48
    page.hover("[data-transcript]")
    page.mouse.wheel(0, -500)
    page.wait_for_timeout(300)
    before = top_of(page, "Line 30 of")
    expect(page.locator(".answer")).to_contain_text("Line 80 of")
    assert top_of(page, "Line 30 of") == before
    expect(page.locator(".answer.is-streaming")).to_have_count(0, timeout=20_000)
    assert top_of(page, "Line 30 of") == before
    page.fill("textarea", scripted({"say": "done"}))
    page.press("textarea", "Enter")
    page.wait_for_timeout(200)
    assert distance_to_end(page) < 48


def test_new_things_below_are_counted_on_a_pill_that_leads_there(
    person: NewPerson, client: Client
) -> None:
    session = client.start({"say": LINES})
    client.wait_for_idle(session)
    page = person().tab(f"/s/{session}/")
    page.hover("[data-transcript]")
    page.mouse.wheel(0, -1500)
    page.wait_for_timeout(200)
    client.send(session, scripted({"say": "fresh"}))
    expect(page.locator("[data-new-pill]")).to_contain_text("2 new")
    page.click("[data-new-pill]")
    expect(page.locator("[data-new-pill]")).to_be_hidden()
    assert distance_to_end(page) < 48


def test_loading_earlier_history_keeps_the_place(person: NewPerson, client: Client) -> None:
    session = client.create("Many turns")
    for number in range(24):
        client.send(session, scripted({"say": f"Answer {number}. {'Some words here. ' * 30}"}))
    client.wait_for(session, lambda events: count(events, "turn.completed") == 24)
    page = person().tab(f"/s/{session}/")
    page.eval_on_selector("[data-scroll]", "it => it.scrollTop = 0")
    while page.locator("[data-load-earlier]").count():
        shown = page.locator(".prompt").count()
        first = page.locator(".answer p").first.inner_text().split(".")[0] + "."
        before = top_of(page, first)
        page.click("[data-load-earlier]")
        expect(page.locator(".prompt")).not_to_have_count(shown)
        assert abs(top_of(page, first) - before) < 1
        page.eval_on_selector("[data-scroll]", "it => it.scrollTop = 0")
    expect(page.locator(".answer", has_text="Answer 0.")).to_have_count(1)
    assert page.locator(".prompt").count() == 24
    assert page.locator(".day").count() == 1
