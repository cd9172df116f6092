"""An answer read by clients that stay, drop, come late: all have the very same events."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor

import httpx

from tests.journeys.checks import assert_contiguous, assert_replay_equals_state
from tests.journeys.client import Client, texts

WORDS = " ".join(f"word{number:02}" for number in range(1, 41))
ANSWER = {"say": WORDS, "chunks": 40, "every_ms": 60}


def drop_and_resume(client: Client, session_id: str) -> list[str]:
    """Ten events, then the connection is gone; later on from the last id seen."""
    with client.stream(session_id, after=0) as frames:
        seen = []
        for frame in frames:
            if frame.id is not None:
                seen.append(frame)
            if len(seen) == 10:
                break
    time.sleep(0.7)
    last = seen[-1].id
    return [frame.text for frame in seen] + client.read_sse(session_id, last_event_id=last)


def come_late(client: Client, session_id: str) -> list[str]:
    time.sleep(1.2)
    return client.read_sse(session_id, after=0)


def test_every_reader_of_an_answer_has_the_very_same_events(client: Client) -> None:
    session_id = client.create()
    with ThreadPoolExecutor() as pool:
        readers = [
            pool.submit(client.read_sse, session_id, after=0),
            pool.submit(client.read_sse, session_id, after=0),
            pool.submit(drop_and_resume, client, session_id),
            pool.submit(come_late, client, session_id),
            pool.submit(client.read_socket, session_id),
            pool.submit(client.read_socket, session_id),
        ]
        time.sleep(0.3)
        client.send(session_id, json.dumps({"script": [ANSWER]}))
        reads = [reader.result(timeout=60) for reader in readers]
    for read in reads[1:]:
        assert read == reads[0]
    told = [json.loads(text) for text in reads[0]]
    assert_contiguous(told)
    assert told == client.events(session_id)
    deltas = [event for event in told if event["type"] == "agent.message_delta"]
    assert len(deltas) > 20  # a busy machine may put two pieces into one event
    assert texts(told) == [WORDS]
    assert_replay_equals_state(client, session_id)


def test_every_durable_frame_has_its_seq_as_id_and_nothing_else_has_one(client: Client) -> None:
    session_id = client.start({"say": "one two three", "chunks": 3})
    client.wait_for_idle(session_id)
    path = f"{client.url}/v1/sessions/{session_id}/events/stream?after=0"
    headers = {"Authorization": f"Bearer {client.key}"}
    with httpx.stream("GET", path, headers=headers, timeout=30) as answer:
        raw = ""
        for piece in answer.iter_text():
            raw += piece
            if "event: caught_up" in raw and raw.endswith("\n\n"):
                break
    frames = [frame for frame in raw.split("\n\n") if frame]
    durable = [frame for frame in frames if '"seq":' in frame and "\ndata: " in frame]
    durable = [frame for frame in durable if frame.startswith("id: ")]
    others = [frame for frame in frames if frame not in durable]
    assert [json.loads(f.split("\ndata: ")[1])["seq"] for f in durable] == [
        int(f.split("\n")[0].removeprefix("id: ")) for f in durable
    ]
    assert [json.loads(f.split("\ndata: ")[1]) for f in durable] == client.events(session_id)
    assert all(f.startswith((":", "event: ready", "event: caught_up")) for f in others), others


def test_closing_every_viewer_neither_stops_nor_shortens_the_answer(client: Client) -> None:
    session_id = client.create()
    with client.stream(session_id, after=0) as frames:
        client.send(session_id, json.dumps({"script": [ANSWER]}))
        seen = 0
        for frame in frames:
            seen += frame.event == "agent.message_delta"
            if seen == 3:
                break
    events = client.wait_for_idle(session_id)
    assert texts(events) == [WORDS]
    assert [turn["status"] for turn in client.turns(session_id)] == ["completed"]
    # And one who opens it again in the middle of the next answer begins where that begins.
    client.send(session_id, json.dumps({"script": [ANSWER]}))
    client.wait_for(session_id, lambda log: sum("delta" in e["type"] for e in log) >= 45)
    with client.stream(session_id) as frames:
        first = next(frame for frame in frames if frame.event == "agent.message_delta")
    assert first.data["text"].startswith("word01")
    client.wait_for_idle(session_id, times=2)
    assert_replay_equals_state(client, session_id)


def test_a_position_that_cannot_be_is_refused_and_never_means_from_now(client: Client) -> None:
    session_id = client.start({"say": "short"})
    client.wait_for_idle(session_id)
    headers = {"Authorization": f"Bearer {client.key}"}
    path = f"{client.url}/v1/sessions/{session_id}/events/stream"
    for position in ("-1", "abc", "999999", "1.5", ""):
        answer = httpx.get(path, headers={**headers, "Last-Event-ID": position})
        assert 400 <= answer.status_code < 500, position
        assert answer.json()["error"]["code"]
