"""API keys of an organization and its workspaces, and the audit log."""

from __future__ import annotations

from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.fields import bounds_in
from core.api.pagination import NoQuery, PageQuery, page_json, page_of_rows, read_query, read_shape
from core.api.paths import id_in_path
from core.api.views import ApiView
from core.errors import InvalidInput
from core.ids import InvalidId, Prefix, decode_id
from orgs.api import objects, shapes
from orgs.api.authentication import access_of
from orgs.api.opening import open_tenant
from orgs.models.audit import ActorKind, AuditAction
from orgs.selectors.audit import AuditQuery, read_audit_page
from orgs.selectors.keys import list_keys
from orgs.services.keys import NewKey, create_key, revoke_key, rotate_key

TAG = "Keys"


class KeysView(ApiView):
    @extend_schema(
        operation_id="api_keys_list",
        tags=[TAG],
        summary="List the keys that one looks after, without their secrets.",
        description="All of the organization for who manages it; else one's own, and those of "
        "the workspaces that one administers.",
        parameters=[PageQuery],
        responses={200: objects.ApiKeyPageObject},
    )
    def get(self, request: Request, organization_id: str) -> Response:
        pk = id_in_path(Prefix.ORGANIZATION, organization_id)
        page = page_of_rows(
            list_keys(access=access_of(request), organization_id=pk),
            present=objects.key_json,
            query=read_query(request.query_params, PageQuery),
            scope=["api_keys", pk.hex],
        )
        return Response(page)

    @extend_schema(
        operation_id="api_keys_create",
        tags=[TAG],
        summary="Create a key; the answer is the only one that shows it. For signed-in people.",
        request=shapes.CreateKey,
        responses={201: objects.ApiKeyObject},
    )
    def post(self, request: Request, organization_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        values = read_shape(request.data, shapes.CreateKey)
        key, secret = create_key(
            access=access_of(request),
            organization_id=id_in_path(Prefix.ORGANIZATION, organization_id),
            new=NewKey(**values),
        )
        return Response(objects.key_json(key, secret), status=201)


class KeyView(ApiView):
    @extend_schema(
        operation_id="api_keys_revoke",
        tags=[TAG],
        summary="Revoke a key, open streams included.",
        responses={204: None},
    )
    def delete(self, request: Request, organization_id: str, key_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        revoke_key(
            access=access_of(request),
            organization_id=id_in_path(Prefix.ORGANIZATION, organization_id),
            key_id=id_in_path(Prefix.KEY, key_id),
        )
        return Response(status=204)


class KeyRotationView(ApiView):
    @extend_schema(
        operation_id="api_keys_rotate",
        tags=[TAG],
        summary="Put a new key in place of one, which may go on beside it for a while.",
        request=shapes.RotateKey,
        responses={201: objects.ApiKeyObject},
    )
    def post(self, request: Request, organization_id: str, key_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        values = read_shape(request.data, shapes.RotateKey)
        key, secret = rotate_key(
            access=access_of(request),
            organization_id=id_in_path(Prefix.ORGANIZATION, organization_id),
            key_id=id_in_path(Prefix.KEY, key_id),
            overlap_seconds=values["overlap_seconds"],
        )
        return Response(objects.key_json(key, secret), status=201)


class AuditView(ApiView):
    @extend_schema(
        operation_id="audit_list",
        tags=["Organizations"],
        summary="Read the audit log, the newest line first.",
        parameters=[shapes.AuditListQuery],
        responses={200: objects.AuditPageObject},
    )
    def get(self, request: Request, organization_id: str) -> Response:
        values = read_query(request.query_params, shapes.AuditListQuery)
        tenant = open_tenant(request, organization_id)
        times = bounds_in(values, "created_at")
        kind, action = values.get("actor_kind"), values.get("action")
        lines, cursor = read_audit_page(
            access=tenant.access,
            organization_id=tenant.id,
            query=AuditQuery(
                actor_kind=ActorKind(kind) if kind else None,
                actor_id=_actor(values.get("actor_id")),
                action=AuditAction(action) if action else None,
                since=times.get("gte"),
                until=times.get("lt"),
                about=values.get("target_id"),
            ),
            limit=values["limit"],
            page=values["page"],
        )
        return Response(page_json(map(objects.audit_json, lines), cursor))


def _actor(text: str | None) -> UUID | None:
    if text is None:
        return None
    for prefix in (Prefix.USER, Prefix.KEY):
        try:
            return decode_id(prefix, text)
        except InvalidId:
            continue
    raise InvalidInput("invalid_id", "An actor is a `usr_` or `key_` id.", param="actor_id")
