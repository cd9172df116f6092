"""Who waits in this process, and for what: followers, the logs they follow, their viewers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Sequence
from uuid import UUID

from orgs.access import Access
from sessions_app.eventlog import StoredEvent
from sessions_app.streaming.frames import LogEvent

# What one followed session keeps in memory; whoever is further behind reads the database.
BUFFER_MAX_EVENTS = 256
BUFFER_MAX_BYTES = 262_144
# Beyond this a viewer that does not take its hints hears no more of drafts.
DRAFTS_PENDING_MAX = 100


class Waiter:
    """Sleeps until woken or until a time. A wake without a sleeper is not remembered: look first.

    Looking and going to sleep happen without an await between them, so that no wake is missed.
    """

    def __init__(self) -> None:
        self._sleeping: asyncio.Future[None] | None = None

    def wake(self) -> None:
        if self._sleeping is not None and not self._sleeping.done():
            self._sleeping.set_result(None)

    async def sleep(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._sleeping = loop.create_future()
        timer = loop.call_later(max(0.0, seconds), self.wake)
        try:
            await self._sleeping
        finally:
            timer.cancel()
            self._sleeping = None


class Viewer:
    """An open stream's or socket's access, kept fresh by the hub.

    `recheck` computes it anew, synchronously, on a database thread: None when the login or the
    key is no longer good. `generation` rises whenever it came out different. Viewers with the
    same `identity` (one key, one login) are computed once for all. `login_id`: which login opened
    it; None for a key.
    """

    def __init__(
        self,
        access: Access,
        recheck: Callable[[Access], Access | None],
        identity: Hashable = None,
        login_id: UUID | None = None,
    ) -> None:
        self.access = access
        self.identity = identity or (access.principal.kind, access.principal.id)
        self.login_id = login_id
        self.generation = 0
        self.is_revoked = False
        self.checked_at = 0.0
        self.waiters: set[Waiter] = set()
        self._drafts: dict[UUID, int] = {}
        self._inbox_changed = False
        self._recheck = recheck

    def compute(self) -> Access | None:
        return self._recheck(self.access)

    def hear_draft(self, session_id: UUID, revision: int) -> None:
        """This person's unsent text in a session changed, here or elsewhere."""
        if len(self._drafts) < DRAFTS_PENDING_MAX or session_id in self._drafts:
            self._drafts[session_id] = max(revision, self._drafts.get(session_id, 0))
            wake_all(self.waiters)

    def take_drafts(self) -> dict[UUID, int]:
        """Session → revision, of what was heard since the last call."""
        taken, self._drafts = self._drafts, {}
        return taken

    def hear_inbox(self) -> None:
        """What waits for this person or key may have changed, in any of their workspaces."""
        self._inbox_changed = True
        wake_all(self.waiters)

    def take_inbox(self) -> bool:
        """Whether it was heard since the last call."""
        taken, self._inbox_changed = self._inbox_changed, False
        return taken

    def update(self, access: Access | None) -> None:
        if access is None:
            self.is_revoked = True
        elif access == self.access:
            return
        else:
            self.access = access
        self.generation += 1
        wake_all(self.waiters)


class Track:
    """The tail of one followed log: the events in (`start`, `end`], contiguous, bounded."""

    def __init__(self, session_id: UUID, head: int) -> None:
        self.session_id = session_id
        self.start = head
        self.end = head
        self.is_gone = False
        self.rewinds = 0
        self.waiters: set[Waiter] = set()
        self._events: list[LogEvent] = []
        self._bytes = 0

    def covers(self, after: int) -> bool:
        return after >= self.start

    def after(self, after: int, limit: int) -> Sequence[LogEvent]:
        begin = after - self.start
        return self._events[begin : begin + limit]

    def extend(self, events: Iterable[StoredEvent]) -> None:
        """What is already here is dropped; a hole begins the buffer anew behind it."""
        grown = False
        for event in events:
            if event.seq <= self.end:
                continue
            if event.seq != self.end + 1:
                self._begin_at(event.seq - 1)
            shared = LogEvent(event)
            self._events.append(shared)
            self._bytes += shared.size
            self.end = event.seq
            grown = True
        if grown:
            self._trim()
            wake_all(self.waiters)

    def rewind(self, head: int) -> None:
        """The log has become shorter: its database was restored to an earlier state."""
        self._begin_at(head)
        self.rewinds += 1
        wake_all(self.waiters)

    def lose(self) -> None:
        """The session was deleted."""
        self.is_gone = True
        wake_all(self.waiters)

    def _begin_at(self, seq: int) -> None:
        self._events.clear()
        self._bytes = 0
        self.start = self.end = seq

    def _trim(self) -> None:
        """Down to half, so that trimming costs little per event."""
        if len(self._events) <= BUFFER_MAX_EVENTS and self._bytes <= BUFFER_MAX_BYTES:
            return
        dropped = 0
        while self._bytes > BUFFER_MAX_BYTES // 2 or (
            len(self._events) - dropped > BUFFER_MAX_EVENTS // 2
        ):
            self._bytes -= self._events[dropped].size
            dropped += 1
        del self._events[:dropped]
        self.start += dropped


class ShownTrees:
    """The roots whose trees a viewer has open. Rows below any other root are not told.

    `unread`: those whose rows were not told yet.
    """

    def __init__(self) -> None:
        self.roots: frozenset[UUID] = frozenset()
        self.unread: set[UUID] = set()
        self.waiter: Waiter | None = None

    def show(self, roots: frozenset[UUID]) -> None:
        self.unread = set(roots)
        self.roots = roots
        if self.waiter is not None:
            self.waiter.wake()


class RowWatch:
    """A follower of a workspace's light rows: which sessions it has to look at again.

    `known`: those that its viewer was shown, and so may be told of when they are gone.
    """

    def __init__(self, workspace_id: UUID) -> None:
        self.workspace_id = workspace_id
        self.known: set[UUID] = set()
        self.pending: set[UUID] = set()
        self.must_resync = False
        self.waiter = Waiter()

    def add(self, session_ids: Iterable[UUID], limit: int) -> None:
        """More than `limit` waiting: the follower reads its list again instead."""
        self.pending.update(session_ids)
        if not self.pending:
            return
        if len(self.pending) > limit:
            self.resync()
        self.waiter.wake()

    def resync(self) -> None:
        self.pending.clear()
        self.must_resync = True
        self.waiter.wake()


def wake_all(waiters: Iterable[Waiter]) -> None:
    for waiter in waiters:
        waiter.wake()
