"""Events of a session: replay and send. The stream is `sessions_app.streaming.sse`."""

from __future__ import annotations

from functools import partial

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.pagination import NoQuery, read_query, read_shape
from core.api.paths import id_in_path
from core.api.views import ApiView
from core.ids import Prefix, encode_id
from orgs.api.authentication import access_of
from sessions_app.api import building, queries, requests, responses
from sessions_app.api.openapi import IDEMPOTENCY
from sessions_app.api.replay import replay
from sessions_app.services.idempotency import recheck_sent, run_once


class EventsView(ApiView):
    @extend_schema(
        operation_id="events_list",
        tags=["Events"],
        summary="Read a session's log: oldest first, or newest first from `before`.",
        parameters=[queries.EventListQuery],
        responses={200: responses.EventPageObject},
    )
    def get(self, request: Request, session_id: str) -> Response:
        values = read_query(request.query_params, queries.EventListQuery)
        pk = id_in_path(Prefix.SESSION, session_id)
        return Response(replay(access_of(request), pk, values))

    @extend_schema(
        operation_id="events_send",
        tags=["Events"],
        summary="Send prompts, interrupts and answers: all are accepted, or none.",
        parameters=[IDEMPOTENCY],
        request=requests.SendEvents,
        responses={202: responses.SentEvents},
    )
    def post(self, request: Request, session_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        access = access_of(request)
        pk = id_in_path(Prefix.SESSION, session_id)
        values = read_shape(request.data, requests.SendEvents)
        answer = run_once(
            access=access,
            request=building.keyed(request, "events.send", encode_id(Prefix.SESSION, pk)),
            operation=partial(building.send, access, pk, values["events"]),
            recheck=lambda _: recheck_sent(access=access, session_id=pk),
        )
        return building.answered(answer)
