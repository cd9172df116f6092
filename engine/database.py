"""The engine's way to PostgreSQL: an outage is waited out, in short pauses, and never fatal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from django.db import (
    InterfaceError,
    OperationalError,
    close_old_connections,
    connection,
    connections,
)

from core.db import in_db_thread
from engine.logs import get_logger

P = ParamSpec("P")
R = TypeVar("R")
log = get_logger(__name__)

# What a lost or restarting server looks like; a deadlock too, which was rolled back.
CONNECTION_ERRORS = (OperationalError, InterfaceError)
MAX_PAUSE_SECONDS = 1.0
# A server that is back is met again within one pause, and the time that a connection takes.
RETURN_SECONDS = 2 * MAX_PAUSE_SECONDS
# What tells a server that is down, or takes no writes, from a network that lost it: nobody listens
# where it stood, or it says so itself. These are the words of libpq and of the server, which give
# no code while one connects; anything else, another language too, counts as the network.
_DOWN = (
    "Connection refused",
    "No such file or directory",
    "the database system is ",
    "session is read-only",
    "in a read-only transaction",
    "during recovery",
)


class Pauses:
    """Growing pauses between tries, from 50 ms to one second."""

    def __init__(self) -> None:
        self._next = 0.05

    async def wait(self) -> None:
        pause, self._next = self._next, min(self._next * 2, MAX_PAUSE_SECONDS)
        await asyncio.sleep(pause)


def is_down(error: Exception) -> bool:
    """Whether this error shows that the server takes no writes from anybody at the moment."""
    return any(words in str(error) for words in _DOWN)


async def patiently(func: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Call `func` in a database thread until the database answers.

    Only for work that may be done twice: an outage at commit leaves open whether it was done.
    """
    pauses = Pauses()
    while True:
        try:
            return await in_db_thread(func, *args, **kwargs)
        except CONNECTION_ERRORS as error:
            log.warning("database_unreachable", error=type(error).__name__)
        await pauses.wait()


async def database_answers() -> bool:
    try:
        await in_db_thread(_ask)
    except CONNECTION_ERRORS:
        return False
    return True


class Lane:
    """A thread and a connection of its own: heartbeats and claims never queue behind writes."""

    def __init__(self, name: str) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=name)

    async def call(self, func: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, partial(self._run, func, *args, **kwargs))

    def _run(self, func: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return func(*args, **kwargs)
        finally:
            close_old_connections()

    def close(self) -> None:
        self._executor.submit(connections.close_all)
        self._executor.shutdown(wait=False)


def keep_connections_per_thread() -> None:
    """For the worker process: no pool, a lasting connection for each database thread.

    A pool backs off on its own after an outage, far longer than a lease; a thread that connects
    again by itself is back with the server.
    """
    default = connections.settings["default"]
    default["OPTIONS"].pop("pool", None)
    default["CONN_MAX_AGE"] = None
    default["CONN_HEALTH_CHECKS"] = True


def _ask() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
