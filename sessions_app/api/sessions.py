"""Sessions: create, list, retrieve, update, delete, archive, restore."""

from __future__ import annotations

from functools import partial

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.pagination import NoQuery, page_json, read_query, read_shape
from core.api.paths import id_in_path
from core.api.views import ApiView
from core.ids import Prefix
from orgs.api.authentication import access_of
from sessions_app import wire
from sessions_app.api import building, queries, requests, responses
from sessions_app.api.openapi import IDEMPOTENCY, WORKSPACE
from sessions_app.listing import list_sessions
from sessions_app.selectors import get_session
from sessions_app.services.archiving import archive_session, delete_session, unarchive_session
from sessions_app.services.idempotency import run_once
from sessions_app.services.sessions import update_session


class SessionsView(ApiView):
    @extend_schema(
        operation_id="sessions_create",
        tags=["Sessions"],
        summary="Create a session, with its first prompts where they are given.",
        parameters=[IDEMPOTENCY, WORKSPACE],
        request=requests.CreateSession,
        responses={201: responses.SessionObject},
    )
    def post(self, request: Request) -> Response:
        read_query(request.query_params, NoQuery)
        access = access_of(request)
        new = building.new_session(access, read_shape(request.data, requests.CreateSession))
        answer = run_once(
            access=access,
            request=building.keyed(request, "sessions.create"),
            operation=partial(building.create, access, new),
            recheck=partial(building.recheck_created, access),
        )
        return building.answered(answer)

    @extend_schema(
        operation_id="sessions_list",
        tags=["Sessions"],
        summary="List the root sessions of one workspace, newest first.",
        parameters=[queries.SessionListQuery, WORKSPACE],
        responses={200: responses.SessionPageObject},
    )
    def get(self, request: Request) -> Response:
        access = access_of(request)
        values = read_query(request.query_params, queries.SessionListQuery)
        found = list_sessions(access=access, query=building.session_query(access, values))
        return Response(page_json(map(wire.listed_session_json, found.rows), found.next_page))


class SessionView(ApiView):
    @extend_schema(
        operation_id="sessions_retrieve",
        tags=["Sessions"],
        summary="Retrieve a session.",
        parameters=[queries.SessionQueryString],
        responses={200: responses.SessionObject},
    )
    def get(self, request: Request, session_id: str) -> Response:
        values = read_query(request.query_params, queries.SessionQueryString)
        session = get_session(
            access=access_of(request),
            session_id=id_in_path(Prefix.SESSION, session_id),
            origin_type=values.get("origin_type"),
        )
        return Response(wire.session_json(session))

    @extend_schema(
        operation_id="sessions_update",
        tags=["Sessions"],
        summary="Change a session's title, metadata or model settings (a merge patch).",
        request=requests.UpdateSession,
        responses={200: responses.SessionObject},
    )
    def post(self, request: Request, session_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        access = access_of(request)
        pk = id_in_path(Prefix.SESSION, session_id)
        session = get_session(access=access, session_id=pk)
        values = read_shape(request.data, requests.UpdateSession)
        changes = building.changes_of(session, request.data, values)
        changed = update_session(access=access, session_id=pk, changes=changes)
        return Response(wire.session_json(changed))

    @extend_schema(
        operation_id="sessions_delete",
        tags=["Sessions"],
        summary="Erase a session with its log.",
        parameters=[queries.DeleteQuery],
        responses={200: responses.SessionDeleted},
    )
    def delete(self, request: Request, session_id: str) -> Response:
        values = read_query(request.query_params, queries.DeleteQuery)
        pk = id_in_path(Prefix.SESSION, session_id)
        delete_session(access=access_of(request), session_id=pk, stop=values["stop"])
        return Response({"id": session_id, "type": "session_deleted"})


class ArchiveView(ApiView):
    @extend_schema(
        operation_id="sessions_archive",
        tags=["Sessions"],
        summary="Take a session out of the active lists; repeating it changes nothing.",
        request=requests.Stoppable,
        responses={200: responses.SessionObject},
    )
    def post(self, request: Request, session_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        values = read_shape(request.data, requests.Stoppable)
        session = archive_session(
            access=access_of(request),
            session_id=id_in_path(Prefix.SESSION, session_id),
            stop=values["stop"],
        )
        return Response(wire.session_json(session))


class UnarchiveView(ApiView):
    @extend_schema(
        operation_id="sessions_unarchive",
        tags=["Sessions"],
        summary="Bring an archived session back, idle.",
        request=requests.Nothing,
        responses={200: responses.SessionObject},
    )
    def post(self, request: Request, session_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        read_shape(request.data, requests.Nothing)
        session = unarchive_session(
            access=access_of(request), session_id=id_in_path(Prefix.SESSION, session_id)
        )
        return Response(wire.session_json(session))
