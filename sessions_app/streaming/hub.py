"""The hub: one per process and event loop, so that a thousand followers cost one reader.

It hears the bus, reads what is new of all followed sessions in one query, keeps a short tail of
each in memory and wakes the followers. It queues nothing per follower: a slow one reads later.
Hints are only the fast path; what a lost one hid is found by the poll. No access is asked here:
each follower is checked instead, and told when its access may have changed.
"""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Hashable, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import Error as DatabaseError

from core import bus, clock
from core.db import in_db_thread
from orgs import principals
from orgs.access import Access
from orgs.roles import Action
from sessions_app import eventlog
from sessions_app.streaming.followers import RowWatch, Track, Viewer, Waiter, wake_all
from sessions_app.streaming.frames import LogEvent
from sessions_app.streaming.positions import may_read
from sessions_app.streaming.rows import RowStates, find_changed, read_row_states

logger = logging.getLogger(__name__)

READ_MAX_EVENTS = 250  # of one session in one read
READ_MAX_SESSIONS = 100  # in one query
READERS = 2  # so that one slow query does not hold up every session
ROWS_PENDING_MAX = 200
# What moves no epoch (a login that has expired): each viewer is computed anew this often.
RECHECK_SECONDS = 30.0
_RETRY_SECONDS = 0.5


class Hub:
    def __init__(self) -> None:
        self.is_draining = False
        self.open_viewers: set[Viewer] = set()
        self._tracks: dict[UUID, Track] = {}
        self._row_watches: dict[UUID, set[RowWatch]] = {}
        self._dirty: dict[UUID, None] = {}
        self._reading: set[UUID] = set()
        self._has_dirty = asyncio.Event()
        self._poll_now = asyncio.Event()
        self._check_now = asyncio.Event()
        self._questions: dict[Hashable, asyncio.Task[Any]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._subscription: bus.Subscription | None = None
        self._row_states: RowStates = {}
        self._rows_heard: set[UUID] = set()

    # ── Following ──

    @asynccontextmanager
    async def following(
        self, session_id: UUID, head: int, viewer: Viewer
    ) -> AsyncIterator[tuple[Track, Waiter]]:
        """`head` is what the caller just read; a hint missed since then is made up for."""
        self._start()
        track = self._tracks.get(session_id)
        if track is None:
            track = self._tracks[session_id] = Track(session_id, head)
        self._mark(track)
        waiter = Waiter()
        track.waiters.add(waiter)
        viewer.waiters.add(waiter)
        try:
            yield track, waiter
        finally:
            viewer.waiters.discard(waiter)
            track.waiters.discard(waiter)
            if not track.waiters and self._tracks.get(session_id) is track:
                del self._tracks[session_id]

    async def read(self, track: Track, after: int) -> Sequence[LogEvent]:
        """What follows `after`, oldest first; nothing when that is not known yet.

        From memory, or a page from the database, which followers at one place share.
        """
        if track.covers(after):
            return track.after(after, READ_MAX_EVENTS)
        page: Sequence[LogEvent] = await self._share(
            (track.session_id, after), lambda: self._read_page(track.session_id, after)
        )
        return page

    async def require_read(self, access: Access, session_id: UUID) -> None:
        """Raises NotFound. Followers with one and the same access ask once."""
        await self._share(
            (id(access), session_id),
            lambda: in_db_thread(may_read, access=access, session_id=session_id),
        )

    @asynccontextmanager
    async def viewing(self, viewer: Viewer) -> AsyncIterator[None]:
        """Keep this viewer's access fresh for as long as it is open."""
        self._start()
        viewer.checked_at = asyncio.get_running_loop().time()
        self.open_viewers.add(viewer)
        try:
            yield
        finally:
            self.open_viewers.discard(viewer)

    @asynccontextmanager
    async def watching_rows(self, workspace_id: UUID) -> AsyncIterator[RowWatch]:
        self._start()
        watch = RowWatch(workspace_id)
        self._row_watches.setdefault(workspace_id, set()).add(watch)
        try:
            yield watch
        finally:
            watches = self._row_watches[workspace_id]
            watches.discard(watch)
            if not watches:
                del self._row_watches[workspace_id]

    # ── Life ──

    @property
    def hears_the_bus(self) -> bool:
        return self._subscription is not None and self._subscription.is_connected

    async def hears_the_bus_within(self, seconds: float) -> bool:
        """Waits a little: a process that was just started is still connecting."""
        until = asyncio.get_running_loop().time() + seconds
        while not self.hears_the_bus and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(0.02)
        return self.hears_the_bus

    def start(self) -> None:
        """Begin to listen before the first follower comes."""
        self._start()

    def drain(self) -> None:
        """The process is told to stop: every stream ends now, and says why."""
        self.is_draining = True
        for viewer in self.open_viewers:
            wake_all(viewer.waiters)
        for watches in self._row_watches.values():
            for watch in watches:
                watch.waiter.wake()

    async def close(self) -> None:
        tasks, self._tasks = [*self._tasks, *self._questions.values()], []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self) -> None:
        if self._tasks:
            return
        loops = [self._listen, self._poll, self._check_access, *[self._read_dirty] * READERS]
        self._tasks = [asyncio.create_task(self._keep_running(each)) for each in loops]

    async def _keep_running(self, step: Callable[[], Awaitable[None]]) -> None:
        """A step that fails is tried again: the hub outlives the database and its own defects."""
        while True:
            try:
                await step()
            except DatabaseError as error:
                logger.warning("hub.retry step=%s error=%s", step.__name__, type(error).__name__)
                await asyncio.sleep(_RETRY_SECONDS)
            except Exception:
                logger.exception("hub.failed step=%s", step.__name__)
                await asyncio.sleep(_RETRY_SECONDS)

    # ── Steps, each repeated for ever ──

    async def _listen(self) -> None:
        async with bus.listen(("s", "e", "d", "w", "f")) as self._subscription:
            async for hints in self._subscription:
                if hints is bus.RESYNC:
                    self._resync()
                else:
                    self._hear(hints)

    async def _read_dirty(self) -> None:
        await self._has_dirty.wait()
        tracks = self._take_dirty()
        if not tracks:
            self._has_dirty.clear()
            return
        positions = {track.session_id: track.end for track in tracks}
        self._reading.update(positions)
        try:
            found = await in_db_thread(
                eventlog.read_after_each, positions=positions, limit=READ_MAX_EVENTS
            )
        except BaseException:
            self._mark(*tracks)
            raise
        finally:
            self._reading.difference_update(positions)
            self._has_dirty.set()
        for track in tracks:
            events = found.get(track.session_id, [])
            track.extend(events)
            if len(events) == READ_MAX_EVENTS:
                self._mark(track)

    async def _poll(self) -> None:
        """The guarantee behind the hints, and how deletion and a restored database are seen."""
        await _wait(self._poll_now, settings.POLL_SECONDS)
        await self._poll_heads()
        await self._poll_rows()

    async def _poll_heads(self) -> None:
        tracks = {track.session_id: (track, track.end) for track in self._tracks.values()}
        if not tracks:
            return
        heads = await in_db_thread(eventlog.heads, list(tracks))
        for session_id, (track, end_before) in tracks.items():
            head = heads.get(session_id)
            if head is None:
                track.lose()
            elif head < end_before:
                track.rewind(head)
            elif head > track.end:
                self._mark(track)

    async def _poll_rows(self) -> None:
        """Rows that look different although no hint said so."""
        heard, self._rows_heard = self._rows_heard, set()
        if not self._row_watches:
            self._row_states = {}
            return
        states = await in_db_thread(read_row_states, list(self._row_watches))
        changed = find_changed(self._row_states, states)
        self._row_states = states
        for workspace_id, session_ids in changed.items():
            self._tell_rows(workspace_id, session_ids - heard)

    async def _check_access(self) -> None:
        """One query for all open viewers, and one for their logins; only those whose organization
        changed, or whose login is no more, are computed.
        """
        await _wait(self._check_now, settings.ACCESS_CHECK_SECONDS)
        viewers = [viewer for viewer in self.open_viewers if not viewer.is_revoked]
        if not viewers:
            return
        organizations = {pk for viewer in viewers for pk in viewer.access.epochs}
        logins = {viewer.login_id for viewer in viewers if viewer.login_id is not None}
        epochs, live = await in_db_thread(principals.current_state, organizations, logins)
        now, moment = asyncio.get_running_loop().time(), clock.now()
        due = [
            viewer
            for viewer in viewers
            if now - viewer.checked_at > RECHECK_SECONDS
            or (viewer.access.expires_at or moment) < moment
            or (viewer.login_id is not None and viewer.login_id not in live)
            or any(epochs.get(pk) != epoch for pk, epoch in viewer.access.epochs.items())
        ]
        alike: dict[Hashable, list[Viewer]] = {}
        for viewer in due:
            viewer.checked_at = now
            alike.setdefault(viewer.identity, []).append(viewer)
        await asyncio.gather(*(self._recheck(viewers) for viewers in alike.values()))

    # ── Parts ──

    async def _recheck(self, viewers: list[Viewer]) -> None:
        """One access for all of them, so that what they ask next can be shared too."""
        access = await in_db_thread(viewers[0].compute)
        for viewer in viewers:
            viewer.update(access)

    async def _read_page(self, session_id: UUID, after: int) -> list[LogEvent]:
        events = await in_db_thread(
            eventlog.read_after, session_id=session_id, after=after, limit=READ_MAX_EVENTS
        )
        return [LogEvent(event) for event in events]

    async def _share(self, key: Hashable, ask: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """The answer to a question that others may be asking right now."""
        question = self._questions.get(key)
        if question is None:
            question = self._questions[key] = asyncio.create_task(ask())
            question.add_done_callback(lambda done: self._forget(key, done))
        return await asyncio.shield(question)

    def _forget(self, key: Hashable, question: asyncio.Task[Any]) -> None:
        del self._questions[key]
        if not question.cancelled():
            # Who asked hears of an error too; but they may all have left meanwhile.
            question.exception()

    def _mark(self, *tracks: Track) -> None:
        for track in tracks:
            self._dirty[track.session_id] = None
        self._has_dirty.set()

    def _take_dirty(self) -> list[Track]:
        free = [pk for pk in self._dirty if pk not in self._reading][:READ_MAX_SESSIONS]
        for pk in free:
            del self._dirty[pk]
        return [self._tracks[pk] for pk in free if pk in self._tracks]

    def _hear(self, hints: frozenset[str]) -> None:
        rows: dict[UUID, set[UUID]] = {}
        for text in hints:
            if (draft := bus.parse_draft_hint(text)) is not None:
                self._tell_draft(draft)
                continue
            if (waits := bus.parse_waits_hint(text)) is not None:
                self._tell_inboxes(waits)
                continue
            if (workspace_id := bus.parse_folders_hint(text)) is not None:
                self._tell_folders(workspace_id)
                continue
            hint = bus.parse_session_hint(text)
            if hint is None:
                self._check_now.set()
                continue
            track = self._tracks.get(hint.session_id)
            if track is not None and hint.seq > track.end:
                self._mark(track)
            if hint.changes_row and hint.workspace_id in self._row_watches:
                rows.setdefault(hint.workspace_id, set()).add(hint.session_id)
        for workspace_id, session_ids in rows.items():
            self._rows_heard |= session_ids
            self._tell_rows(workspace_id, session_ids)

    def _tell_draft(self, draft: bus.DraftHint) -> None:
        for viewer in self.open_viewers:
            if viewer.access.user_id == draft.user_id:
                viewer.hear_draft(draft.session_id, draft.revision)

    def _tell_inboxes(self, waits: bus.WaitsHint) -> None:
        for viewer in self.open_viewers:
            may_know = waits.only_user_id in {None, viewer.access.user_id}
            if may_know and viewer.access.may(Action.SESSION_CONTROL, waits.workspace_id):
                viewer.hear_inbox()

    def _tell_folders(self, workspace_id: UUID) -> None:
        for watch in self._row_watches.get(workspace_id, ()):
            watch.resync()

    def _tell_rows(self, workspace_id: UUID, session_ids: set[UUID]) -> None:
        for watch in self._row_watches.get(workspace_id, ()):
            watch.add(session_ids, ROWS_PENDING_MAX)

    def _resync(self) -> None:
        """The bus was deaf for a while: look at everything that is followed."""
        self._poll_now.set()
        self._check_now.set()
        for watches in self._row_watches.values():
            for watch in watches:
                watch.resync()


async def _wait(event: asyncio.Event, seconds: float) -> None:
    """Until the event or the time, whichever comes first; the event is then spent."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
    finally:
        event.clear()


_hubs: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = weakref.WeakKeyDictionary()


def current_hub() -> Hub:
    """The hub of the running event loop."""
    loop = asyncio.get_running_loop()
    hub = _hubs.get(loop)
    if hub is None:
        hub = _hubs[loop] = Hub()
    return hub
