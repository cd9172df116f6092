"""A provider that an owner connects over the API: tested, and used by a worker's turn."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import httpx
import pytest
from llmock.pytest_plugin import LLMock

from tests.journeys.checks import assert_contiguous
from tests.journeys.server import Server

KEY = "local-key-that-no-pattern-knows-7731"


@pytest.fixture
def owner(server: Server) -> Iterator[httpx.Client]:
    client = server.client("organization")
    organization_id = server.demo["organization_id"]
    with httpx.Client(
        base_url=f"{client.url}/v1/organizations/{organization_id}",
        headers={"authorization": f"Bearer {client.key}"},
        timeout=30,
    ) as http:
        yield http


def test_what_an_owner_connects_is_tested_and_answers(
    server: Server, owner: httpx.Client, llmock: LLMock
) -> None:
    model = {"model_id": "tide-1"}
    body = {"name": "Harbour", "base_url": llmock.base_url("openai"), "api_key": KEY}
    made = owner.post("providers", json={**body, "models": [model]}).raise_for_status().json()
    assert made["state"] == "available"
    tested = owner.post(f"providers/{made['id']}/test", json={}).json()
    assert tested["outcome"] == "works"

    llmock.reply("High water is at noon.")
    client = server.client()
    wanted = {"title": "Tides", "model": f"{made['slug']}/tide-1"}
    session_id = client.call("POST", "sessions", json=wanted)["id"]
    client.send(session_id, "When is high water?")
    events = client.wait_for_idle(session_id)
    assert_contiguous(events)
    (answer,) = [event for event in events if event["type"] == "agent.message"]
    assert answer["content"][0]["text"] == "High water is at noon."
    assert owner.delete(f"providers/{made['id']}").status_code == 204
    assert KEY not in server.logs()


def test_a_slow_test_holds_up_nobody(owner: httpx.Client, server: Server, llmock: LLMock) -> None:
    body = {"name": "Slow", "base_url": llmock.base_url("openai"), "models": [{"model_id": "m"}]}
    made = owner.post("providers", json=body).raise_for_status().json()
    llmock.delay(30, times=4)
    outcomes: list[str] = []

    def test() -> None:
        outcomes.append(owner.post(f"providers/{made['id']}/test", json={}).json()["outcome"])

    tests = [threading.Thread(target=test) for _ in range(4)]
    for thread in tests:
        thread.start()
    began = time.monotonic()
    time.sleep(1)
    for _ in range(10):
        httpx.get(f"{server.url}/readyz", timeout=10).raise_for_status()
        owner.get("providers").raise_for_status()
    assert all(thread.is_alive() for thread in tests), "the others waited for the tests"
    for thread in tests:
        thread.join()
    assert outcomes == ["slow"] * 4
    assert time.monotonic() - began < 25
    owner.delete(f"providers/{made['id']}")
