"""From checked shapes to the values that services take, and from answers to responses."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeVar
from uuid import UUID

import orjson
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.fields import bounds_in
from core.errors import Conflict, InvalidInput, NotFound
from core.ids import Prefix, decode_id
from orgs.access import Access
from orgs.api.authentication import access_of
from orgs.roles import Action
from sessions_app import wire
from sessions_app.api.requests import UpdateSession
from sessions_app.domain.end_user import EndUser
from sessions_app.domain.vocabulary import (
    DEFAULT_ORIGIN_TYPE,
    AgentAccess,
    MemoryScope,
    Visibility,
)
from sessions_app.listing import Archived, SessionQuery, Sort
from sessions_app.models import Session
from sessions_app.selectors import get_session
from sessions_app.services.idempotency import HEADER, Answer, KeyedRequest
from sessions_app.services.interruption import interrupt_session
from sessions_app.services.model_settings import RequestedSettings
from sessions_app.services.sessions import NewSession, SessionChanges, create_session
from sessions_app.services.turns import Prompt, Receipt, submit_prompt
from sessions_app.services.waits import (
    Confirmation,
    QuestionReply,
    answer_question,
    confirm_call,
)

Values = Mapping[str, Any]
Chosen = TypeVar("Chosen", bound=StrEnum)


def workspace_of(access: Access, values: Values) -> UUID:
    """The workspace named, or the caller's own. Raises InvalidInput, or NotFound for others'."""
    workspace_id = values.get("workspace_id") or access.default_workspace_id
    if workspace_id is None:
        raise InvalidInput(
            "workspace_required",
            "This key reaches several workspaces; name one by workspace_id.",
            param="workspace_id",
        )
    if workspace_id not in access.grants:
        raise NotFound("workspace_not_found", "There is no such workspace.", param="workspace_id")
    return UUID(int=workspace_id.int)


def new_session(access: Access, values: Values) -> NewSession:
    if values["environment_id"] not in {None, "", "default"}:
        raise NotFound("directory_not_found", "There is no such directory.", param="environment_id")
    end_user = values.get("end_user")
    return NewSession(
        workspace_id=_workspace_of_new(access, values),
        parent_id=values.get("parent_id"),
        agent=values["agent"],
        title=values["title"] or "",
        origin=values.get("origin"),
        visibility=_chosen(Visibility, values, "visibility"),
        agent_access=_chosen(AgentAccess, values, "agent_access"),
        memory_scope=_chosen(MemoryScope, values, "memory_scope"),
        end_user=EndUser(end_user["source"], end_user["id"]) if end_user else None,
        metadata=values["metadata"],
        requested=requested_settings(values),
        prompts=[prompt(event) for event in values["initial_events"]],
    )


def _workspace_of_new(access: Access, values: Values) -> UUID:
    """A child's is its parent's, where the request names none."""
    parent_id = values.get("parent_id")
    if parent_id is None or values.get("workspace_id") is not None:
        return workspace_of(access, values)
    try:
        return get_session(access=access, session_id=parent_id).workspace_id
    except NotFound:
        raise NotFound(
            "parent_not_found", "There is no such parent session.", param="parent_id"
        ) from None


def _chosen(kind: type[Chosen], values: Values, name: str) -> Chosen | None:
    value = values.get(name)
    return kind(value) if value else None


def changes_of(session: Session, sent: Any, values: Values) -> SessionChanges:
    """Raises Conflict `frozen` for what a session keeps for ever."""
    for name in sorted(UpdateSession.frozen & sent.keys()):
        raise Conflict("frozen", f"“{name}” is set at creation and never changes.", param=name)
    metadata = values.get("metadata")
    if "metadata" in values and metadata is None:
        metadata = dict.fromkeys(session.metadata)
    has_settings = any(values.get(name) for name in ("model", "reasoning_effort", "speed"))
    return SessionChanges(
        title=(values["title"] or "") if "title" in values else None,
        metadata=metadata,
        requested=requested_settings(values) if has_settings else None,
    )


def requested_settings(values: Values) -> RequestedSettings:
    model = values.get("model") or {}
    return RequestedSettings(
        model=model.get("model_id", ""),
        provider=model.get("provider_id", ""),
        reasoning_effort=values.get("reasoning_effort") or model.get("variant") or None,
        speed=values.get("speed") or None,
    )


def prompt(event: Values) -> Prompt:
    return Prompt(
        content=event["content"],
        delivery=event["delivery"],
        input=event["input"],
        requested=requested_settings(event),
        draft_revision=event.get("draft_revision"),
        resume=event["resume"],
    )


def session_query(access: Access, values: Values) -> SessionQuery:
    return SessionQuery(
        workspace_id=workspace_of(access, values),
        origin_type=values.get("origin_type") or _default_partition(values),
        query=values["query"],
        statuses=tuple(values.get("statuses[]", ())),
        archived=_archived(values),
        pinned=values.get("pinned"),
        parent_id=values.get("parent_id"),
        forked_from_id=values.get("forked_from"),
        agent_id=values.get("agent_id"),
        folder_id=values.get("folder_id"),
        end_user=_end_user_in(values),
        created=bounds_in(values, "created_at"),
        sort=Sort(values["sort"]),
        ascending=_is_ascending(values),
        limit=values["limit"],
        page=values["page"],
    )


def _end_user_in(values: Values) -> EndUser | None:
    """Both halves of the pair, or neither."""
    sent = [values.get(f"end_user[{half}]") for half in ("source", "id")]
    if not any(sent):
        return None
    source, own_id = sent
    if source is None or own_id is None:
        missing = "id" if own_id is None else "source"
        raise InvalidInput(
            "field_required",
            "Name an end user by both `end_user[source]` and `end_user[id]`.",
            param=f"end_user[{missing}]",
        )
    return EndUser(source, own_id)


def _is_ascending(values: Values) -> bool:
    order = values.get("order") or ("asc" if values["sort"] == Sort.NAME else "desc")
    return bool(order == "asc")


def _default_partition(values: Values) -> str | None:
    """Children are in the partition of their parent, whichever that is."""
    return None if values.get("parent_id") else DEFAULT_ORIGIN_TYPE


def _archived(values: Values) -> Archived:
    if "archived" in values:
        return Archived(values["archived"])
    return Archived.INCLUDE if values.get("include_archived") else Archived.EXCLUDE


def keyed(request: Request, route: str, target: str = "") -> KeyedRequest:
    """What an idempotency key covers: the body, and the workspace that a header selects."""
    access = access_of(request)
    return KeyedRequest(
        route=route,
        target=target,
        key=request.headers.get(HEADER, ""),
        body=[request.data, access.default_workspace_id],
    )


def answered(answer: Answer) -> Response:
    headers = {"idempotent-replayed": "true"} if answer.replayed else {}
    return Response(orjson.Fragment(answer.body), status=answer.status, headers=headers)


def create(access: Access, new: NewSession) -> Answer:
    session = create_session(access=access, new=new)
    return Answer(201, orjson.dumps(wire.session_json(session)).decode(), session.pk)


def recheck_created(access: Access, answer: Answer) -> None:
    """A session's maker may have lost it since."""
    created = orjson.loads(answer.body)
    session_id = decode_id(Prefix.SESSION, created["id"])
    session = get_session(access=access, session_id=session_id)
    access.require(Action.SESSION_CREATE, session.workspace_id)


def send(access: Access, session_id: UUID, events: list[dict[str, Any]]) -> Answer:
    """All of the events, or none: the caller holds the transaction."""
    receipts = [
        _accept(access, session_id, event, f"events[{index}]") for index, event in enumerate(events)
    ]
    echoes = [_echo(receipt) for receipt in receipts]
    return Answer(202, orjson.dumps({"data": echoes}).decode(), session_id)


def _accept(access: Access, session_id: UUID, event: Values, param: str) -> Receipt:
    match event["type"]:
        case "user.interrupt":
            return interrupt_session(access=access, session_id=session_id)
        case "user.tool_confirmation":
            confirmation = Confirmation(
                event["tool_use_id"],
                allow=event["result"] == "allow",
                deny_message=event.get("deny_message") or "",
                for_session=event["scope"] == "session",
            )
            return confirm_call(
                access=access, session_id=session_id, confirmation=confirmation, param=param
            )
        case "user.question_response":
            reply = QuestionReply(event["question_id"], event["answers"], event["skip"])
            return answer_question(access=access, session_id=session_id, reply=reply, param=param)
        case _:
            return submit_prompt(
                access=access, session_id=session_id, prompt=prompt(event), param=param
            )


def echo_json(receipt: Receipt) -> str:
    return orjson.dumps(_echo(receipt)).decode()


def _echo(receipt: Receipt) -> dict[str, Any]:
    return {**orjson.loads(receipt.event_json), "held": receipt.held}
