"""`demo/scripted`: a model that does exactly what the prompt says. For tests and demonstrations.

The prompt is `{"script": [element, …], "echo"?: true}`; element n is the model's n-th response of
the turn. Its place is read from the turn's log, never remembered, so that a turn taken over by
another worker goes on where it stood. Any other prompt is answered with the prompt.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine.failures import error_from_status, provider_error
from engine.ports import (
    AgentReply,
    Finish,
    HistoryItem,
    ModelRequest,
    ProviderError,
    StreamPart,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolReturn,
    Usage,
    UserText,
)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Failure(_Strict):
    """A failing answer of the provider: HTTP status, `retry_after` in seconds, its own words.

    `after`: so many chunks of the answer come first.
    """

    status: int = Field(ge=400, le=599)
    retry_after: float | None = Field(default=None, ge=0)
    message: str = ""
    after: int = Field(default=0, ge=0)

    def error(self) -> ProviderError:
        return error_from_status(self.status, self.message, retry_after=self.retry_after)


class Call(_Strict):
    """`args` is a JSON object, or any text: then the call's arguments are that text, broken."""

    tool: str
    args: dict[str, Any] | str = Field(default_factory=dict)


class ReportedUsage(_Strict):
    input: int = Field(default=0, ge=0)
    output: int = Field(default=0, ge=0)


class Element(_Strict):
    """One model response."""

    say: str = ""
    chunks: int = Field(default=1, ge=1, le=100_000)
    every_ms: float = Field(default=0, ge=0)
    think: str = ""
    call: list[Call] = Field(default_factory=list)
    hang_ms: float = Field(default=0, ge=0)
    fail: Failure | None = None
    times: int = Field(default=1, ge=0)
    usage: ReportedUsage | None = None

    def failures(self) -> int:
        return self.times if self.fail else 0


@dataclass(frozen=True, slots=True)
class Script:
    elements: tuple[Element, ...]
    echo: bool

    @classmethod
    def parse(cls, prompt: str) -> Self:
        """Raises ProviderError where the prompt is a script with a mistake in it."""
        try:
            value = json.loads(prompt)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict) or not isinstance(value.get("script"), list):
            return cls((Element(say=prompt),), echo=False)
        try:
            elements = tuple(Element.model_validate(item) for item in value["script"])
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            reason = f"script: {place}: {first['msg']}"
            raise provider_error("provider_bad_request", reason) from error
        return cls(elements, echo=value.get("echo") is True)

    def is_last(self, place: int) -> bool:
        return place + 1 >= len(self.elements) or not self.elements[place].call


class ScriptedProvider:
    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart, None]:
        script = Script.parse(_last_prompt(request.history))
        place = request.position.responses
        element = script.elements[place] if place < len(script.elements) else Element()
        await _pause(element.hang_ms)
        failure = _due_failure(script, place, request.position.failures)
        text = element.say
        if script.echo and script.is_last(place):
            text = f"{text}\n\n{_echo(request)}" if text else _echo(request)
        if failure and not failure.after:
            raise failure.error()
        async for piece in _paced(element.think, element):
            yield ThinkingDelta(piece)
        chunks = 0
        async for piece in _paced(text, element):
            yield TextDelta(piece)
            chunks += 1
            if failure and chunks == failure.after:
                raise failure.error()
        for number, call in enumerate(element.call, start=1):
            arguments = call.args if isinstance(call.args, str) else json.dumps(call.args)
            yield ToolCall(f"call_{place + 1}_{number}", call.tool, arguments)
        usage = element.usage
        yield Usage(usage.input, usage.output) if usage else _estimate(request, text)
        yield Finish("tool_call" if element.call else "stop")

    async def aclose(self) -> None:
        """It holds nothing open."""


def _due_failure(script: Script, place: int, failures: int) -> Failure | None:
    """Failures are counted over the whole turn, so those of earlier elements come off first."""
    if place >= len(script.elements):
        return None
    due = sum(earlier.failures() for earlier in script.elements[: place + 1])
    return script.elements[place].fail if failures < due else None


def _last_prompt(history: Sequence[HistoryItem]) -> str:
    prompts = [item.text for item in history if isinstance(item, UserText)]
    return prompts[-1].strip() if prompts else ""


async def _paced(text: str, element: Element) -> AsyncGenerator[str, None]:
    for piece in split_evenly(text, element.chunks):
        await _pause(element.every_ms)
        yield piece


def split_evenly(text: str, count: int) -> Iterator[str]:
    """`count` pieces, none empty, fewer where the text has fewer characters."""
    count = min(count, len(text))
    for number in range(count):
        yield text[len(text) * number // count : len(text) * (number + 1) // count]


async def _pause(milliseconds: float) -> None:
    await asyncio.sleep(milliseconds / 1000)


def _echo(request: ModelRequest) -> str:
    lines = [f"system: {request.instructions}"] if request.instructions else []
    for item in request.history:
        match item:
            case UserText(text):
                lines.append(f"user: {text}")
            case AgentReply(text=text, calls=calls):
                if text:
                    lines.append(f"assistant: {text}")
                lines += [f"call: {call.name} {json.dumps(call.arguments)}" for call in calls]
            case ToolReturn(name=name, text=text):
                lines.append(f"tool: {name}: {text}")
    return "\n".join(lines)


def _estimate(request: ModelRequest, text: str) -> Usage:
    """About four characters a token."""
    sent = len(request.instructions) + sum(len(item.text) for item in request.history)
    return Usage(sent // 4 + 1, len(text) // 4 + 1)
