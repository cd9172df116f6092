"""Where this server is met: scheme, host and port of the request, as links and sockets need it."""

from __future__ import annotations

from django.http import HttpRequest


def origin_of(request: HttpRequest) -> str:
    """`https://sederunt.example`. Raises DisallowedHost."""
    return f"{request.scheme}://{request.get_host()}"
