"""Four workers, some of which are always being killed, stopped or frozen, and a database that
restarts: every accepted prompt ends once, no recorded effect is repeated, no log has a gap.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial

import pytest

from tests.journeys.checks import ENDINGS, assert_contiguous, assert_logs_verified
from tests.journeys.client import Client, Json, scripted
from tests.journeys.server import Server, is_at_work

WORKERS = 4


@pytest.fixture
def crew() -> Iterator[Server]:
    """Many workers of its own; what a journey leaves behind is verified before it goes."""
    server = Server(WORKERS=str(WORKERS), WORKER_CONCURRENCY="20")
    try:
        yield server.start()
        assert_logs_verified(server)
        assert server.stop() == 0
    finally:
        server.remove()


class Weather(threading.Thread):
    """What happens to the processes, until `calm` is called."""

    def __init__(self, server: Server, seconds: float, restarts: int, seed: int) -> None:
        super().__init__(daemon=True)
        self.server, self.chance = server, random.Random(seed)
        self.ends_at = time.monotonic() + seconds
        self.restarts_at = [
            time.monotonic() + seconds * (number + 1) / (restarts + 1) for number in range(restarts)
        ]
        self.done: Counter[str] = Counter()
        self.frozen: dict[int, float] = {}

    def run(self) -> None:
        while time.monotonic() < self.ends_at:
            self._thaw(time.monotonic())
            if self.restarts_at and time.monotonic() > self.restarts_at[0]:
                self.restarts_at.pop(0)
                self._signal(self.server.pids().get("postgres", 0), signal.SIGINT, "restart")
            else:
                self._strike()
            time.sleep(self.chance.uniform(1, 4))
        self._thaw(float("inf"))

    def _strike(self) -> None:
        pid = self.server.pids().get(f"worker-{self.chance.randint(1, WORKERS)}", 0)
        what = self.chance.choice(["kill", "kill", "stop", "freeze"])
        if pid in self.frozen or not is_at_work(pid):
            return
        signs = {"kill": signal.SIGKILL, "stop": signal.SIGTERM, "freeze": signal.SIGSTOP}
        self._signal(pid, signs[what], what)
        if what == "freeze":  # longer than its leases, then it believes that nothing happened
            self.frozen[pid] = time.monotonic() + self.chance.uniform(3, 6)

    def _thaw(self, now: float) -> None:
        for pid in [pid for pid, at in self.frozen.items() if at <= now]:
            del self.frozen[pid]
            self._signal(pid, signal.SIGCONT, "thaw")

    def _signal(self, pid: int, sign: signal.Signals, what: str) -> None:
        if pid and is_at_work(pid):
            os.kill(pid, sign)
            self.done[what] += 1


def turn_script(line: str, chance: random.Random) -> str:
    say = {"say": "The tide turns at noon. " * 8, "chunks": 20, "every_ms": chance.randint(20, 200)}
    append = {"tool": "probe.append", "args": {"line": line, "sleep_ms": chance.randint(0, 900)}}
    lookup = {"tool": "probe.lookup", "args": {}}
    return scripted(say, {"call": [append, lookup]}, {"say": "Done."})


def send_and_steer(client: Client, session_id: str, number: int, chance: random.Random) -> int:
    """Returns how many prompts were accepted."""
    accepted = 0
    for place in range(2):
        event: Json = {
            "type": "user.message",
            "content": turn_script(f"{number}-{place}", chance),
            "delivery": "steer" if place and chance.random() < 0.3 else "queue",
        }
        client.call("POST", f"sessions/{session_id}/events", json={"events": [event]})
        accepted += 1
    if chance.random() < 0.2:
        client.call("POST", f"sessions/{session_id}/pause", json={})
        client.call("POST", f"sessions/{session_id}/resume", json={})
    return accepted


def has_ended(turns: int, events: list[Json]) -> bool:
    return sum(event["type"] in ENDINGS for event in events) == turns


def assert_each_prompt_ended_once(events: list[Json], accepted: int) -> None:
    assert_contiguous(events)
    queued = {event["turn_id"] for event in events if event["type"] == "turn.queued"}
    ended = Counter(event["turn_id"] for event in events if event["type"] in ENDINGS)
    assert len(queued) == accepted
    assert ended.keys() == queued
    assert set(ended.values()) == {1}


def assert_effects(server: Server, events: list[Json]) -> None:
    lines = {e["id"]: e["input"]["line"] for e in events if e.get("name") == "probe.append"
             and e["type"] == "agent.tool_use"}  # fmt: skip
    for event in events:
        if event["type"] == "agent.tool_result" and event["tool_use_id"] in lines:
            written = server.probed(lines[event["tool_use_id"]])
            assert written == 1 if event["outcome"] == "ok" else written <= 1


def outlive(server: Server, *, seconds: float, sessions: int, restarts: int) -> None:
    client, chance = server.client(), random.Random(sessions)
    weather = Weather(server, seconds, restarts, seed=sessions)
    weather.start()
    accepted: dict[str, int] = {}
    pause = seconds * 0.7 / sessions
    for number in range(sessions):
        session_id = client.create(f"Chaos {number}")
        accepted[session_id] = send_and_steer(client, session_id, number, chance)
        time.sleep(pause)
    weather.join()
    assert weather.done["kill"]
    assert weather.done["freeze"] == weather.done["thaw"]
    for session_id, count in accepted.items():
        events = client.wait_for(session_id, partial(has_ended, count), seconds=120)
        assert_each_prompt_ended_once(events, count)
        assert_effects(server, events)


@pytest.mark.timeout(400)
def test_a_minute_of_losses_loses_nothing(crew: Server) -> None:
    outlive(crew, seconds=60, sessions=30, restarts=1)


@pytest.mark.proof
@pytest.mark.alone  # what it kills must come back within its leases
@pytest.mark.timeout(1800)
def test_ten_minutes_of_losses_lose_nothing(crew: Server) -> None:
    outlive(crew, seconds=600, sessions=200, restarts=2)
