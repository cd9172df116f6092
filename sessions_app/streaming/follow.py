"""The one loop for watching: replay after a position, then live; the same events either way.

While it waits it holds no thread and no database connection, and nothing is queued for it: the
log is read when the reader is ready for more, so a reader that stops costs a position.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Collection
from uuid import UUID

from django.conf import settings
from django.db import Error as DatabaseError

from core.errors import NotFound
from sessions_app.streaming.followers import Track, Viewer, Waiter
from sessions_app.streaming.frames import (
    CaughtUp,
    Closed,
    Ended,
    Events,
    Frame,
    Heartbeat,
    LogEvent,
    Ready,
)
from sessions_app.streaming.hub import Hub, current_hub
from sessions_app.streaming.positions import Start, is_wanted

logger = logging.getLogger(__name__)

_RETRY_SECONDS = 0.5
_NEVER_CHECKED = -1


async def follow(
    *,
    viewer: Viewer,
    session_id: UUID,
    start: Start,
    types: Collection[str] | None = None,
) -> AsyncGenerator[Frame]:
    """Ready, then events, CaughtUp once, Heartbeats in silence, at last Closed.

    `start` comes from `positions.find_start`, so that a position at fault is refused before the
    stream begins. Ends with Closed within two seconds of a loss of access. Raises nothing for a
    database that is away: the stream stays, silent but for its heartbeats.
    """
    hub = current_hub()
    yield Ready(session_id, start.after, start.head, types is not None)
    async with hub.following(session_id, start.head, viewer) as (track, waiter):
        reading = _Reading(hub, viewer, track, waiter, start.after)
        has_caught_up = False
        while True:
            ended = await reading.find_end()
            if ended is not None:
                yield Closed(ended)
                return
            events = await reading.next_events()
            wanted = [event for event in events if is_wanted(types, event.type)]
            if wanted:
                reading.was_told()
                yield Events(wanted)
            if events:
                continue
            if not has_caught_up and reading.is_level:
                has_caught_up = True
                yield CaughtUp(reading.after)
            elif await reading.is_silent():
                reading.was_told()
                yield Heartbeat()


class _Reading:
    """One follower's place in the log, and what it last knew about its right to be there."""

    def __init__(self, hub: Hub, viewer: Viewer, track: Track, waiter: Waiter, after: int) -> None:
        self.after = after
        self.is_level = False
        self._hub, self._viewer, self._track, self._waiter = hub, viewer, track, waiter
        # Not the viewer's present one: `start` may have been found with an earlier access.
        self._generation = _NEVER_CHECKED
        self._rewinds = track.rewinds
        self._pause = 0.0
        self.was_told()

    def was_told(self) -> None:
        now = asyncio.get_running_loop().time()
        self._heartbeat_at = now + settings.STREAM_HEARTBEAT_SECONDS

    async def find_end(self) -> Ended | None:
        if self._hub.is_draining:
            return Ended.RESTART
        if self._viewer.is_revoked:
            return Ended.REVOKED
        if self._track.is_gone:
            return Ended.DELETED
        if self._track.rewinds != self._rewinds:
            self._rewinds = self._track.rewinds
            if self.after > self._track.end:
                return Ended.CURSOR_AHEAD
        return await self._find_lost_access()

    async def next_events(self) -> list[LogEvent]:
        """Empty when nothing is new, while access is in doubt, and while the database is away."""
        self.is_level = False
        if self._pause:
            return []
        try:
            events = list(await self._hub.read(self._track, self.after))
        except DatabaseError as error:
            self._stand_back(error)
            return []
        if events:
            self.after = events[-1].seq
        self.is_level = not events
        return events

    async def is_silent(self) -> bool:
        """Sleep until something happened (False) or a heartbeat is due (True)."""
        now = asyncio.get_running_loop().time()
        left = self._heartbeat_at - now
        if left <= 0:
            return True
        if self._has_news():
            return False
        await self._waiter.sleep(min(left, self._pause) if self._pause else left)
        self._pause = 0.0
        return False

    def _has_news(self) -> bool:
        """Looked at without an await before the sleep, so that no wake is missed."""
        if self._hub.is_draining or self._viewer.is_revoked or self._track.is_gone:
            return True
        if self._pause:
            return False
        return (
            self._track.end > self.after
            or self._track.rewinds != self._rewinds
            or self._viewer.generation != self._generation
        )

    async def _find_lost_access(self) -> Ended | None:
        generation = self._viewer.generation
        if generation == self._generation:
            return None
        try:
            await self._hub.require_read(self._viewer.access, self._track.session_id)
        except NotFound:
            return Ended.GONE
        except DatabaseError as error:
            # Nothing is told while it is not known whether it may be.
            self._stand_back(error)
            return None
        self._generation = generation
        return None

    def _stand_back(self, error: DatabaseError) -> None:
        logger.warning("follow.retry error=%s", type(error).__name__)
        self._pause = _RETRY_SECONDS
