"""The OpenAPI document: headers that operations share, the stream, and how it is served."""

from __future__ import annotations

from functools import cache
from typing import Any

import orjson
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import MethodNotAllowed

from core.api.errors import error_response
from core.api.schema import AccessScheme
from orgs.api.authentication import WORKSPACE_HEADER
from sessions_app.services.idempotency import HEADER, KEY_MAX_CHARACTERS

IDEMPOTENCY = OpenApiParameter(
    HEADER,
    {"type": "string", "maxLength": KEY_MAX_CHARACTERS},
    OpenApiParameter.HEADER,
    description="The same request with the same key is done once; kept for a day.",
)
WORKSPACE = OpenApiParameter(
    WORKSPACE_HEADER,
    str,
    OpenApiParameter.HEADER,
    description="The workspace, where neither body nor query names one.",
)
STREAM_PATH = "/v1/sessions/{session_id}/events/stream"
STREAM: dict[str, Any] = {
    "operationId": "events_stream",
    "summary": "Follow a session's log as Server-Sent Events: replay, then live.",
    "description": (
        "Each frame has `id: <seq>`, `event: <type>` and the event as `data`. Without a position "
        "the stream begins with the oldest unfinished turn, else at the head. The header "
        "Last-Event-ID beats `after`."
    ),
    "tags": ["Events"],
    "security": [{name: []} for name in AccessScheme.name],
    "parameters": [
        {"in": "path", "name": "session_id", "schema": {"type": "string"}, "required": True},
        {"in": "query", "name": "after", "schema": {"type": "integer", "minimum": 0}},
        {
            "in": "query",
            "name": "types[]",
            "schema": {"type": "array", "items": {"type": "string"}},
        },
        {"in": "header", "name": "Last-Event-ID", "schema": {"type": "string"}},
    ],
    "responses": {
        "200": {
            "description": "The stream.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    },
}


WORKSPACE_STREAM_PATH = "/v1/workspaces/{workspace_id}/stream"
WORKSPACE_STREAM: dict[str, Any] = {
    **STREAM,
    "operationId": "workspaces_stream",
    "summary": "Follow a workspace's list of sessions as Server-Sent Events.",
    "description": (
        "`sidebar` tells rows that changed and ids that left the list; `session.created` what is "
        "new; `resync` to read the list again, as whoever comes back with a cursor is told. Each "
        "frame's `id` is an opaque cursor. The header Last-Event-ID beats `cursor`."
    ),
    "tags": ["Sessions"],
    "parameters": [
        {"in": "path", "name": "workspace_id", "schema": {"type": "string"}, "required": True},
        {"in": "query", "name": "cursor", "schema": {"type": "string"}},
        {"in": "header", "name": "Last-Event-ID", "schema": {"type": "string"}},
    ],
}


def add_stream(result: Any, generator: Any, request: Any, public: bool) -> Any:
    """A postprocessing hook: streams are asynchronous views, which the generator skips."""
    result["paths"][STREAM_PATH] = {"get": STREAM}
    result["paths"][WORKSPACE_STREAM_PATH] = {"get": WORKSPACE_STREAM}
    result["paths"] = dict(sorted(result["paths"].items()))
    return result


@cache
def document() -> dict[str, Any]:
    """Made once in a process: it follows from the code alone."""
    made: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    return made


@csrf_exempt
def openapi_view(request: HttpRequest) -> HttpResponse:
    if request.method not in {"GET", "HEAD"}:
        refusal = error_response(MethodNotAllowed(request.method or ""), request)
        refusal["Allow"] = "GET, HEAD"
        return refusal
    return HttpResponse(orjson.dumps(document()), content_type="application/json")


@require_safe
def docs_view(request: HttpRequest) -> HttpResponse:
    """The document as a page: plain HTML, nothing from elsewhere, no script."""
    return render(request, "api/docs.html", {"document": document(), "groups": _groups()})


def _groups() -> list[dict[str, Any]]:
    """The operations by tag, as the template shows them."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, operations in document()["paths"].items():
        for method, operation in operations.items():
            tag = operation.get("tags", ["Other"])[0]
            shown = {
                "method": method.upper(),
                "path": path,
                "id": operation["operationId"],
                "summary": operation.get("summary", ""),
                "description": operation.get("description", ""),
                "parameters": operation.get("parameters", []),
                "body": _body(operation),
                "answers": _answers(operation),
            }
            groups.setdefault(tag, []).append(shown)
    return [{"name": name, "operations": found} for name, found in sorted(groups.items())]


def _body(operation: dict[str, Any]) -> list[dict[str, Any]]:
    content = operation.get("requestBody", {}).get("content", {})
    return _fields(content.get("application/json", {}).get("schema", {}))


def _answers(operation: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"status": status, "name": _name(response), "description": response.get("description", "")}
        for status, response in operation["responses"].items()
    ]


def _name(response: dict[str, Any]) -> str:
    for content in response.get("content", {}).values():
        return str(content.get("schema", {}).get("$ref", "")).rpartition("/")[2]
    return ""


def _fields(schema: dict[str, Any]) -> list[dict[str, Any]]:
    if reference := schema.get("$ref"):
        schema = document()["components"]["schemas"][reference.rpartition("/")[2]]
    required = schema.get("required", [])
    return [
        {
            "name": name,
            "type": _type(field),
            "required": name in required,
            "description": field.get("description", ""),
        }
        for name, field in schema.get("properties", {}).items()
    ]


def _type(field: dict[str, Any]) -> str:
    if reference := field.get("$ref"):
        return str(reference).rpartition("/")[2]
    for several in ("oneOf", "anyOf", "allOf"):
        if several in field:
            return " or ".join(dict.fromkeys(_type(option) for option in field[several]))
    kind = field.get("type", "anything")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)
