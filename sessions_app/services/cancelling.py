"""Cancel: a session and all below it come to their final end, in one transaction."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.db import transaction

from orgs.access import Access
from orgs.roles import Action
from sessions_app import eventlog
from sessions_app.domain.events import Draft
from sessions_app.domain.turns import TurnCommand
from sessions_app.domain.vocabulary import SessionStatus, TurnStatus
from sessions_app.models import Session
from sessions_app.selectors import Lock, get_session
from sessions_app.services.children.reporting import report_rest
from sessions_app.services.ending import (
    Change,
    end_queue,
    end_started_turn,
    find_started_turn,
)
from sessions_app.services.holding import lock_tree
from sessions_app.wire import author_json


@dataclass(frozen=True, slots=True)
class Ends:
    """What a cancel would end: the number of the started turn, and how many of the others."""

    turn: int | None
    queued: int
    below: int


def preview_cancel(*, access: Access, session_id: UUID) -> Ends:
    """For the question before a cancel; writes nothing. Raises NotFound, Forbidden."""
    session = get_session(access=access, session_id=session_id)
    access.require(Action.SESSION_ADMINISTER, session.workspace_id, maker_id=session.maker_id)
    turn = find_started_turn(session)
    below = Session.objects.visible_to(access).below(session)
    return Ends(
        turn=turn.number if turn else None,
        queued=session.turns.filter(status=TurnStatus.QUEUED).count(),
        below=below.exclude(status=SessionStatus.TERMINATED).count(),
    )


@transaction.atomic
def cancel_session(*, access: Access, session_id: UUID) -> Session:
    """Drain the queues, end the running turns, and take no more work. Repeating it writes nothing.

    Raises NotFound, Forbidden.
    """
    session = get_session(access=access, session_id=session_id, lock=Lock.WITH_PARENT)
    access.require(Action.SESSION_ADMINISTER, session.workspace_id, maker_id=session.maker_id)
    # From the top down, so that of all these only the first finds a parent to report to.
    for each in [session, *lock_tree(session)]:
        _terminate(each, access)
    return get_session(access=access, session_id=session_id)


def _terminate(session: Session, access: Access) -> None:
    if session.status == SessionStatus.TERMINATED:
        return
    change = Change()
    turn = find_started_turn(session)
    if turn is not None:
        ending = Draft("turn.cancelled", turn_id=turn.pk)
        end_started_turn(session, turn, TurnCommand.STOP, ending, change)
    end_queue(session, TurnCommand.STOP, lambda: Draft("turn.cancelled"), change)
    change.add(Draft("session.status_terminated", {"author": author_json(access)}), ready_at=None)
    eventlog.append(session_id=session.pk, drafts=change.drafts, row=change.row)
    report_rest(session)
