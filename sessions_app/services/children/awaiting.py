"""A call waits for children, or asks what became of one. Both belong to the parent's live attempt.

Each gives the draft that ends the call, or that says for whom it waits; the caller, who holds the
parent, appends it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import F, Q, QuerySet

from core.clock import now, rfc3339
from core.errors import InvalidInput
from core.ids import InvalidId, Prefix, decode_id
from sessions_app import eventlog
from sessions_app.domain.events import Draft
from sessions_app.domain.vocabulary import WaitKind
from sessions_app.models import Session, Turn, Wait
from sessions_app.services.calls import Call
from sessions_app.services.children.results import (
    TOLD_COLUMNS,
    describe,
    results_of,
    results_of_deleted,
    tell_results,
)

NAMED_MAX = 100  # children in one call: what is told of so many fits into its result


def wait_for_children(
    parent: Session,
    *,
    turn: Turn,
    call: Call,
    named: Sequence[str] | None,
    timeout_seconds: int | None = None,
) -> Draft:
    """Wait until each named child has a result; `named` None: those that have work, or
    whose result came in during this turn and was not told yet, the first NAMED_MAX of them.

    Children whose results are there are not waited for. Raises InvalidInput `unknown_child`,
    `no_children`.
    """
    children, deleted = _asked_for(parent, turn, named)
    unfinished = _unfinished(children)
    if not (children or deleted):
        raise InvalidInput("no_children", "No child session of this one has work.")
    if not unfinished:
        return tell_results(call, children, results_of(parent, children), deleted=deleted)
    expires_at = None
    if timeout_seconds is not None:
        expires_at = now() + timedelta(seconds=timeout_seconds)
    Wait.objects.create(
        session=parent,
        turn=turn,
        kind=WaitKind.CHILDREN,
        event_seq=parent.head_seq + 1,  # of the child.awaited below: the parent is held
        tool_use_seq=call.tool_use_seq,
        tool_name=call.name,
        request={
            "call_id": call.call_id,
            "child_ids": [
                *(child.pk.hex for child in children),
                *(_child_id(result["child_id"]).hex for result in deleted),
            ],
            "remaining": [child.pk.hex for child in children if child.pk in unfinished],
        },
        expires_at=expires_at,
    )
    return Draft(
        "child.awaited",
        {
            "tool_use_id": call.tool_use_id,
            "child_ids": [child.public_id for child in children],
            "expires_at": rfc3339(expires_at),
        },
    )


def child_result(parent: Session, *, call: Call, named: str) -> Draft:
    """What became of one child, without waiting. Raises InvalidInput `unknown_child`."""
    children, deleted = _named(parent, [named])
    if _unfinished(children):
        return call.result(describe(children[0], None))
    return tell_results(call, children, results_of(parent, children), deleted=deleted)


def _asked_for(
    parent: Session, turn: Turn, named: Sequence[str] | None
) -> tuple[list[Session], list[Mapping[str, Any]]]:
    return (_with_work_or_news(turn), []) if named is None else _named(parent, named)


def _children(parent_id: UUID) -> QuerySet[Session]:
    """In the order in which they were started, with the columns that are told of them."""
    children = Session.objects.filter(parent_id=parent_id)
    return children.order_by("created_at", "pk").only(*TOLD_COLUMNS)


def _named(parent: Session, named: Sequence[str]) -> tuple[list[Session], list[Mapping[str, Any]]]:
    """The children, and the last results of those that were deleted."""
    wanted = {_child_id(public_id): public_id for public_id in named}
    found = list(_children(parent.pk).filter(pk__in=wanted))
    missing = wanted.keys() - {child.pk for child in found}
    deleted = results_of_deleted(parent, missing)
    if unknown := [result["child_id"] for result in deleted if "id" not in result]:
        raise _unknown(unknown)
    return found, deleted


def _with_work_or_news(turn: Turn) -> list[Session]:
    """Those that have work, and those whose result came in during the turn and was not told yet:
    what came in before the turn, its first step has seen.
    """
    began = turn.started_seq or 0
    told = eventlog.find_told_results(session_id=turn.session_id, turn_id=turn.pk, since=began)
    has_work = Q(turn_count__gt=F("reported_turns"), archived_at__isnull=True)
    has_news = Q(turn_count=F("reported_turns"), result_seq__gt=began) & ~Q(result_seq__in=told)
    return list(_children(turn.session_id).filter(has_work | has_news)[:NAMED_MAX])


def _child_id(public_id: str) -> UUID:
    try:
        return decode_id(Prefix.SESSION, public_id)
    except InvalidId:
        raise _unknown([public_id]) from None


def _unknown(ids: Any) -> InvalidInput:
    named = ", ".join(str(each)[:80] for each in ids)
    return InvalidInput("unknown_child", f"This session has no child session {named}.")


def _unfinished(children: Collection[Session]) -> set[UUID]:
    """Those whose parent still has a result to come: decided by what a child's end writes. What an
    archived one holds does not run.
    """
    return {c.pk for c in children if c.has_unreported_work and c.archived_at is None}
