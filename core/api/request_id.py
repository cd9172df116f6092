"""Every answer names its request, so that a person's report and our log can be joined."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from uuid import uuid4

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest
from django.http.response import HttpResponseBase

HEADERS = ("request-id", "x-request-id")
# What a proxy or client sends is taken only where it can do no harm in logs and headers.
_SAFE = re.compile(r"[A-Za-z0-9._-]{8,64}")


def request_id_of(request: HttpRequest) -> str:
    """The id of this request; made on first use, where the middleware did not run."""
    known = getattr(request, "request_id", None)
    if isinstance(known, str):
        return known
    sent = request.headers.get("x-request-id", "")
    made = sent if _SAFE.fullmatch(sent) else f"req_{uuid4().hex}"
    request.request_id = made  # type: ignore[attr-defined]
    return made


class RequestIdMiddleware:
    """Gives each request an id and each answer the two headers. Runs in both worlds itself, so
    that it costs no thread under ASGI.
    """

    sync_capable = True
    async_capable = True

    def __init__(
        self,
        get_response: Callable[[HttpRequest], HttpResponseBase | Awaitable[HttpResponseBase]],
    ) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        request_id_of(request)
        response = self.get_response(request)
        if isinstance(response, HttpResponseBase):
            return _named(request, response)
        return _named_later(request, response)


async def _named_later(
    request: HttpRequest, response: Awaitable[HttpResponseBase]
) -> HttpResponseBase:
    return _named(request, await response)


def _named(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    for header in HEADERS:
        response.headers[header] = request_id_of(request)
    return response
