"""The official `anthropic` client, given our address and a key, works unchanged."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest
from anthropic import Anthropic
from django.conf import settings

from tests.journeys.server import Server


@pytest.fixture(params=["auth_token", "api_key"])
def client(running_server: Server, request: pytest.FixtureRequest) -> Iterator[Anthropic]:
    """A key in either of the places where the client may put one."""
    key = running_server.client().key
    credentials: dict[str, Any] = {"auth_token": None, "api_key": None, request.param: key}
    with Anthropic(base_url=running_server.url, **credentials) as found:
        yield found


@pytest.fixture
def workspace_id(running_server: Server) -> str:
    return str(running_server.demo["workspace_id"])


def user_message(text: str) -> dict[str, Any]:
    return {"type": "user.message", "content": [{"type": "text", "text": text}]}


def test_the_whole_life_of_a_session(client: Anthropic, workspace_id: str) -> None:
    sessions = client.beta.sessions
    made = sessions.create(
        agent="default",
        environment_id="default",
        title="Tide tables",
        metadata={"case": "12"},
        betas=["managed-agents-2026-04-01"],
        workspace_id=workspace_id,
    )
    assert made.type == "session"
    assert (made.title, made.status, made.metadata) == ("Tide tables", "idle", {"case": "12"})
    assert made.agent.name
    assert made.agent.tools == []
    assert made.environment_id == "default"
    assert made.created_at.tzinfo is not None

    script = {"script": [{"say": "High water at noon.", "chunks": 4}]}
    with sessions.events.stream(made.id, event_deltas=["agent.message"]) as stream:
        sent = sessions.events.send(made.id, events=[user_message(json.dumps(script))])
        assert sent.data is not None
        assert sent.data[0].type == "user.message"
        assert sent.data[0].processed_at is None
        kinds, answer = [], ""
        for event in stream:
            if event.type not in {"ready", "caught_up"}:  # what the stream says of itself
                kinds.append(event.type)
            if event.type == "agent.message":
                answer = "".join(block.text for block in event.content if block.type == "text")
            if event.type == "session.status_idle":
                assert event.stop_reason.type == "end_turn"
                break
    assert kinds[0] == "user.message"
    assert "session.status_running" in kinds
    assert answer

    listed = list(sessions.events.list(made.id, limit=3))
    assert [event.id for event in listed] == sorted(
        (event.id for event in listed), key=lambda text: int(text.rpartition("_")[2])
    )
    assert {"user.message", "agent.message"} <= {event.type for event in listed}
    newest = sessions.events.list(made.id, order="desc", types=["agent.message"], limit=1)
    assert newest.data[0].type == "agent.message"

    read = sessions.retrieve(made.id)
    assert read.status == "idle"
    assert read.updated_at > made.updated_at
    changed = sessions.update(made.id, title="Tides", metadata={"case": None, "tag": "sea"})
    assert (changed.title, changed.metadata) == ("Tides", {"tag": "sea"})

    archived = sessions.archive(made.id)
    assert archived.archived_at is not None
    assert made.id not in {row.id for row in sessions.list()}
    assert made.id in {row.id for row in sessions.list(include_archived=True)}
    deleted = sessions.delete(made.id)
    assert (deleted.id, deleted.type) == (made.id, "session_deleted")
    with pytest.raises(anthropic.NotFoundError):
        sessions.retrieve(made.id)


def test_lists_page_by_themselves(client: Anthropic) -> None:
    sessions = client.beta.sessions
    made = [
        sessions.create(agent="default", environment_id="default", title=f"Page {number}").id
        for number in range(5)
    ]
    first = sessions.list(limit=2, statuses=["idle", "running"])
    assert len(first.data) == 2
    assert first.has_next_page()
    found = [row.id for row in first]
    assert [row for row in found if row in made] == made[::-1]
    oldest = [row.id for row in sessions.list(limit=3, order="asc")]
    assert [row for row in oldest if row in made] == made
    since = sessions.retrieve(made[3]).created_at
    assert {row.id for row in sessions.list(created_at_gte=since)} >= set(made[3:])
    assert made[0] not in {row.id for row in sessions.list(created_at_gte=since)}


def test_an_interrupt_stops_a_turn(client: Anthropic) -> None:
    sessions = client.beta.sessions
    script = json.dumps({"script": [{"say": "slow " * 200, "chunks": 200, "every_ms": 50}]})
    made = sessions.create(
        agent="default", environment_id="default", initial_events=[user_message(script)]
    )
    with sessions.events.stream(made.id) as stream:
        for event in stream:
            if event.type == "session.status_running":
                sessions.events.send(made.id, events=[{"type": "user.interrupt"}])
            if event.type == "session.status_idle":
                assert event.stop_reason.type == "interrupted"
                break


def test_a_tool_confirmation_lets_a_waiting_turn_go_on(client: Anthropic) -> None:
    sessions = client.beta.sessions
    call = {"tool": "probe.append_asked", "args": {"line": "from the client"}}
    script = json.dumps({"script": [{"call": [call]}, {"say": "Done."}]})
    made = sessions.create(
        agent="default", environment_id="default", extra_body={"model": "demo/scripted"}
    )
    told = []
    with sessions.events.stream(made.id) as stream:
        sessions.events.send(made.id, events=[user_message(script)])
        for event in stream:
            if event.type == "agent.tool_result":
                told.append(event.content[0].text)
            if event.type != "session.status_idle":
                continue
            if event.stop_reason.type != "requires_action":
                break
            (tool_use_id,) = event.stop_reason.event_ids
            sent = sessions.events.send(
                made.id,
                events=[
                    {
                        "type": "user.tool_confirmation",
                        "tool_use_id": tool_use_id,
                        "result": "allow",
                    }
                ],
            )
            assert sent.data[0].type == "user.tool_confirmation"
            assert sent.data[0].tool_use_id == tool_use_id
    assert event.stop_reason.type == "end_turn"
    assert told == ["appended from the client"]


def test_refusals_are_the_clients_own_errors(client: Anthropic) -> None:
    sessions = client.beta.sessions
    made = sessions.create(agent="default", environment_id="default")
    sessions.archive(made.id)
    with pytest.raises(anthropic.ConflictError) as conflict:
        sessions.events.send(made.id, events=[user_message("Hello")])
    assert conflict.value.type == "invalid_request_error"
    assert conflict.value.request_id
    assert conflict.value.response.headers["x-should-retry"] == "false"
    with pytest.raises(anthropic.NotFoundError) as missing:
        sessions.retrieve("ses_" + "0" * 32)
    assert missing.value.type == "not_found_error"
    with pytest.raises(anthropic.BadRequestError):
        sessions.create(agent="default", environment_id="default", title="x" * 121)


def test_a_wrong_key_is_an_authentication_error(running_server: Server) -> None:
    with (
        Anthropic(base_url=running_server.url, api_key="sed_w_00000000_wrong") as client,
        pytest.raises(anthropic.AuthenticationError) as refused,
    ):
        list(client.beta.sessions.list())
    assert "wrong" not in str(refused.value)


def test_the_example_of_the_documentation_runs(
    running_server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (settings.BASE_DIR / "docs" / "compatibility.md").read_text()
    example = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert example
    monkeypatch.setenv("SEDERUNT_URL", running_server.url)
    monkeypatch.setenv("SEDERUNT_KEY", running_server.client().key)
    names: dict[str, Any] = {}
    exec(example[1], names)
    names["client"].close()
    assert capsys.readouterr().out.strip()
