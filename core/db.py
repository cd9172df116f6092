"""Crossing from async to the synchronous database core: one door, bounded, nothing leaked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from django.conf import settings
from django.db import close_old_connections, connection

P = ParamSpec("P")
R = TypeVar("R")

_executor: ThreadPoolExecutor | None = None


async def in_db_thread(func: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Run synchronous database code off the event loop; its connection goes back to the pool.

    `sync_to_async` would put every caller on one shared thread; this executor is bounded by
    `DB_THREADS`, so that a burst waits here instead of in PostgreSQL.
    """
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_get_executor(), partial(_call, func, *args, **kwargs))


def _get_executor() -> ThreadPoolExecutor:
    global _executor
    if _executor is None:
        _executor = ThreadPoolExecutor(settings.DB_THREADS, thread_name_prefix="db")
    return _executor


def _call(func: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    try:
        return func(*args, **kwargs)
    finally:
        if not connection.in_atomic_block:
            close_old_connections()
