"""The list of sessions in groups, each with its own cursor; scrolling never fetches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from uuid import UUID

from django.db.models import Count, Q
from django.template.loader import render_to_string

from core.clock import now, rfc3339
from core.cursors import decode_cursor, encode_cursor
from core.errors import InvalidInput, NotFound
from core.text import strip_marks
from orgs.access import Access
from orgs.roles import Action
from sessions_app.listing import SessionQuery, filter_sessions
from sessions_app.models import Session
from sessions_app.querysets import SessionQuerySet
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
class Group:
    """`shown` of `total`; `older` is the link's cursor, empty at the end."""

    key: str
    title: str
    rows: list[Row]
    total: int
    shown: int
    older: str


def list_groups(*, access: Access, workspace_id: UUID, zone: tzinfo) -> list[Group]:
    """The groups that have sessions. One count for all, one page for each that has any."""
    access.require(Action.SESSION_READ, workspace_id)
    sessions = filter_sessions(access=access, query=SessionQuery(workspace_id=workspace_id))
    bounds, working = _bounds(zone), _is_working(workspace_id)
    counts = sessions.aggregate(
        **{f"in_{key}": Count("pk", filter=_belongs(key, bounds, working)) for key in TITLES}
    )
    groups = []
    for key in TITLES:
        total = counts[f"in_{key}"]
        if total:
            size = FIRST_PAGE.get(key, OTHER_FIRST_PAGE)
            groups.append(_group(access, sessions, workspace_id, key, bounds, None, size, total, 0))
    return groups


def load_group(*, access: Access, workspace_id: UUID, key: str, cursor: str, zone: tzinfo) -> Group:
    """The next page of one group. Raises NotFound or InvalidInput."""
    access.require(Action.SESSION_READ, workspace_id)
    if key not in TITLES:
        raise NotFound
    sessions = filter_sessions(access=access, query=SessionQuery(workspace_id=workspace_id))
    bounds = _bounds(zone)
    total = sessions.filter(_belongs(key, bounds, _is_working(workspace_id))).count()
    position, shown = _position(workspace_id, key, cursor) if cursor else (None, 0)
    return _group(access, sessions, workspace_id, key, bounds, position, NEXT_PAGE, total, shown)


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


def _bounds(zone: tzinfo) -> dict[str, datetime]:
    """Where the days begin for this person."""
    today = now().astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0)
    return {
        "today": today,
        "yesterday": today - timedelta(days=1),
        "week": today - timedelta(days=7),
    }


def _is_working(workspace_id: UUID) -> Q:
    """It is at work, or something below it is: of those there are few, read once."""
    below = Session.objects.filter(AT_WORK, workspace_id=workspace_id, archived_at__isnull=True)
    return AT_WORK | Q(pk__in=below.filter(root_id__isnull=False).values("root_id"))


def _belongs(key: str, bounds: dict[str, datetime], working: Q) -> Q:
    if key == "pinned":
        return Q(mine__pinned_at__isnull=False)
    plain = Q(mine__pinned_at__isnull=True)
    if key == "active":
        return plain & working
    quiet = plain & ~working
    match key:
        case "today":
            return quiet & Q(activity_at__gte=bounds["today"])
        case "yesterday":
            return quiet & Q(activity_at__gte=bounds["yesterday"], activity_at__lt=bounds["today"])
        case "week":
            return quiet & Q(activity_at__gte=bounds["week"], activity_at__lt=bounds["yesterday"])
        case _:
            return quiet & Q(activity_at__lt=bounds["week"])


def _group(
    access: Access,
    sessions: SessionQuerySet,
    workspace_id: UUID,
    key: str,
    bounds: dict[str, datetime],
    position: list[Any] | None,
    size: int,
    total: int,
    before: int,
) -> Group:
    column = "pinned_at" if key == "pinned" else "activity_at"
    found = sessions.filter(_belongs(key, bounds, _is_working(workspace_id))).order_by(
        f"-{column}", "-id"
    )
    if position is not None:
        moment, pk = position
        found = found.filter(Q(**{f"{column}__lt": moment}) | Q(**{column: moment, "id__lt": pk}))
    page = list(found[: size + 1])
    kept = page[:size]
    shown = before + len(kept)
    older = ""
    if len(page) > size:
        last = kept[-1]
        moment = rfc3339(getattr(last, column))
        older = encode_cursor(_query(workspace_id, key), [shown, moment, last.pk.hex])
    return Group(key, TITLES[key], make_rows(access, kept), max(total, shown), shown, older)


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
