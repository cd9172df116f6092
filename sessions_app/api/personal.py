"""What is one person's own about a session: pin, read mark, draft, who sees it. Keys have none of
them.
"""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.pagination import NoQuery, read_query, read_shape
from core.api.paths import id_in_path
from core.api.views import ApiView
from core.ids import Prefix
from orgs.api.authentication import access_of
from sessions_app import wire
from sessions_app.api import requests, responses
from sessions_app.domain.vocabulary import Visibility
from sessions_app.models import ComposerDraft
from sessions_app.selectors import get_session
from sessions_app.services.composer_drafts import get_draft, save_draft
from sessions_app.services.personal import mark_read, set_pinned
from sessions_app.services.visibility import set_visibility


class PinView(ApiView):
    @extend_schema(
        operation_id="sessions_pin",
        tags=["Personal"],
        summary="Pin a session for oneself, or unpin it.",
        request=requests.PinChange,
        responses={200: responses.SessionObject},
    )
    def put(self, request: Request, session_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        values = read_shape(request.data, requests.PinChange)
        session = set_pinned(
            access=access_of(request),
            session_id=id_in_path(Prefix.SESSION, session_id),
            pinned=values["pinned"],
        )
        return Response(wire.session_json(session))


class VisibilityView(ApiView):
    @extend_schema(
        operation_id="sessions_set_visibility",
        tags=["Sessions"],
        summary="Let the workspace see a session and all below it, or its maker alone.",
        request=requests.VisibilityChange,
        responses={200: responses.SessionObject},
    )
    def put(self, request: Request, session_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        values = read_shape(request.data, requests.VisibilityChange)
        session = set_visibility(
            access=access_of(request),
            session_id=id_in_path(Prefix.SESSION, session_id),
            visibility=Visibility(values["visibility"]),
        )
        return Response(wire.session_json(session))


class ReadMarkView(ApiView):
    @extend_schema(
        operation_id="sessions_mark_read",
        tags=["Personal"],
        summary="Say up to which event one has read; a mark never moves back.",
        request=requests.ReadMark,
        responses={200: responses.SessionObject},
    )
    def put(self, request: Request, session_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        values = read_shape(request.data, requests.ReadMark)
        session = mark_read(
            access=access_of(request),
            session_id=id_in_path(Prefix.SESSION, session_id),
            seq=values["seq"],
        )
        return Response(wire.session_json(session))


class DraftView(ApiView):
    @extend_schema(
        operation_id="draft_retrieve",
        tags=["Personal"],
        summary="Read one's unsent text; revision 0 where none was kept.",
        responses={200: responses.DraftObject},
    )
    def get(self, request: Request, session_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        access = access_of(request)
        pk = id_in_path(Prefix.SESSION, session_id)
        session = get_session(access=access, session_id=pk)
        draft = get_draft(access=access, workspace_id=session.workspace_id, session_id=pk)
        return Response(_draft_json(draft))

    @extend_schema(
        operation_id="draft_save",
        tags=["Personal"],
        summary="Keep one's unsent text.",
        request=requests.DraftChange,
        responses={200: responses.DraftObject},
    )
    def put(self, request: Request, session_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        access = access_of(request)
        pk = id_in_path(Prefix.SESSION, session_id)
        values = read_shape(request.data, requests.DraftChange)
        draft = save_draft(
            access=access,
            workspace_id=get_session(access=access, session_id=pk).workspace_id,
            session_id=pk,
            text=values["text"],
            expected_revision=values["expected_version"],
        )
        return Response(_draft_json(draft))


def _draft_json(draft: ComposerDraft) -> dict[str, object]:
    return {"type": "draft", "text": draft.text, "revision": draft.revision}
