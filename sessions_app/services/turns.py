"""Prompts become turns, and a running turn is stopped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import orjson
from django.conf import settings
from django.db import transaction

from core.errors import Conflict, InvalidInput
from orgs.access import Access
from orgs.roles import Action
from sessions_app import eventlog
from sessions_app.domain.events import Draft
from sessions_app.domain.projection import preview
from sessions_app.domain.vocabulary import SessionStatus, TurnSource
from sessions_app.eventlog.announce import announce_turn
from sessions_app.models import PersonalState, Session, Turn
from sessions_app.selectors import get_session
from sessions_app.services.composer_drafts import consume_draft
from sessions_app.services.interruption import stop_started_turn
from sessions_app.services.model_settings import RequestedSettings, resolve_request
from sessions_app.services.validation import require_content
from sessions_app.wire import author_json

RANK_STEP = 1 << 20  # room between neighbours, for moves


@dataclass(frozen=True, slots=True)
class Prompt:
    """`content` is text, or blocks {type: text, text}. `draft_revision` consumes that draft."""

    content: str | Sequence[Mapping[str, Any]]
    delivery: str = "queue"
    input: str = "text"
    requested: RequestedSettings = field(default_factory=RequestedSettings)
    draft_revision: int | None = None


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
    """Accept a prompt as a new turn, behind what is queued. `param` is its path in the request.

    Raises NotFound, Forbidden, Conflict (`session_archived`, `session_terminated`,
    `queue_full`), InvalidInput, TooLarge, Unprocessable.
    """
    session = get_session(access=access, session_id=session_id, lock=True)
    access.require(Action.SESSION_CONTROL, session.workspace_id, maker_id=session.maker_id)
    return submit_to(session, access=access, prompt=prompt, param=param)


def submit_to(session: Session, *, access: Access, prompt: Prompt, param: str = "") -> Receipt:
    """The same for a session that this transaction holds, or has just made."""
    dot = f"{param}." if param else ""
    content = require_content(prompt.content, param=f"{dot}content")
    _require_open(session)
    if prompt.delivery != "queue":
        raise InvalidInput(
            "unsupported_delivery", "Use the delivery “queue”.", param=f"{dot}delivery"
        )
    if prompt.input not in {"text", "voice"}:
        raise InvalidInput("invalid_input_kind", "Use text or voice.", param=f"{dot}input")
    requested = resolve_request(organization_id=session.organization_id, requested=prompt.requested)
    number = session.turn_count + 1
    turn = Turn(
        session_id=session.pk,
        number=number,
        source=TurnSource.HUMAN,
        rank=number * RANK_STEP,
        author_id=access.user_id,
        author_key_id=None if access.user_id else access.principal.id,
        preview_text=preview(content),
        requested_settings=requested.to_json(),
        prompt_seq=session.head_seq + 1,
    )
    # The row is held, so nobody else can number an event before ours.
    payload = _message_payload(access, prompt, content, requested.to_json())
    seqs = eventlog.append(
        session_id=session.pk,
        drafts=[
            Draft("user.message", payload),
            Draft("turn.queued", {"number": number, "held": False}),
        ],
        turn_id=turn.pk,
        row={"turn_count": number, "queue_version": session.queue_version + 1, **_ready(session)},
    )
    turn.prompt_seq = seqs[0]
    turn.save(force_insert=True)
    _note_author(session, access, prompt)
    announce_turn()
    event = eventlog.read_after(session_id=session.pk, after=seqs[0] - 1, limit=1)[0]
    return Receipt(turn.pk, event.seq, False, event.json)


@transaction.atomic
def interrupt_session(*, access: Access, session_id: UUID) -> Receipt:
    """Stop: ends the started turn as cancelled, keeps what it wrote, goes on with the queue.

    With nothing to stop it writes nothing and says so (`changed` False). Raises NotFound,
    Forbidden.
    """
    session = get_session(access=access, session_id=session_id, lock=True)
    access.require(Action.SESSION_CONTROL, session.workspace_id, maker_id=session.maker_id)
    author = author_json(access)
    seq = stop_started_turn(session, author=author)
    if seq is None:
        nothing = {"type": "user.interrupt", "id": None, "seq": None, "effect": "nothing_to_stop"}
        return Receipt(None, None, False, orjson.dumps(nothing).decode(), changed=False)
    event = eventlog.read_after(session_id=session.pk, after=seq - 1, limit=1)[0]
    return Receipt(event.turn_id, event.seq, False, event.json)


def _require_open(session: Session) -> None:
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


def _ready(session: Session) -> dict[str, Any]:
    """Claimable now, unless a turn runs or an earlier time to claim is already set."""
    is_taken = session.live_attempt_id is not None or session.ready_at is not None
    return {} if is_taken else {"ready_at": "now"}


def _message_payload(
    access: Access, prompt: Prompt, content: list[dict[str, str]], requested: dict[str, Any]
) -> dict[str, Any]:
    payload: dict[str, Any] = {
        "content": content,
        "delivery": prompt.delivery,
        "input": prompt.input,
        "author": author_json(access),
    }
    if requested["model_id"]:
        payload["model"] = {k: requested[k] for k in ("provider_id", "model_id")}
    for name in ("reasoning_effort", "speed"):
        if requested[name]:
            payload[name] = requested[name]
    return payload


def _note_author(session: Session, access: Access, prompt: Prompt) -> None:
    """Who sends follows the session, and the draft that was sent is gone."""
    if access.user_id is None:
        return
    PersonalState.objects.bulk_create(
        [PersonalState(session_id=session.pk, user_id=access.user_id, follows=True)],
        update_conflicts=True,
        update_fields=["follows"],
        unique_fields=["session", "user"],
    )
    if prompt.draft_revision is not None:
        consume_draft(user_id=access.user_id, session=session, sent_revision=prompt.draft_revision)
