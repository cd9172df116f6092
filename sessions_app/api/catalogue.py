"""What a session can be made in and with: workspaces and models, as the caller sees them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from catalog.models import Model
from catalog.selectors import list_models, model_ref
from core.api.pagination import NoQuery, PageQuery, page_json, page_of, read_query, read_shape
from core.api.paths import id_in_path
from core.api.views import ApiView
from core.ids import Prefix, encode_id
from orgs import principals
from orgs.access import WorkspaceGrant
from orgs.api.authentication import access_of
from orgs.api.shapes import CreateWorkspace
from orgs.roles import WorkspaceKind
from orgs.services.workspaces import create_shared_workspace
from sessions_app import wire
from sessions_app.api import building, queries, responses
from sessions_app.api.openapi import WORKSPACE
from sessions_app.inventory import list_inventory


class WorkspacesView(ApiView):
    @extend_schema(
        operation_id="workspaces_list",
        tags=["Catalogue"],
        summary="List the workspaces that one reaches, and what one may do there.",
        parameters=[PageQuery],
        responses={200: responses.WorkspacePageObject},
    )
    def get(self, request: Request) -> Response:
        values = read_query(request.query_params, PageQuery)
        page = page_of(
            access_of(request).grants.items(),
            key=lambda item: item[0].hex,
            present=_workspace_json,
            query=values,
            scope=["workspaces"],
        )
        return Response(page)

    @extend_schema(
        operation_id="workspaces_create",
        tags=["Workspaces"],
        summary="Create a shared workspace, for owners and admins of the organization.",
        request=CreateWorkspace,
        responses={201: responses.WorkspaceObject},
    )
    def post(self, request: Request) -> Response:
        read_query(request.query_params, NoQuery)
        values = read_shape(request.data, CreateWorkspace)
        access = access_of(request)
        made = create_shared_workspace(access=access, **values)
        now = principals.refresh(access) or access
        none = WorkspaceGrant(
            made.organization_id, WorkspaceKind.SHARED, made.name, None, frozenset()
        )
        return Response(_workspace_json((made.pk, now.grants.get(made.pk, none))), status=201)


class InventoryView(ApiView):
    @extend_schema(
        operation_id="organizations_sessions",
        tags=["Organizations"],
        summary="List the sessions of all shared workspaces, for who administers the organization.",
        description=(
            "Rows alone: without a role in its workspace a session shows no word of its messages. "
            "“Only me” sessions and personal workspaces are in no inventory."
        ),
        parameters=[queries.InventoryQuery],
        responses={200: responses.InventoryPageObject},
    )
    def get(self, request: Request, organization_id: str) -> Response:
        values = read_query(request.query_params, queries.InventoryQuery)
        found = list_inventory(
            access=access_of(request),
            organization_id=id_in_path(Prefix.ORGANIZATION, organization_id),
            include_archived=values["include_archived"],
            limit=values["limit"],
            page=values["page"],
        )
        return Response(page_json(map(wire.inventory_json, found.rows), found.next_page))


class ModelsView(ApiView):
    @extend_schema(
        operation_id="models_list",
        tags=["Catalogue"],
        summary="List the models of a workspace's organization.",
        parameters=[queries.ModelListQuery, WORKSPACE],
        responses={200: responses.ModelPageObject},
    )
    def get(self, request: Request) -> Response:
        values = read_query(request.query_params, queries.ModelListQuery)
        access = access_of(request)
        organization_id = access.grants[building.workspace_of(access, values)].organization_id
        page = page_of(
            list_models(organization_id=organization_id),
            key=lambda model: model_ref(model).full_id,
            present=_model_json,
            query=values,
            scope=["models", organization_id.hex],
        )
        return Response(page)


def _workspace_json(item: tuple[UUID, WorkspaceGrant]) -> dict[str, Any]:
    workspace_id, grant = item
    return {
        "id": encode_id(Prefix.WORKSPACE, workspace_id),
        "type": "workspace",
        "organization_id": encode_id(Prefix.ORGANIZATION, grant.organization_id),
        "name": grant.name,
        "kind": grant.kind,
        "role": grant.role,
        "actions": sorted(grant.actions),
    }


def _model_json(model: Model) -> dict[str, Any]:
    ref = model_ref(model)
    return {
        "id": ref.full_id,
        "type": "model",
        "provider_id": ref.provider_id,
        "model_id": ref.model_id,
        "display_name": ref.display_name,
        "aliases": model.aliases,
        "context_size": model.context_size,
        "efforts": model.efforts,
    }
