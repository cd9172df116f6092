"""Answers are for whoever asked, and are kept nowhere, unless the view says otherwise.

After signing out, Back shows nothing; and no proxy hands one person's page to the next.
"""

from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from core.api.both_worlds import BothWorlds

POLICY = "private, no-store"


class NoStoreMiddleware(BothWorlds):
    """Behind the one for static files, which may be kept."""

    def finish(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        response.headers.setdefault("Cache-Control", POLICY)
        return response
