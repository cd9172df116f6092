"""Stop: ends the started turn, keeps what it wrote, goes on with the queue."""

from __future__ import annotations

from uuid import UUID

import orjson
from django.db import transaction

from orgs.access import Access
from orgs.roles import Action
from sessions_app import eventlog
from sessions_app.domain.events import Draft
from sessions_app.domain.turns import TurnCommand
from sessions_app.eventlog.announce import announce_turn
from sessions_app.selectors import Lock, get_session
from sessions_app.services.children.reporting import report_rest
from sessions_app.services.ending import Change, end_started_turn, find_started_turn, go_on
from sessions_app.services.turns import Receipt
from sessions_app.wire import author_json


@transaction.atomic
def interrupt_session(*, access: Access, session_id: UUID) -> Receipt:
    """End the started turn as cancelled, also one that waits.

    With nothing to stop it writes nothing and says so (`changed` False). Raises NotFound,
    Forbidden.
    """
    session = get_session(access=access, session_id=session_id, lock=Lock.WITH_PARENT)
    access.require(Action.SESSION_CONTROL, session.workspace_id, maker_id=session.maker_id)
    turn = find_started_turn(session)
    if turn is None:
        nothing = {"type": "user.interrupt", "id": None, "seq": None, "effect": "nothing_to_stop"}
        return Receipt(None, None, False, orjson.dumps(nothing).decode(), changed=False)
    change = Change([Draft("user.interrupt", {"author": author_json(access)})])
    end_started_turn(session, turn, TurnCommand.STOP, Draft("turn.cancelled"), change)
    go_on(session, change, stop_reason={"type": "interrupted"})
    seqs = eventlog.append(
        session_id=session.pk, drafts=change.drafts, turn_id=turn.pk, row=change.row
    )
    announce_turn()
    report_rest(session)
    event = eventlog.read_after(session_id=session.pk, after=seqs[0] - 1, limit=1)[0]
    return Receipt(turn.pk, event.seq, False, event.json)
