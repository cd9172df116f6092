"""Child sessions: the children of one session, and the tree below it."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.pagination import NoQuery, page_json, read_query
from core.api.paths import id_in_path
from core.api.views import ApiView
from core.ids import Prefix
from orgs.api.authentication import access_of
from sessions_app import wire
from sessions_app.api import queries, responses
from sessions_app.listing import Archived
from sessions_app.tree import list_children, read_tree


class ChildrenView(ApiView):
    @extend_schema(
        operation_id="children_list",
        tags=["Children"],
        summary="List the child sessions of a session, oldest first.",
        parameters=[queries.ChildrenQuery],
        responses={200: responses.SessionPageObject},
    )
    def get(self, request: Request, session_id: str) -> Response:
        values = read_query(request.query_params, queries.ChildrenQuery)
        found = list_children(
            access=access_of(request),
            session_id=id_in_path(Prefix.SESSION, session_id),
            archived=Archived(values["archived"]),
            ascending=values["order"] == "asc",
            limit=values["limit"],
            page=values["page"],
        )
        return Response(page_json(map(wire.listed_session_json, found.rows), found.next_page))


class TreeView(ApiView):
    @extend_schema(
        operation_id="tree_retrieve",
        tags=["Children"],
        summary="Retrieve a session's row with its ancestors and all that is below it.",
        responses={200: responses.TreeObject},
    )
    def get(self, request: Request, session_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        tree = read_tree(
            access=access_of(request), session_id=id_in_path(Prefix.SESSION, session_id)
        )
        return Response(wire.tree_json(tree.ancestors, tree.top, is_truncated=tree.is_truncated))
