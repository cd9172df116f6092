"""What must hold after every journey, whatever happened on the way."""

from __future__ import annotations

from collections import Counter

from tests.journeys.client import Client, Json, count
from tests.journeys.server import Server

ENDINGS = {
    "turn.completed",
    "turn.failed",
    "turn.cancelled",
    "turn.superseded",
    "turn.withdrawn",
}


def assert_contiguous(events: list[Json]) -> None:
    """No gap, no repeat, from 1; every id computed from its seq."""
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    for event in events:
        assert event["id"].endswith(f"_{event['seq']}")


def assert_replay_equals_state(client: Client, session_id: str) -> None:
    """The rows say what the log says, for a session at rest."""
    events = client.events(session_id)
    assert_contiguous(events)
    session = client.session(session_id)
    assert session["last_event_seq"] == len(events)
    assert session["status"] == "idle"
    assert session["working"] is False
    endings = Counter(event["turn_id"] for event in events if event["type"] in ENDINGS)
    for turn in client.turns(session_id):
        assert endings[turn["id"]] == 1, "a turn ends once"
        assert [a["number"] for a in turn["attempts"]] == list(range(1, len(turn["attempts"]) + 1))
        assert {a["status"] for a in turn["attempts"]}.isdisjoint({"running"})
    assert count(events, "turn.queued") == sum(endings.values())
    assert_deltas_agree(events)
    assert_calls_closed(events)


def assert_deltas_agree(events: list[Json]) -> None:
    """A whole message is exactly what its deltas were."""
    pieces: dict[str, str] = {}
    for event in events:
        if event["type"] == "agent.message_delta":
            pieces[event["message_id"]] = pieces.get(event["message_id"], "") + event["text"]
        if event["type"] == "agent.message" and event["message_id"] in pieces:
            whole = "".join(block["text"] for block in event["content"])
            assert whole == pieces[event["message_id"]]


def assert_calls_closed(events: list[Json]) -> None:
    used = [event["id"] for event in events if event["type"] == "agent.tool_use"]
    closed = [event["tool_use_id"] for event in events if event["type"] == "agent.tool_result"]
    assert sorted(used) == sorted(closed), "each call has one result"


def assert_logs_verified(server: Server) -> None:
    """The product's own check, over every session that the journeys made."""
    done = server.manage("verify_log")
    assert done.returncode == 0, done.stderr
