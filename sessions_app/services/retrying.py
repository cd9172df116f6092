"""Retry: the prompt of a failed turn once more, as a new turn before what is queued."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from core.errors import Conflict, NotFound
from orgs.access import Access
from orgs.roles import Action
from sessions_app import eventlog
from sessions_app.domain.vocabulary import TurnStatus
from sessions_app.models import Turn
from sessions_app.selectors import Lock, get_session
from sessions_app.services.turns import Accepted, Receipt, accept, require_open
from sessions_app.wire import author_json

KEPT = ("content", "input", "model", "reasoning_effort", "speed")


@transaction.atomic
def retry_turn(*, access: Access, session_id: UUID, turn_id: UUID | None = None) -> Receipt:
    """`turn_id` None: the newest turn. What the failed one did stays in the conversation.

    Raises NotFound, Forbidden, Conflict `turn_not_failed`, `already_retried`, `session_archived`,
    `session_terminated`, `queue_full`.
    """
    session = get_session(access=access, session_id=session_id, lock=Lock.WITH_PARENT)
    access.require(Action.SESSION_CONTROL, session.workspace_id, maker_id=session.maker_id)
    require_open(session)
    turns = session.turns.order_by("-number")
    turn = (turns.filter(pk=turn_id) if turn_id else turns).first()
    if turn is None:
        raise NotFound
    if turn.status != TurnStatus.FAILED:
        message = f"Only a failed turn is retried; this one is {turn.status}."
        raise Conflict("turn_not_failed", message)
    if (again := Turn.objects.filter(retry_of=turn).first()) is not None:
        raise Conflict(
            "already_retried",
            "This turn was retried already; retry the newer one if it failed too.",
            details={"turn_id": again.public_id},
        )
    prompt = eventlog.read_after(session_id=session.pk, after=turn.prompt_seq - 1, limit=1)[0].data
    payload = {name: prompt[name] for name in KEPT if name in prompt}
    return accept(
        session,
        Accepted(
            author=access,
            content=prompt["content"],
            requested=turn.requested_settings,
            payload={**payload, "delivery": "queue", "author": author_json(access)},
            retry_of=turn,
            is_first=True,
        ),
    )
