"""Middleware that runs in both worlds itself: under ASGI it costs no thread."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest
from django.http.response import HttpResponseBase


class BothWorlds:
    """A middleware says what surrounds a request, and what becomes of its answer."""

    sync_capable = True
    async_capable = True

    def __init__(
        self,
        get_response: Callable[[HttpRequest], HttpResponseBase | Awaitable[HttpResponseBase]],
    ) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def surround(self, request: HttpRequest) -> AbstractContextManager[None]:
        return nullcontext()

    def finish(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        return response

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        if iscoroutinefunction(self.get_response):
            return self._later(request)
        with self.surround(request):
            response = self.get_response(request)
        assert isinstance(response, HttpResponseBase)
        return self.finish(request, response)

    async def _later(self, request: HttpRequest) -> HttpResponseBase:
        with self.surround(request):
            response = self.get_response(request)
            answer = response if isinstance(response, HttpResponseBase) else await response
        return self.finish(request, answer)
