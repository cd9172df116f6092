"""A bus that rings in the test's own database, a hub that ends with its test, real servers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from urllib.parse import quote

import pytest
from django.db import connection

from core import bus
from sessions_app.streaming.hub import Hub, current_hub


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
