"""Prompts become turns: behind the queue, or in place of the running one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction

from core.errors import Conflict, InvalidInput
from orgs.access import Access
from orgs.roles import Action
from sessions_app import eventlog
from sessions_app.domain.events import Draft
from sessions_app.domain.projection import preview
from sessions_app.domain.turns import TurnCommand
from sessions_app.domain.vocabulary import SessionStatus, TurnSource, TurnStatus
from sessions_app.eventlog.announce import announce_turn
from sessions_app.models import ComposerDraft, PersonalState, Session, Turn
from sessions_app.selectors import Lock, get_session
from sessions_app.services.composer_drafts import consume_draft
from sessions_app.services.ending import (
    Change,
    end_started_turn,
    find_started_turn,
    go_on,
    ready_at,
)
from sessions_app.services.holding import inherit_hold, resume_held
from sessions_app.services.model_settings import (
    RequestedSettings,
    require_available,
    resolve_request,
)
from sessions_app.services.open_waits import open_event_ids
from sessions_app.services.validation import require_content
from sessions_app.wire import author_json

RANK_STEP = 1 << 20  # room between neighbours, for moves


@dataclass(frozen=True, slots=True)
class Prompt:
    """`content` is text, or blocks {type: text, text}. `draft_revision` consumes that draft;
    `resume` releases a paused session in the same step. `by_agent`: the author {type, id, name}
    where an agent wrote it, for whoever's access it has.
    """

    content: str | Sequence[Mapping[str, Any]]
    delivery: str = "queue"
    input: str = "text"
    requested: RequestedSettings = field(default_factory=RequestedSettings)
    draft_revision: int | None = None
    resume: bool = False
    by_agent: Mapping[str, Any] | None = None

    @property
    def source(self) -> TurnSource:
        return TurnSource.HUMAN if self.by_agent is None else TurnSource.MACHINE


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was accepted, never "started". `event_json` is the event as the log has it."""

    turn_id: UUID | None
    seq: int | None
    held: bool
    event_json: str
    changed: bool = True


@transaction.atomic
def submit_prompt(*, access: Access, session_id: UUID, prompt: Prompt, param: str = "") -> Receipt:
    """Accept a prompt as a new turn. `param` is its path in the request.

    Raises NotFound, Forbidden, Conflict (`session_archived`, `session_terminated`,
    `queue_full`), InvalidInput, TooLarge, Unprocessable.
    """
    session = get_session(access=access, session_id=session_id, lock=Lock.WITH_PARENT)
    access.require(Action.SESSION_CONTROL, session.workspace_id, maker_id=session.maker_id)
    return submit_to(session, access=access, prompt=prompt, param=param)


def submit_to(session: Session, *, access: Access, prompt: Prompt, param: str = "") -> Receipt:
    """The same for a session that this transaction holds, or has just made."""
    dot = f"{param}." if param else ""
    content = require_content(prompt.content, param=f"{dot}content")
    require_open(session)
    if prompt.delivery not in {"queue", "steer"}:
        raise InvalidInput(
            "unsupported_delivery", "Use the delivery “queue” or “steer”.", param=f"{dot}delivery"
        )
    if prompt.input not in {"text", "voice"}:
        raise InvalidInput("invalid_input_kind", "Use text or voice.", param=f"{dot}input")
    requested = resolve_request(organization_id=session.organization_id, requested=prompt.requested)
    require_available(session=session, requested=requested, param=f"{dot}model")
    if prompt.resume:
        resume_held(session, access=access)
    inherit_hold(session)
    edited = _find_edited_turn(access, session, prompt)
    accepted = Accepted(
        author=access,
        content=content,
        requested=requested.to_json(),
        payload=_message_payload(access, prompt, content, requested.to_json()),
        source=prompt.source,
        is_steering=prompt.delivery == "steer",
        edited=edited,
    )
    receipt = accept(session, accepted)
    _note_author(session, access, prompt)
    return receipt


@dataclass(frozen=True, slots=True)
class Accepted:
    """A prompt that may become a turn: everything is checked. `payload` is its user.message;
    `is_first`: it goes before what is queued, and disturbs nothing that runs.
    """

    author: Access
    content: list[dict[str, str]]
    requested: dict[str, Any]
    payload: dict[str, Any]
    source: TurnSource = TurnSource.HUMAN
    is_steering: bool = False
    is_first: bool = False
    edited: Turn | None = None
    retry_of: Turn | None = None


def accept(session: Session, accepted: Accepted) -> Receipt:
    """Make the turn. It takes the place of the started one if it steers, or if that one waits for
    a person: then it goes before what is queued.
    """
    started = find_started_turn(session)
    takes_place = started is not None and (
        accepted.is_steering or _replaces_wait(started, accepted.source)
    )
    is_ahead = takes_place or accepted.is_steering or accepted.is_first
    turn = _new_turn(session, accepted, is_steering=is_ahead)
    turn.save(force_insert=True)
    change = _announcing(session, turn, accepted)
    if takes_place and started is not None:
        superseded = Draft("turn.superseded", {"by": turn.public_id}, turn_id=started.pk)
        end_started_turn(session, started, TurnCommand.SUPERSEDE, superseded, change)
        go_on(session, change, stop_reason={"type": "interrupted"})
    elif session.ready_at is None:
        change.add(ready_at=ready_at(session, change))
    # The row is held, so nobody else can number an event before ours.
    seqs = eventlog.append(
        session_id=session.pk, drafts=change.drafts, turn_id=turn.pk, row=change.row
    )
    announce_turn()
    event = eventlog.read_after(session_id=session.pk, after=seqs[0] - 1, limit=1)[0]
    return Receipt(turn.pk, event.seq, session.is_paused, event.json)


def _replaces_wait(started: Turn, source: TurnSource) -> bool:
    """A person's or a key's prompt takes the place of what waits for people; of what waits for
    children alone it does not, that is work in progress.
    """
    is_human = source == TurnSource.HUMAN
    return is_human and started.status == TurnStatus.WAITING and bool(open_event_ids(started))


def _new_turn(session: Session, accepted: Accepted, *, is_steering: bool) -> Turn:
    number = session.turn_count + 1
    access, edited = accepted.author, accepted.edited
    return Turn(
        session_id=session.pk,
        number=number,
        source=accepted.source,
        rank=edited.rank if edited else number * RANK_STEP,
        is_steering=is_steering or (edited is not None and edited.is_steering),
        author_id=access.user_id,
        author_key_id=None if access.user_id else access.principal.id,
        preview_text=preview(accepted.content),
        requested_settings=accepted.requested,
        retry_of=accepted.retry_of,
        prompt_seq=session.head_seq + 1,
    )


def _announcing(session: Session, turn: Turn, accepted: Accepted) -> Change:
    queued: dict[str, Any] = {"number": turn.number, "held": session.is_paused}
    if accepted.retry_of is not None:
        queued["retry_of"] = accepted.retry_of.public_id
    change = Change([Draft("user.message", accepted.payload), Draft("turn.queued", queued)])
    if accepted.edited is not None:
        change.add(Draft("turn.edited", {"replaces": accepted.edited.public_id}))
    change.add(turn_count=turn.number, queue_version=session.queue_version + 1)
    return change


def require_open(session: Session) -> None:
    if session.archived_at is not None:
        raise Conflict("session_archived", "This session is archived; restore it to go on with it.")
    if session.status == SessionStatus.TERMINATED:
        raise Conflict("session_terminated", "This session was cancelled and takes no more work.")
    if session.turns.filter(status="queued").count() >= settings.QUEUE_MAX_TURNS:
        raise Conflict(
            "queue_full",
            f"At most {settings.QUEUE_MAX_TURNS} prompts wait in a session; "
            "send again when some have run.",
        )


def _message_payload(
    access: Access, prompt: Prompt, content: list[dict[str, str]], requested: dict[str, Any]
) -> dict[str, Any]:
    payload: dict[str, Any] = {
        "content": content,
        "delivery": prompt.delivery,
        "input": prompt.input,
        "author": dict(prompt.by_agent or author_json(access)),
    }
    if requested["model_id"]:
        payload["model"] = {k: requested[k] for k in ("provider_id", "model_id")}
    for name in ("reasoning_effort", "speed"):
        if requested[name]:
            payload[name] = requested[name]
    return payload


def _note_author(session: Session, access: Access, prompt: Prompt) -> None:
    """Who sends follows the session, and the draft that was sent is gone."""
    if access.user_id is None or prompt.by_agent is not None:
        return
    PersonalState.objects.bulk_create(
        [PersonalState(session_id=session.pk, user_id=access.user_id, follows=True)],
        update_conflicts=True,
        update_fields=["follows"],
        unique_fields=["session", "user"],
    )
    if prompt.draft_revision is not None:
        consume_draft(user_id=access.user_id, session=session, sent_revision=prompt.draft_revision)


def _find_edited_turn(access: Access, session: Session, prompt: Prompt) -> Turn | None:
    """The withdrawn prompt whose place in the queue this one has."""
    if access.user_id is None or prompt.draft_revision is None:
        return None
    drafts = ComposerDraft.objects.filter(user_id=access.user_id, session_id=session.pk)
    draft = drafts.select_related("edits").first()
    return draft.edits if draft else None
