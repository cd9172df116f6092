"""A turn whose worker is gone goes on from its log: nothing finished is done again."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now

from core.db import in_db_thread
from core.ids import event_id
from sessions_app.domain.events import Draft
from sessions_app.models import Attempt, Turn
from sessions_app.services import attempts
from sessions_app.services.attempts import Lease
from tests.engine.conftest import Talk, probe_lines, text_of, working
from tests.factories import claim

MODEL = {"provider_id": "demo", "model_id": "scripted"}
MESSAGE_ID = "msg_" + "0" * 32


class DeadWorker:
    """Writes what a worker had written before it was killed."""

    def __init__(self) -> None:
        self.lease: Lease = claim(worker="doomed").lease

    def checkpoint(self, step: int) -> None:
        attempts.open_step(lease=self.lease, step=step)

    def delta(self, text: str) -> None:
        self._record(Draft("agent.message_delta", {"message_id": MESSAGE_ID, "text": text}))

    def response(self, step: int, text: str = "") -> None:
        drafts = []
        if text:
            content = [{"type": "text", "text": text}]
            payload = {"message_id": MESSAGE_ID, "content": content, "model": MODEL}
            drafts.append(Draft("agent.message", payload))
        usage = {"input_tokens": 1, "output_tokens": 1, "model": MODEL, "step": step}
        self._record(*drafts, Draft("model.usage", usage))

    def call(
        self, name: str, arguments: dict[str, Any], pending: list[dict[str, Any]] | None = None
    ) -> str:
        payload = {
            "name": name,
            "input": arguments,
            "call_id": "call_1_1",
            "step": 1,
            "evaluated_permission": "allow",
            "repeatable": name != "probe.append",
            "pending_calls": [
                {"call_id": f"call_1_{n}", "name": p["tool"], "arguments": json.dumps(p["args"])}
                for n, p in enumerate(pending or [], start=2)
            ],
        }
        seqs = attempts.record(lease=self.lease, drafts=[Draft("agent.tool_use", payload)])
        return event_id(self.lease.session_id, seqs[0])

    def result(self, tool_use_id: str, name: str, text: str) -> None:
        payload = {
            "tool_use_id": tool_use_id,
            "call_id": "call_1_1",
            "name": name,
            "content": [{"type": "text", "text": text}],
            "is_error": False,
            "outcome": "ok",
            "duration_ms": 1,
        }
        self._record(Draft("agent.tool_result", payload))

    def die(self) -> None:
        """Its lease runs out at once."""
        Attempt.objects.filter(pk=self.lease.attempt_id).update(
            lease_expires_at=Now() - timedelta(seconds=1)
        )

    def _record(self, *drafts: Draft) -> None:
        attempts.record(lease=self.lease, drafts=drafts)


def append(line: str) -> dict[str, Any]:
    return {"tool": "probe.append", "args": {"line": line}}


async def killed(
    talk: Talk, script: list[dict[str, Any]], act: Callable[[DeadWorker], None]
) -> str:
    """A turn with this script, run up to some point by a worker that is dead now."""
    turn = await talk.script(*script)

    def run() -> None:
        worker = DeadWorker()
        act(worker)
        worker.die()

    await in_db_thread(run)
    return turn


async def test_killed_before_the_first_step(talk: Talk, home: Path) -> None:
    turn = await killed(talk, [{"say": "Whole"}], lambda worker: None)
    async with working(home):
        assert (await talk.ending(turn))["type"] == "turn.completed"
    assert await talk.answer() == "Whole"
    row = await in_db_thread(Turn.objects.get)
    assert (row.attempt_count, row.losses) == (2, 1)


async def test_killed_in_the_stream(talk: Talk, home: Path) -> None:
    def act(worker: DeadWorker) -> None:
        worker.checkpoint(1)
        worker.delta("Who")

    turn = await killed(talk, [{"say": "Whole"}], act)
    async with working(home):
        await talk.ending(turn)
    (sealed,) = await talk.events("agent.message")
    assert text_of(sealed) == "Whole"
    assert sealed["message_id"] != MESSAGE_ID
    assert sealed["attempt"] == 2


async def test_killed_after_the_answer_was_sealed(talk: Talk, home: Path) -> None:
    def act(worker: DeadWorker) -> None:
        worker.checkpoint(1)
        worker.response(1, "Whole")

    turn = await killed(talk, [{"say": "Whole"}, {"say": "Twice"}], act)
    async with working(home):
        assert (await talk.ending(turn))["type"] == "turn.completed"
    assert [text_of(m) for m in await talk.events("agent.message")] == ["Whole"]


async def test_killed_in_a_call_with_an_effect(talk: Talk, home: Path) -> None:
    def act(worker: DeadWorker) -> None:
        worker.checkpoint(1)
        worker.response(1)
        worker.call("probe.append", {"line": "one"})

    turn = await killed(talk, [{"call": [append("one")]}, {"say": "Done"}], act)
    async with working(home):
        assert (await talk.ending(turn))["type"] == "turn.completed"
    (result,) = await talk.events("agent.tool_result")
    assert (result["outcome"], result["is_error"]) == ("unknown", True)
    assert "before you repeat" in text_of(result)
    assert probe_lines(home) == []
    assert await talk.answer() == "Done"


async def test_killed_in_a_call_that_is_safe_to_repeat(talk: Talk, home: Path) -> None:
    def act(worker: DeadWorker) -> None:
        worker.checkpoint(1)
        worker.response(1)
        worker.call("probe.lookup", {})

    turn = await killed(talk, [{"call": [{"tool": "probe.lookup"}]}, {"say": "Done"}], act)
    async with working(home):
        await talk.ending(turn)
    (result,) = await talk.events("agent.tool_result")
    assert (result["outcome"], text_of(result)) == ("ok", "0")
    assert len(await talk.events("agent.tool_use")) == 1


async def test_killed_between_two_calls(talk: Talk, home: Path) -> None:
    """The first is not repeated, and the second, never begun, is not lost."""

    def act(worker: DeadWorker) -> None:
        worker.checkpoint(1)
        worker.response(1)
        used = worker.call("probe.append", {"line": "one"}, [append("two"), append("three")])
        worker.result(used, "probe.append", "appended one")

    script = [{"call": [append("one"), append("two"), append("three")]}, {"say": "Done"}]
    turn = await killed(talk, script, act)
    async with working(home):
        assert (await talk.ending(turn))["type"] == "turn.completed"
    assert probe_lines(home) == ["two", "three"]
    outcomes = [result["outcome"] for result in await talk.events("agent.tool_result")]
    assert outcomes == ["ok", "ok", "ok"]


async def test_killed_in_the_first_of_two_calls(talk: Talk, home: Path) -> None:
    def act(worker: DeadWorker) -> None:
        worker.checkpoint(1)
        worker.response(1)
        worker.call("probe.append", {"line": "one"}, [append("two")])

    turn = await killed(talk, [{"call": [append("one"), append("two")]}, {"say": "Done"}], act)
    async with working(home):
        await talk.ending(turn)
    outcomes = [result["outcome"] for result in await talk.events("agent.tool_result")]
    assert outcomes == ["unknown", "ok"]
    assert probe_lines(home) == ["two"]


async def test_a_dead_worker_that_wakes_up_can_write_nothing(talk: Talk, home: Path) -> None:
    leases: list[Lease] = []

    def act(worker: DeadWorker) -> None:
        worker.checkpoint(1)
        leases.append(worker.lease)

    turn = await killed(talk, [{"say": "Whole", "hang_ms": 300}], act)
    async with working(home):
        await talk.until_type("attempt.started", 2)
        with pytest.raises(attempts.LeaseLost):
            await in_db_thread(attempts.open_step, lease=leases[0], step=1)
        await talk.ending(turn)
    assert {e["attempt"] for e in await talk.events("agent.message_delta")} == {2}


async def test_the_scripted_model_goes_on_where_the_log_stands(talk: Talk, home: Path) -> None:
    def act(worker: DeadWorker) -> None:
        worker.checkpoint(1)
        worker.response(1, "First")
        used = worker.call("probe.lookup", {})
        worker.result(used, "probe.lookup", "0")
        worker.checkpoint(2)
        worker.delta("Sec")

    script = [
        {"say": "First", "call": [{"tool": "probe.lookup"}]},
        {"say": "Second", "call": [{"tool": "probe.lookup"}]},
        {"say": "Third"},
    ]
    turn = await killed(talk, script, act)
    async with working(home):
        await talk.ending(turn)
    texts = [text_of(message) for message in await talk.events("agent.message")]
    assert texts == ["First", "Second", "Third"]
    assert [e["step"] for e in await talk.events("step.checkpoint")] == [1, 2, 2, 3]
