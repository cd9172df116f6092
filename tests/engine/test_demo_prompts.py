"""The prompts of docs/demo.md, sent to real workers: they do what the page says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from engine.providers.scripted import Element
from tests.engine.conftest import Talk, probe_lines, working
from tests.engine.test_waits import decide, reply, suspended

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "demo.md").read_text()
PROMPTS = re.findall(r"^```json\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
ROWS = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", PAGE, re.MULTILINE)


def prompt_with(word: str) -> str:
    (found,) = [prompt for prompt in PROMPTS if word in prompt]
    return str(found)


async def said(talk: Talk) -> list[Any]:
    return [event["content"][0]["text"] for event in await talk.events("agent.message")]


async def test_the_call_that_asks_runs_once_it_is_allowed(talk: Talk, home: Path) -> None:
    async with working(home):
        turn = await talk.send(prompt_with("probe.append_asked"))
        (tool_use_id,) = await suspended(talk)
        assert probe_lines(home) == []
        await decide(talk, tool_use_id)
        assert (await talk.ending(turn))["type"] == "turn.completed"
    assert probe_lines(home) == ["a line that Ada allowed"]


async def test_the_questions_can_be_answered(talk: Talk, home: Path) -> None:
    async with working(home):
        turn = await talk.send(prompt_with('"probe.ask"'))
        (question_id,) = await suspended(talk)
        await reply(talk, question_id, answers={"q1": {"selected": ["Here"]}})
        assert (await talk.ending(turn))["type"] == "turn.completed"
    assert (await said(talk))[-1] == "Understood."


async def test_both_children_report_to_the_parent_that_waits(talk: Talk, home: Path) -> None:
    async with working(home):
        turn = await talk.send(prompt_with("session.start_child"))
        assert (await talk.ending(turn, seconds=30))["type"] == "turn.completed"
    results = json.dumps(await talk.events("agent.tool_result"))
    assert "The first half is done." in results
    assert "The second half is done." in results
    assert (await said(talk))[-1] == "Both are back."


async def test_the_failing_provider_is_tried_again(talk: Talk, home: Path) -> None:
    async with working(home):
        turn = await talk.send(prompt_with("429"))
        assert (await talk.ending(turn, seconds=30))["type"] == "turn.completed"
    assert len(await talk.events("session.status_rescheduled")) == 2
    assert await said(talk) == ["The third try worked."]


def test_the_page_names_every_field_of_a_response_and_no_other() -> None:
    named = {name for row in ROWS for name in re.findall(r"`(\w+)`", row)}
    assert named == set(Element.model_fields)
