"""The OpenAI-compatible provider against two servers that we did not write.

`llmock` breaks things on demand and judges the client; `aimock` serves scripted answers, and
wants Node.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import httpx
import pytest
from llmock.pytest_plugin import LLMock

from catalog.kinds import ProviderConnection, ProviderKind
from catalog.probing.verdicts import Outcome
from catalog.services.checking import check_connection
from catalog.services.providers import NewModel, create_provider
from core.db import in_db_thread
from engine.ports import (
    AgentReply,
    CallMade,
    Finish,
    HistoryItem,
    ModelChoice,
    ModelRequest,
    Provider,
    ProviderError,
    StreamPart,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolReturn,
    ToolSpec,
    TurnPosition,
    Usage,
    UserText,
)
from engine.providers.openai_compatible import connect
from tests.engine.conftest import Talk, open_talk, text_of, working
from tests.factories import Cast

KEY = "local-key-that-no-pattern-knows-7731"
AIMOCK = "@copilotkit/aimock@1.43.0"
LOOKUP = ToolSpec(
    "probe.lookup",
    "Says how many lines there are.",
    {"type": "object", "properties": {"sleep_ms": {"type": "integer"}}},
    repeatable=True,
)


def request(
    *history: HistoryItem,
    tools: tuple[ToolSpec, ...] = (),
    effort: str | None = None,
    model_id: str = "gpt-4o",
) -> ModelRequest:
    model = ModelChoice("local", model_id, effort)
    return ModelRequest(model, "Be brief.", history, tools, TurnPosition())


async def collect(provider: Provider, asked: ModelRequest) -> list[StreamPart]:
    return [part async for part in provider.stream(asked)]


def said(parts: list[StreamPart]) -> str:
    return "".join(part.text for part in parts if isinstance(part, TextDelta))


async def failure(provider: Provider, asked: ModelRequest) -> ProviderError:
    with pytest.raises(ProviderError) as raised:
        await collect(provider, asked)
    return raised.value


@pytest.fixture
async def provider(llmock: LLMock) -> AsyncGenerator[Provider, None]:
    opened = connect(
        ProviderConnection(ProviderKind.OPENAI_COMPATIBLE, llmock.base_url("openai"), KEY)
    )
    yield opened
    await opened.aclose()


# ------------------------------------------------------------------------------- one response


async def test_an_answer_is_streamed(provider: Provider, llmock: LLMock) -> None:
    llmock.reply("The tide turns at noon, and again at midnight, as it does each day.")
    parts = await collect(provider, request(UserText("When?")))
    assert said(parts).startswith("The tide turns at noon")
    assert sum(isinstance(part, TextDelta) for part in parts) > 3
    assert isinstance(parts[-1], Finish)
    assert any(isinstance(part, Usage) and part.output_tokens > 0 for part in parts)
    body = llmock.last_request.body
    assert body["messages"][0] == {"role": "system", "content": "Be brief."}
    assert "reasoning_effort" not in body


async def test_a_tool_call_comes_back_under_its_own_name(
    provider: Provider, llmock: LLMock
) -> None:
    llmock.call_tool("probe_lookup", {"sleep_ms": 5})
    parts = await collect(provider, request(UserText("Count"), tools=(LOOKUP,)))
    (call,) = [part for part in parts if isinstance(part, ToolCall)]
    assert (call.name, json.loads(call.arguments)) == ("probe.lookup", {"sleep_ms": 5})
    assert llmock.last_request.body["tools"][0]["function"]["name"] == "probe_lookup"


async def test_broken_arguments_arrive_as_they_are(provider: Provider, llmock: LLMock) -> None:
    llmock.call_tool("probe_lookup", {"sleep_ms": 5}).break_tool_call("malformed_arguments")
    parts = await collect(provider, request(UserText("Count"), tools=(LOOKUP,)))
    (call,) = [part for part in parts if isinstance(part, ToolCall)]
    with pytest.raises(json.JSONDecodeError):
        json.loads(call.arguments)


async def test_the_history_is_sent_in_the_words_of_the_wire(
    provider: Provider, llmock: LLMock
) -> None:
    history = (
        UserText("Count"),
        AgentReply("Looking.", "secret thought", (CallMade("call_7", "probe.lookup", {"a": 1}),)),
        ToolReturn("call_7", "probe.lookup", "3"),
        AgentReply("Three, and th", interrupted=True),
        UserText("Go on"),
    )
    llmock.tool_mode("off")
    await collect(provider, request(*history, tools=(LOOKUP,), effort="high"))
    body = llmock.last_request.body
    assert body["reasoning_effort"] == "high"
    assert "secret thought" not in json.dumps(body)
    roles = [message["role"] for message in body["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]
    call = body["messages"][2]["tool_calls"][0]
    assert (call["id"], call["function"]["name"]) == ("call_7", "probe_lookup")
    assert body["messages"][3]["tool_call_id"] == "call_7"


# -------------------------------------------------------------------------------- what breaks


async def test_a_truncated_stream_is_no_answer(provider: Provider, llmock: LLMock) -> None:
    llmock.reply("one two three four five six seven eight nine ten").truncate(after_chunks=3)
    error = await failure(provider, request(UserText("Count")))
    assert (error.code, error.retryable) == ("provider_broken_stream", True)


@pytest.mark.parametrize("fault", ["disconnect", "corrupt"])
async def test_a_broken_stream_is_no_answer(provider: Provider, llmock: LLMock, fault: str) -> None:
    llmock.reply("one two three four five six seven eight nine ten")
    getattr(llmock, fault)(after_chunks=3)
    error = await failure(provider, request(UserText("Count")))
    assert (error.code, error.retryable) == ("provider_broken_stream", True)


async def test_a_rate_limit_says_how_long(provider: Provider, llmock: LLMock) -> None:
    llmock.rate_limit(retry_after=7)
    error = await failure(provider, request(UserText("Hi")))
    assert (error.code, error.retry_after) == ("provider_rate_limited", 7)
    assert len(llmock.requests) == 1, "the client must not retry behind our back"


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (400, "provider_bad_request", False),
        (401, "provider_auth_failed", False),
        (404, "provider_model_not_found", False),
        (500, "provider_unavailable", True),
        (503, "provider_overloaded", True),
    ],
)
async def test_statuses_have_their_codes(
    provider: Provider, llmock: LLMock, status: int, code: str, retryable: bool
) -> None:
    llmock.fail(status)
    error = await failure(provider, request(UserText("Hi")))
    assert (error.code, error.retryable) == (code, retryable)


async def test_a_conversation_that_is_too_long_is_named(provider: Provider, llmock: LLMock) -> None:
    llmock.context_overflow()
    assert (await failure(provider, request(UserText("Hi")))).code == "provider_context_exceeded"


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    opened = connect(
        ProviderConnection(ProviderKind.OPENAI_COMPATIBLE, f"http://127.0.0.1:{free_port()}/v1", "")
    )
    error = await failure(opened, request(UserText("Hi")))
    assert (error.code, error.retryable) == ("provider_unavailable", True)
    await opened.aclose()


async def test_closing_the_stream_ends_the_request(provider: Provider, llmock: LLMock) -> None:
    llmock.reply("word " * 2000).pace(20)
    began = time.monotonic()
    async with aclosing(provider.stream(request(UserText("Hi")))) as parts:
        async for _ in parts:
            break
    assert time.monotonic() - began < 3
    assert not llmock.last_request.completed


# ------------------------------------------------------------------------------- whole turns


def local_talk(cast: Cast, base_url: str) -> Talk:
    create_provider(
        organization=cast.organization,
        slug="local",
        kind=ProviderKind.OPENAI_COMPATIBLE,
        name="Local",
        models=[NewModel("gpt-4o", "Local model")],
        base_url=base_url,
        api_key=KEY,
    )
    return open_talk(cast, "local/gpt-4o")


async def test_a_turn_survives_what_providers_do(
    committed_cast: Cast, llmock: LLMock, home: Path
) -> None:
    talk = await in_db_thread(local_talk, committed_cast, llmock.base_url("openai"))
    llmock.reply("High water is at noon, low water at six.")
    llmock.rate_limit(retry_after=0.3).truncate(after_chunks=3).disconnect(after_chunks=2)
    async with working(home):
        turn = await talk.send("When does the tide turn?")
        assert (await talk.ending(turn))["type"] == "turn.failed"
        llmock.reset().reply("At noon, as it does each day.").truncate(after_chunks=2)
        turn = await talk.send("Once more?")
        assert (await talk.ending(turn))["type"] == "turn.completed"
    assert await talk.answer()
    sealed = (await talk.events("agent.message"))[-1]
    assert sealed["model"] == {"provider_id": "local", "model_id": "gpt-4o"}
    told = {delta["message_id"] for delta in await talk.events("agent.message_delta")}
    assert len(told) >= 3, "each try has a message of its own"
    llmock.assert_resilient()


# --------------------------------------------------------------------------------- aimock


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(match: str, response: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"match": {"userMessage": match}, "response": response, **more}


FIXTURES = [
    answers("plain", {"content": "The tide turns at noon. " * 10}),
    answers("thinking", {"content": "At noon.", "reasoning": "The moon is full."}),
    answers(
        "tools",
        {
            "content": "Looking.",
            "toolCalls": [
                {"name": "probe_lookup", "arguments": {"sleep_ms": 1}},
                {"name": "no_such_tool", "arguments": {}},
            ],
        },
    ),
    answers(
        "cut off", {"content": "The tide turns at noon. " * 10}, truncateAfterChunks=3, latency=10
    ),
    answers(
        "wrong key",
        {
            "error": {
                "message": f"Incorrect key {KEY} in header Authorization: Bearer {KEY}",
                "type": "invalid_request_error",
                "code": "invalid_api_key",
            },
            "status": 401,
        },
    ),
    answers(
        "slow down",
        {
            "error": {"message": "Slow down.", "type": "rate_limit_error"},
            "status": 429,
            "retryAfter": 9,
        },
    ),
]


@pytest.fixture(scope="module")
def aimock_script() -> Path:
    """Installed once into a cache of its own, at a pinned version."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if not npm or not node:
        pytest.fail("Node is missing: apt-get install -y nodejs npm")
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    prefix = cache / "sederunt" / AIMOCK.replace("/", "-")
    script = prefix / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"
    if not script.is_file():
        prefix.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [npm, "install", "--prefix", str(prefix), "--no-audit", "--no-fund", AIMOCK],
            check=True,
            capture_output=True,
            timeout=100,
        )
    return script


@pytest.fixture(scope="module")
def aimock(aimock_script: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base URL of a running server."""
    fixtures = tmp_path_factory.mktemp("aimock") / "fixtures.json"
    fixtures.write_text(json.dumps({"fixtures": FIXTURES}))
    port = free_port()
    server = subprocess.Popen(
        ["node", str(aimock_script), "-p", str(port), "-f", str(fixtures), "--strict",
         "--chunk-size", "8", "--log-level", "warn"],
        env={**os.environ, "AIMOCK_API_KEYS": KEY},
    )  # fmt: skip
    try:
        limit = time.monotonic() + 15
        while True:
            try:
                httpx.get(f"http://127.0.0.1:{port}/health")
                break
            except httpx.TransportError:
                assert time.monotonic() < limit
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        server.wait(10)


@pytest.fixture
async def scripted(aimock: str) -> AsyncGenerator[Provider, None]:
    opened = connect(ProviderConnection(ProviderKind.OPENAI_COMPATIBLE, aimock, KEY))
    yield opened
    await opened.aclose()


async def test_aimock_streams_text(scripted: Provider) -> None:
    parts = await collect(scripted, request(UserText("plain")))
    assert said(parts) == "The tide turns at noon. " * 10
    assert sum(isinstance(part, TextDelta) for part in parts) > 10
    assert parts[-1] == Finish("stop")


async def test_aimock_thinks_before_it_answers(scripted: Provider) -> None:
    parts = await collect(scripted, request(UserText("thinking"), model_id="deepseek-reasoner"))
    thought = "".join(part.text for part in parts if isinstance(part, ThinkingDelta))
    assert (thought, said(parts)) == ("The moon is full.", "At noon.")


async def test_aimock_calls_tools(scripted: Provider) -> None:
    parts = await collect(scripted, request(UserText("tools"), tools=(LOOKUP,)))
    calls = [part for part in parts if isinstance(part, ToolCall)]
    assert [call.name for call in calls] == ["probe.lookup", "no_such_tool"]
    assert json.loads(calls[0].arguments) == {"sleep_ms": 1}
    assert said(parts) == "Looking."


async def test_aimock_cut_off_is_no_answer(scripted: Provider) -> None:
    error = await failure(scripted, request(UserText("cut off")))
    assert (error.code, error.retryable) == ("provider_broken_stream", True)


async def test_aimock_rate_limit_says_how_long(scripted: Provider) -> None:
    error = await failure(scripted, request(UserText("slow down")))
    assert (error.code, error.retry_after, error.reason) == (
        "provider_rate_limited",
        9,
        "Slow down.",
    )


async def test_a_body_that_echoes_the_key_is_redacted(scripted: Provider) -> None:
    error = await failure(scripted, request(UserText("wrong key")))
    assert error.code == "provider_auth_failed"
    assert error.reason.startswith("Incorrect key [redacted]")
    chain: BaseException | None = error
    while chain is not None:
        assert KEY not in f"{chain!r} {chain}"
        chain = chain.__cause__


async def test_a_wrong_key_is_named(aimock: str) -> None:
    opened = connect(ProviderConnection(ProviderKind.OPENAI_COMPATIBLE, aimock, "another"))
    assert (await failure(opened, request(UserText("plain")))).code == "provider_auth_failed"
    await opened.aclose()


def test_a_test_of_the_connection_tells_a_wrong_key_on_aimock(cast: Cast, aimock: str) -> None:
    names = {"access": cast.access("owner"), "organization_id": cast.organization.pk}
    for key, outcome in (("another-key-that-is-long", Outcome.WRONG_KEY), (KEY, None)):
        provider = create_provider(
            organization=cast.organization,
            slug=f"local-{len(key)}",
            kind=ProviderKind.OPENAI_COMPATIBLE,
            name="Local",
            models=[NewModel("gpt-4o", "Local model")],
            base_url=aimock,
            api_key=key,
        )
        verdict = check_connection(**names, provider_id=provider.pk)
        assert key not in verdict.sentence
        assert (verdict.outcome is Outcome.WRONG_KEY) is (outcome is Outcome.WRONG_KEY)


async def test_whole_turns_on_aimock(committed_cast: Cast, aimock: str, home: Path) -> None:
    """Text, tool calls and their results, a failure that shows no key: all in the log."""
    talk = await in_db_thread(local_talk, committed_cast, aimock)
    async with working(home):
        plain = await talk.send("plain")
        assert (await talk.ending(plain))["type"] == "turn.completed"
        assert await talk.answer() == "The tide turns at noon. " * 10
        refused = await talk.send("wrong key")
        error = (await talk.ending(refused))["error"]
        cut_off = await talk.send("cut off")
        assert (await talk.ending(cut_off))["error"]["code"] == "provider_broken_stream"
    assert error["code"] == "provider_auth_failed"
    assert KEY not in json.dumps(await talk.events())
    sealed = (await talk.events("agent.message"))[-1]
    assert sealed["interrupted"], text_of(sealed)
