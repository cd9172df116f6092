"""Turns of a session, and its queue."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.pagination import NoQuery, page_json, read_query
from core.api.paths import id_in_path
from core.api.views import ApiView
from core.cursors import decode_cursor, encode_cursor
from core.errors import InvalidInput
from core.ids import Prefix
from orgs.api.authentication import access_of
from sessions_app import wire
from sessions_app.api import queries, responses
from sessions_app.selectors import get_turn, list_queue, list_turns

NUMBER_MAX = 2**31 - 1


class TurnsView(ApiView):
    @extend_schema(
        operation_id="turns_list",
        tags=["Turns"],
        summary="List a session's turns, oldest first.",
        parameters=[queries.TurnListQuery],
        responses={200: responses.TurnPageObject},
    )
    def get(self, request: Request, session_id: str) -> Response:
        values = read_query(request.query_params, queries.TurnListQuery)
        pk = id_in_path(Prefix.SESSION, session_id)
        turns = list_turns(access=access_of(request), session_id=pk).prefetch_related(None)
        is_descending, scope = values["order"] == "desc", f"turns:{pk}:{values['order']}"
        if values["page"]:
            side = "number__lt" if is_descending else "number__gt"
            turns = turns.filter(**{side: _number(scope, values["page"])})
        ordered = turns.order_by("-number" if is_descending else "number")
        found = list(ordered[: values["limit"] + 1])
        kept = found[: values["limit"]]
        more = len(found) > len(kept)
        next_page = encode_cursor(scope, [kept[-1].number]) if more else None
        return Response(page_json(map(wire.turn_json, kept), next_page))


class TurnView(ApiView):
    @extend_schema(
        operation_id="turns_retrieve",
        tags=["Turns"],
        summary="Retrieve a turn with its attempts.",
        responses={200: responses.TurnWithAttempts},
    )
    def get(self, request: Request, session_id: str, turn_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        turn = get_turn(
            access=access_of(request),
            session_id=id_in_path(Prefix.SESSION, session_id),
            turn_id=id_in_path(Prefix.TURN, turn_id),
        )
        return Response(wire.turn_with_attempts_json(turn))


class QueueView(ApiView):
    @extend_schema(
        operation_id="queue_retrieve",
        tags=["Turns"],
        summary="Read the prompts that wait, without the running turn.",
        responses={200: responses.QueueObject},
    )
    def get(self, request: Request, session_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        queue = list_queue(
            access=access_of(request), session_id=id_in_path(Prefix.SESSION, session_id)
        )
        return Response(wire.queue_json(queue.turns, queue.version))


def _number(scope: str, page: str) -> int:
    (number,) = decode_cursor(scope, page, [int])
    if not 0 <= number <= NUMBER_MAX:
        raise InvalidInput(
            "invalid_cursor",
            "Send the page cursor exactly as the last answer gave it.",
            param="page",
        )
    return int(number)
