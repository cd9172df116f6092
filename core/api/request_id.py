"""Every answer names its request, so that a person's report and our log can be joined."""

from __future__ import annotations

import re
from uuid import uuid4

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from core.api.both_worlds import BothWorlds

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


class RequestIdMiddleware(BothWorlds):
    """Gives each request an id and each answer the two headers."""

    def finish(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        for header in HEADERS:
            response.headers[header] = request_id_of(request)
        return response
