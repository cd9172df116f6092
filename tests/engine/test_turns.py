"""Turns run by a worker: what is in the log afterwards, and in which order."""

from __future__ import annotations

import asyncio
import base64
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from core.db import in_db_thread
from engine.ports import Fact, LogEvent
from engine.turnlog import DurableTurnLog
from sessions_app.models import Attempt, Turn
from sessions_app.services import attempts
from tests.engine.conftest import Talk, open_talk, probe_lines, text_of, working

WAITING = ("step.checkpoint", "session.status_rescheduled")


async def test_a_prompt_is_answered(talk: Talk, home: Path) -> None:
    async with working(home):
        turn = await talk.send("Good morning")
        assert (await talk.ending(turn))["type"] == "turn.completed"
    assert await talk.answer() == "Good morning"
    assert await talk.types() == [
        "session.created",
        "user.message",
        "turn.queued",
        "turn.started",
        "session.status_running",
        "attempt.started",
        "step.checkpoint",
        "agent.message_delta",
        "agent.message",
        "model.usage",
        "attempt.ended",
        "turn.completed",
        "session.status_idle",
    ]


async def test_deltas_add_up_to_the_sealed_texts(talk: Talk, home: Path) -> None:
    say, think = "The tide turns at noon. " * 20, "Counting waves. " * 10
    async with working(home):
        turn = await talk.script({"say": say, "think": think, "chunks": 40, "every_ms": 3})
        await talk.ending(turn)
    for kind in ("agent.thinking", "agent.message"):
        deltas = await talk.events(f"{kind}_delta")
        (sealed,) = await talk.events(kind)
        whole = sealed.get("text") or text_of(sealed)
        assert "".join(delta["text"] for delta in deltas) == whole
        assert {delta["message_id"] for delta in deltas} == {sealed["message_id"]}
        assert 2 <= len(deltas) <= 40
    assert (await talk.events("agent.thinking"))[0]["duration_ms"] > 50


async def test_calls_are_recorded_before_they_run_and_their_results_after(
    talk: Talk, home: Path
) -> None:
    async with working(home):
        turn = await talk.script(
            {
                "say": "Looking.",
                "call": [
                    {"tool": "probe.append", "args": {"line": "one"}},
                    {"tool": "probe.lookup"},
                    {"tool": "probe.append", "args": {"line": "two"}},
                ],
            },
            {"say": "Done."},
        )
        await talk.ending(turn)
    types = [t for t in await talk.types() if t.startswith(("agent.", "step.", "model."))]
    assert types == [
        "step.checkpoint", "agent.message_delta", "agent.message", "model.usage",
        "agent.tool_use", "agent.tool_result",
        "agent.tool_use", "agent.tool_result",
        "agent.tool_use", "agent.tool_result",
        "step.checkpoint", "agent.message_delta", "agent.message", "model.usage",
    ]  # fmt: skip
    uses, results = await talk.events("agent.tool_use"), await talk.events("agent.tool_result")
    assert [use["id"] for use in uses] == [result["tool_use_id"] for result in results]
    assert [use["step"] for use in uses] == [1, 1, 1]
    assert [use["repeatable"] for use in uses] == [False, True, False]
    assert [text_of(result) for result in results] == ["appended one", "1", "appended two"]
    assert probe_lines(home) == ["one", "two"]


async def test_the_model_is_sent_the_results(talk: Talk, home: Path) -> None:
    async with working(home):
        turn = await talk.script({"call": [{"tool": "probe.lookup"}]}, {"say": "Seen:"}, echo=True)
        await talk.ending(turn)
    assert "call: probe.lookup {}" in await talk.answer()
    assert "tool: probe.lookup: 0" in await talk.answer()


async def test_broken_calls_are_told_to_the_model(talk: Talk, home: Path) -> None:
    async with working(home):
        turn = await talk.script(
            {
                "call": [
                    {"tool": "probe.nothing", "args": {}},
                    {"tool": "probe.append", "args": '{"line": "x"'},
                    {"tool": "probe.append", "args": "[1]"},
                    {"tool": "probe.append", "args": {"lines": "x"}},
                    {"tool": "probe.append", "args": '{"line": "x", "sleep_ms": 1e999}'},
                    {"tool": "probe.error", "args": {"message": "Out of paper"}},
                    {"tool": "", "args": {}},
                ]
            },
            {"say": "Sorry."},
        )
        assert (await talk.ending(turn))["type"] == "turn.completed"
    results = await talk.events("agent.tool_result")
    assert all(result["is_error"] and result["outcome"] == "error" for result in results)
    told = [text_of(result) for result in results]
    assert "no tool named 'probe.nothing'" in told[0]
    assert "probe.lookup" in told[0]
    assert all("JSON object" in text for text in told[1:3])
    assert "lines" in told[3]
    assert told[5] == "Out of paper"
    assert len({result["call_id"] for result in results}) == 7
    assert probe_lines(home) == []


async def test_unstorable_output_is_replaced_and_large_output_is_cut(
    talk: Talk, home: Path
) -> None:
    raw = base64.b64encode(b"a\x00b\xed\xa0\x80c").decode()
    async with working(home):
        turn = await talk.script(
            {
                "say": "x\u0000y",
                "call": [
                    {"tool": "probe.raw", "args": {"base64": raw}},
                    {"tool": "probe.big", "args": {"bytes": 100_000}},
                ],
            },
            {"say": "Done."},
        )
        await talk.ending(turn)
    odd, big = await talk.events("agent.tool_result")
    assert text_of(odd) == "a\ufffdb\ufffdc"
    assert big["truncated"] == {"bytes": 100_000}
    assert len(text_of(big)) < 65_700
    assert text_of((await talk.events("agent.message"))[0]) == "x\ufffdy"


async def test_queued_prompts_are_answered_one_after_the_other(talk: Talk, home: Path) -> None:
    turns = [await talk.send(f"prompt {number}") for number in range(3)]
    async with working(home):
        for turn in turns:
            await talk.ending(turn)
    messages = await talk.events("agent.message")
    assert [text_of(m) for m in messages] == ["prompt 0", "prompt 1", "prompt 2"]
    assert (await talk.types()).count("session.status_idle") == 1


async def test_sessions_run_side_by_side(talk: Talk, home: Path) -> None:
    talks = [talk, *[await in_db_thread(open_talk, talk.cast) for _ in range(5)]]
    async with working(home):
        turns = [await each.script({"hang_ms": 400, "say": "x"}) for each in talks]
        began = asyncio.get_running_loop().time()
        for each, turn in zip(talks, turns, strict=True):
            await each.ending(turn)
        assert asyncio.get_running_loop().time() - began < 2


async def test_stop_ends_the_stream_within_half_a_second(talk: Talk, home: Path) -> None:
    async with working(home) as worker:
        turn = await talk.script({"say": "word " * 400, "chunks": 400, "every_ms": 20})
        following = await talk.send("Next")
        await talk.until_type("agent.message_delta", 3)
        await talk.stop()
        began = asyncio.get_running_loop().time()
        assert (await talk.ending(turn))["type"] == "turn.cancelled"
        await talk.ending(following)
        assert asyncio.get_running_loop().time() - began < 1.5
        assert not worker._running
    first, second = await talk.events("agent.message")
    assert first["interrupted"] is True
    assert text_of(first).startswith("word word")
    assert text_of(second) == "Next"


async def test_a_hint_brings_a_stop_to_the_worker_within_half_a_second(
    talk: Talk, home: Path
) -> None:
    async with working(home, heartbeat_seconds=30, poll_seconds=30) as worker:
        for element in ({"hang_ms": 60_000}, {"fail": {"status": 429, "retry_after": 60}}):
            await talk.script(element)
            await talk.until(lambda events: events[-1]["type"] in WAITING)
            await talk.stop()
            began = asyncio.get_running_loop().time()
            while worker._running:
                await asyncio.sleep(0.005)
            assert asyncio.get_running_loop().time() - began < 0.5


async def test_stop_in_a_tool_ends_it_before_its_effect(talk: Talk, home: Path) -> None:
    call = {"tool": "probe.append", "args": {"line": "never", "sleep_ms": 5000}}
    async with working(home) as worker:
        turn = await talk.script({"call": [call]})
        await talk.until_type("agent.tool_use")
        await talk.stop()
        assert (await talk.ending(turn))["type"] == "turn.cancelled"
        while worker._running:
            await asyncio.sleep(0.01)
    (result,) = await talk.events("agent.tool_result")
    assert result["outcome"] == "unknown"
    assert probe_lines(home) == []


async def test_an_orderly_stop_hands_the_turn_over_and_loses_no_call(
    talk: Talk, home: Path
) -> None:
    def append(line: str, sleep_ms: int) -> dict[str, object]:
        return {"tool": "probe.append", "args": {"line": line, "sleep_ms": sleep_ms}}

    turn = await talk.script(
        {"call": [append("one", 1_000), append("two", 0)]},
        {"say": "word " * 100, "chunks": 100, "every_ms": 20},
        {"say": "unreached"},
    )
    async with working(home, grace_seconds=10):
        await talk.until_type("agent.tool_use")
    assert probe_lines(home) == ["one"]
    async with working(home):
        await talk.until_type("agent.message_delta", 2)
    async with working(home):
        assert (await talk.ending(turn))["type"] == "turn.completed"
    assert probe_lines(home) == ["one", "two"]
    assert await talk.answer() == "word " * 100
    row = await in_db_thread(Turn.objects.get)
    assert (row.losses, row.attempt_count) == (0, 3)
    statuses = await in_db_thread(lambda: list(Attempt.objects.values_list("status", flat=True)))
    assert sorted(statuses) == ["completed", "interrupted", "interrupted"]
    message_ids = {e["message_id"] for e in await talk.events("agent.message_delta")}
    assert len(message_ids) == 2


async def test_a_stop_between_a_calls_record_and_its_run_still_runs_it(
    talk: Talk, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = DurableTurnLog.record

    async with working(home) as worker:

        async def record_then_stop(
            log: DurableTurnLog, facts: Sequence[Fact]
        ) -> Sequence[LogEvent]:
            events = await record(log, facts)
            if any(fact.type == "agent.tool_use" for fact in facts):
                worker.stop()
            return events

        monkeypatch.setattr(DurableTurnLog, "record", record_then_stop)
        calls = [{"tool": "probe.append", "args": {"line": line}} for line in ("one", "two")]
        turn = await talk.script({"call": calls}, {"say": "Done."})
        await talk.until_type("turn.recovering")
    monkeypatch.undo()
    # What the response asks for besides was not written down, so it can wait.
    assert probe_lines(home) == ["one"]
    async with working(home):
        assert (await talk.ending(turn))["type"] == "turn.completed"
    assert probe_lines(home) == ["one", "two"]
    assert [e["outcome"] for e in await talk.events("agent.tool_result")] == ["ok", "ok"]


async def test_a_stopping_worker_does_not_take_up_what_it_hands_over(
    talk: Talk, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A claim that is under way when the stop comes finds no turn that this worker gave back."""
    claim_turn = attempts.claim_turn
    is_stopping, is_asking = threading.Event(), threading.Event()

    def claim_late(**wanted: Any) -> attempts.Claim | None:
        if is_stopping.is_set():
            is_asking.set()
            time.sleep(1)
        return claim_turn(**wanted)

    monkeypatch.setattr(attempts, "claim_turn", claim_late)
    turn = await talk.script({"say": "word " * 100, "chunks": 100, "every_ms": 50})
    async with working(home):
        await talk.until_type("agent.message_delta", 2)
        is_stopping.set()
        assert await asyncio.to_thread(is_asking.wait, 5)
    monkeypatch.undo()
    row = await in_db_thread(Turn.objects.get)
    assert (row.status, row.attempt_count) == ("recovering", 1)
    await talk.stop()
    assert (await talk.ending(turn))["type"] == "turn.cancelled"


async def test_a_call_that_outlasts_the_grace_has_an_unknown_outcome(
    talk: Talk, home: Path
) -> None:
    call = {"tool": "probe.append", "args": {"line": "late", "sleep_ms": 60_000}}
    turn = await talk.script({"call": [call]}, {"say": "I look first."}, echo=True)
    async with working(home, grace_seconds=0.2):
        await talk.until_type("agent.tool_use")
    async with working(home):
        await talk.ending(turn)
    (result,) = await talk.events("agent.tool_result")
    assert (result["outcome"], result["is_error"]) == ("unknown", True)
    assert "before you repeat" in await talk.answer()
    assert probe_lines(home) == []


async def test_the_assistant_answers_and_is_offered_no_probes(talk: Talk, home: Path) -> None:
    other = await in_db_thread(open_talk, talk.cast, "demo/assistant")
    async with working(home):
        await other.ending(await other.send("What is 6 * 7?"))
    assert "**42**" in await other.answer()


async def test_a_response_with_many_calls_names_each_of_them_once(talk: Talk, home: Path) -> None:
    calls = [{"tool": "probe.lookup"}] * 12
    async with working(home):
        await talk.ending(await talk.script({"call": calls}, {"say": "Done"}))
    used = await talk.events("agent.tool_use")
    assert [len(event.get("pending_calls", ())) for event in used] == [11, *[0] * 11]
    assert [result["call_id"] for result in await talk.events("agent.tool_result")] == [
        event["call_id"] for event in used
    ]


async def test_a_response_that_asks_for_too_much_fails_with_a_sentence_and_runs_nothing(
    talk: Talk, home: Path
) -> None:
    call = {"tool": "probe.append", "args": {"line": "x"}}
    turn = await talk.script({"call": [call] * 129}, {"say": "Never"})
    async with working(home):
        ending = await talk.ending(turn)
    assert ending["type"] == "turn.failed"
    assert ending["error"]["code"] == "too_many_calls"
    assert "more tool calls at once" in ending["error"]["message"]
    assert await talk.events("agent.tool_use") == []
    assert probe_lines(home) == []
