"""Reads, each with the caller's access: not visible is NotFound, the same as never existed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from uuid import UUID

from django.db.models import QuerySet

from core.errors import NotFound
from core.ids import Prefix, encode_id
from orgs.access import Access
from orgs.models import Organization
from orgs.roles import Action
from sessions_app import eventlog
from sessions_app.domain.vocabulary import STARTED_UNFINISHED, TurnStatus
from sessions_app.eventlog import StoredEvent, TurnUsage
from sessions_app.models import QUEUE_ORDER, FoldedGroup, Folder, Session, Turn


@dataclass(frozen=True, slots=True)
class Queue:
    """Held prompts in the order in which they will start, without the running turn."""

    turns: list[Turn]
    version: int


class Lock(Enum):
    """Which rows are held until the transaction ends: NO KEY, so that inserts which refer to them
    do not wait. A child's end is written to its parent too, and parents are locked first.
    """

    WITH_PARENT = "with_parent"
    ALONE = "alone"


def get_session(
    *,
    access: Access,
    session_id: UUID,
    origin_type: str | None = None,
    lock: Lock | None = None,
) -> Session:
    """One session. With `origin_type` only that partition is read. Raises NotFound."""
    visible = Session.objects.visible_to(access)
    if lock is None:
        rows = visible.filter(pk=session_id).with_personal_state(access.user_id)
        session = rows.with_tree_state().with_fork_source(access).first()
    else:
        wanted = visible.filter(pk=session_id)
        if lock is Lock.WITH_PARENT:
            wanted = visible.with_parent(session_id).order_by("depth", "id")
        held = list(wanted.select_for_update(no_key=True, of=("self",)))
        session = next((each for each in held if each.pk == session_id), None)
    if session is None or origin_type not in {None, session.origin_type}:
        raise NotFound
    return session


def list_folders(*, access: Access, workspace_id: UUID) -> QuerySet[Folder]:
    """Of a workspace, in their order; they are few. Raises NotFound."""
    if not access.may(Action.SESSION_READ, workspace_id):
        raise NotFound
    return Folder.objects.filter(workspace_id=workspace_id).order_by("position", "id")


def get_folder(*, access: Access, workspace_id: UUID, folder_id: UUID) -> Folder:
    folder = list_folders(access=access, workspace_id=workspace_id).filter(pk=folder_id).first()
    if folder is None:
        raise NotFound
    return folder


def list_shut(*, access: Access, workspace_id: UUID) -> set[str]:
    """Which groups of the sidebar this person keeps shut: names of groups, ids of folders."""
    if access.user_id is None:
        return set()
    kept = FoldedGroup.objects.filter(user_id=access.user_id, workspace_id=workspace_id)
    named = kept.values_list("folder_id", "group")
    return {encode_id(Prefix.FOLDER, folder) if folder else group for folder, group in named}


def find_fork_source(*, access: Access, session: Session) -> Session | None:
    """The session that this one was forked from; None where it is gone or not for this caller."""
    if session.forked_from_id is None:
        return None
    return Session.objects.visible_to(access).filter(pk=session.forked_from_id).first()


def list_forks(*, access: Access, session: Session) -> QuerySet[Session]:
    """Those that were made from a session, as far as the caller sees them; newest first."""
    forks = Session.objects.visible_to(access).filter(forked_from_id=session.pk)
    return forks.order_by("-created_at", "-id")


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
    session: Session,
    *,
    after: int | None = None,
    before: int | None = None,
    limit: int,
    types: Collection[str] | None = None,
) -> list[StoredEvent]:
    """After a seq, oldest first; or before one, newest first. From the start without either.

    This and what follows take a session that was read with the caller's access.
    """
    if before is not None:
        return eventlog.read_before(session_id=session.pk, before=before, limit=limit, types=types)
    return eventlog.read_after(session_id=session.pk, after=after or 0, limit=limit, types=types)


def read_texts(session: Session, *, after: int, before: int) -> list[StoredEvent]:
    """The deltas between two seqs, those of each message as one: its first, with all the text."""
    return eventlog.read_texts(session_id=session.pk, after=after, before=before)


def sum_usage(session: Session) -> list[TurnUsage]:
    """One entry for each turn that used tokens, oldest first."""
    return eventlog.sum_usage(session.pk)


def allows_private(*, access: Access, workspace_id: UUID) -> bool:
    """Whether this person may keep sessions of a workspace to themselves now."""
    if access.user_id is None or not access.may(Action.SESSION_CREATE, workspace_id):
        return False
    organizations = Organization.objects.filter(pk=access.grants[workspace_id].organization_id)
    return organizations.filter(allows_private_sessions=True).exists()
