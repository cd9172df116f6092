"""Pages whose address is a secret, as that of a link in a mail."""

from __future__ import annotations

from django.http import HttpResponse


def without_address(response: HttpResponse) -> HttpResponse:
    """Its address is told nobody, not even our own pages. `no-referrer` would say no more, and
    browsers would send its form without the origin that the CSRF check asks for.
    """
    response["Referrer-Policy"] = "strict-origin"
    return response
