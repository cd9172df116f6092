"""Providers of an organization: connected, changed, tested and removed by who administers it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from catalog.api import objects, shapes
from catalog.selectors import get_provider, list_providers, served_kinds
from catalog.services.checking import check_connection
from catalog.services.connecting import (
    NewProvider,
    ProviderChanges,
    connect_provider,
    remove_provider,
    update_provider,
)
from catalog.services.models import add_model, remove_model, update_model
from core.api.pagination import NoQuery, PageQuery, page_of, read_query, read_shape
from core.api.paths import id_in_path
from core.api.views import ApiView
from core.ids import Prefix
from orgs.api.authentication import access_of

TAG = "Providers"


class ProvidersView(ApiView):
    @extend_schema(
        operation_id="providers_list",
        tags=[TAG],
        summary="List the model providers of an organization, without their keys.",
        parameters=[PageQuery],
        responses={200: objects.ProviderPageObject},
    )
    def get(self, request: Request, organization_id: str) -> Response:
        query = read_query(request.query_params, PageQuery)
        pk = id_in_path(Prefix.ORGANIZATION, organization_id)
        served = served_kinds()
        page = page_of(
            list_providers(access=access_of(request), organization_id=pk),
            key=lambda each: each.pk.hex,
            present=lambda each: objects.provider_json(each, served),
            query=query,
            scope=["providers", pk.hex],
        )
        return Response(page)

    @extend_schema(
        operation_id="providers_connect",
        tags=[TAG],
        summary="Connect a model provider, with the models it offers.",
        request=shapes.ConnectProvider,
        responses={201: objects.ProviderObject},
    )
    def post(self, request: Request, organization_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        values = read_shape(request.data, shapes.ConnectProvider)
        pk = id_in_path(Prefix.ORGANIZATION, organization_id)
        made = connect_provider(
            access=access_of(request), organization_id=pk, new=NewProvider(**values)
        )
        return Response(_shown(request, {"organization_id": pk, "provider_id": made.pk}), 201)


class ProviderView(ApiView):
    @extend_schema(
        operation_id="providers_retrieve",
        tags=[TAG],
        summary="Retrieve a model provider: its models, whether it is available, its last test.",
        responses={200: objects.ProviderObject},
    )
    def get(self, request: Request, organization_id: str, provider_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        return Response(_shown(request, _named(organization_id, provider_id)))

    @extend_schema(
        operation_id="providers_update",
        tags=[TAG],
        summary="Change a model provider, replace its key, or switch it off and on.",
        request=shapes.UpdateProvider,
        responses={200: objects.ProviderObject},
    )
    def post(self, request: Request, organization_id: str, provider_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        values = read_shape(request.data, shapes.UpdateProvider)
        names = _named(organization_id, provider_id)
        update_provider(access=access_of(request), changes=ProviderChanges(**values), **names)
        return Response(_shown(request, names))

    @extend_schema(
        operation_id="providers_remove",
        tags=[TAG],
        summary="Remove a model provider; agents that used it go over to the default model.",
        responses={204: None},
    )
    def delete(self, request: Request, organization_id: str, provider_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        remove_provider(access=access_of(request), **_named(organization_id, provider_id))
        return Response(status=204)


class ProviderTestView(ApiView):
    @extend_schema(
        operation_id="providers_test",
        tags=[TAG],
        summary="Test the connection: one model is asked for a word, for some seconds at most.",
        description=(
            "The answer is 200 whatever comes of it, and `outcome` says what is wrong. Ten tests a "
            "minute for an organization."
        ),
        request=shapes.TestProvider,
        responses={200: objects.ProviderTestObject},
    )
    def post(self, request: Request, organization_id: str, provider_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        values = read_shape(request.data, shapes.TestProvider)
        verdict = check_connection(
            access=access_of(request),
            model_pk=values.get("model_id"),
            **_named(organization_id, provider_id),
        )
        return Response(objects.verdict_json(verdict))


class ProviderModelsView(ApiView):
    @extend_schema(
        operation_id="provider_models_add",
        tags=[TAG],
        summary="Add a model to a provider. The first one of an organization is its default.",
        request=shapes.AddModel,
        responses={201: objects.ProviderModelObject},
    )
    def post(self, request: Request, organization_id: str, provider_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        fields = read_shape(request.data, shapes.AddModel)
        names = _named(organization_id, provider_id)
        made = add_model(access=access_of(request), fields=fields, **names)
        return Response(objects.model_json(made), status=201)


class ProviderModelView(ApiView):
    @extend_schema(
        operation_id="provider_models_update",
        tags=[TAG],
        summary="Change a model: names, bounds, prices, whether it is enabled or the default.",
        request=shapes.UpdateModel,
        responses={200: objects.ProviderModelObject},
    )
    def post(
        self, request: Request, organization_id: str, provider_id: str, model_id: str
    ) -> Response:
        read_query(request.query_params, NoQuery)
        fields = read_shape(request.data, shapes.UpdateModel)
        names = _named(organization_id, provider_id)
        model_pk = id_in_path(Prefix.MODEL, model_id)
        changed = update_model(access=access_of(request), model_pk=model_pk, fields=fields, **names)
        return Response(objects.model_json(changed))

    @extend_schema(
        operation_id="provider_models_remove",
        tags=[TAG],
        summary="Remove a model; agents that used it go over to the default one.",
        responses={204: None},
    )
    def delete(
        self, request: Request, organization_id: str, provider_id: str, model_id: str
    ) -> Response:
        read_query(request.query_params, NoQuery)
        names = _named(organization_id, provider_id)
        model_pk = id_in_path(Prefix.MODEL, model_id)
        remove_model(access=access_of(request), model_pk=model_pk, **names)
        return Response(status=204)


def _named(organization_id: str, provider_id: str) -> dict[str, UUID]:
    return {
        "organization_id": id_in_path(Prefix.ORGANIZATION, organization_id),
        "provider_id": id_in_path(Prefix.PROVIDER, provider_id),
    }


def _shown(request: Request, names: dict[str, UUID]) -> dict[str, Any]:
    return objects.provider_json(get_provider(access=access_of(request), **names), served_kinds())
