"""Reads, each with the caller's access: not visible is NotFound, the same as never existed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from django.db.models import QuerySet

from core.errors import InvalidInput, NotFound
from orgs.access import Access
from sessions_app import eventlog
from sessions_app.domain.vocabulary import STARTED_UNFINISHED, TurnStatus
from sessions_app.eventlog import StoredEvent
from sessions_app.models import QUEUE_ORDER, Session, Turn


@dataclass(frozen=True, slots=True)
class Queue:
    """Held prompts in the order in which they will start, without the running turn."""

    turns: list[Turn]
    version: int


def get_session(
    *,
    access: Access,
    session_id: UUID,
    origin_type: str | None = None,
    lock: bool = False,
) -> Session:
    """One session. With `origin_type` only that partition is read. Raises NotFound.

    `lock` holds its row until the transaction ends: NO KEY, so that inserts which refer to the
    session do not wait.
    """
    sessions = Session.objects.visible_to(access).filter(pk=session_id)
    if origin_type is not None:
        sessions = sessions.filter(origin_type=origin_type)
    if lock:
        sessions = sessions.select_for_update(no_key=True, of=("self",))
    else:
        sessions = sessions.with_personal_state(access.user_id).with_waits()
    session = sessions.first()
    if session is None:
        raise NotFound
    return session


def list_turns(*, access: Access, session_id: UUID) -> QuerySet[Turn]:
    """Oldest first, with their attempts."""
    session = get_session(access=access, session_id=session_id)
    return session.turns.prefetch_related("attempts").order_by("number")


def get_turn(*, access: Access, session_id: UUID, turn_id: UUID) -> Turn:
    turn = list_turns(access=access, session_id=session_id).filter(pk=turn_id).first()
    if turn is None:
        raise NotFound
    return turn


def list_queue(*, access: Access, session_id: UUID) -> Queue:
    session = get_session(access=access, session_id=session_id)
    queued = session.turns.filter(status=TurnStatus.QUEUED).select_related("author", "author_key")
    return Queue(list(queued.order_by(*QUEUE_ORDER)), session.queue_version)


def find_oldest_unfinished_turn(*, access: Access, session_id: UUID) -> Turn | None:
    """Where a stream without a position begins: at this turn's prompt."""
    session = get_session(access=access, session_id=session_id)
    unfinished = [*sorted(STARTED_UNFINISHED), TurnStatus.QUEUED]
    return session.turns.filter(status__in=unfinished).order_by("prompt_seq").first()


def read_events(
    *,
    access: Access,
    session_id: UUID,
    after: int | None = None,
    before: int | None = None,
    limit: int = 100,
    types: Collection[str] | None = None,
) -> list[StoredEvent]:
    """After a seq, oldest first; or before one, newest first. From the start without either."""
    if after is not None and before is not None:
        raise InvalidInput("after_and_before", "Name `after` or `before`, not both.", param="after")
    get_session(access=access, session_id=session_id)
    if before is not None:
        return eventlog.read_before(session_id=session_id, before=before, limit=limit, types=types)
    return eventlog.read_after(session_id=session_id, after=after or 0, limit=limit, types=types)
