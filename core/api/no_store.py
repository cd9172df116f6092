"""Answers are for whoever asked, and are kept nowhere, unless the view says otherwise.

After signing out, Back shows nothing; and no proxy hands one person's page to the next.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest
from django.http.response import HttpResponseBase

POLICY = "private, no-store"


class NoStoreMiddleware:
    """Behind the one for static files, which may be kept. Runs in both worlds itself."""

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
        response = self.get_response(request)
        assert isinstance(response, HttpResponseBase)
        return _kept_nowhere(response)

    async def _later(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        answer = response if isinstance(response, HttpResponseBase) else await response
        return _kept_nowhere(answer)


def _kept_nowhere(response: HttpResponseBase) -> HttpResponseBase:
    response.headers.setdefault("Cache-Control", POLICY)
    return response
