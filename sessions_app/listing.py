"""Lists of sessions: keyset pages whose order comes from an index, whatever moves meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import orjson
from django.db.models import Q

from core.clock import rfc3339
from core.cursors import decode_cursor, encode_cursor
from core.errors import InvalidInput
from core.text import is_storable
from orgs.access import Access
from orgs.roles import Action
from sessions_app.domain.end_user import EndUser
from sessions_app.domain.vocabulary import DEFAULT_ORIGIN_TYPE
from sessions_app.models import Session
from sessions_app.querysets import SessionQuerySet


class Sort(StrEnum):
    CREATED = "created"
    UPDATED = "updated"
    SIDEBAR = "sidebar"
    ARCHIVED = "archived"
    NAME = "name"


class Archived(StrEnum):
    EXCLUDE = "exclude"
    ONLY = "only"
    INCLUDE = "include"


@dataclass(frozen=True, slots=True)
class SessionQuery:
    """One workspace's sessions. `origin_type` None: of every partition; `created` maps gt, gte,
    lt, lte to times.
    """

    workspace_id: UUID
    origin_type: str | None = DEFAULT_ORIGIN_TYPE
    query: str = ""
    statuses: tuple[str, ...] = ()
    archived: Archived = Archived.EXCLUDE
    pinned: bool | None = None
    parent_id: UUID | None = None
    forked_from_id: UUID | None = None
    agent_id: UUID | None = None
    folder_id: UUID | None = None
    end_user: EndUser | None = None
    created: Mapping[str, datetime] = field(default_factory=dict)
    activity: Mapping[str, datetime] = field(default_factory=dict)
    sort: Sort = Sort.CREATED
    ascending: bool = False
    limit: int = 20
    page: str = ""

    @property
    def fingerprint(self) -> str:
        """All that must stay the same from page to page."""
        same = {k: v for k, v in asdict(self).items() if k not in {"limit", "page"}}
        return orjson.dumps(same, default=str, option=orjson.OPT_SORT_KEYS).decode()


@dataclass(frozen=True, slots=True)
class SessionPage:
    """Rows joined with the reader's own pin and read mark."""

    rows: list[Session]
    next_page: str | None

    @property
    def has_more(self) -> bool:
        return self.next_page is not None


SORT_COLUMNS = {
    Sort.CREATED: "created_at",
    Sort.UPDATED: "activity_at",
    Sort.SIDEBAR: "activity_at",
    Sort.ARCHIVED: "archived_at",
    Sort.NAME: "name_key",
}
PINNED_SEGMENT, PLAIN_SEGMENT = 0, 1
NEAR = 1_000


def list_sessions(*, access: Access, query: SessionQuery) -> SessionPage:
    """A page of roots (or of one parent's children). Raises Forbidden or InvalidInput.

    Where pins come first there are two segments: this person's pins, then the index without
    them. Joined into one order, no index could give it.
    """
    access.require(Action.SESSION_READ, query.workspace_id)
    if query.sort is Sort.ARCHIVED and query.archived != Archived.ONLY:
        raise InvalidInput(
            "invalid_value",
            "Only archived sessions have a time of archiving: add archived=only.",
            param="sort",
        )
    page = _page(access, filter_sessions(access=access, query=query), query)
    _note_sources(access, page.rows)
    return page


def _note_sources(access: Access, rows: list[Session]) -> None:
    """Sets `sees_source`, as `with_fork_source` does for one row: one query where any is a fork.
    Within the list's own query it would have all sessions looked at.
    """
    forks = [row for row in rows if row.forked_from_id is not None]
    if not forks:
        return
    sources = Session.objects.visible_to(access)
    named = sources.filter(pk__in=[row.forked_from_id for row in forks])
    seen = set(named.values_list("pk", flat=True))
    for row in forks:
        row.__dict__["sees_source"] = row.forked_from_id in seen


def _page(access: Access, sessions: SessionQuerySet, query: SessionQuery) -> SessionPage:
    if query.sort is Sort.SIDEBAR and query.pinned is None and access.user_id is not None:
        return _page_with_pins(sessions, query)
    if query.pinned and query.sort is not Sort.NAME:
        rows = _take(sessions, query, "pinned_at", _position(query), query.limit + 1)
        return _finish(query, rows, "pinned_at", PINNED_SEGMENT)
    column = SORT_COLUMNS[query.sort]
    rows = _take(sessions, query, column, _position(query), query.limit + 1)
    return _finish(query, rows, column, PLAIN_SEGMENT)


def filter_sessions(*, access: Access, query: SessionQuery) -> SessionQuerySet:
    """All that the query means but for its text, unordered, whatever the page."""
    sessions = Session.objects.visible_to(access).with_personal_state(access.user_id)
    sessions = sessions.with_tree_state()
    sessions = sessions.filter(workspace_id=query.workspace_id, parent_id=query.parent_id)
    if query.origin_type is not None:
        sessions = sessions.filter(origin_type=query.origin_type)
    if query.archived is not Archived.INCLUDE:
        sessions = sessions.filter(archived_at__isnull=query.archived is Archived.EXCLUDE)
    if query.statuses:
        sessions = sessions.filter(status__in=query.statuses)
    if query.forked_from_id:
        source = Session.objects.visible_to(access).filter(pk=query.forked_from_id)
        sessions = sessions.filter(forked_from_id=query.forked_from_id)
        sessions = sessions if source.exists() else sessions.none()
    if query.agent_id:
        sessions = sessions.filter(agent_id=query.agent_id)
    if query.folder_id:
        sessions = sessions.filter(folder_id=query.folder_id)
    if query.end_user:
        wanted = query.end_user
        sessions = sessions.filter(end_user_source=wanted.source, end_user_id=wanted.id)
    if query.pinned is not None:
        sessions = sessions.filter(Q(pinned_at__isnull=not query.pinned))
    for bound, moment in query.created.items():
        sessions = sessions.filter(**{f"created_at__{bound}": moment})
    for bound, moment in query.activity.items():
        sessions = sessions.filter(**{f"activity_at__{bound}": moment})
    return sessions


def _page_with_pins(sessions: SessionQuerySet, query: SessionQuery) -> SessionPage:
    position = _position(query)
    rows: list[Session] = []
    in_pins = position is None or position[0] == PINNED_SEGMENT
    if in_pins:
        pinned = sessions.filter(Q(pinned_at__isnull=False))
        rows = _take(pinned, query, "pinned_at", position, query.limit + 1)
        if len(rows) > query.limit:
            return _finish(query, rows, "pinned_at", PINNED_SEGMENT)
        position = None
    plain = sessions.filter(Q(pinned_at__isnull=True))
    room = query.limit - len(rows)
    more = _take(plain, query, "activity_at", position, room + 1)
    if len(more) <= room:
        return SessionPage([*rows, *more], None)
    if room == 0:
        return SessionPage(rows, _cursor(query, rows[-1], "pinned_at", PINNED_SEGMENT))
    return SessionPage(
        [*rows, *more[:room]], _cursor(query, more[room - 1], "activity_at", PLAIN_SEGMENT)
    )


def _take(
    sessions: SessionQuerySet,
    query: SessionQuery,
    column: str,
    position: list[Any] | None,
    count: int,
) -> list[Session]:
    """The next rows. Those with a common text stand close together, and are found by looking at
    the next ones; what is rare among these is found through the index of texts.
    """
    if not query.query:
        return list(_after(sessions, query, column, position)[:count])
    near = _after(sessions, query, column, position)[:NEAR]
    among = sessions.filter(pk__in=near.values("pk")).holding(query.query)
    rows = list(_after(among, query, column, position)[:count])
    if len(rows) == count:
        return rows
    found = sessions.found_by(query.query, query.workspace_id)
    return list(_after(found, query, column, position)[:count])


def _after(
    sessions: SessionQuerySet, query: SessionQuery, column: str, position: list[Any] | None
) -> SessionQuerySet:
    direction = "" if query.ascending else "-"
    ordered = sessions.order_by(f"{direction}{column}", f"{direction}id")
    if position is None:
        return ordered
    _, value, pk = position
    # A row comparison in SQL terms; written so that the index can seek to it.
    side = "gt" if query.ascending else "lt"
    beyond = Q(**{f"{column}__{side}": value}) | Q(**{column: value, f"id__{side}": pk})
    return ordered.filter(Q(**{f"{column}__{side}e": value}) & beyond)


def _position(query: SessionQuery) -> list[Any] | None:
    if not query.page:
        return None
    segment, value, pk = decode_cursor(query.fingerprint, query.page, [int, str, str])
    try:
        if query.sort is Sort.NAME:
            return [segment, _storable(value), UUID(hex=pk)]
        # A cursor's own time always names its offset; a bent one may not.
        return [segment, datetime.fromisoformat(value).astimezone(UTC), UUID(hex=pk)]
    except (ValueError, OverflowError):
        raise InvalidInput(
            "invalid_cursor",
            "Send the page cursor exactly as the last answer gave it.",
            param="page",
        ) from None


def _storable(text: str) -> str:
    if not is_storable(text):
        raise ValueError(text)
    return text


def _finish(query: SessionQuery, rows: list[Session], column: str, segment: int) -> SessionPage:
    kept = rows[: query.limit]
    more = len(rows) > query.limit
    return SessionPage(kept, _cursor(query, kept[-1], column, segment) if more else None)


def _cursor(query: SessionQuery, row: Session, column: str, segment: int) -> str:
    value = getattr(row, column)
    key = value if query.sort is Sort.NAME else rfc3339(value)
    return encode_cursor(query.fingerprint, [segment, key, row.pk.hex])
