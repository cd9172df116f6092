"""One server for the journeys that leave it whole. Others start their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.journeys.checks import assert_logs_verified
from tests.journeys.client import Client
from tests.journeys.server import Server


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """Two web processes and two workers: what works with one must work with more."""
    server = Server(WEB="2", WORKERS="2")
    try:
        server.start()
        yield server
        assert_logs_verified(server)
        assert server.stop() == 0
    finally:
        server.remove()


@pytest.fixture
def client(server: Server) -> Client:
    return server.client()
