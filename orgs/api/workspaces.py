"""Shared workspaces: made, and who belongs to them."""

from __future__ import annotations

from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.pagination import NoQuery, PageQuery, page_of_rows, read_query, read_shape
from core.api.paths import id_in_path
from core.api.views import ApiView
from core.ids import Prefix
from orgs.api import objects, shapes
from orgs.api.authentication import access_of
from orgs.roles import WorkspaceRole
from orgs.selectors.workspaces import list_workspace_members
from orgs.services.workspaces import remove_workspace_member, set_workspace_role

TAG = "Workspaces"


class WorkspaceMembersView(ApiView):
    @extend_schema(
        operation_id="workspace_members_list",
        tags=[TAG],
        summary="List who belongs to a shared workspace. For whoever reads there.",
        parameters=[PageQuery],
        responses={200: objects.MemberPageObject},
    )
    def get(self, request: Request, workspace_id: str) -> Response:
        pk = id_in_path(Prefix.WORKSPACE, workspace_id)
        page = page_of_rows(
            list_workspace_members(access=access_of(request), workspace_id=pk),
            key="user_id",
            present=objects.member_json,
            query=read_query(request.query_params, PageQuery),
            scope=["workspace_members", pk.hex],
        )
        return Response(page)


class WorkspaceMemberView(ApiView):
    @extend_schema(
        operation_id="workspace_members_set_role",
        tags=[TAG],
        summary="Let somebody of the organization into a workspace, or change their role there.",
        request=shapes.SetWorkspaceRole,
        responses={200: objects.MemberObject},
    )
    def post(self, request: Request, workspace_id: str, user_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        values = read_shape(request.data, shapes.SetWorkspaceRole)
        membership = set_workspace_role(
            access=access_of(request),
            role=WorkspaceRole(values["role"]),
            **_named(workspace_id, user_id),
        )
        return Response(objects.member_json(membership))

    @extend_schema(
        operation_id="workspace_members_remove",
        tags=[TAG],
        summary="Take somebody out of a workspace, or leave it.",
        responses={204: None},
    )
    def delete(self, request: Request, workspace_id: str, user_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        remove_workspace_member(access=access_of(request), **_named(workspace_id, user_id))
        return Response(status=204)


def _named(workspace_id: str, user_id: str) -> dict[str, UUID]:
    return {
        "workspace_id": id_in_path(Prefix.WORKSPACE, workspace_id),
        "user_id": id_in_path(Prefix.USER, user_id),
    }
