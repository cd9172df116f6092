"""Forking in a real browser: by keyboard and by pointer, at three widths, in light and dark."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import NewPerson, shot
from tests.browser.test_accessibility import SIZES, violations
from tests.journeys.client import Client, scripted

FIRST = "Nine stations stand in the northern part, and four in the southern."
SECOND = "The oldest of them is **Harbour light**, from 1871."


def two_turns(client: Client) -> str:
    session = client.create("Stations of the harbour")
    for answer in (FIRST, SECOND):
        client.send(session, scripted({"say": answer}))
        client.wait_for_idle(session)
    return session


def answer(page: Page, place: int) -> str:
    key = page.locator("[data-kind=answer]").nth(place).get_attribute("data-key")
    return f'[data-key="{key}"]'


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_a_fork_from_the_keyboard(
    person: NewPerson, client: Client, size: str, scheme: str
) -> None:
    width, height = SIZES[size]
    someone = person(viewport={"width": width, "height": height}, color_scheme=scheme)
    source = two_turns(client)
    page = someone.tab(f"/s/{source}/")
    menu = page.locator(f"{answer(page, 0)} .message-menu")
    menu.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(menu.get_by_text("Fork from here")).to_be_visible()
    page.wait_for_timeout(200)
    shot(page, f"fork-menu-{size}-{scheme}")
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(menu.get_by_text("Fork from here")).to_be_hidden()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: source not in url)
    expect(page.locator("[data-kind=answer]")).to_have_count(1)
    expect(page.locator("[data-kind=answer]")).to_contain_text(FIRST)
    link = page.locator(".forked-from a")
    expect(link).to_have_text("Stations of the harbour")
    page.wait_for_timeout(600)
    shot(page, f"fork-{size}-{scheme}")
    assert violations(page) == []
    overflow = page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    assert overflow <= 0
    page.fill("textarea", "And the south?")
    page.keyboard.press("Enter")
    expect(page.locator("[data-kind=answer]")).to_have_count(2)
    link.click()
    page.wait_for_url(re.compile(source))
    expect(page.locator("[data-kind=answer]")).to_have_count(2)
    expect(page.locator(".answer.is-target")).to_contain_text(FIRST)


def test_a_prompt_is_edited_in_a_fork(person: NewPerson, client: Client) -> None:
    source = two_turns(client)
    page = person().tab(f"/s/{source}/")
    prompt = page.locator("[data-kind=prompt]").nth(1)
    prompt.hover()
    prompt.locator(".message-menu > summary").click()
    prompt.get_by_text("Edit in a fork").click()
    page.wait_for_url(lambda url: source not in url)
    expect(page.locator("[data-kind=answer]")).to_have_count(1)
    expect(page.locator("textarea")).to_have_value(scripted({"say": SECOND}))
    page.fill("textarea", scripted({"say": "Only lights."}))
    page.keyboard.press("Enter")
    expect(page.locator("[data-kind=answer]").nth(1)).to_contain_text("Only lights.")
    expect(page.locator("[data-kind=prompt]")).to_have_count(2)


@pytest.mark.parametrize("size", SIZES)
def test_the_last_message_s_menu_is_not_hidden_by_the_composer(
    person: NewPerson, client: Client, size: str
) -> None:
    width, height = SIZES[size]
    source = client.create("Long before short")
    for text in ("A line.\n\n" * 60, "The end."):
        client.send(source, scripted({"say": text}))
        client.wait_for_idle(source)
    page = person(viewport={"width": width, "height": height}).tab(f"/s/{source}/")
    last = page.locator("[data-kind=answer]").last
    last.hover()
    last.locator(".message-menu > summary").click()
    page.wait_for_timeout(200)
    shot(page, f"fork-last-{size}")
    last.get_by_text("Fork from here").click(trial=True)
    menu, dock = last.locator(".menu-panel").bounding_box(), page.locator(".dock").bounding_box()
    assert menu is not None
    assert dock is not None
    assert menu["y"] + menu["height"] <= dock["y"]


def test_an_answer_that_has_just_come_can_be_forked_from(person: NewPerson, client: Client) -> None:
    source = client.create("Live")
    page = person().tab(f"/s/{source}/")
    client.send(source, scripted({"say": FIRST}))
    menu = page.locator("[data-kind=answer] .message-menu")
    expect(menu).to_have_count(1)
    page.locator("[data-kind=answer]").hover()
    menu.locator("summary").click()
    menu.get_by_text("Fork from here").dblclick()
    page.wait_for_url(lambda url: source not in url)
    found = client.call(
        "GET",
        "sessions",
        params={"workspace_id": client.workspace_id, "forked_from": source},
    )
    assert len(found["data"]) == 1
