"""What belongs to an agent."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.pagination import NoQuery, read_query
from core.api.paths import id_in_path
from core.api.views import ApiView
from core.ids import Prefix
from orgs.api.authentication import access_of
from sessions_app import wire
from sessions_app.api import responses
from sessions_app.services.agents_own import open_agents_session


class AgentSessionView(ApiView):
    @extend_schema(
        operation_id="agents_session",
        tags=["Sessions"],
        summary="Retrieve an agent's own session, made on first use; it is in no default list.",
        responses={200: responses.SessionObject},
    )
    def get(self, request: Request, agent_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        session = open_agents_session(
            access=access_of(request), agent_id=id_in_path(Prefix.AGENT, agent_id)
        )
        return Response(wire.session_json(session))
