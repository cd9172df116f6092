"""Steer, Stop and Pause against a worker at work."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from core.db import in_db_thread
from sessions_app.services.holding import pause_session, resume_session
from sessions_app.services.turns import Prompt, submit_prompt
from tests.engine.conftest import Talk, open_talk, probe_lines, text_of, working
from tests.factories import Cast

LONG = {"say": "word " * 2_000, "chunks": 2_000, "every_ms": 10}


async def steer(talk: Talk, text: str) -> str:
    access = await in_db_thread(talk.cast.access, "member")
    prompt = Prompt(content=text, delivery="steer")
    receipt = await in_db_thread(
        submit_prompt, access=access, session_id=talk.session.pk, prompt=prompt
    )
    assert receipt.turn_id is not None
    return f"trn_{receipt.turn_id.hex}"


async def pause(talk: Talk) -> None:
    access = await in_db_thread(talk.cast.access, "member")
    await in_db_thread(pause_session, access=access, session_id=talk.session.pk)


async def resume(talk: Talk) -> None:
    access = await in_db_thread(talk.cast.access, "member")
    await in_db_thread(resume_session, access=access, session_id=talk.session.pk)


async def test_a_steer_ends_the_answer_keeps_its_text_and_tells_the_model_both(
    talk: Talk, home: Path
) -> None:
    """BR-055, BR-057, BR-058."""
    async with working(home):
        first = await talk.script(LONG)
        await talk.until_type("agent.message_delta", 3)
        script = '{"script": [{"say": "Only March. "}], "echo": true}'
        second = await steer(talk, script)
        assert (await talk.ending(second))["type"] == "turn.completed"
    events = await talk.events()
    at = {(e["type"], e.get("turn_id")): e["seq"] for e in events}
    sealed = [e for e in events if e["type"] == "agent.message" and e["turn_id"] == first]
    assert [e["interrupted"] for e in sealed] == [True]
    assert at["turn.superseded", first] < at["turn.started", second]
    assert not [
        e for e in events if e.get("turn_id") == first and e["seq"] > at["turn.superseded", first]
    ]
    answer = await talk.answer()
    assert text_of(sealed[0])[:40] in answer
    assert "session.status_idle" not in [e["type"] for e in events[:-1]]


async def test_the_steered_turn_waits_for_a_call_that_cannot_stop(talk: Talk, home: Path) -> None:
    async with working(home):
        await talk.script({"call": [{"tool": "probe.append", "args": {"line": "a"}}]}, LONG)
        await talk.until_type("agent.message_delta")
        second = await steer(talk, "now this")
        await talk.ending(second)
    assert probe_lines(home) == ["a"]


async def test_a_pause_stops_the_model_and_a_resume_goes_on_with_the_same_turn(
    talk: Talk, home: Path
) -> None:
    async with working(home):
        turn = await talk.script({"say": "word " * 60, "chunks": 60, "every_ms": 30})
        await talk.until_type("agent.message_delta", 3)
        await pause(talk)
        await talk.until_type("turn.recovering")
        written = len(await talk.events("agent.message_delta"))
        await asyncio.sleep(0.5)
        assert len(await talk.events("agent.message_delta")) == written
        await resume(talk)
        assert (await talk.ending(turn))["type"] == "turn.completed"
    assert [e["attempt"] for e in await talk.events("attempt.started")] == [1, 2]
    (recovering,) = await talk.events("turn.recovering")
    assert (recovering["reason"], recovering["losses"]) == ("paused", 0)
    assert await talk.answer() == "word " * 60


async def test_a_call_that_has_begun_may_end_after_the_pause(talk: Talk, home: Path) -> None:
    args = {"line": "once", "sleep_ms": 700}
    async with working(home, grace_seconds=5):
        turn = await talk.script({"call": [{"tool": "probe.append", "args": args}]}, {"say": "x"})
        await talk.until_type("agent.tool_use")
        await pause(talk)
        await talk.until_type("turn.recovering")
        (result,) = await talk.events("agent.tool_result")
        assert result["outcome"] == "ok"
        await resume(talk)
        await talk.ending(turn)
    assert probe_lines(home) == ["once"]


async def test_a_call_longer_than_the_grace_is_cut_and_not_repeated(talk: Talk, home: Path) -> None:
    args = {"line": "once", "sleep_ms": 60_000}
    async with working(home, grace_seconds=0.3):
        turn = await talk.script({"call": [{"tool": "probe.append", "args": args}]}, {"say": "x"})
        await talk.until_type("agent.tool_use")
        await pause(talk)
        await talk.until_type("turn.recovering")
        await resume(talk)
        await talk.ending(turn)
    (result,) = await talk.events("agent.tool_result")
    assert result["outcome"] == "unknown"
    assert probe_lines(home) == []


async def test_a_pause_outlasts_the_worker(talk: Talk, home: Path) -> None:
    async with working(home):
        turn = await talk.script(LONG)
        await talk.until_type("agent.message_delta", 2)
        await pause(talk)
        await talk.until_type("turn.recovering")
    async with working(home):
        await asyncio.sleep(0.5)
        assert len(await talk.events("attempt.started")) == 1
        second = await steer(talk, "something shorter")
        await asyncio.sleep(0.3)
        assert len(await talk.events("turn.started")) == 1
        await resume(talk)
        await talk.ending(second)
    assert (await talk.events("turn.superseded"))[0]["turn_id"] == turn


async def seconds_until_quiet(talk: Talk) -> float:
    """From now until the worker has said that the fenced attempt does nothing more."""
    began = time.monotonic()
    while await in_db_thread(is_loud, talk):
        assert time.monotonic() - began < 5
        await asyncio.sleep(0.01)
    return time.monotonic() - began


def is_loud(talk: Talk) -> bool:
    talk.session.refresh_from_db()
    return talk.session.quiet_at is not None


@pytest.mark.proof
@pytest.mark.alone
async def test_interrupts_reach_fifty_running_turns_within_half_a_second(
    committed_cast: Cast, home: Path
) -> None:
    """p95 from the accepted Steer or Stop until its worker is quiet; no delta comes after it."""
    talks = [await in_db_thread(open_talk, committed_cast) for _ in range(50)]
    late: list[float] = []
    async with working(home, concurrency=50, flush_seconds=0.04):
        for talk in talks:
            await talk.script(LONG)
        for talk in talks:
            await talk.until_type("agent.message_delta", 2)
        for number, talk in enumerate(talks):
            await (talk.stop() if number % 2 else steer(talk, "now"))
            late.append(await seconds_until_quiet(talk))
        for talk in talks:
            (ended,) = await talk.events("turn.cancelled", "turn.superseded")
            deltas = await talk.events("agent.message_delta")
            old = [delta for delta in deltas if delta["turn_id"] == ended["turn_id"]]
            assert all(delta["seq"] < ended["seq"] for delta in old)
    late.sort()
    assert late[int(len(late) * 0.95)] <= 0.5, late
