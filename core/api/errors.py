"""The one place that knows which HTTP status an error is, and the one body all of them have.

Clients branch on `code`; `docs/compatibility.md` lists the codes.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views import defaults
from rest_framework import exceptions
from rest_framework.response import Response

from core.api.request_id import request_id_of
from core.errors import (
    Conflict,
    DomainError,
    Forbidden,
    InvalidInput,
    NotFound,
    RateLimited,
    TooLarge,
    Unauthenticated,
    Unavailable,
    Unprocessable,
)

log = logging.getLogger("sederunt.api")

AUTHENTICATE = 'Bearer realm="sederunt"'
RETRY_UNAVAILABLE_SECONDS = 2
API_PREFIX = "/v1/"
STATUSES: Mapping[type[DomainError], int] = {
    InvalidInput: 400,
    Unauthenticated: 401,
    Forbidden: 403,
    NotFound: 404,
    Conflict: 409,
    TooLarge: 413,
    Unprocessable: 422,
    RateLimited: 429,
    Unavailable: 503,
}
TYPES: Mapping[int, str] = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    500: "api_error",
    503: "overloaded_error",
}
# Codes of Django REST Framework's own exceptions and fields, in our words.
CODES: Mapping[str, str] = {
    "not_authenticated": "unauthenticated",
    "authentication_failed": "unauthenticated",
    "permission_denied": "forbidden",
    "parse_error": "invalid_json",
    "throttled": "rate_limited",
    "required": "field_required",
    "null": "field_null",
    "blank": "field_blank",
    "invalid": "invalid_value",
    "not_a_list": "invalid_type",
    "not_a_dict": "invalid_type",
    "max_length": "too_long",
    "min_length": "too_short",
    "max_value": "out_of_range",
    "min_value": "out_of_range",
    "max_string_length": "too_long",
    "empty": "too_short",
    "null_characters_not_allowed": "invalid_text",
    "surrogate_characters_not_allowed": "invalid_text",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """What is said about an error: `param` is the path of the field at fault."""

    status: int
    code: str
    message: str
    param: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    retry_after_seconds: int | None = None

    @property
    def headers(self) -> dict[str, str]:
        headers = {}
        if self.status == 401:
            headers["www-authenticate"] = AUTHENTICATE
        if self.status == 409:
            # Official clients repeat every 409 otherwise; the state will not change by itself.
            headers["x-should-retry"] = "false"
        if self.retry_after_seconds is not None:
            headers["retry-after"] = str(self.retry_after_seconds)
        return headers

    def body(self, request_id: str) -> dict[str, Any]:
        return {
            "type": "error",
            "error": {
                "type": TYPES.get(self.status, "invalid_request_error"),
                "code": self.code,
                "message": self.message,
                "param": self.param,
                "details": {"error_code": self.code, **self.details},
            },
            "request_id": request_id,
        }


def problem_of(error: Exception) -> Problem:
    """Never fails, and shows nothing of an unexpected error."""
    match error:
        case DomainError():
            return _domain_problem(error)
        case exceptions.ValidationError():
            return _validation_problem(error)
        case exceptions.APIException():
            return _framework_problem(error)
        case Http404():
            return _domain_problem(NotFound())
        case PermissionDenied():
            return _domain_problem(Forbidden())
        case RequestDataTooBig():
            return _domain_problem(TooLarge("body_too_large"))
        case SuspiciousOperation():
            return _domain_problem(InvalidInput())
        case OperationalError() | InterfaceError():
            log.warning("database_unavailable", exc_info=error)
            return _domain_problem(Unavailable())
    log.error("unexpected_error", exc_info=error)
    return Problem(
        500, "internal_error", "Something went wrong on our side; it was noted with this request."
    )


def exception_handler(error: Exception, context: Mapping[str, Any]) -> Response:
    """For REST framework views."""
    problem = problem_of(error)
    request = getattr(context["request"], "_request", context["request"])
    body = problem.body(request_id_of(request))
    return Response(body, status=problem.status, headers=problem.headers)


def error_response(error: Exception, request: HttpRequest) -> HttpResponse:
    """The same answer from a plain Django view."""
    problem = problem_of(error)
    content = orjson.dumps(problem.body(request_id_of(request)), default=str)
    return HttpResponse(
        content,
        content_type="application/json",
        status=problem.status,
        headers=problem.headers,
    )


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """`handler400`: JSON under the API, a page elsewhere."""
    if _is_api(request):
        return error_response(exception, request)
    return defaults.bad_request(request, exception)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    if _is_api(request):
        return error_response(exception, request)
    return defaults.permission_denied(request, exception)


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    if _is_api(request):
        return error_response(exception, request)
    return defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponseBase:
    """`handler500`: what no view has caught. Django has logged it already.

    It is called while that error is being handled; one of the database is an outage, not ours.
    """
    error = sys.exception()
    if isinstance(error, OperationalError | InterfaceError):
        return _unavailable(error, request)
    if not _is_api(request):
        return defaults.server_error(request)
    problem = Problem(
        500, "internal_error", "Something went wrong on our side; it was noted with this request."
    )
    content = orjson.dumps(problem.body(request_id_of(request)))
    return HttpResponse(content, content_type="application/json", status=500)


def _unavailable(error: Exception, request: HttpRequest) -> HttpResponseBase:
    if _is_api(request):
        return error_response(error, request)
    # Without the request: what it knows of the person would have to be asked of the database.
    page = render(None, "503.html", status=503)
    page["retry-after"] = str(RETRY_UNAVAILABLE_SECONDS)
    return page


def _is_api(request: HttpRequest) -> bool:
    return request.path.startswith(API_PREFIX)


def _domain_problem(error: DomainError) -> Problem:
    status = next(status for kind, status in STATUSES.items() if isinstance(error, kind))
    retry = getattr(error, "retry_after_seconds", None)
    if isinstance(error, Unavailable):
        retry = RETRY_UNAVAILABLE_SECONDS
    return Problem(status, error.code, error.message, error.param, error.details, retry)


def _framework_problem(error: exceptions.APIException) -> Problem:
    detail = error.detail
    if not isinstance(detail, exceptions.ErrorDetail):
        return Problem(error.status_code, "invalid_request", str(detail))
    wait = getattr(error, "wait", None)
    code = _code(detail)
    if isinstance(error, exceptions.NotFound):
        return _domain_problem(NotFound())
    retry = max(1, int(wait)) if wait is not None else None
    return Problem(error.status_code, code, str(detail), retry_after_seconds=retry)


def _validation_problem(error: exceptions.ValidationError) -> Problem:
    """The first field at fault is in the error itself, all of them in its details."""
    found = [
        {"param": path or None, "code": _code(item), "message": str(item)}
        for path, item in _flatten(error.detail, "")
    ]
    first = found[0] if found else {"param": None, "code": "invalid_request", "message": ""}
    return Problem(
        400, str(first["code"]), str(first["message"]), first["param"], {"errors": found[:100]}
    )


def _flatten(detail: Any, path: str) -> Iterator[tuple[str, exceptions.ErrorDetail]]:
    """Paths as they are written everywhere: `events[0].content`."""
    if isinstance(detail, exceptions.ErrorDetail):
        yield path, detail
    elif isinstance(detail, Mapping):
        for name, inner in detail.items():
            yield from _flatten(inner, _join(path, name))
    elif isinstance(detail, list):
        for index, inner in enumerate(detail):
            own = isinstance(inner, exceptions.ErrorDetail)
            yield from _flatten(inner, path if own else f"{path}[{index}]")


def _code(detail: exceptions.ErrorDetail) -> str:
    own = detail.code or "invalid_request"
    return CODES.get(own, own)


def _join(path: str, name: object) -> str:
    if name == "non_field_errors":
        return path
    if isinstance(name, int):
        return f"{path}[{name}]"
    return f"{path}.{name}" if path else str(name)
