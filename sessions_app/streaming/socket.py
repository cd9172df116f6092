"""One WebSocket per tab: many sessions and a sidebar over it, each the loop that SSE has too.

Nothing is queued for a client: each subscription reads the log when the socket has taken what
came before, so a reader that stops costs a position and no memory.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import aclosing
from enum import IntEnum
from typing import Any, Final
from uuid import UUID

from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import Error as DatabaseError

from core.db import in_db_thread
from core.errors import DomainError, Forbidden, InvalidInput, NotFound, RateLimited, Unavailable
from sessions_app.streaming import outbox, rendering
from sessions_app.streaming.follow import follow
from sessions_app.streaming.followers import ShownTrees, Viewer, Waiter
from sessions_app.streaming.frames import CaughtUp, Closed, Ended, Events, Ready
from sessions_app.streaming.hub import current_hub
from sessions_app.streaming.messages import (
    MESSAGE_MAX_BYTES,
    Focus,
    Message,
    Ping,
    Sidebar,
    Subscribe,
    Trees,
    Unsubscribe,
    parse_message,
)
from sessions_app.streaming.metrics import sockets_open, subscriptions_open
from sessions_app.streaming.positions import find_start
from sessions_app.streaming.sidebar import (
    Lost,
    ReadAgain,
    Rows,
    Watching,
    require_workspace,
    watch_rows,
)
from sessions_app.streaming.viewers import open_socket_viewer, socket_request

logger = logging.getLogger(__name__)

SUBSCRIPTIONS_MAX: Final = 32
SIDEBARS_MAX: Final = 8
MESSAGES_PER_SECOND: Final = 30.0
# Whatever is asked and decided in between is told together.
INBOX_PAUSE_SECONDS: Final = 0.3
MESSAGES_BURST: Final = 90.0
# A reader that takes nothing does not put off its own closing.
_LAST_FRAME_SECONDS: Final = 0.5
_IDLE_SECONDS: Final = 3_600.0


class CloseCode(IntEnum):
    BAD_REQUEST = 4400
    UNAUTHENTICATED = 4401
    FORBIDDEN = 4403
    NOT_FOUND = 4404
    TOO_MANY = 4429
    TRY_LATER = 4503
    RESTART = 1012


class SessionSocket(AsyncWebsocketConsumer):
    viewer: Viewer

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.focused_session_id: UUID | None = None
        self._subscriptions: dict[UUID, asyncio.Task[None]] = {}
        self._sidebars: dict[UUID, asyncio.Task[None]] = {}
        self._trees: dict[UUID, ShownTrees] = {}
        self._guard: asyncio.Task[None] | None = None
        self._allowance = MESSAGES_BURST
        self._counted_at = 0.0
        self._is_closing = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """However the connection ends, nothing of it stays."""
        sockets_open.inc()
        try:
            await super().__call__(scope, receive, send)
        finally:
            sockets_open.dec()
            await self._cancel_all()

    async def connect(self) -> None:
        """A refusal is told after accepting: before, a browser would see a bare failure."""
        await self.accept()
        try:
            self.viewer = await in_db_thread(open_socket_viewer, socket_request(self.scope))
        except Forbidden as problem:
            await self._close(CloseCode.FORBIDDEN, problem)
        except DomainError as problem:
            await self._close(CloseCode.UNAUTHENTICATED, problem)
        except DatabaseError:
            await self._close(CloseCode.TRY_LATER, Unavailable())
        else:
            self._guard = asyncio.create_task(self._watch_access())

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if self._is_closing or self._guard is None:
            return
        if not self._may_speak():
            await self._close(CloseCode.TOO_MANY, RateLimited(1))
            return
        try:
            if text_data is None:
                raise InvalidInput("invalid_message", "A message is text, not bytes.")
            if len(text_data.encode("utf-8", "surrogatepass")) > MESSAGE_MAX_BYTES:
                problem = InvalidInput(
                    "message_too_large", f"A message has at most {MESSAGE_MAX_BYTES} bytes."
                )
                await self._close(CloseCode.BAD_REQUEST, problem)
                return
            await self._handle(parse_message(text_data))
        except DomainError as problem:
            await self._say(outbox.error(problem))

    # ── Messages ──

    async def _handle(self, message: Message) -> None:
        match message:
            case Subscribe():
                await self._subscribe(message)
            case Unsubscribe(session_id=UUID() as session_id):
                await _stop(self._subscriptions.pop(session_id, None))
            case Unsubscribe(workspace_id=UUID() as workspace_id):
                await _stop(self._sidebars.pop(workspace_id, None))
                self._trees.pop(workspace_id, None)
            case Sidebar():
                await self._watch_sidebar(message)
            case Trees():
                self._show_trees(message)
            case Focus():
                self.focused_session_id = message.session_id
            case Ping():
                await self._say(outbox.encode("pong"))

    async def _subscribe(self, wish: Subscribe) -> None:
        """Subscribing to a session again begins anew at the position named now."""
        await _stop(self._subscriptions.pop(wish.session_id, None))
        if len(self._subscriptions) >= SUBSCRIPTIONS_MAX:
            raise InvalidInput(
                "too_many_subscriptions",
                f"A socket follows at most {SUBSCRIPTIONS_MAX} sessions; unsubscribe first.",
                param="session",
            )
        if wish.as_html and not rendering.has_renderers():
            raise InvalidInput("invalid_value", "This server renders no HTML.", param="as")
        self._begin(self._subscriptions, wish.session_id, self._follow(wish))

    async def _watch_sidebar(self, wish: Sidebar) -> None:
        await _stop(self._sidebars.pop(wish.workspace_id, None))
        if len(self._sidebars) >= SIDEBARS_MAX:
            raise _too_many_sidebars()
        self._begin(self._sidebars, wish.workspace_id, self._tell_rows(wish))

    def _show_trees(self, wish: Trees) -> None:
        """Also before the workspace is followed, and after; it asks nothing of the database."""
        if wish.workspace_id not in self._trees and len(self._trees) >= SIDEBARS_MAX:
            raise _too_many_sidebars()
        self._trees.setdefault(wish.workspace_id, ShownTrees()).show(wish.root_ids)

    def _begin(
        self,
        place: dict[UUID, asyncio.Task[None]],
        key: UUID,
        work: Coroutine[Any, Any, None],
    ) -> None:
        """One task per subscription; it leaves its place when it ends by itself."""
        task = asyncio.create_task(self._guarded(work))
        place[key] = task

        def forget(done: asyncio.Task[None]) -> None:
            if place.get(key) is done:
                del place[key]

        task.add_done_callback(forget)

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        with subscriptions_open.track_inprogress():
            try:
                await work
            except OSError:
                # The client left in the middle of a frame; the disconnect tells the rest.
                return
            except Exception:
                logger.exception("socket.subscription_failed")
                await self._close(CloseCode.TRY_LATER, Unavailable())

    # ── Subscriptions ──

    async def _follow(self, wish: Subscribe) -> None:
        session_id = wish.session_id
        try:
            start = await in_db_thread(
                find_start,
                access=self.viewer.access,
                session_id=session_id,
                position=wish.after,
                param="after",
            )
            renderer = None
            if wish.as_html:
                renderer = await in_db_thread(
                    rendering.make_event_renderer,
                    access=self.viewer.access,
                    session_id=session_id,
                    after=start.after,
                )
        except DomainError as problem:
            await self._say(outbox.error(problem, session=outbox.session_ref(session_id)))
            return
        except DatabaseError:
            await self._say(outbox.error(Unavailable(), session=outbox.session_ref(session_id)))
            return
        frames = follow(viewer=self.viewer, session_id=session_id, start=start, types=wish.types)
        async with aclosing(frames):
            async for frame in frames:
                match frame:
                    case Events():
                        await self._tell_events(session_id, frame, renderer)
                    case Ready():
                        await self._say(outbox.ready(frame))
                    case CaughtUp():
                        await self._say(outbox.caught_up(session_id, frame))
                    case Closed(reason=reason):
                        await self._tell_end(session_id, reason)

    async def _tell_events(
        self, session_id: UUID, frame: Events, renderer: rendering.EventRenderer | None
    ) -> None:
        if renderer is None:
            for event in frame.events:
                await self._say(event.socket(session_id))
            return
        stored = [event.event for event in frame.events]
        pieces = await in_db_thread(rendering.render_events, renderer, self.viewer.access, stored)
        for event, html in zip(frame.events, pieces, strict=True):
            await self._say(outbox.event_with_html(session_id, event, html))

    async def _tell_end(self, session_id: UUID, reason: Ended) -> None:
        """The guard closes the whole socket where the reason concerns all of it."""
        if reason in outbox.ENDINGS:
            await self._say(outbox.ended(session_id, reason))

    async def _tell_rows(self, wish: Sidebar) -> None:
        workspace_id = wish.workspace_id
        about = outbox.workspace_ref(workspace_id)
        try:
            require_workspace(self.viewer.access, workspace_id)
        except NotFound as problem:
            await self._say(outbox.error(problem, workspace=about))
            return
        trees = self._trees.setdefault(workspace_id, ShownTrees())
        changes = watch_rows(viewer=self.viewer, workspace_id=workspace_id, trees=trees)
        async with aclosing(changes):
            async for change in changes:
                match change:
                    case Watching():
                        await self._say(outbox.encode("ready", workspace=about))
                        if wish.resumes:
                            await self._say(outbox.resync(workspace_id))
                    case Rows():
                        await self._say(outbox.sidebar(workspace_id, change))
                    case ReadAgain():
                        await self._say(outbox.resync(workspace_id))
                    case Lost():
                        await self._say(outbox.error(NotFound(), workspace=about))

    # ── Life ──

    async def _watch_access(self) -> None:
        """Closes the socket when its login or key is no longer good, or the server stops.

        Until then it tells what concerns the person rather than a session: their drafts, and that
        what waits for them may have changed.
        """
        hub, waiter = current_hub(), Waiter()
        async with hub.viewing(self.viewer):
            self.viewer.waiters.add(waiter)
            while not (self.viewer.is_revoked or hub.is_draining):
                if drafts := self.viewer.take_drafts():
                    for session_id, revision in drafts.items():
                        await self._say(outbox.draft(session_id, revision))
                elif self.viewer.take_inbox():
                    await self._say(outbox.encode("inbox"))
                    await asyncio.sleep(INBOX_PAUSE_SECONDS)
                else:
                    await waiter.sleep(_IDLE_SECONDS)
        if hub.is_draining:
            await self._close(CloseCode.RESTART)
        else:
            problem = DomainError("unauthenticated", "This login or key is no longer valid.")
            await self._close(CloseCode.UNAUTHENTICATED, problem)

    async def _say(self, text: str) -> None:
        if not self._is_closing:
            await self.send(text_data=text)

    async def _close(self, code: CloseCode, problem: DomainError | None = None) -> None:
        """Once, and with the reason as a last frame."""
        if self._is_closing:
            return
        self._is_closing = True
        if problem is not None:
            try:
                async with asyncio.timeout(_LAST_FRAME_SECONDS):
                    await self.send(text_data=outbox.error(problem))
            except TimeoutError:
                logger.info("socket.reader_is_stuck")
        try:
            await self.close(code=int(code))
        except OSError:
            return  # the client was quicker
        except Exception:
            # daphne lets an application use no code below 3000.
            await self.close(code=int(CloseCode.TRY_LATER))

    def _may_speak(self) -> bool:
        """A bucket that refills with time: a burst is fine, a flood is not."""
        now = asyncio.get_running_loop().time()
        refill = (now - self._counted_at) * MESSAGES_PER_SECOND
        self._allowance = min(MESSAGES_BURST, self._allowance + refill) - 1
        self._counted_at = now
        return self._allowance >= 0

    async def _cancel_all(self) -> None:
        self._is_closing = True
        tasks = [*self._subscriptions.values(), *self._sidebars.values()]
        if self._guard is not None:
            tasks.append(self._guard)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _too_many_sidebars() -> InvalidInput:
    return InvalidInput(
        "too_many_sidebars",
        f"A socket follows at most {SIDEBARS_MAX} workspaces; unsubscribe first.",
        param="workspace",
    )


async def _stop(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class NoSuchSocket(AsyncWebsocketConsumer):
    """Every other path: told in the same way as the refusals of a real one."""

    async def connect(self) -> None:
        await self.accept()
        await self.close(code=int(CloseCode.NOT_FOUND))
