"""Huge bodies are refused while they arrive: Django reads them whole before it asks anybody."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from uuid import uuid4

import orjson

from core.api.errors import problem_of
from core.api.no_store import POLICY
from core.api.request_id import HEADERS
from core.errors import TooLarge

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Any, Any, Any], Awaitable[None]]


class BodyLimit:
    """An ASGI application around another: HTTP bodies of more than `limit` bytes are 413."""

    def __init__(self, application: Application, limit: int) -> None:
        self._application = application
        self._limit = limit

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if _declared_length(scope) > self._limit:
            await self._refuse(send)
            return
        seen = 0
        has_begun = False

        async def bounded() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            # As if the client had left: nobody works on half a body.
            return {"type": "http.disconnect"} if seen > self._limit else message

        async def observed(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        await self._application(scope, bounded, observed)
        if seen > self._limit and not has_begun:
            await self._refuse(send)

    async def _refuse(self, send: Send) -> None:
        request_id = f"req_{uuid4().hex}"
        problem = problem_of(
            TooLarge("body_too_large", f"A request body has at most {self._limit} bytes.")
        )
        names = {"content-type": "application/json", "connection": "close"}
        names |= {"cache-control": POLICY, "x-content-type-options": "nosniff"}
        names |= dict.fromkeys(HEADERS, request_id)
        headers = [(name.encode(), value.encode()) for name, value in names.items()]
        await send({"type": "http.response.start", "status": problem.status, "headers": headers})
        body = orjson.dumps(problem.body(request_id))
        await send({"type": "http.response.body", "body": body})


def _declared_length(scope: Message) -> int:
    """0 where the length is not said, or is no number: then what arrives is counted."""
    for name, value in scope.get("headers", ()):
        if name == b"content-length" and value.isdigit():
            return int(value)
    return 0
