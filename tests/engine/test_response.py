"""What one response may ask for, at its very bounds."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from engine.clock import SystemClock
from engine.configuration import worker_settings
from engine.ports import Finish, ModelChoice, ProviderError, StreamPart, ToolCall, Usage
from engine.response import Response, ResponseBounds, read_response, seal

BOUNDS = ResponseBounds()


class NoText:
    """Calls alone write nothing while they come."""

    def __getattr__(self, name: str) -> object:
        raise AssertionError(name)


async def asking_for(*arguments: str) -> Response:
    async def parts() -> AsyncGenerator[StreamPart, None]:
        for number, text in enumerate(arguments):
            yield ToolCall(f"call_{number}", "probe.lookup", text)
        yield Finish("tool_call")

    return await read_response(
        parts(),
        log=NoText(),  # type: ignore[arg-type]
        clock=SystemClock(),
        bounds=BOUNDS,
    )


async def test_as_many_calls_as_a_response_may_hold_are_taken_and_one_more_is_refused() -> None:
    whole = await asking_for(*["{}"] * BOUNDS.calls)
    assert len(whole.calls) == BOUNDS.calls
    with pytest.raises(ProviderError) as refused:
        await asking_for(*["{}"] * (BOUNDS.calls + 1))
    assert (refused.value.code, refused.value.retryable) == ("too_many_calls", False)


async def test_the_arguments_of_all_calls_together_are_bounded_in_bytes() -> None:
    half = "é" * (BOUNDS.argument_bytes // 4)
    assert len((await asking_for(half, half)).calls) == 2
    with pytest.raises(ProviderError, match="too_many_calls"):
        await asking_for(half, half, "1")


def test_a_worker_takes_these_bounds_from_the_settings(settings: Any) -> None:
    assert worker_settings().limits.response == BOUNDS
    settings.RESPONSE_MAX_CHARACTERS = 1_001
    settings.RESPONSE_MAX_CALLS = 2
    settings.RESPONSE_MAX_ARGUMENT_BYTES = 1_025
    assert worker_settings().limits.response == ResponseBounds(1_001, 2, 1_025)


@pytest.mark.parametrize(
    ("said", "kept"), [(-5, 0), (0, 0), (7, 7), (2**63, 2**53 - 1), (2**70, 2**53 - 1)]
)
def test_a_providers_count_of_tokens_is_bounded(said: int, kept: int) -> None:
    response = Response("Hi", "m", "", "t", 0, (), Usage(said, said), "stop")
    usage = seal(response, ModelChoice("demo", "scripted"), 1)[-1]
    assert (usage.payload["input_tokens"], usage.payload["output_tokens"]) == (kept, kept)
