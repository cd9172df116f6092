"""The scripted model does exactly what its prompt says, and finds its place from the log."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from engine.ports import (
    AgentReply,
    CallMade,
    Finish,
    HistoryItem,
    ModelChoice,
    ModelRequest,
    ProviderError,
    StreamPart,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolReturn,
    TurnPosition,
    Usage,
    UserText,
)
from engine.providers.scripted import Script, ScriptedProvider


def request(
    prompt: str | dict[str, Any],
    *after: HistoryItem,
    responses: int = 0,
    failures: int = 0,
    instructions: str = "",
) -> ModelRequest:
    text = prompt if isinstance(prompt, str) else json.dumps(prompt)
    return ModelRequest(
        model=ModelChoice("demo", "scripted"),
        instructions=instructions,
        history=(UserText(text), *after),
        tools=(),
        position=TurnPosition(responses, failures, failures),
    )


async def collect(asked: ModelRequest) -> list[StreamPart]:
    return [part async for part in ScriptedProvider().stream(asked)]


def said(parts: list[StreamPart]) -> str:
    return "".join(part.text for part in parts if isinstance(part, TextDelta))


async def test_a_plain_prompt_is_answered_with_the_prompt() -> None:
    parts = await collect(request("Good morning"))
    assert said(parts) == "Good morning"
    assert parts[-1] == Finish("stop")


@pytest.mark.parametrize("prompt", ['{"script": "no list"}', "{", "[1]", '{"a": 1}', "12"])
async def test_what_is_no_script_is_answered_with_itself(prompt: str) -> None:
    assert said(await collect(request(prompt))) == prompt


async def test_a_prompt_nested_too_deep_for_json_is_no_script() -> None:
    prompt = "[" * 50_000
    assert Script.parse(prompt).elements[0].say == prompt


async def test_text_comes_in_as_many_chunks_as_asked_for() -> None:
    parts = await collect(request({"script": [{"say": "abcdefgh", "chunks": 3}]}))
    assert [p.text for p in parts if isinstance(p, TextDelta)] == ["ab", "cde", "fgh"]


async def test_more_chunks_than_characters_give_one_each() -> None:
    parts = await collect(request({"script": [{"say": "né", "chunks": 40}]}))
    assert [p.text for p in parts if isinstance(p, TextDelta)] == ["n", "é"]


async def test_thinking_comes_before_the_text() -> None:
    parts = await collect(request({"script": [{"say": "b", "think": "a"}]}))
    assert parts[:2] == [ThinkingDelta("a"), TextDelta("b")]


async def test_pace_and_silence_take_their_time() -> None:
    began = time.monotonic()
    await collect(
        request({"script": [{"say": "abcd", "chunks": 4, "every_ms": 20, "hang_ms": 50}]})
    )
    assert 0.12 <= time.monotonic() - began < 1


async def test_calls_are_asked_for_and_finish_the_response() -> None:
    element = {"call": [{"tool": "probe.lookup"}, {"tool": "x", "args": {"a": [1]}}]}
    parts = await collect(request({"script": [element]}))
    calls = [part for part in parts if isinstance(part, ToolCall)]
    assert [(call.name, json.loads(call.arguments)) for call in calls] == [
        ("probe.lookup", {}),
        ("x", {"a": [1]}),
    ]
    assert len({call.call_id for call in calls}) == 2
    assert parts[-1] == Finish("tool_call")


async def test_arguments_given_as_text_are_passed_as_they_are() -> None:
    parts = await collect(request({"script": [{"call": [{"tool": "x", "args": "{broken"}]}]}))
    assert next(p.arguments for p in parts if isinstance(p, ToolCall)) == "{broken"


async def test_the_place_is_the_number_of_responses_so_far() -> None:
    script = {"script": [{"say": "one", "call": [{"tool": "x"}]}, {"say": "two"}]}
    assert said(await collect(request(script, responses=0))) == "one"
    assert said(await collect(request(script, responses=1))) == "two"
    assert said(await collect(request(script, responses=2))) == ""


async def test_failures_are_counted_over_the_turn() -> None:
    script = {
        "script": [
            {"say": "a", "fail": {"status": 503}, "times": 2, "call": [{"tool": "x"}]},
            {"say": "b", "fail": {"status": 429, "retry_after": 7, "message": "slow down"}},
        ]
    }
    for failures in (0, 1):
        with pytest.raises(ProviderError) as overloaded:
            await collect(request(script, failures=failures))
        assert overloaded.value.code == "provider_overloaded"
    assert said(await collect(request(script, failures=2))) == "a"
    with pytest.raises(ProviderError) as limited:
        await collect(request(script, responses=1, failures=2))
    assert (limited.value.code, limited.value.retry_after) == ("provider_rate_limited", 7)
    assert limited.value.reason == "slow down"
    assert said(await collect(request(script, responses=1, failures=3))) == "b"


@pytest.mark.parametrize(
    ("element", "told"),
    [
        ({"sya": "typo"}, "sya"),
        ({"chunks": 0}, "chunks"),
        ({"call": [{"args": {}}]}, "call.0.tool"),
        ({"fail": {"status": 200}}, "fail.status"),
    ],
)
async def test_a_mistake_in_a_script_is_told(element: dict[str, Any], told: str) -> None:
    with pytest.raises(ProviderError) as refused:
        await collect(request({"script": [element]}))
    assert refused.value.code == "provider_bad_request"
    assert not refused.value.retryable
    assert told in refused.value.reason


async def test_usage_is_as_reported_by_the_script() -> None:
    parts = await collect(request({"script": [{"usage": {"input": 11, "output": 5}}]}))
    assert Usage(11, 5) in parts


async def test_echo_appends_what_the_model_was_sent_to_the_last_text() -> None:
    script = {"script": [{"say": "x", "call": [{"tool": "t"}]}, {"say": "end"}], "echo": True}
    between = (
        AgentReply("x", calls=(CallMade("c", "t", {"n": 1}),)),
        ToolReturn("c", "t", "result"),
    )
    first = said(await collect(request(script, responses=0)))
    last = said(await collect(request(script, *between, responses=1, instructions="Be brief.")))
    assert first == "x"
    assert last.splitlines()[0] == "end"
    assert last.splitlines()[2:] == [
        "system: Be brief.",
        f"user: {json.dumps(script)}",
        "assistant: x",
        'call: t {"n": 1}',
        "tool: t: result",
    ]
