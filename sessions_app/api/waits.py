"""What waits for people: of one session, and over all of them. Answers are events that are sent."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.pagination import page_json, read_query
from core.api.paths import id_in_path
from core.api.views import ApiView
from core.ids import Prefix
from orgs.api.authentication import access_of
from sessions_app import wire
from sessions_app.api import queries, responses
from sessions_app.inbox import list_inbox, list_pending


class PendingView(ApiView):
    @extend_schema(
        operation_id="pending_list",
        tags=["Waits"],
        summary="List what a session asks people, oldest first.",
        parameters=[queries.PendingQuery],
        responses={200: responses.WaitPageObject},
    )
    def get(self, request: Request, session_id: str) -> Response:
        values = read_query(request.query_params, queries.PendingQuery)
        found = list_pending(
            access=access_of(request),
            session_id=id_in_path(Prefix.SESSION, session_id),
            limit=values["limit"],
            page=values["page"],
        )
        return Response(page_json(map(wire.wait_json, found.rows), found.next_page))


class InboxView(ApiView):
    @extend_schema(
        operation_id="inbox_list",
        tags=["Waits"],
        summary="List what waits for people in all sessions that the caller may control.",
        parameters=[queries.InboxQuery],
        responses={200: responses.WaitPageObject},
    )
    def get(self, request: Request) -> Response:
        values = read_query(request.query_params, queries.InboxQuery)
        found = list_inbox(
            access=access_of(request),
            workspace_id=values.get("workspace_id"),
            descending=values["order"] == "desc",
            limit=values["limit"],
            page=values["page"],
        )
        return Response(page_json(map(wire.wait_json, found.rows), found.next_page))
