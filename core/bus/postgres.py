"""Hints over NOTIFY and LISTEN, on direct connections (a transaction-mode pooler breaks LISTEN)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import psycopg
from psycopg import sql

from core.bus.hints import CHANNEL
from core.bus.transport import Way

# A dead link is noticed by the kernel within about ten seconds, also when it is silent.
_LINK: Final[dict[str, Any]] = {
    "autocommit": True,
    "connect_timeout": 5,
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
# Seconds of silence after which the listener asks the server whether it is still there.
_PROBE = 5.0


class PostgresSender:
    def __init__(self, url: str) -> None:
        self.url = url
        self._connection = psycopg.connect(url, application_name="sederunt bell", **_LINK)
        # A hint needs no disk: waiting for the flush would serialise the bell behind it.
        self._connection.execute("SET synchronous_commit TO off")

    def send(self, payloads: Sequence[str]) -> None:
        self._connection.execute(
            "SELECT pg_notify(%s, payload) FROM unnest(%s::text[]) AS payload",
            (CHANNEL, list(payloads)),
        )

    def close(self) -> None:
        self._connection.close()


class PostgresReceiver:
    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._connection = connection

    async def batches(self) -> AsyncIterator[Sequence[str]]:
        while True:
            heard = self._connection.notifies(timeout=_PROBE, stop_after=1)
            payloads = [notification.payload async for notification in heard]
            if payloads:
                yield payloads
            else:
                await self._connection.execute("SELECT 1")


@asynccontextmanager
async def open_link(url: str) -> AsyncIterator[PostgresReceiver]:
    connection = await psycopg.AsyncConnection.connect(
        url, application_name="sederunt listener", **_LINK
    )
    try:
        await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(CHANNEL)))
        yield PostgresReceiver(connection)
    finally:
        await connection.close()


WAY: Final = Way(PostgresSender, open_link, (OSError, psycopg.Error))
