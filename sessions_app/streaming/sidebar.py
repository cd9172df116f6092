"""The light rows of a workspace, live: which changed, as this viewer may see them now."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Collection
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from django.db import Error as DatabaseError
from django.db.models import Q

from core.db import in_db_thread
from core.errors import Forbidden, NotFound
from core.ids import Prefix, encode_id
from orgs.access import Access
from orgs.roles import Action
from sessions_app import wire
from sessions_app.listing import SessionQuery, Sort, filter_sessions, list_sessions
from sessions_app.models import Session
from sessions_app.querysets import SessionQuerySet
from sessions_app.streaming.followers import RowWatch, ShownTrees, Viewer
from sessions_app.streaming.hub import current_hub
from sessions_app.streaming.rendering import row_html

logger = logging.getLogger(__name__)

# Changes that come together are told together.
COALESCE_SECONDS: Final = 0.1
# Rows that a sidebar is taken to show when it opens: its first pages, pins included.
ROWS_KNOWN: Final = 200
_RETRY_SECONDS: Final = 0.5
_IDLE_SECONDS: Final = 3_600.0


@dataclass(frozen=True, slots=True)
class Watching:
    """Told first: from now on nothing is missed."""


@dataclass(frozen=True, slots=True)
class Rows:
    """`rows`: as in lists, each with the seq it was read at. `removed`: no longer in the list."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ReadAgain:
    """Changes may have been missed: read the list again."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The workspace may no longer be seen."""


def require_workspace(access: Access, workspace_id: UUID) -> None:
    """Raises NotFound: a workspace that one may not read is as if it did not exist."""
    if not access.may(Action.SESSION_READ, workspace_id):
        raise NotFound


async def watch_rows(
    *, viewer: Viewer, workspace_id: UUID, trees: ShownTrees | None = None
) -> AsyncGenerator[Watching | Rows | ReadAgain | Lost]:
    """Watching, then what changes: of roots, and of what is below those in `trees`, which may
    change meanwhile. Raises NotFound; ends with Lost when access is lost.
    """
    require_workspace(viewer.access, workspace_id)
    trees = trees or ShownTrees()
    async with current_hub().watching_rows(workspace_id) as watch:
        viewer.waiters.add(watch.waiter)
        trees.waiter = watch.waiter
        trees.unread = set(trees.roots)
        try:
            watch.known = await _read_known(viewer, workspace_id)
            yield Watching()
            async for told in _watch(viewer, watch, trees):
                yield told
        finally:
            trees.waiter = None
            viewer.waiters.discard(watch.waiter)


async def _read_known(viewer: Viewer, workspace_id: UUID) -> set[UUID]:
    while True:
        try:
            return await in_db_thread(read_known, access=viewer.access, workspace_id=workspace_id)
        except Forbidden:
            return set()  # the watch itself tells that access was lost meanwhile
        except DatabaseError as error:
            _log_retry(error)
            await asyncio.sleep(_RETRY_SECONDS)


async def _watch(
    viewer: Viewer, watch: RowWatch, trees: ShownTrees
) -> AsyncGenerator[Rows | ReadAgain | Lost]:
    hub = current_hub()
    while not (hub.is_draining or viewer.is_revoked):
        if not viewer.access.may(Action.SESSION_READ, watch.workspace_id):
            yield Lost()
            return
        if watch.must_resync:
            watch.must_resync = False
            watch.known |= await _read_known(viewer, watch.workspace_id)
            trees.unread = set(trees.roots)
            yield ReadAgain()
        elif trees.unread:
            shown = await _read_trees(viewer, watch, trees)
            if shown.rows:
                yield shown
        elif watch.pending:
            await asyncio.sleep(COALESCE_SECONDS)
            changed = await _read_rows(viewer, watch, trees)
            if changed.rows or changed.removed:
                yield changed
        else:
            await watch.waiter.sleep(_IDLE_SECONDS)


async def _read_trees(viewer: Viewer, watch: RowWatch, trees: ShownTrees) -> Rows:
    roots, trees.unread = frozenset(trees.unread), set()
    try:
        return await in_db_thread(
            read_trees,
            access=viewer.access,
            workspace_id=watch.workspace_id,
            roots=roots,
            known=watch.known,
        )
    except DatabaseError as error:
        _log_retry(error)
        trees.unread |= roots & trees.roots
        await asyncio.sleep(_RETRY_SECONDS)
        return Rows()


async def _read_rows(viewer: Viewer, watch: RowWatch, trees: ShownTrees) -> Rows:
    session_ids = frozenset(watch.pending)
    watch.pending.clear()
    try:
        return await in_db_thread(
            read_rows,
            access=viewer.access,
            workspace_id=watch.workspace_id,
            session_ids=session_ids,
            known=watch.known,
            trees=trees.roots,
        )
    except DatabaseError as error:
        _log_retry(error)
        watch.pending.update(session_ids)
        await asyncio.sleep(_RETRY_SECONDS)
        return Rows()


def _log_retry(error: DatabaseError) -> None:
    logger.warning("sidebar.retry error=%s", type(error).__name__)


def read_known(*, access: Access, workspace_id: UUID) -> set[UUID]:
    """Which sessions a sidebar shows when it opens. Raises Forbidden."""
    query = SessionQuery(workspace_id=workspace_id, sort=Sort.SIDEBAR, limit=ROWS_KNOWN)
    return {row.pk for row in list_sessions(access=access, query=query).rows}


def read_trees(
    *, access: Access, workspace_id: UUID, roots: Collection[UUID], known: set[UUID]
) -> Rows:
    """The rows below these roots as they are now: a page was made before it was watched. At most
    ROWS_KNOWN, those with the newest activity.
    """
    below = _below(access, workspace_id, roots).order_by("-activity_at", "-pk")
    found = list(below[:ROWS_KNOWN])
    known.update(session.pk for session in found)
    return Rows([_told(session, access) for session in found])


def read_rows(
    *,
    access: Access,
    workspace_id: UUID,
    session_ids: Collection[UUID],
    known: set[UUID],
    trees: Collection[UUID] = (),
) -> Rows:
    """The named sessions as the workspace's list shows them, those below `trees` included, and
    which have left it.

    Of one that this viewer never saw and may not see nothing is told, not even its id: neither
    while it exists nor when it is deleted, when nobody can tell any more who might see it. So
    `known` is what this viewer was told, and is kept up here.
    """
    query = SessionQuery(workspace_id=workspace_id)
    listed = filter_sessions(access=access, query=query).filter(pk__in=session_ids)
    found = {session.pk: session for session in listed}
    if trees and len(found) < len(session_ids):
        below = _below(access, workspace_id, trees).filter(pk__in=session_ids)
        found |= {session.pk: session for session in below}
    gone = set(session_ids) - found.keys()
    # What is below a root that is not shown was in no list of this viewer's.
    shown = Q(parent_id__isnull=True) | Q(root_id__in=trees)
    visible = Session.objects.filter(shown, pk__in=gone).visible_to(access)
    removed = (gone & known) | set(visible.values_list("pk", flat=True))
    known.update(found)
    known.difference_update(removed)
    rows = [_told(session, access) for session in found.values()]
    return Rows(rows, [encode_id(Prefix.SESSION, pk) for pk in sorted(removed)])


def _below(access: Access, workspace_id: UUID, roots: Collection[UUID]) -> SessionQuerySet:
    sessions = Session.objects.visible_to(access).filter(workspace_id=workspace_id)
    placed = sessions.filter(root_id__in=roots, archived_at__isnull=True)
    return placed.with_personal_state(access.user_id).with_tree_state()


def _told(session: Session, access: Access) -> dict[str, Any]:
    return wire.row_json(session) | row_html(session, access)
