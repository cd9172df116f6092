"""Archiving takes a session out of the active lists; removing destroys it."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from core.errors import Conflict
from orgs.access import Access, PrincipalKind
from orgs.roles import Action
from sessions_app import eventlog
from sessions_app.domain.events import Draft
from sessions_app.domain.turns import TurnCommand
from sessions_app.domain.vocabulary import AGENT_ORIGIN_TYPE, TurnStatus, Visibility
from sessions_app.eventlog.announce import announce
from sessions_app.models import Session
from sessions_app.selectors import get_session
from sessions_app.services.ending import (
    Change,
    end_queue,
    end_started_turn,
    find_started_turn,
    go_on,
)
from sessions_app.services.idempotency import forget_answers
from sessions_app.wire import author_json


@transaction.atomic
def archive_session(*, access: Access, session_id: UUID, stop: bool = False) -> Session:
    """Set, never toggled. A working session: Conflict `target_working`, unless a person's
    confirmed `stop` ends its task and withdraws its queue first.
    """
    session = get_session(access=access, session_id=session_id, lock=True)
    access.require(Action.SESSION_CONTROL, session.workspace_id, maker_id=session.maker_id)
    _require_not_agents_own(session)
    if session.archived_at is None:
        if session.is_working:
            _require_may_stop(access, session, stop)
            _stop_work(session, access)
        eventlog.append(
            session_id=session.pk,
            drafts=[Draft("session.archived")],
            row={"ready_at": None},
        )
    return get_session(access=access, session_id=session_id)


@transaction.atomic
def unarchive_session(*, access: Access, session_id: UUID) -> Session:
    """Back in place, idle: restoring never restarts stopped work."""
    session = get_session(access=access, session_id=session_id, lock=True)
    access.require(Action.SESSION_CONTROL, session.workspace_id, maker_id=session.maker_id)
    if session.archived_at is not None:
        eventlog.append(session_id=session.pk, drafts=[Draft("session.unarchived")])
    return get_session(access=access, session_id=session_id)


@transaction.atomic
def delete_session(*, access: Access, session_id: UUID, stop: bool = False) -> None:
    """Erases the session, its log and its rows. A working one: Conflict `target_working`,
    unless `stop`.
    """
    session = get_session(access=access, session_id=session_id, lock=True)
    access.require(Action.SESSION_ADMINISTER, session.workspace_id, maker_id=session.maker_id)
    _require_not_agents_own(session)
    if session.is_working:
        if not stop:
            raise Conflict(
                "target_working",
                "This session is working; stop it first, or delete it with stop=true.",
            )
        _stop_work(session, access)
    announce(
        session_id=session.pk,
        seq=session.head_seq,
        workspace_id=session.workspace_id,
        # Once it is gone nobody can tell who saw it: of a private one no sidebar hears.
        row_changed=session.visibility == Visibility.WORKSPACE,
    )
    forget_answers(session)
    eventlog.purge_events(session_id=session.pk)
    session.delete()


def _stop_work(session: Session, access: Access) -> None:
    """Ends the started turn and withdraws what is queued behind it."""
    author = author_json(access)
    change = Change()
    turn = find_started_turn(session)
    if turn is not None:
        change.add(Draft("user.interrupt", {"author": author}, turn_id=turn.pk))
        ending = Draft("turn.cancelled", turn_id=turn.pk)
        end_started_turn(session, turn, TurnCommand.STOP, ending, change)
    withdrawn = Draft("turn.withdrawn", {"reason": "archived", "author": author})
    end_queue(session, TurnCommand.WITHDRAW, lambda: withdrawn, change)
    go_on(session, change, stop_reason={"type": "interrupted"})
    eventlog.append(session_id=session.pk, drafts=change.drafts, row=change.row)


def _require_may_stop(access: Access, session: Session, stop: bool) -> None:
    if access.principal.kind is not PrincipalKind.USER:
        raise Conflict(
            "target_working",
            "This session is working. Ask a person to stop it, or leave it running.",
        )
    if not stop:
        raise Conflict(
            "target_working",
            "This session is working. Stop its current task and archive it, or keep it open.",
            details={
                "session_id": session.public_id,
                "title": session.title,
                "queued_prompts": session.turns.filter(status=TurnStatus.QUEUED).count(),
            },
        )


def _require_not_agents_own(session: Session) -> None:
    if session.origin_type == AGENT_ORIGIN_TYPE:
        raise Conflict(
            "agents_own_session", "An agent's own session can be cleared, not archived or removed."
        )
