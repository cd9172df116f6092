"""BR-064: a page that was open while the server restarted goes on in the same session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import SECONDS, NewPerson
from tests.journeys.client import Client, texts
from tests.journeys.server import Server

WORDS = " ".join(f"word{number:02}" for number in range(1, 41))


@pytest.fixture
def server() -> Iterator[Server]:
    """One of its own, for everybody else's must stay."""
    server = Server(WEB="1", WORKERS="1")
    try:
        yield server.start()
    finally:
        server.remove()


def listed(client: Client) -> list[str]:
    return [row["id"] for row in client.call("GET", "sessions?limit=100")["data"]]


def test_the_next_prompt_after_a_restart_goes_to_the_same_session(
    server: Server, person: NewPerson
) -> None:
    client = server.client()
    session_id = client.start({"say": WORDS, "chunks": 40, "every_ms": 150})
    before = listed(client)
    someone = person("member")
    page = someone.tab(f"/s/{session_id}/")
    expect(page.locator(".answer.is-streaming")).to_contain_text("word05")
    page.fill("textarea", "And what")
    server.restart()
    page.type("textarea", " survives?")
    page.press("textarea", "Enter")
    expect(page.locator(".prompt").last).to_contain_text("And what survives?", timeout=30 * SECONDS)
    assert page.url.endswith(f"/s/{session_id}/")
    events = client.wait_for_idle(session_id, seconds=60)
    said = texts(events)
    assert said[0] == WORDS
    assert len(said) == 2
    expect(page.locator(".answer")).to_have_count(2)
    expect(page.locator(".answer.is-streaming")).to_have_count(0)
    assert listed(client) == before
    # A browser says of each connection that it could not open, and there was nobody to take them.
    someone.problems[:] = [said for said in someone.problems if "ERR_" not in said]
