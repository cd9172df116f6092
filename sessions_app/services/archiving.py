"""Archiving takes a session and its tree out of the active lists; removing destroys them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import transaction

from core.errors import Conflict
from core.ids import uuid7
from orgs.access import Access, PrincipalKind
from orgs.models.audit import AuditAction
from orgs.roles import Action, WorkspaceKind
from orgs.services import audit
from sessions_app import eventlog
from sessions_app.domain.events import Draft
from sessions_app.domain.turns import TurnCommand
from sessions_app.domain.vocabulary import AGENT_ORIGIN_TYPE, TurnStatus, Visibility
from sessions_app.eventlog.announce import (
    announce,
    announce_attempt,
    announce_rows,
    announce_waits,
)
from sessions_app.models import Session, Wait
from sessions_app.models.wait import ASKS_PEOPLE
from sessions_app.selectors import Lock, get_session
from sessions_app.services.children.reporting import release_from_waits, report_rest
from sessions_app.services.ending import (
    Change,
    end_queue,
    end_started_turn,
    find_started_turn,
    go_on,
)
from sessions_app.services.holding import hold_tree, lock_tree
from sessions_app.services.idempotency import forget_answers
from sessions_app.services.keeping import take_whole
from sessions_app.wire import author_json


@transaction.atomic
def archive_session(*, access: Access, session_id: UUID, stop: bool = False) -> Session:
    """Take the session and all below it out of the lists. Set, never toggled.

    Where one of them works: Conflict `target_working`, unless a person's confirmed `stop` ends
    their tasks and withdraws their queues first.
    """
    session = get_session(access=access, session_id=session_id, lock=Lock.WITH_PARENT)
    access.require(Action.SESSION_CONTROL, session.workspace_id, maker_id=session.maker_id)
    _require_not_agents_own(session)
    if session.archived_at is None:
        below = [each for each in lock_tree(session) if each.archived_at is None]
        taken = [session, *below]
        if any(each.is_at_work for each in taken):
            _require_may_stop(access, session, below, stop)
        archiving_id = uuid7()
        for each in taken:
            if each.is_at_work:
                _stop_work(each, access)
            eventlog.append(
                session_id=each.pk,
                drafts=[Draft("session.archived")],
                row={"ready_at": None, "archiving_id": archiving_id},
            )
        # Of all that is taken only this one has a parent that stays, and may wait for it.
        release_from_waits(session)
    return get_session(access=access, session_id=session_id)


@transaction.atomic
def unarchive_session(*, access: Access, session_id: UUID) -> Session:
    """Back in place, idle, with what the same archive took below it: restoring never restarts
    stopped work, nor lets held prompts go. Raises NotFound, Forbidden, Conflict `parent_archived`.
    """
    session = get_session(access=access, session_id=session_id, lock=Lock.WITH_PARENT)
    access.require(Action.SESSION_CONTROL, session.workspace_id, maker_id=session.maker_id)
    if session.archived_at is not None:
        _require_parent_in_place(session)
        together = [
            each
            for each in lock_tree(session)
            if each.archived_at is not None and each.archiving_id == session.archiving_id
        ]
        for each in [session, *together]:
            eventlog.append(
                session_id=each.pk,
                drafts=[Draft("session.unarchived")],
                row={"archiving_id": None},
            )
        for each in [session, *together]:
            _keep_held(each, access)
    return get_session(access=access, session_id=session_id)


@transaction.atomic
def delete_session(*, access: Access, session_id: UUID, stop: bool = False) -> None:
    """Erases the session and all below it: logs and rows. Where one of them works: Conflict
    `target_working`, unless `stop`.
    """
    session = get_session(access=access, session_id=session_id, lock=Lock.WITH_PARENT)
    access.require(Action.SESSION_ADMINISTER, session.workspace_id, maker_id=session.maker_id)
    _require_not_agents_own(session)
    below = lock_tree(session)
    shared = count_shared([session, *below])
    target = audit.Target("session", session.public_id, session.public_id)
    doomed = [session, *below]
    if any(each.is_at_work for each in doomed) and not stop:
        raise Conflict(
            "target_working",
            "This session or one below it is working; stop it first, or delete it with stop=true.",
            details=_told_of(session, below),
        )
    erase_tree(session, below, access=access)
    if shared:
        audit.record(
            access=access,
            organization_id=session.organization_id,
            workspace_id=session.workspace_id,
            action=AuditAction.SESSION_REMOVED,
            target=target,
            changes={"sessions": (shared, 0)},
        )


def count_shared(sessions: Sequence[Session]) -> int:
    """Those that an audit log may tell of: not what one person keeps."""
    return sum(
        each.visibility == Visibility.WORKSPACE and each.workspace.kind == WorkspaceKind.SHARED
        for each in sessions
    )


def erase_tree(session: Session, below: list[Session], *, access: Access) -> None:
    """Ends what works in a locked tree, and erases it from the bottom up."""
    # It may have a parent to report to; those below have not.
    _stop_work(session, access)
    _silence(below)
    take_whole(session, below)
    for each in reversed([session, *below]):
        _erase(each)


def _keep_held(session: Session, access: Access) -> None:
    """Held prompts wait on where their pause was ended while the session was archived: that it
    comes back is nobody's word that they may run.
    """
    session.refresh_from_db()
    if not session.is_paused and session.turns.filter(status=TurnStatus.QUEUED).exists():
        hold_tree(session, access=access)


def _silence(doomed: list[Session]) -> None:
    """The workers of a tree that is about to be erased stop at once, and inboxes drop what it asks.

    From the top down. Nothing is written: nobody could read it.
    """
    for session in doomed:
        if session.live_attempt_id is not None:
            announce_attempt(attempt_id=session.live_attempt_id)
    if Wait.objects.filter(ASKS_PEOPLE, session__in=doomed).exists():
        announce_waits(session=doomed[0])


def _erase(session: Session) -> None:
    announce(
        session_id=session.pk,
        seq=session.head_seq,
        workspace_id=session.workspace_id,
        # Once it is gone nobody can tell who saw it: of a private one no sidebar hears.
        row_changed=session.visibility == Visibility.WORKSPACE,
    )
    announce_rows(session_ids=session.ancestor_ids, workspace_id=session.workspace_id)
    forget_answers(session)
    eventlog.purge_events(session_id=session.pk)
    session.delete()


def _stop_work(session: Session, access: Access) -> None:
    """Ends the started turn and withdraws what is queued behind it. Nothing to stop: nothing."""
    author = author_json(access)
    change = Change()
    turn = find_started_turn(session)
    if turn is not None:
        change.add(Draft("user.interrupt", {"author": author}, turn_id=turn.pk))
        ending = Draft("turn.cancelled", turn_id=turn.pk)
        end_started_turn(session, turn, TurnCommand.STOP, ending, change)
    withdrawn = Draft("turn.withdrawn", {"reason": "archived", "author": author})
    end_queue(session, TurnCommand.WITHDRAW, lambda: withdrawn, change)
    if not change.drafts:
        return
    go_on(session, change, stop_reason={"type": "interrupted"})
    eventlog.append(session_id=session.pk, drafts=change.drafts, row=change.row)
    report_rest(session)


def _require_parent_in_place(session: Session) -> None:
    if session.parent is not None and session.parent.archived_at is not None:
        raise Conflict(
            "parent_archived",
            "The session above this one is archived; restore that one, and this comes with it.",
            details={"parent_id": session.parent.public_id},
        )


def _require_may_stop(access: Access, session: Session, below: list[Session], stop: bool) -> None:
    if access.principal.kind is not PrincipalKind.USER:
        raise Conflict(
            "target_working",
            "This session is working. Ask a person to stop it, or leave it running.",
            details=_told_of(session, below),
        )
    if not stop:
        raise Conflict(
            "target_working",
            "This session is working. Stop its current task and archive it, or keep it open.",
            details=_told_of(session, below),
        )


def _told_of(session: Session, below: list[Session]) -> dict[str, Any]:
    """What would end: for the question that is asked before it does."""
    return {
        "session_id": session.public_id,
        "title": session.title,
        "queued_prompts": session.turns.filter(status=TurnStatus.QUEUED).count(),
        "sessions_below": len(below),
    }


def _require_not_agents_own(session: Session) -> None:
    if session.origin_type == AGENT_ORIGIN_TYPE:
        raise Conflict(
            "agents_own_session", "An agent's own session can be cleared, not archived or removed."
        )
