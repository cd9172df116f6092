"""Pause and Resume: a session and all below it are held, or go on. Neither makes a turn.

Each says its word at one place, with a revision; what follows for each session of the subtree is
`domain.holds`. `paused_at` of a session is that consequence, and the fold of its own log.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Q

from core.clock import now
from core.errors import Conflict, NotFound
from core.ids import Prefix, encode_id
from orgs.access import Access
from orgs.roles import Action
from sessions_app import eventlog
from sessions_app.domain.events import Draft
from sessions_app.domain.holds import Mark, is_held
from sessions_app.domain.vocabulary import SessionStatus
from sessions_app.eventlog.announce import announce_attempt, announce_turn
from sessions_app.models import Session, WorkspaceHold
from sessions_app.selectors import Lock, get_session
from sessions_app.services.ending import Change, ready_at
from sessions_app.wire import author_json

SYSTEM = {"type": "system", "id": None, "name": "Sederunt"}


@transaction.atomic
def pause_session(*, access: Access, session_id: UUID) -> Session:
    """Hold the session and what is below it. Repeating it writes nothing.

    Raises NotFound, Forbidden, Conflict `session_terminated`.
    """
    session = _require_control(access, session_id)
    hold_tree(session, access=access)
    return get_session(access=access, session_id=session_id)


def hold_tree(session: Session, *, access: Access) -> None:
    """The same for a session that this transaction holds, and all below it."""
    if not _mark(session).stands:
        session.pause_revision = _next_revision()
        session.save(update_fields=["pause_revision"])
        _settle_tree(session, author_json(access))


@transaction.atomic
def resume_session(*, access: Access, session_id: UUID) -> Session:
    """Let the session and what is below it go on. Repeating it writes nothing. Raises the same."""
    session = _require_control(access, session_id)
    resume_held(session, access=access)
    return get_session(access=access, session_id=session_id)


def resume_held(session: Session, *, access: Access) -> None:
    """The same for a session that this transaction holds."""
    if session.is_paused or _mark(session).stands:
        session.resume_revision = _next_revision()
        session.save(update_fields=["resume_revision"])
        _settle_tree(session, author_json(access))
        session.refresh_from_db()


@transaction.atomic
def pause_workspace(*, access: Access, workspace_id: UUID) -> WorkspaceHold:
    """Hold a whole workspace: what works now, and whatever would start.

    Raises NotFound, Forbidden.
    """
    hold = _lock_workspace(access, workspace_id)
    if not _mark(hold).stands:
        hold.pause_revision = _next_revision()
        hold.save(update_fields=["pause_revision"])
        _settle_workspace(hold, author_json(access))
    return hold


@transaction.atomic
def resume_workspace(*, access: Access, workspace_id: UUID) -> WorkspaceHold:
    hold = _lock_workspace(access, workspace_id)
    if _mark(hold).stands:
        hold.resume_revision = _next_revision()
        hold.save(update_fields=["resume_revision"])
        _settle_workspace(hold, author_json(access))
    return hold


def inherit_hold(session: Session) -> bool:
    """Hold a session that this transaction holds, if a pause above covers it; whether it is held.

    A pause of a workspace reaches the sessions that worked at that moment; the others are held
    when they are to begin.
    """
    if not session.is_paused:
        hold = _hold_of(session.workspace_id)
        if is_held(_marks(session, hold)):
            _settle(session, hold, SYSTEM, place=_place_of(hold))
            session.refresh_from_db(fields=["paused_at", "head_seq", "ready_at"])
    return session.is_paused


def _next_revision() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval('sessions_app_hold_revision')")
        return int(cursor.fetchone()[0])


def lock_tree(session: Session) -> list[Session]:
    """The sessions below one that this transaction holds, locked from the top down.

    Read again until none is new: a child that was being created when the first read began is
    seen only once its creator has let go of its parent, and then nobody can add another.
    """
    below = Session.objects.below(session).order_by("depth", "id")
    locked: dict[UUID, Session] = {}
    while True:
        read = list(below.select_for_update(no_key=True, of=("self",)))
        if len(read) == len(locked):
            return read
        locked = {each.pk: each for each in read}


def _require_control(access: Access, session_id: UUID) -> Session:
    session = get_session(access=access, session_id=session_id, lock=Lock.WITH_PARENT)
    access.require(Action.SESSION_CONTROL, session.workspace_id, maker_id=session.maker_id)
    if session.status == SessionStatus.TERMINATED:
        raise Conflict("session_terminated", "This session was cancelled and takes no more work.")
    return session


def _lock_workspace(access: Access, workspace_id: UUID) -> WorkspaceHold:
    if workspace_id not in access.grants:
        raise NotFound
    access.require(Action.WORKSPACE_MANAGE, workspace_id)
    holds = WorkspaceHold.objects.select_for_update(no_key=True)
    return holds.get_or_create(workspace_id=workspace_id)[0]


def _settle_tree(session: Session, author: dict[str, Any]) -> None:
    """Write what the marks now say to the session and all below it."""
    hold = _hold_of(session.workspace_id)
    for each in [session, *lock_tree(session)]:
        _settle(each, hold, author, place=session.public_id)


def _settle_workspace(hold: WorkspaceHold, author: dict[str, Any]) -> None:
    sessions = Session.objects.filter(workspace_id=hold.workspace_id)
    is_concerned = Q(started_turn_id__isnull=False) | Q(ready_at__isnull=False)
    if not _mark(hold).stands:
        is_concerned = Q(paused_at__isnull=False)
    ordered = sessions.filter(is_concerned).order_by("depth", "id")
    for session in ordered.select_for_update(no_key=True, of=("self",)):
        _settle(session, hold, author, place=_place_of(hold))


def _settle(session: Session, hold: WorkspaceHold, author: dict[str, Any], *, place: str) -> None:
    held = is_held(_marks(session, hold))
    if held == session.is_paused or session.status == SessionStatus.TERMINATED:
        return
    said = {"place": place, "author": author}
    change = Change([Draft("session.paused" if held else "session.resumed", said)])
    session.paused_at = now() if held else None
    change.add(ready_at=ready_at(session, change))
    eventlog.append(session_id=session.pk, drafts=change.drafts, row=change.row)
    if held and session.live_attempt_id is not None:
        announce_attempt(attempt_id=session.live_attempt_id)
    if change.row["ready_at"] is not None:
        announce_turn()


def _hold_of(workspace_id: UUID) -> WorkspaceHold:
    """An empty one where the workspace was never paused."""
    found = WorkspaceHold.objects.filter(workspace_id=workspace_id).first()
    return found or WorkspaceHold(workspace_id=workspace_id)


def _place_of(hold: WorkspaceHold) -> str:
    return encode_id(Prefix.WORKSPACE, hold.workspace_id)


def _marks(session: Session, hold: WorkspaceHold) -> list[Mark]:
    """From the session up to its workspace."""
    above: list[Session] = []
    if session.ancestor_ids:
        rows = Session.objects.filter(pk__in=session.ancestor_ids).order_by("-depth")
        above = list(rows.only("pause_revision", "resume_revision"))
    places: list[Session | WorkspaceHold] = [session, *above, hold]
    return [_mark(place) for place in places]


def _mark(place: Session | WorkspaceHold) -> Mark:
    return Mark(place.pause_revision, place.resume_revision)
