"""The list of sessions in groups, each with its own cursor; scrolling never fetches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Count, OuterRef, Q, Subquery
from django.template.loader import render_to_string

from core.api.paths import id_in_path
from core.clock import now, rfc3339
from core.cursors import decode_cursor, encode_cursor
from core.errors import InvalidInput
from core.ids import Prefix, encode_id
from core.text import strip_marks
from orgs.access import Access
from orgs.roles import Action
from sessions_app.listing import SessionQuery, filter_sessions
from sessions_app.models import Session
from sessions_app.querysets import SessionQuerySet
from sessions_app.selectors import get_folder, list_folders, list_shut
from sessions_app.web.family import note_askers
from sessions_app.web.naming import (
    child_state,
    display_title,
    mark_of,
    note_first_words,
    session_state,
    short_word,
    state_word,
)
from sessions_app.wire import is_unread

FIRST_PAGE = {"pinned": 20, "active": 20, "today": 10}
FOLDER_FIRST_PAGE = 10
OTHER_FIRST_PAGE = 6
NEXT_PAGE = 30
AT_WORK = Q(started_turn_id__isnull=False) | Q(ready_at__isnull=False)
TITLES = {
    "pinned": "Pinned",
    "active": "Active",
    "today": "Today",
    "yesterday": "Yesterday",
    "week": "Previous 7 days",
    "older": "Older",
}


@dataclass(frozen=True, slots=True)
class Row:
    session: Session
    id: str
    title: str
    state: str
    word: str
    short_word: str
    mark: str
    is_unread: bool
    is_pinned: bool
    is_working: bool
    waits: int
    at: str
    folder: str

    @property
    def rest(self) -> str:
        """What the short word leaves out."""
        return self.word.removeprefix(self.short_word)

    @property
    def note(self) -> str:
        """The second line on a phone: who asks below, or the newest words, unless they are the
        title.
        """
        if asker := self.session.__dict__.get("asker"):
            return f"{asker} asks"
        preview = strip_marks(self.session.preview_text)
        return "" if preview in {self.title, strip_marks(self.title)} else preview


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where the days begin for this person, and what is at work."""

    today: datetime
    yesterday: datetime
    week: datetime
    working: Q


@dataclass(frozen=True, slots=True)
class Head:
    """What a group is: a folder, or one of TITLES. `is_shut`: this person keeps it so."""

    key: str
    title: str
    folder_id: UUID | None = None
    is_shut: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """`shown` of `total`; `older` is the link's cursor, empty at the end."""

    head: Head
    rows: list[Row]
    total: int
    shown: int
    older: str

    @property
    def key(self) -> str:
        return self.head.key

    @property
    def title(self) -> str:
        return self.head.title


def list_groups(*, access: Access, workspace_id: UUID, zone: tzinfo) -> list[Group]:
    """The groups that have sessions, and all folders. One count for all, one page for each that
    has any, one for all folders.
    """
    access.require(Action.SESSION_READ, workspace_id)
    sessions = filter_sessions(access=access, query=SessionQuery(workspace_id=workspace_id))
    bounds = _bounds(workspace_id, zone)
    counts = sessions.aggregate(
        **{f"in_{key}": Count("pk", filter=_belongs(key, bounds)) for key in TITLES}
    )
    shut = list_shut(access=access, workspace_id=workspace_id)
    groups = []
    for key, title in TITLES.items():
        total = counts[f"in_{key}"]
        if total:
            size = FIRST_PAGE.get(key, OTHER_FIRST_PAGE)
            head = Head(key, title, is_shut=key in shut)
            page = list(_ordered(sessions, head, bounds, None)[: size + 1])
            groups.append(_group(access, workspace_id, head, page, size, total, 0))
    folders = _folders(access, workspace_id, sessions, shut)
    first = sum(group.key == "pinned" for group in groups)
    return [*groups[:first], *folders, *groups[first:]]


def load_group(*, access: Access, workspace_id: UUID, key: str, cursor: str, zone: tzinfo) -> Group:
    """The next page of one group. Raises NotFound or InvalidInput."""
    access.require(Action.SESSION_READ, workspace_id)
    head = _find_head(access, workspace_id, key)
    sessions = filter_sessions(access=access, query=SessionQuery(workspace_id=workspace_id))
    bounds = _bounds(workspace_id, zone)
    total = _of(sessions, head, bounds).count()
    position, shown = _position(workspace_id, key, cursor) if cursor else (None, 0)
    page = list(_ordered(sessions, head, bounds, position)[: NEXT_PAGE + 1])
    return _group(access, workspace_id, head, page, NEXT_PAGE, total, shown)


def _find_head(access: Access, workspace_id: UUID, key: str) -> Head:
    if key in TITLES:
        return Head(key, TITLES[key])
    folder_id = id_in_path(Prefix.FOLDER, key)
    folder = get_folder(access=access, workspace_id=workspace_id, folder_id=folder_id)
    return Head(key, folder.name, folder.pk)


def _folders(
    access: Access, workspace_id: UUID, sessions: SessionQuerySet, shut: set[str]
) -> list[Group]:
    """All of them with their first pages: two queries, however many there are."""
    inside = sessions.filter(mine__pinned_at__isnull=True, folder_id=OuterRef("pk"))
    page = inside.order_by("-activity_at", "-id").values("pk")[: FOLDER_FIRST_PAGE + 1]
    count = inside.order_by().values("folder_id").annotate(count=Count("pk")).values("count")
    folders = list_folders(access=access, workspace_id=workspace_id).annotate(
        page=ArraySubquery(page), total=Subquery(count)
    )
    read = list(folders)
    wanted = [pk for folder in read for pk in folder.page]
    found = {row.pk: row for row in sessions.filter(pk__in=wanted)} if wanted else {}
    shown = {row.session.pk: row for row in make_rows(access, list(found.values()))}
    groups = []
    for folder in read:
        head = Head(folder.public_id, folder.name, folder.pk, folder.public_id in shut)
        rows = [found[pk] for pk in folder.page if pk in found]
        more = _group(
            access, workspace_id, head, rows, FOLDER_FIRST_PAGE, folder.total or 0, 0, shown
        )
        groups.append(more)
    return groups


def make_row(session: Session) -> Row:
    state = session_state(session) if session.parent_id is None else child_state(session)
    unread = is_unread(session)
    return Row(
        session=session,
        id=session.public_id,
        title=display_title(session),
        state=state,
        word=state_word(state, session),
        short_word=short_word(state, session),
        mark=mark_of(state) or ("unread" if unread else ""),
        is_unread=unread,
        is_pinned=getattr(session, "pinned_at", None) is not None,
        is_working=session.is_working,
        waits=session.open_waits or 0,
        at=rfc3339(session.activity_at) or "",
        folder=encode_id(Prefix.FOLDER, session.folder_id) if session.folder_id else "",
    )


def make_rows(access: Access, sessions: Sequence[Session]) -> list[Row]:
    note_first_words(sessions)
    note_askers(access, sessions)
    return [make_row(session) for session in sessions]


def render_row(session: Session, access: Access) -> str:
    """One row's markup, as in the list: what a socket sends when the row changed."""
    note_askers(access, [session])
    return render_to_string("parts/row.html", {"row": make_row(session), "zone": UTC})


def count_archived(*, access: Access, workspace_id: UUID) -> int:
    """Roots of the default partition that wait in the archive."""
    sessions = Session.objects.visible_to(access).filter(workspace_id=workspace_id)
    return sessions.filter(
        parent__isnull=True, archived_at__isnull=False, origin_type="work"
    ).count()


def _bounds(workspace_id: UUID, zone: tzinfo) -> Bounds:
    today = now().astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0)
    days = (today, today - timedelta(days=1), today - timedelta(days=7))
    return Bounds(*days, _is_working(workspace_id))


def _is_working(workspace_id: UUID) -> Q:
    """It is at work, or something below it is: of those there are few, read once."""
    below = Session.objects.filter(AT_WORK, workspace_id=workspace_id, archived_at__isnull=True)
    return AT_WORK | Q(pk__in=below.filter(root_id__isnull=False).values("root_id"))


def _belongs(key: str, bounds: Bounds) -> Q:
    if key == "pinned":
        return Q(mine__pinned_at__isnull=False)
    plain = Q(mine__pinned_at__isnull=True, folder__isnull=True)
    if key == "active":
        return plain & bounds.working
    quiet = plain & ~bounds.working
    match key:
        case "today":
            return quiet & Q(activity_at__gte=bounds.today)
        case "yesterday":
            return quiet & Q(activity_at__gte=bounds.yesterday, activity_at__lt=bounds.today)
        case "week":
            return quiet & Q(activity_at__gte=bounds.week, activity_at__lt=bounds.yesterday)
        case _:
            return quiet & Q(activity_at__lt=bounds.week)


def _of(sessions: SessionQuerySet, head: Head, bounds: Bounds) -> SessionQuerySet:
    if head.folder_id is not None:
        return sessions.filter(mine__pinned_at__isnull=True, folder_id=head.folder_id)
    return sessions.filter(_belongs(head.key, bounds))


def _column(head: Head) -> str:
    return "pinned_at" if head.key == "pinned" else "activity_at"


def _ordered(
    sessions: SessionQuerySet, head: Head, bounds: Bounds, position: list[Any] | None
) -> SessionQuerySet:
    column = _column(head)
    found = _of(sessions, head, bounds).order_by(f"-{column}", "-id")
    if position is None:
        return found
    moment, pk = position
    return found.filter(Q(**{f"{column}__lt": moment}) | Q(**{column: moment, "id__lt": pk}))


def _group(
    access: Access,
    workspace_id: UUID,
    head: Head,
    page: list[Session],
    size: int,
    total: int,
    before: int,
    made: Mapping[UUID, Row] | None = None,
) -> Group:
    """Of a page with one more than is shown, if there is more. `made`: rows that are ready."""
    kept = page[:size]
    shown = before + len(kept)
    older = ""
    if len(page) > size:
        last = kept[-1]
        moment = rfc3339(getattr(last, _column(head)))
        older = encode_cursor(_query(workspace_id, head.key), [shown, moment, last.pk.hex])
    rows = make_rows(access, kept) if made is None else [made[each.pk] for each in kept]
    return Group(head, rows, max(total, shown), shown, older)


def _position(workspace_id: UUID, key: str, cursor: str) -> tuple[list[Any], int]:
    shown, moment, pk = decode_cursor(_query(workspace_id, key), cursor, [int, str, str])
    try:
        return [datetime.fromisoformat(moment), UUID(hex=pk)], shown
    except ValueError:
        raise InvalidInput(
            "invalid_cursor", "Begin again without the cursor.", param="cursor"
        ) from None


def _query(workspace_id: UUID, key: str) -> str:
    return f"sidebar:{workspace_id.hex}:{key}"
