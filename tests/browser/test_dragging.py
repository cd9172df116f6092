"""The queue reordered by dragging, with a mouse and by touch, in a real browser."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.conftest import NewPerson
from tests.browser.test_control import PROMPTS, busy, end, queued, row
from tests.journeys.client import Client


def drag(page: Page, text: str, onto: str, *, then: str = "drop") -> None:
    """By the mouse, from one prompt's number into the upper half of another row."""
    start = page.locator(f"{row(page, text)} [data-grip]").bounding_box()
    goal = page.locator(row(page, onto)).bounding_box()
    assert start
    assert goal
    page.mouse.move(start["x"] + start["width"] / 2, start["y"] + start["height"] / 2)
    page.mouse.down()
    page.mouse.move(goal["x"] + 20, goal["y"] + 12, steps=4)
    page.mouse.move(goal["x"] + 20, goal["y"] + 4, steps=2)
    if then == "drop":
        page.mouse.up()


def test_a_prompt_is_dragged_to_another_place(person: NewPerson, client: Client) -> None:
    session = busy(client)
    page = person().tab(f"/s/{session}/")
    other = person("member").tab(f"/s/{session}/")
    expect(page.locator("[data-queued]")).to_have_count(3)
    drag(page, "Third", "First")
    wanted = [PROMPTS[2], PROMPTS[0], PROMPTS[1]]
    for tab in (page, other):
        expect(tab.locator("[data-queued] .text")).to_have_text(wanted)
    drag(page, "Second", "Third", then="hold")
    expect(page.locator(".is-drop-above")).to_contain_text("Third")
    page.keyboard.press("Escape")
    page.mouse.up()
    expect(page.locator(".is-drop-above, .is-dragged")).to_have_count(0)
    page.wait_for_timeout(400)
    assert queued(page) == wanted
    end(client, session)


def test_a_prompt_is_dragged_by_touch(person: NewPerson, client: Client) -> None:
    session = busy(client)
    page = person(viewport={"width": 360, "height": 780}, has_touch=True).tab(f"/s/{session}/")
    page.locator(".queue > summary").tap()
    start = page.locator(f"{row(page, 'Third')} [data-grip]").bounding_box()
    goal = page.locator(row(page, "First")).bounding_box()
    assert start
    assert goal
    cdp = page.context.new_cdp_session(page)
    x = start["x"] + start["width"] / 2

    def touch(kind: str, *points: float) -> None:
        cdp.send(
            "Input.dispatchTouchEvent",
            {"type": kind, "touchPoints": [{"x": x, "y": y} for y in points]},
        )

    touch("touchStart", start["y"] + 10)
    for share in (0.3, 0.7, 1.0):
        touch("touchMove", start["y"] + 10 + share * (goal["y"] + 4 - start["y"] - 10))
    touch("touchEnd")
    wanted = [PROMPTS[2], PROMPTS[0], PROMPTS[1]]
    expect(page.locator("[data-queued] .text")).to_have_text(wanted)
    end(client, session)


def test_a_refused_drop_shows_the_present_queue(person: NewPerson, client: Client) -> None:
    session = busy(client)
    someone = person()
    page = someone.tab(f"/s/{session}/")
    drag(page, "Third", "First", then="hold")
    second = page.locator(row(page, "Second")).get_attribute("data-queued")
    version = client.call("GET", f"sessions/{session}/queue")["version"]
    path = f"sessions/{session}/queue/{second}/delete"
    client.call("POST", path, json={"expected_version": version})
    page.mouse.up()
    expect(page.locator(".toast")).to_be_visible()
    expect(page.locator("[data-queued] .text")).to_have_text([PROMPTS[0], PROMPTS[2]])
    someone.problems.clear()  # the refusal that we made
    end(client, session)
