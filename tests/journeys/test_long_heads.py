"""The head of a request is bounded before anybody keeps it."""

from __future__ import annotations

import socket
from contextlib import suppress

import httpx

from config.serve import HEAD_MAX_BYTES
from tests.journeys.server import Server

CHUNK = b"x" * 65_536
# What came with the first bytes, what the kernel holds, and the bound itself.
SENT_MAX_BYTES = 16 * HEAD_MAX_BYTES + 8_000_000


def sent_before_it_ends(server: Server, beginning: bytes) -> int:
    host, port = server.url.removeprefix("http://").split(":")
    sent = 0
    with (
        socket.create_connection((host, int(port)), timeout=10) as connection,
        suppress(ConnectionError),
    ):
        connection.sendall(beginning)
        while sent < SENT_MAX_BYTES:
            sent += connection.send(CHUNK)
    return sent


def test_a_head_that_does_not_end_is_refused_and_others_are_served(server: Server) -> None:
    for beginning in (b"GET /", b"GET / HTTP/1.1\r\nhost: a\r\nx-long: "):
        assert sent_before_it_ends(server, beginning) < SENT_MAX_BYTES
    assert httpx.get(f"{server.url}/healthz").status_code == 200


def test_a_long_head_within_the_bound_is_answered(server: Server) -> None:
    assert httpx.get(f"{server.url}/v1/{'a/' * 8_000}").status_code == 404
    assert httpx.get(f"{server.url}/healthz", headers={"x-long": "x" * 30_000}).status_code == 200
