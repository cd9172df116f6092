"""Huge bodies are cut off while they arrive, whether their length is declared or not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import orjson
import pytest

from core.api.body_limit import BodyLimit
from tests.journeys.server import Server

LIMIT = 100


class Inner:
    """Reads the whole body, as Django does, and answers with its length."""

    def __init__(self) -> None:
        self.length: int | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        length = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            length += len(message["body"])
            if not message.get("more_body"):
                break
        self.length = length
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"%d" % length})


async def ask(pieces: list[bytes], *headers: tuple[bytes, bytes]) -> tuple[Inner, int, bytes, int]:
    """The inner application, status and body, and how many pieces were read."""
    inner, sent, read = Inner(), [], 0

    async def receive() -> dict[str, Any]:
        nonlocal read
        read += 1
        more = read < len(pieces)
        return {"type": "http.request", "body": pieces[read - 1], "more_body": more}

    async def send(message: Any) -> None:
        sent.append(message)

    await BodyLimit(inner, LIMIT)({"type": "http", "headers": headers}, receive, send)
    body = b"".join(message.get("body", b"") for message in sent)
    return inner, sent[0]["status"], body, read


async def test_a_body_within_the_limit_passes() -> None:
    inner, status, body, _ = await ask([b"x" * 60, b"x" * 40], (b"content-length", b"100"))
    assert (inner.length, status, body) == (100, 200, b"100")


async def test_a_declared_length_over_the_limit_is_not_read() -> None:
    inner, status, body, read = await ask([b"x" * 200], (b"content-length", b"200"))
    assert (inner.length, status, read) == (None, 413, 0)
    assert orjson.loads(body)["error"]["code"] == "body_too_large"


@pytest.mark.parametrize(
    "headers", [(), ((b"content-length", b"1"),), ((b"content-length", b"x"),)]
)
async def test_what_arrives_is_counted(headers: tuple[tuple[bytes, bytes], ...]) -> None:
    inner, status, _, read = await ask([b"x" * 60] * 1000, *headers)
    assert (inner.length, status, read) == (None, 413, 2)


def test_a_body_without_a_declared_length_is_read(running_server: Server) -> None:
    def pieces() -> Iterator[bytes]:
        yield b'{"title": '
        yield b'"In pieces"}'

    bearer = {
        "authorization": f"Bearer {running_server.client().key}",
        "content-type": "application/json",
    }
    response = httpx.post(f"{running_server.url}/v1/sessions", content=pieces(), headers=bearer)
    assert response.json()["title"] == "In pieces"


def test_a_running_server_cuts_off_an_endless_body(running_server: Server) -> None:
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(1_000):
            sent += 100_000
            yield b"x" * 100_000

    url, key = f"{running_server.url}/v1/sessions", running_server.client().key
    bearer = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    try:
        response = httpx.post(url, content=endless(), headers=bearer, timeout=30)
    except httpx.TransportError:
        pass  # the connection was closed while we were still sending, which is the point
    else:
        assert response.status_code == 413
        assert response.json()["error"]["code"] == "body_too_large"
    assert sent < 50_000_000
    declared = httpx.post(url, content=b"x" * 3_000_000, headers=bearer, timeout=30)
    assert declared.status_code == 413
