"""Folders of a workspace, and the moving of sessions between them."""

from __future__ import annotations

from uuid import UUID

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
from sessions_app.selectors import list_folders
from sessions_app.services.folders import (
    change_folder,
    create_folder,
    delete_folder,
    move_session,
)

TAG = "Folders"


class FoldersView(ApiView):
    @extend_schema(
        operation_id="folders_list",
        tags=[TAG],
        summary="List all folders of a workspace, in their order.",
        responses={200: responses.FolderList},
    )
    def get(self, request: Request, workspace_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        pk = id_in_path(Prefix.WORKSPACE, workspace_id)
        folders = list_folders(access=access_of(request), workspace_id=pk)
        return Response({"data": [wire.folder_json(folder) for folder in folders]})

    @extend_schema(
        operation_id="folders_create",
        tags=[TAG],
        summary="Create a folder, at the end.",
        request=requests.CreateFolder,
        responses={201: responses.FolderObject},
    )
    def post(self, request: Request, workspace_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        values = read_shape(request.data, requests.CreateFolder)
        folder = create_folder(
            access=access_of(request),
            workspace_id=id_in_path(Prefix.WORKSPACE, workspace_id),
            name=values["name"],
        )
        return Response(wire.folder_json(folder), status=201)


class FolderView(ApiView):
    @extend_schema(
        operation_id="folders_update",
        tags=[TAG],
        summary="Rename a folder, or give it another place.",
        request=requests.UpdateFolder,
        responses={200: responses.FolderObject},
    )
    def post(self, request: Request, workspace_id: str, folder_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        values = read_shape(request.data, requests.UpdateFolder)
        folder = change_folder(
            access=access_of(request),
            name=values.get("name"),
            position=values.get("position"),
            **_named(workspace_id, folder_id),
        )
        return Response(wire.folder_json(folder))

    @extend_schema(
        operation_id="folders_delete",
        tags=[TAG],
        summary="Delete a folder; its sessions stay, and are in none.",
        responses={200: responses.FolderDeleted},
    )
    def delete(self, request: Request, workspace_id: str, folder_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        delete_folder(access=access_of(request), **_named(workspace_id, folder_id))
        return Response({"id": folder_id, "type": "folder_deleted"})


class MoveView(ApiView):
    @extend_schema(
        operation_id="sessions_move",
        tags=[TAG],
        summary="Move a session into a folder of its workspace, or out of any.",
        request=requests.MoveSession,
        responses={200: responses.SessionObject},
    )
    def post(self, request: Request, session_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        values = read_shape(request.data, requests.MoveSession)
        session = move_session(
            access=access_of(request),
            session_id=id_in_path(Prefix.SESSION, session_id),
            folder_id=values["folder_id"],
        )
        return Response(wire.session_json(session))


def _named(workspace_id: str, folder_id: str) -> dict[str, UUID]:
    return {
        "workspace_id": id_in_path(Prefix.WORKSPACE, workspace_id),
        "folder_id": id_in_path(Prefix.FOLDER, folder_id),
    }
