"""The same command at many moments of an answer: what is right does not depend on when it comes."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

from core.db import in_db_thread
from core.errors import NotFound
from sessions_app import selectors
from sessions_app.models import Event
from sessions_app.services.archiving import delete_session
from sessions_app.web.loading import load_page
from tests.engine.conftest import Talk, open_talk, text_of, working
from tests.engine.test_control import steer
from tests.factories import Cast

ANSWER = "word " * 40
STREAM = {"say": ANSWER, "chunks": 40, "every_ms": 15}
SECONDS = 0.9  # a little longer than that takes


async def open_talks(cast: Cast, count: int) -> list[Talk]:
    return [await in_db_thread(open_talk, cast) for _ in range(count)]


async def test_a_steer_at_any_moment_keeps_what_was_written_and_tells_the_model_both(
    committed_cast: Cast, home: Path
) -> None:
    """BR-055, BR-058, at fifty random moments."""
    chance = random.Random(55)
    talks = await open_talks(committed_cast, 50)

    async def interrupt(talk: Talk, after: float) -> None:
        first = await talk.script(STREAM)
        await talk.until_type("attempt.started")
        await asyncio.sleep(after)
        script = {"script": [{"say": "Only March. "}], "echo": True}
        second = await steer(talk, json.dumps(script))
        assert (await talk.ending(second, 30))["type"] == "turn.completed"
        await check_steered(talk, first, second)

    async with working(home, concurrency=60):
        await asyncio.gather(*(interrupt(talk, chance.uniform(0, SECONDS)) for talk in talks))


async def check_steered(talk: Talk, first: str, second: str) -> None:
    events = await talk.events()
    begun = next(e["seq"] for e in events if (e["type"], e.get("turn_id")) == (
        "turn.started", second))  # fmt: skip
    assert not [e for e in events if e.get("turn_id") == first and e["seq"] > begun]
    deltas = [e for e in events if e["type"] == "agent.message_delta" and e["turn_id"] == first]
    kept = "".join(e["text"] for e in deltas)
    sealed = [e for e in events if e["type"] == "agent.message" and e["turn_id"] == first]
    assert "".join(map(text_of, sealed)) == kept
    # What came whole just before the steer is no fragment.
    assert all(e.get("interrupted") for e in sealed if text_of(e) != ANSWER)
    assert kept.strip() in await talk.answer()


async def test_a_session_deleted_at_any_moment_leaves_nothing_and_hurts_nobody(
    committed_cast: Cast, home: Path
) -> None:
    """BR-070, at thirty random moments; what is indexed or attached has tests of its own."""
    chance = random.Random(70)
    access = await in_db_thread(committed_cast.access, "owner")
    talks = await open_talks(committed_cast, 30)
    (beside,) = await open_talks(committed_cast, 1)

    async def delete(talk: Talk, after: float) -> None:
        await talk.script(STREAM)
        await asyncio.sleep(after)
        await in_db_thread(delete_session, access=access, session_id=talk.session.pk, stop=True)

    async with working(home, concurrency=40):
        turn = await beside.script(STREAM, {"say": "unharmed"})
        await asyncio.gather(*(delete(talk, chance.uniform(0, SECONDS)) for talk in talks))
        assert (await beside.ending(turn, 30))["type"] == "turn.completed"
        await asyncio.sleep(1)
        for talk in talks:
            assert await in_db_thread(is_gone, talk, access)


def is_gone(talk: Talk, access: Any) -> bool:
    try:
        selectors.get_session(access=access, session_id=talk.session.pk)
    except NotFound:
        return not Event.objects.filter(session_id=talk.session.pk).exists()
    return False


async def test_a_queued_prompt_is_no_part_of_the_turn_before_it(talk: Talk, home: Path) -> None:
    """BR-027."""
    lookup = {"tool": "probe.lookup", "args": {"sleep_ms": 500}}
    async with working(home):
        first = await talk.script({"call": [lookup]}, {"say": "First. "}, echo=True)
        await talk.until_type("agent.tool_use")
        second = await talk.script({"say": "marigold. "}, echo=True)
        await talk.ending(first)
        await talk.ending(second)
    answers = {e["turn_id"]: text_of(e) for e in await talk.events("agent.message")}
    assert "marigold" not in answers[first]
    assert "First. " in answers[second]


async def test_each_answer_stays_in_its_own_session(committed_cast: Cast, home: Path) -> None:
    """BR-071."""
    talks = await open_talks(committed_cast, 10)
    async with working(home):
        turns = [
            await talk.script({"say": f"answer {number} " * 20, "chunks": 20, "every_ms": 10})
            for number, talk in enumerate(talks)
        ]
        for talk, turn in zip(talks, turns, strict=True):
            await talk.ending(turn)
    for number, talk in enumerate(talks):
        assert await talk.answer() == f"answer {number} " * 20
        deltas = await talk.events("agent.message_delta")
        assert "".join(delta["text"] for delta in deltas) == f"answer {number} " * 20


async def test_a_prompt_right_after_a_stop_runs_and_stopping_again_harms_nothing(
    talk: Talk, home: Path
) -> None:
    """BR-054."""
    async with working(home):
        first = await talk.script({**STREAM, "every_ms": 500})
        await talk.until_type("agent.message_delta")
        for _ in range(3):
            await talk.stop()
        following = await talk.send("And this?")
        assert (await talk.ending(first))["type"] == "turn.cancelled"
        assert (await talk.ending(following))["type"] == "turn.completed"
    assert len(await talk.events("user.interrupt")) == 1


async def test_text_of_failed_requests_is_shown_as_abandoned_and_the_answer_once(
    talk: Talk, home: Path
) -> None:
    """BR-066: a model that breaks off in mid-answer, twice."""
    async with working(home):
        turn = await talk.script({**STREAM, "fail": {"status": 503, "after": 5}, "times": 2})
        assert (await talk.ending(turn))["type"] == "turn.completed"
    assert [text_of(e) for e in await talk.events("agent.message")] == [ANSWER]
    # As on the page: two that broke off, folded away, and the whole one.
    await in_db_thread(talk.session.refresh_from_db)
    page = await in_db_thread(load_page, session=talk.session)
    shown = [item for item in page.transcript.items if item.type == "agent.message"]
    assert [item.is_abandoned for item in shown] == [True, True, False]
    assert [item.text for item in shown] == ["word " * 5, "word " * 5, ANSWER]
