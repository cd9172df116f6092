"""One model response: streamed into the log as it comes, kept whole only if it is complete."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from core.ids import Prefix, encode_id, uuid7
from core.text import make_storable
from engine.failures import provider_error
from engine.ports import (
    Clock,
    DeltaKind,
    Fact,
    Finish,
    ModelChoice,
    StreamPart,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    TurnLog,
    Usage,
)

TOKENS_MAX = 2**53 - 1  # a whole number in every JSON reader, and in the database


@dataclass(frozen=True, slots=True)
class ResponseBounds:
    """Of one response; see the settings of the same names.

    Text beyond `characters` is ended by us: no model writes that on purpose. Beyond `calls` or
    `argument_bytes` the response is refused whole: running a part of it may do harm.
    """

    characters: int = 400_000
    calls: int = 128
    argument_bytes: int = 524_288


@dataclass(slots=True)
class _Stream:
    """One kind of text of a response; `held` is half a character whose other half comes next."""

    kind: DeltaKind
    message_id: str = field(default_factory=lambda: encode_id(Prefix.MESSAGE, uuid7()))
    pieces: list[str] = field(default_factory=list)
    length: int = 0
    held: str = ""
    began_at: float = 0.0
    ended_at: float = 0.0

    def take(self, text: str) -> str:
        text = self.held + text
        self.held = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self.held = text[:-1], text[-1]
        return make_storable(text)

    @property
    def text(self) -> str:
        return "".join(self.pieces)


@dataclass(frozen=True, slots=True)
class Response:
    """A complete response; every text is storable."""

    text: str
    text_id: str
    thinking: str
    thinking_id: str
    thinking_ms: int
    calls: tuple[ToolCall, ...]
    usage: Usage
    finish_reason: str


async def read_response(
    parts: AsyncGenerator[StreamPart, None],
    *,
    log: TurnLog,
    clock: Clock,
    bounds: ResponseBounds,
) -> Response:
    """Stream the parts into `log`. Raises ProviderError, also where the stream was cut off, and
    with `too_many_calls` where it asks for more than one response may.
    """
    thinking = _Stream(DeltaKind.THINKING)
    text = _Stream(DeltaKind.MESSAGE)
    calls: list[ToolCall] = []
    argument_bytes = 0
    usage = Usage(0, 0)
    finish: Finish | None = None
    async with aclosing(parts):
        async for part in parts:
            match part:
                case TextDelta(piece):
                    await _write(text, piece, log, clock)
                case ThinkingDelta(piece):
                    await _write(thinking, piece, log, clock)
                case ToolCall():
                    calls.append(part)
                    argument_bytes += len(part.arguments.encode(errors="surrogatepass"))
                    _require_room(bounds, len(calls), argument_bytes)
                case Usage():
                    usage = part
                case Finish():
                    finish = part
            if text.length + thinking.length > bounds.characters:
                finish = Finish("length")
                break
    if finish is None:
        raise provider_error("provider_broken_stream")
    return Response(
        text=text.text,
        text_id=text.message_id,
        thinking=thinking.text,
        thinking_id=thinking.message_id,
        thinking_ms=round((thinking.ended_at - thinking.began_at) * 1000),
        calls=tuple(calls),
        usage=usage,
        finish_reason=finish.reason,
    )


def _require_room(bounds: ResponseBounds, calls: int, argument_bytes: int) -> None:
    if calls > bounds.calls or argument_bytes > bounds.argument_bytes:
        raise provider_error("too_many_calls")


async def _write(stream: _Stream, piece: str, log: TurnLog, clock: Clock) -> None:
    piece = stream.take(piece)
    if not piece:
        return
    stream.ended_at = clock.monotonic()
    if not stream.pieces:
        stream.began_at = stream.ended_at
    stream.pieces.append(piece)
    stream.length += len(piece)
    await log.delta(stream.kind, stream.message_id, piece)


def seal(response: Response, model: ModelChoice, step: int) -> list[Fact]:
    """The facts that make a response count. They are written together with its first call."""
    named: Mapping[str, Any] = {"provider_id": model.provider_id, "model_id": model.model_id}
    facts: list[Fact] = []
    if response.thinking:
        facts.append(
            Fact(
                "agent.thinking",
                {
                    "message_id": response.thinking_id,
                    "text": response.thinking,
                    "duration_ms": response.thinking_ms,
                },
            )
        )
    if response.text:
        facts.append(
            Fact(
                "agent.message",
                {
                    "message_id": response.text_id,
                    "content": [{"type": "text", "text": response.text}],
                    "model": named,
                },
            )
        )
    usage = response.usage
    facts.append(
        Fact(
            "model.usage",
            {
                "input_tokens": _count(usage.input_tokens),
                "output_tokens": _count(usage.output_tokens),
                "model": named,
                "step": step,
            },
        )
    )
    return facts


def _count(tokens: int) -> int:
    """A provider's own number, which may be anything."""
    return min(max(tokens, 0), TOKENS_MAX)
