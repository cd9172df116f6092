"""The queue in people's hands: edit, delete, move, promote, until a worker claims the turn.

Every command names the queue's version that its caller saw. A turn that has started since says so
(`turn_started`); otherwise a stale version is refused with the queue as it is now.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction

from core.clock import now
from core.errors import Conflict, Forbidden, InvalidInput, NotFound
from orgs.access import Access
from orgs.roles import Action
from sessions_app import eventlog
from sessions_app.domain.events import Draft
from sessions_app.domain.turns import TurnCommand, next_status
from sessions_app.domain.vocabulary import TurnStatus
from sessions_app.eventlog.announce import announce_draft, announce_turn
from sessions_app.models import QUEUE_ORDER, ComposerDraft, Session, Turn
from sessions_app.selectors import Lock, Queue, get_session, list_queue
from sessions_app.services.children.reporting import report_rest
from sessions_app.services.ending import (
    Change,
    end_started_turn,
    find_started_turn,
    go_on,
    ready_at,
)
from sessions_app.services.turns import RANK_STEP
from sessions_app.wire import author_json, queue_json


@dataclass(frozen=True, slots=True)
class QueuedTurn:
    """Which turn, in the queue as its caller saw it."""

    session_id: UUID
    turn_id: UUID
    expected_version: int


@transaction.atomic
def delete_queued(*, access: Access, queued: QueuedTurn) -> Queue:
    """Take a prompt out of the queue for good.

    Raises NotFound, Forbidden, Conflict `turn_started`, `turn_ended`, `stale_version`.
    """
    session, turn = _take(access, queued, TurnCommand.WITHDRAW)
    _withdraw(session, turn, reason="deleted", access=access)
    return list_queue(access=access, session_id=session.pk)


@transaction.atomic
def edit_queued(*, access: Access, queued: QueuedTurn) -> ComposerDraft:
    """Take a prompt out of the queue and put its text into this person's draft, before what they
    may have written there. Sent from there, it has its old place.

    Raises what delete does, Forbidden `needs_a_person`, Conflict `draft_full`.
    """
    if access.user_id is None:
        get_session(access=access, session_id=queued.session_id)
        raise Forbidden(
            "needs_a_person",
            "Editing puts the prompt into a person's draft; a key deletes it and sends another.",
        )
    session, turn = _take(access, queued, TurnCommand.WITHDRAW)
    drafts = ComposerDraft.objects.select_for_update(no_key=True)
    draft, _ = drafts.get_or_create(
        user_id=access.user_id, workspace_id=session.workspace_id, session_id=session.pk
    )
    text = "\n\n".join(filter(None, (_text_of(turn), draft.text)))
    if len(text) > settings.PROMPT_MAX_CHARACTERS:
        raise Conflict("draft_full", "Send or empty the text in the composer first.")
    draft.text, draft.revision, draft.updated_at = text, draft.revision + 1, now()
    draft.edits = turn
    draft.save()
    _withdraw(session, turn, reason="edited", access=access)
    announce_draft(user_id=access.user_id, session_id=session.pk, revision=draft.revision)
    return draft


@transaction.atomic
def move_queued(*, access: Access, queued: QueuedTurn, position: int) -> Queue:
    """Put a prompt at another place, counted from 1; beyond its kind's end is at its end.

    People's prompts stay before machines'. Raises what delete does, InvalidInput.
    """
    if position < 1:
        raise InvalidInput("invalid_position", "Positions count from 1.", param="position")
    session, turn = _take(access, queued, TurnCommand.MOVE)
    queue = list(session.turns.filter(status=TurnStatus.QUEUED).order_by(*QUEUE_ORDER))
    kind = [each for each in queue if each.source == turn.source]
    others = [each for each in kind if each.pk != turn.pk]
    before = queue.index(kind[0])
    place = min(max(position - 1 - before, 0), len(others))
    if [*others[:place], turn, *others[place:]] != kind:
        _place(turn, others, place)
        _changed(session, turn, "moved", before + place + 1, access=access)
    return list_queue(access=access, session_id=session.pk)


@transaction.atomic
def promote_queued(*, access: Access, queued: QueuedTurn) -> Queue:
    """Send now: the queued turn takes the place of the running one. It stays the same turn.

    Raises what delete does.
    """
    session, turn = _take(access, queued, TurnCommand.PROMOTE)
    turn.is_steering = True
    turn.save(update_fields=["is_steering"])
    change = _change(session, turn, "promoted", 1, access=access)
    started = find_started_turn(session)
    if started is not None:
        superseded = Draft("turn.superseded", {"by": turn.public_id}, turn_id=started.pk)
        end_started_turn(session, started, TurnCommand.SUPERSEDE, superseded, change)
        go_on(session, change, stop_reason={"type": "interrupted"})
    eventlog.append(session_id=session.pk, drafts=change.drafts, row=change.row)
    announce_turn()
    return list_queue(access=access, session_id=session.pk)


def _take(access: Access, queued: QueuedTurn, command: TurnCommand) -> tuple[Session, Turn]:
    session = get_session(access=access, session_id=queued.session_id, lock=Lock.WITH_PARENT)
    turn = session.turns.filter(pk=queued.turn_id).first()
    if turn is None:
        raise NotFound
    access.require(Action.SESSION_CONTROL, session.workspace_id, maker_id=session.maker_id)
    # A claim changes the version as well; that the turn has started is the better answer.
    next_status(TurnStatus(turn.status), command)
    if queued.expected_version != session.queue_version:
        queue = list_queue(access=access, session_id=session.pk)
        raise Conflict(
            "stale_version",
            "The queue has changed since; look at it and try again.",
            param="expected_version",
            details={"current": queue_json(queue.turns, queue.version)},
        )
    return session, turn


def _withdraw(session: Session, turn: Turn, *, reason: str, access: Access) -> None:
    turn.status = next_status(TurnStatus(turn.status), TurnCommand.WITHDRAW)
    turn.ended_at = now()
    turn.save(update_fields=["status", "ended_at"])
    payload = {"reason": reason, "author": author_json(access)}
    change = Change([Draft("turn.withdrawn", payload)])
    change.add(queue_version=session.queue_version + 1)
    change.add(ready_at=ready_at(session, change) and session.ready_at)
    eventlog.append(session_id=session.pk, drafts=change.drafts, turn_id=turn.pk, row=change.row)
    report_rest(session)


def _place(turn: Turn, others: list[Turn], place: int) -> None:
    """Between its new neighbours; where there is no room between them all are ranked anew."""
    above = others[place - 1] if place else None
    below = others[place] if place < len(others) else None
    # Before a turn that steers, it goes before the queue as well.
    turn.is_steering = below is not None and below.is_steering
    peers = [each for each in others if each.is_steering == turn.is_steering]
    if above is not None and above.is_steering != turn.is_steering:
        above = None
    low = above.rank if above else (below.rank - 2 * RANK_STEP if below else 0)
    high = below.rank if below else low + 2 * RANK_STEP
    if high - low >= 2:
        turn.rank = (low + high) // 2
        turn.save(update_fields=["rank", "is_steering"])
        return
    place = peers.index(below) if below else len(peers)
    for number, each in enumerate([*peers[:place], turn, *peers[place:]], start=1):
        each.rank = number * RANK_STEP
    Turn.objects.bulk_update([*peers, turn], ["rank", "is_steering"])


def _changed(session: Session, turn: Turn, what: str, position: int, *, access: Access) -> None:
    change = _change(session, turn, what, position, access=access)
    eventlog.append(session_id=session.pk, drafts=change.drafts, row=change.row)


def _change(session: Session, turn: Turn, what: str, position: int, *, access: Access) -> Change:
    version = session.queue_version + 1
    payload: dict[str, Any] = {
        "version": version,
        "change": what,
        "position": position,
        "author": author_json(access),
    }
    return Change([Draft("queue.changed", payload, turn_id=turn.pk)], {"queue_version": version})


def _text_of(turn: Turn) -> str:
    """The words of its prompt."""
    found = eventlog.read_after(session_id=turn.session_id, after=turn.prompt_seq - 1, limit=1)
    blocks = found[0].data["content"]
    return "\n\n".join(block["text"] for block in blocks if block["type"] == "text")
