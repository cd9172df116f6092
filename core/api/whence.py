"""Notes for each request from where it came."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from core.api.request_id import request_id_of
from core.whence import Whence, coming_from

USER_AGENT_MAX_CHARACTERS = 300


class WhenceMiddleware:
    """Runs in both worlds itself, so that it costs no thread under ASGI."""

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
        if iscoroutinefunction(self.get_response):
            return self._later(request)
        with coming_from(_whence(request)):
            response = self.get_response(request)
        assert isinstance(response, HttpResponseBase)
        return response

    async def _later(self, request: HttpRequest) -> HttpResponseBase:
        with coming_from(_whence(request)):
            response = self.get_response(request)
            return response if isinstance(response, HttpResponseBase) else await response


def _whence(request: HttpRequest) -> Whence:
    told = request.headers.get("user-agent", "")[:USER_AGENT_MAX_CHARACTERS]
    user_agent = "".join(each for each in told if each.isprintable())
    return Whence(request.META.get("REMOTE_ADDR", ""), request_id_of(request), user_agent)
