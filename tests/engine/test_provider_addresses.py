"""Workers connect to no private address that the operator does not name, and follow no redirect."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from catalog.kinds import ProviderConnection, ProviderKind
from core.outbound import Place
from engine.ports import ModelChoice, ModelRequest, ProviderError, TurnPosition, UserText
from engine.providers.openai_compatible import connect

KEY = "local-key-that-no-pattern-knows-7731"
ASKED = ModelRequest(ModelChoice("local", "m"), "", (UserText("Hi"),), (), TurnPosition())


class Trap(BaseHTTPRequestHandler):
    """Sends whoever comes to itself, and remembers what they brought."""

    paths: list[str]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.paths.append(self.path)
        self.send_response(307)
        self.send_header("Location", f"http://{self.headers['Host']}/caught")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Silent."""


@pytest.fixture
def trap() -> Iterator[tuple[str, list[str]]]:
    paths: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Fresh", (Trap,), {"paths": paths}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1", paths
    server.shutdown()
    server.server_close()


async def failure(base_url: str) -> ProviderError:
    opened = connect(ProviderConnection(ProviderKind.OPENAI_COMPATIBLE, base_url, KEY))
    try:
        with pytest.raises(ProviderError) as raised:
            async for _ in opened.stream(ASKED):
                pass
    finally:
        await opened.aclose()
    return raised.value


async def test_a_private_address_is_not_connected_to(
    trap: tuple[str, list[str]], settings: Any
) -> None:
    base_url, paths = trap
    settings.PROVIDER_PRIVATE_HOSTS = []
    error = await failure(base_url)
    assert (error.code, error.retryable) == ("provider_misconfigured", False)
    assert "private network" in error.reason
    assert paths == []
    settings.PROVIDER_PRIVATE_HOSTS = [Place.parse("127.0.0.1:1")]
    assert (await failure(base_url)).code == "provider_misconfigured"
    assert paths == []


async def test_a_redirect_is_not_followed(trap: tuple[str, list[str]]) -> None:
    base_url, paths = trap
    error = await failure(base_url)
    assert (error.code, error.retryable) == ("provider_misconfigured", False)
    assert "redirects" in error.reason
    assert paths == ["/v1/chat/completions"]
