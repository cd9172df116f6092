"""The worker is killed or stopped at each point of a turn; the same turn goes on, and ends once.

`LOSSES_IN_A_ROW` stays below three: each journey kills the worker of one turn once.
"""

from __future__ import annotations

import os
import signal
import time
import uuid
from functools import partial

import pytest

from tests.journeys.checks import assert_contiguous, assert_replay_equals_state
from tests.journeys.client import Client, Json, count, texts
from tests.journeys.server import Server, is_at_work

WORDS = " ".join(f"word{number:02}" for number in range(1, 41))
# Three times here, twenty more in `make proof`.
REPEATED = [
    *range(1, 4),
    *(pytest.param(number, marks=pytest.mark.proof) for number in range(4, 24)),
]
repeatedly = pytest.mark.parametrize("number", REPEATED)


def append(line: str, sleep_ms: int = 0) -> Json:
    return {"tool": "probe.append", "args": {"line": line, "sleep_ms": sleep_ms}}


def kill_worker(server: Server, session_id: str, sign: signal.Signals = signal.SIGKILL) -> int:
    pid = server.worker_of(session_id)
    os.kill(pid, sign)
    return pid


def assert_taken_over(client: Client, session_id: str, events: list[Json]) -> None:
    """One prompt, one turn, two attempts of it: the first was lost."""
    assert count(events, "user.message") == count(events, "turn.started") == 1
    assert count(events, "turn.completed") == 1
    assert count(events, "turn.recovering") == 1
    (turn,) = client.turns(session_id)
    assert [attempt["status"] for attempt in turn["attempts"]] == ["lost", "completed"]
    assert_replay_equals_state(client, session_id)


def results(events: list[Json]) -> dict[str, str]:
    """The outcome of each call, by the tool's name."""
    return {e["name"]: e["outcome"] for e in events if e["type"] == "agent.tool_result"}


def assert_effects(server: Server, events: list[Json]) -> None:
    """No line is written twice, and each whose result says so was written."""
    lines = {
        e["id"]: e["input"]["line"]
        for e in events
        if e.get("name") == "probe.append" and e["type"] == "agent.tool_use"
    }
    for event in events:
        if event["type"] != "agent.tool_result" or event["tool_use_id"] not in lines:
            continue
        written = server.probed(lines[event["tool_use_id"]])
        if event["outcome"] == "ok":
            assert written == 1
        assert written <= 1


@repeatedly
def test_killed_while_the_answer_streams(server: Server, client: Client, number: int) -> None:
    session_id = client.start({"say": WORDS, "chunks": 40, "every_ms": 50})
    client.wait_for(session_id, lambda log: count(log, "agent.message_delta") >= 4 + number % 7)
    kill_worker(server, session_id)
    events = client.wait_for_idle(session_id)
    assert_taken_over(client, session_id, events)
    assert texts(events) == [WORDS]
    # What was cut off is still there, under a message of its own that nothing ever finished.
    messages = {e["message_id"] for e in events if e["type"] == "agent.message_delta"}
    assert len(messages) == 2


@repeatedly
def test_killed_in_a_tool_that_must_not_run_twice(
    server: Server, client: Client, number: int
) -> None:
    line = uuid.uuid4().hex
    session_id = client.start({"call": [append(line, sleep_ms=1_500)]}, {"say": "done"})
    client.wait_for(session_id, lambda log: count(log, "agent.tool_use"))
    time.sleep(number % 4 / 10)
    kill_worker(server, session_id)
    events = client.wait_for_idle(session_id)
    assert_taken_over(client, session_id, events)
    assert results(events) == {"probe.append": "unknown"}
    assert server.probed(line) <= 1
    assert texts(events) == ["done"]
    assert_effects(server, events)


@repeatedly
def test_killed_at_the_moment_in_which_the_tool_takes_effect(
    server: Server, client: Client, number: int
) -> None:
    """Whatever the log says of the outcome, the line stands there at most once."""
    line = uuid.uuid4().hex
    session_id = client.start(
        {"call": [append(line, sleep_ms=400)]}, {"say": "then", "hang_ms": 700}
    )
    client.wait_for(session_id, lambda log: count(log, "agent.tool_use"))
    deadline = time.monotonic() + 10
    while not server.probed(line) and time.monotonic() < deadline:
        time.sleep(0.001)
    kill_worker(server, session_id)
    events = client.wait_for_idle(session_id)
    assert_taken_over(client, session_id, events)
    assert server.probed(line) == 1
    assert results(events)["probe.append"] in {"ok", "unknown"}
    assert_effects(server, events)


@repeatedly
def test_killed_in_a_tool_that_may_run_again(server: Server, client: Client, number: int) -> None:
    lookup = {"tool": "probe.lookup", "args": {"sleep_ms": 1_200}}
    session_id = client.start({"call": [lookup]}, {"say": "looked"})
    client.wait_for(session_id, lambda log: count(log, "agent.tool_use"))
    time.sleep(number % 4 / 10)
    kill_worker(server, session_id)
    events = client.wait_for_idle(session_id)
    assert_taken_over(client, session_id, events)
    assert count(events, "agent.tool_use") == 1
    assert results(events) == {"probe.lookup": "ok"}
    assert texts(events) == ["looked"]


@repeatedly
def test_killed_between_two_tools(server: Server, client: Client, number: int) -> None:
    first, second = uuid.uuid4().hex, uuid.uuid4().hex
    session_id = client.start(
        {"call": [append(first)]},
        {"hang_ms": 1_200, "call": [append(second)]},
        {"say": "both"},
    )
    client.wait_for(session_id, lambda log: count(log, "agent.tool_result"))
    time.sleep(number % 5 / 10)
    kill_worker(server, session_id)
    events = client.wait_for_idle(session_id)
    assert_taken_over(client, session_id, events)
    assert count(events, "agent.tool_use") == 2
    assert (server.probed(first), server.probed(second)) == (1, 1)
    assert texts(events) == ["both"]
    assert_effects(server, events)


def test_a_worker_that_is_told_to_stop_hands_its_turn_over_at_once(
    server: Server, client: Client
) -> None:
    session_id = client.start({"say": WORDS, "chunks": 40, "every_ms": 50})
    client.wait_for(session_id, lambda log: count(log, "agent.message_delta") >= 5)
    told = kill_worker(server, session_id, signal.SIGTERM)
    events = client.wait_for_idle(session_id)
    assert texts(events) == [WORDS]
    # Told by the worker itself: nobody had to find out by a lease that ran out.
    recovering = next(event for event in events if event["type"] == "turn.recovering")
    assert (recovering["reason"], recovering["losses"]) == ("worker_stopped", 0)
    (turn,) = client.turns(session_id)
    assert [attempt["status"] for attempt in turn["attempts"]] == ["interrupted", "completed"]
    assert_replay_equals_state(client, session_id)
    server.wait_until(lambda: not is_at_work(told), 15, "the worker did not end")


def test_a_call_already_started_may_finish_while_its_worker_stops(
    server: Server, client: Client
) -> None:
    line = uuid.uuid4().hex
    session_id = client.start({"call": [append(line, sleep_ms=1_000)]}, {"say": "went on"})
    client.wait_for(session_id, lambda log: count(log, "agent.tool_use"))
    kill_worker(server, session_id, signal.SIGTERM)
    events = client.wait_for_idle(session_id)
    assert results(events) == {"probe.append": "ok"}
    assert server.probed(line) == 1
    assert texts(events) == ["went on"]
    assert_replay_equals_state(client, session_id)


def test_web_and_worker_killed_in_a_tool_leave_nothing_running_for_ever(
    server: Server, client: Client
) -> None:
    """The interruption is told in the log, the call is closed, and the next prompt is answered."""
    line = uuid.uuid4().hex
    session_id = client.start({"call": [append(line, sleep_ms=1_500)]}, {"say": "back"})
    client.wait_for(session_id, lambda log: count(log, "agent.tool_use"))
    for name in ("web-1", "web-2", "worker-1", "worker-2"):
        os.kill(server.pid(name), signal.SIGKILL)
    events = client.wait_for_idle(session_id, seconds=60)
    assert_taken_over(client, session_id, events)
    told = next(event for event in events if event["type"] == "session.status_rescheduled")
    assert told["reason"]["code"] == "worker_lost"
    assert told["reason"]["message"]
    assert told["created_at"]
    client.send(session_id, "and again")
    events = client.wait_for_idle(session_id, times=2)
    assert texts(events) == ["back", "and again"]
    assert_replay_equals_state(client, session_id)


def test_a_frozen_worker_that_comes_back_changes_nothing(server: Server, client: Client) -> None:
    """Its lease ran out while it slept; what it writes when it wakes is refused."""
    session_id = client.start({"say": WORDS, "chunks": 40, "every_ms": 60})
    client.wait_for(session_id, lambda log: count(log, "agent.message_delta") >= 5)
    frozen = kill_worker(server, session_id, signal.SIGSTOP)
    try:
        client.wait_for(session_id, lambda log: count(log, "attempt.started") == 2)
    finally:
        os.kill(frozen, signal.SIGCONT)
    events = client.wait_for_idle(session_id)
    assert_taken_over(client, session_id, events)
    assert texts(events) == [WORDS]
    time.sleep(1)
    assert client.events(session_id) == events
    assert_contiguous(events)


def test_a_turn_that_kills_its_worker_each_time_ends_and_takes_no_other_along() -> None:
    """With one worker: everything that it runs is lost with it, three times."""
    server = Server(WEB="1", WORKERS="1")
    try:
        client = server.start().client()
        poison = client.start({"say": WORDS, "chunks": 40, "every_ms": 2_000})
        beside = client.start({"say": WORDS, "chunks": 40, "every_ms": 250})
        for attempt in (1, 2, 3):
            client.wait_for(poison, partial(has_begun, attempt), seconds=60)
            kill_worker(server, poison)
        events = client.wait_for_idle(poison, seconds=60)
        (failed,) = [event for event in events if event["type"] == "turn.failed"]
        assert failed["error"]["code"] == "worker_lost"
        assert count(events, "attempt.started") == 3
        assert texts(client.wait_for_idle(beside, seconds=60)) == [WORDS]
        client.send(poison, "and now something else")
        events = client.wait_for_idle(poison, times=2)
        assert texts(events)[-1] == "and now something else"
        for session_id in (poison, beside):
            assert_replay_equals_state(client, session_id)
        assert server.stop() == 0
    finally:
        server.remove()


def test_a_frozen_worker_holds_up_neither_a_stop_nor_the_next_prompt(
    server: Server, client: Client
) -> None:
    """BR-061: its lease runs out while it sleeps, and that is proof enough that it is quiet."""
    session_id = client.start({"say": WORDS, "chunks": 40, "every_ms": 200})
    client.wait_for(session_id, lambda log: count(log, "agent.message_delta") >= 2)
    frozen = kill_worker(server, session_id, signal.SIGSTOP)
    try:
        stop = {"events": [{"type": "user.interrupt"}]}
        client.call("POST", f"sessions/{session_id}/events", json=stop)
        assert count(client.events(session_id), "turn.cancelled") == 1
        client.send(session_id, "go on")
        events = client.wait_for_idle(session_id, times=2)
        assert texts(events)[-1] == "go on"
    finally:
        os.kill(frozen, signal.SIGCONT)
    time.sleep(1)
    assert client.events(session_id) == events
    assert_replay_equals_state(client, session_id)


def has_begun(attempt: int, events: list[Json]) -> bool:
    """To write, in that attempt."""
    return any(e["type"] == "agent.message_delta" and e["attempt"] == attempt for e in events)
