"""A worker lets people see that it lives, and which kinds of providers it can reach."""

from __future__ import annotations

import asyncio
from uuid import UUID

from catalog.services.workers import NOTICE_SECONDS, note_worker
from engine.database import CONNECTION_ERRORS, Lane
from engine.logs import get_logger
from engine.providers.registry import KINDS

log = get_logger(__name__)


async def keep_noticed(*, lane: Lane, token: UUID, name: str) -> None:
    """Until cancelled. Its silence ends by itself: nobody has to say that a worker has died."""
    while True:
        try:
            await lane.call(note_worker, token=token, name=name, kinds=KINDS)
        except CONNECTION_ERRORS as error:
            log.warning("notice_waits_for_database", error=type(error).__name__)
        await asyncio.sleep(NOTICE_SECONDS)
