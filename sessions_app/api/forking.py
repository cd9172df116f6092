"""Forking a session from one of its messages."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any
from uuid import UUID

import orjson
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.pagination import NoQuery, read_query, read_shape
from core.api.paths import id_in_path
from core.api.views import ApiView
from core.errors import InvalidInput
from core.ids import InvalidId, Prefix, encode_id, parse_event_id
from orgs.access import Access
from orgs.api.authentication import access_of
from sessions_app import wire
from sessions_app.api import building, requests, responses
from sessions_app.api.openapi import IDEMPOTENCY
from sessions_app.services.forking import ForkRequest, fork_session
from sessions_app.services.idempotency import Answer, run_once


class ForkView(ApiView):
    @extend_schema(
        operation_id="sessions_fork",
        tags=["Sessions"],
        summary="A new session that begins with this one's history, up to a message of it.",
        parameters=[IDEMPOTENCY],
        request=requests.Fork,
        responses={201: responses.SessionObject},
    )
    def post(self, request: Request, session_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        access = access_of(request)
        pk = id_in_path(Prefix.SESSION, session_id)
        fork = _fork_request(pk, read_shape(request.data, requests.Fork))
        answer = run_once(
            access=access,
            request=building.keyed(request, "sessions.fork", encode_id(Prefix.SESSION, pk)),
            operation=partial(_fork, access, pk, fork),
            recheck=partial(building.recheck_created, access),
        )
        return building.answered(answer)


def _fork(access: Access, session_id: UUID, fork: ForkRequest) -> Answer:
    session = fork_session(access=access, session_id=session_id, fork=fork)
    return Answer(201, orjson.dumps(wire.session_json(session)).decode(), session.pk)


def _fork_request(session_id: UUID, values: Mapping[str, Any]) -> ForkRequest:
    seq, event_id = values.get("from_seq"), values.get("from_event_id")
    if seq is not None and event_id is not None:
        raise InvalidInput(
            "two_messages",
            "Name the message by `from_seq` or by `from_event_id`, not both.",
            param="from_event_id",
        )
    param = "from_seq"
    if event_id is not None:
        param, seq = "from_event_id", _seq_of(session_id, event_id)
    if seq is None and not values["include"]:
        raise InvalidInput(
            "field_required", "Name the prompt before which the history ends.", param="from_seq"
        )
    return ForkRequest(seq, include=values["include"], title=values.get("title"), param=param)


def _seq_of(session_id: UUID, event_id: str) -> int:
    try:
        owner, seq = parse_event_id(event_id)
    except InvalidId:
        raise InvalidInput(
            "invalid_id", "This is not an event's id.", param="from_event_id"
        ) from None
    if owner != session_id:
        raise InvalidInput(
            "message_not_found", "This session has no such message.", param="from_event_id"
        )
    return seq
