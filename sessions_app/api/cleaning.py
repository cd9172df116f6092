"""The archive of a workspace: cleaned by its number."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.pagination import NoQuery, read_query, read_shape
from core.api.views import ApiView
from core.ids import Prefix, encode_id
from orgs.api.authentication import access_of
from sessions_app.api import requests, responses
from sessions_app.services.cleaning import clean_archive


class CleanArchiveView(ApiView):
    @extend_schema(
        operation_id="archive_clean",
        tags=["Sessions"],
        summary="Erase every archived session that you may remove; `confirm` names their number.",
        request=requests.CleanArchive,
        responses={200: responses.ArchiveCleaned},
    )
    def post(self, request: Request) -> Response:
        read_query(request.query_params, NoQuery)
        values = read_shape(request.data, requests.CleanArchive)
        removed = clean_archive(
            access=access_of(request),
            workspace_id=values["workspace_id"],
            confirm=values["confirm"],
        )
        return Response({"removed_session_ids": [encode_id(Prefix.SESSION, pk) for pk in removed]})
