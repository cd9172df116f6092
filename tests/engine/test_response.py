"""What one response may ask for, at its very bounds."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from engine.clock import SystemClock
from engine.ports import Finish, ProviderError, StreamPart, ToolCall
from engine.response import (
    ARGUMENTS_PER_RESPONSE_MAX_BYTES,
    CALLS_PER_RESPONSE_MAX,
    Response,
    read_response,
)


class NoText:
    """Calls alone write nothing while they come."""

    def __getattr__(self, name: str) -> object:
        raise AssertionError(name)


async def asking_for(*arguments: str) -> Response:
    async def parts() -> AsyncGenerator[StreamPart, None]:
        for number, text in enumerate(arguments):
            yield ToolCall(f"call_{number}", "probe.lookup", text)
        yield Finish("tool_call")

    return await read_response(parts(), log=NoText(), clock=SystemClock())  # type: ignore[arg-type]


async def test_as_many_calls_as_a_response_may_hold_are_taken_and_one_more_is_refused() -> None:
    whole = await asking_for(*["{}"] * CALLS_PER_RESPONSE_MAX)
    assert len(whole.calls) == CALLS_PER_RESPONSE_MAX
    with pytest.raises(ProviderError) as refused:
        await asking_for(*["{}"] * (CALLS_PER_RESPONSE_MAX + 1))
    assert (refused.value.code, refused.value.retryable) == ("too_many_calls", False)


async def test_the_arguments_of_all_calls_together_are_bounded_in_bytes() -> None:
    half = "é" * (ARGUMENTS_PER_RESPONSE_MAX_BYTES // 4)
    assert len((await asking_for(half, half)).calls) == 2
    with pytest.raises(ProviderError, match="too_many_calls"):
        await asking_for(half, half, "1")
