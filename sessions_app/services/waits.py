"""People and product keys decide what a turn waits for. The first decision wins.

One transaction holds the session: the decision, the wait's row, what the model is told, and what
the session does next. Agents decide nothing: there is no way here for one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import orjson
from django.db import transaction

from core.clock import now, rfc3339
from core.errors import Conflict, Forbidden, InvalidInput, TooLarge
from core.ids import InvalidId, parse_event_id
from orgs.access import Access, PrincipalKind
from orgs.roles import Action
from sessions_app import eventlog
from sessions_app.domain.events import Draft
from sessions_app.domain.questions import parse_answers
from sessions_app.domain.vocabulary import WaitKind, WaitStatus
from sessions_app.eventlog.announce import announce_waits
from sessions_app.models import Session, Wait
from sessions_app.selectors import Lock, get_session
from sessions_app.services.open_waits import closed, result
from sessions_app.services.settling import settle_wait
from sessions_app.services.turns import Receipt
from sessions_app.services.validation import require_storable
from sessions_app.wire import author_json

DENY_MESSAGE_MAX_CHARACTERS = 10_000
DECIDERS = frozenset({PrincipalKind.USER, PrincipalKind.KEY})
SKIPPED = "The person skipped the question. Go on without an answer."


@dataclass(frozen=True, slots=True)
class Confirmation:
    """`allow` False denies, with a message for the model. `for_session`: this tool asks no more."""

    tool_use_id: str
    allow: bool
    deny_message: str = ""
    for_session: bool = False


@dataclass(frozen=True, slots=True)
class QuestionReply:
    """`question_id` is the id of the agent.question event, `answers` go by the questions' ids."""

    question_id: str
    answers: Any = field(default_factory=dict)
    skip: bool = False


@transaction.atomic
def confirm_call(
    *, access: Access, session_id: UUID, confirmation: Confirmation, param: str = ""
) -> Receipt:
    """Allow or deny a call that waits. `param` is the path of the confirmation in the request.

    Raises NotFound, Forbidden; InvalidInput `unknown_tool_use`, `invalid_confirmation`; Conflict
    `already_decided`, `wait_closed`.
    """
    session = _hold(access, session_id)
    dot = f"{param}." if param else ""
    _require_confirmation(confirmation, dot)
    sent_id, path = confirmation.tool_use_id, f"{dot}tool_use_id"
    wait = _find(session, WaitKind.APPROVAL, sent_id, "unknown_tool_use", path)
    allowed = confirmation.allow
    answer: dict[str, Any] = {
        "result": "allow" if allowed else "deny",
        "scope": "session" if confirmation.for_session else "once",
    }
    if confirmation.deny_message:
        answer["deny_message"] = confirmation.deny_message
    payload = {
        **answer,
        "tool_use_id": wait.tool_use_id,
        "tool_name": wait.tool_name,
        "author": author_json(access),
    }
    drafts = [Draft("user.tool_confirmation", payload)]
    if not allowed:
        drafts.append(result(wait, "denied", _denial(access, confirmation.deny_message)))
    return _decide(access, session, wait, answer, drafts)


@transaction.atomic
def answer_question(
    *, access: Access, session_id: UUID, reply: QuestionReply, param: str = ""
) -> Receipt:
    """Answer an open question, or skip it. `param` is the path of the reply in the request.

    Raises NotFound, Forbidden; InvalidInput and TooLarge as `parse_answers`, InvalidInput
    `unknown_question`, `not_skippable`; Conflict `already_decided`, `expired`, `wait_closed`.
    """
    session = _hold(access, session_id)
    dot = f"{param}." if param else ""
    wait = _find(
        session, WaitKind.QUESTION, reply.question_id, "unknown_question", f"{dot}question_id"
    )
    answers = _answers(wait, reply, dot)
    payload = {
        "question_id": wait.event_id,
        "tool_use_id": wait.tool_use_id,
        "answers": answers,
        "skip": reply.skip,
        "author": author_json(access),
    }
    told = SKIPPED if reply.skip else orjson.dumps({"answers": answers}).decode()
    drafts = [
        Draft("user.question_response", payload),
        closed(wait, "skipped" if reply.skip else "answered"),
        result(wait, "ok", told),
    ]
    return _decide(access, session, wait, {"answers": answers, "skip": reply.skip}, drafts)


def _hold(access: Access, session_id: UUID) -> Session:
    session = get_session(access=access, session_id=session_id, lock=Lock.WITH_PARENT)
    access.require(Action.SESSION_CONTROL, session.workspace_id, maker_id=session.maker_id)
    if access.principal.kind not in DECIDERS:
        raise Forbidden("needs_a_person", "An agent may not decide this; ask a person.")
    return session


def _find(session: Session, kind: WaitKind, sent_id: str, code: str, param: str) -> Wait:
    """The open wait of that event."""
    try:
        named_session, seq = parse_event_id(sent_id)
    except InvalidId:
        named_session, seq = None, 0
    waits = session.waits.filter(kind=kind, event_seq=seq).select_related("turn")
    wait = waits.first() if named_session == session.pk else None
    if wait is None:
        raise InvalidInput(code, f"Nothing in this session asks for this {kind}.", param=param)
    if wait.status != WaitStatus.OPEN:
        raise _refusal(wait)
    if wait.expires_at is not None and wait.expires_at <= now():
        raise _expired(wait)  # the chore that closes it is just about to
    return wait


def _refusal(wait: Wait) -> Conflict:
    match WaitStatus(wait.status):
        case WaitStatus.EXPIRED:
            return _expired(wait)
        case WaitStatus.CANCELLED:
            return Conflict("wait_closed", "The turn that asked has ended; nothing waits for this.")
        case _:
            return Conflict(
                "already_decided",
                "This was decided before; the first answer counts.",
                details={"answer": wait.answer, "decided_at": rfc3339(wait.decided_at)},
            )


def _expired(wait: Wait) -> Conflict:
    details = {"expires_at": rfc3339(wait.expires_at)}
    return Conflict("expired", "This question has expired; the turn went on.", details=details)


def _require_confirmation(confirmation: Confirmation, dot: str) -> None:
    require_storable(confirmation.deny_message, f"{dot}deny_message")
    if len(confirmation.deny_message) > DENY_MESSAGE_MAX_CHARACTERS:
        raise InvalidInput(
            "too_long",
            f"A message has at most {DENY_MESSAGE_MAX_CHARACTERS} characters.",
            param=f"{dot}deny_message",
        )
    if confirmation.allow and confirmation.deny_message:
        raise InvalidInput(
            "invalid_confirmation",
            "Only a denial takes a message.",
            param=f"{dot}deny_message",
        )
    if confirmation.for_session and not confirmation.allow:
        raise InvalidInput(
            "invalid_confirmation",
            "A denial is for this call; only an allowance can be for the session.",
            param=f"{dot}scope",
        )


def _answers(wait: Wait, reply: QuestionReply, dot: str) -> Mapping[str, Any]:
    if reply.skip:
        if not wait.request["allow_skip"]:
            raise InvalidInput(
                "not_skippable", "This question cannot be skipped.", param=f"{dot}skip"
            )
        if reply.answers:
            raise InvalidInput(
                "invalid_answer", "Answer it or skip it, not both.", param=f"{dot}answers"
            )
        return {}
    try:
        return parse_answers(wait.request["questions"], reply.answers)
    except (InvalidInput, TooLarge) as error:
        error.param = f"{dot}{error.param}"
        raise


def _denial(access: Access, message: str) -> str:
    told = f"Denied by {access.principal.name}: the call was not run."
    return f"{told} Reason: {message}" if message else told


def _decide(
    access: Access, session: Session, wait: Wait, answer: dict[str, Any], drafts: list[Draft]
) -> Receipt:
    wait.status = WaitStatus.ANSWERED
    wait.answer = answer
    wait.decided_at = now()
    wait.decided_by_id = access.user_id
    wait.decided_by_key_id = None if access.user_id else access.principal.id
    wait.save(
        update_fields=["status", "answer", "decided_at", "decided_by_id", "decided_by_key_id"]
    )
    announce_waits(session=session)
    seqs = settle_wait(session, wait.turn, drafts)
    event = eventlog.read_after(session_id=session.pk, after=seqs[0] - 1, limit=1)[0]
    return Receipt(wait.turn_id, event.seq, False, event.json)
