"""Streams outside of Django's handler, which holds a thread for as long as a response lasts.

A view makes its stream and promises it here; Django finishes with an empty answer, whose status
and headers went through all middleware; then the stream is sent in its place.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, Final

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

_PROMISES: Final = "sederunt.promised_streams"
Stream = AsyncGenerator[bytes]


def stream_response(
    request: HttpRequest, stream: Stream, *, content_type: str, headers: Mapping[str, str]
) -> HttpResponseBase:
    """The answer to return from a view; under another server's hands a plain streaming one."""
    promises = getattr(request, "scope", {}).get(_PROMISES)
    if promises is None:
        return StreamingHttpResponse(stream, content_type=content_type, headers=headers)
    promises.append(stream)
    return HttpResponse(content_type=content_type, headers=headers)


class HandoffApplication:
    """Wraps the HTTP application. Whatever makes no promise passes through untouched."""

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        promises: list[Stream] = []
        is_open = False

        async def forward(message: dict[str, Any]) -> None:
            nonlocal is_open
            if promises and message["type"] == "http.response.start" and message["status"] == 200:
                is_open = True
                message = {**message, "headers": _without_length(message["headers"])}
            elif is_open:
                return  # the empty body, in whose place the stream comes
            await send(message)

        await self._application({**scope, _PROMISES: promises}, receive, forward)
        for stream in promises:
            async with aclosing(stream):
                if is_open:
                    await _send_stream(stream, receive, send)


def _without_length(headers: Any) -> list[Any]:
    return [pair for pair in headers if pair[0].lower() != b"content-length"]


async def _send_stream(stream: Stream, receive: Any, send: Any) -> None:
    """Until it ends or its client leaves, whichever comes first."""
    tasks = [asyncio.create_task(_pump(stream, send)), asyncio.create_task(_leaving(receive))]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    if isinstance(results[0], Exception) and not isinstance(results[0], OSError):
        raise results[0]


async def _pump(stream: Stream, send: Any) -> None:
    """Takes the next part when the client has taken the last."""
    async for part in stream:
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _leaving(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue
