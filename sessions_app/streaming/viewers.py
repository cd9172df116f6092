"""Whose stream this is, by the API's own rules, and computed anew while it is open."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import Any

from django.conf import settings
from django.contrib import auth
from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest

from core.api.origin import origin_of
from core.errors import Forbidden, Unauthenticated
from orgs import principals
from orgs.access import Access
from orgs.api.authentication import authenticate_request
from orgs.login_store import SessionStore, signed_in_user
from sessions_app.streaming.followers import Viewer


def open_viewer(request: HttpRequest) -> Viewer:
    """Raises what the API's authentication raises, and Unauthenticated for nobody."""
    access = authenticate_request(request)
    if access is None:
        raise Unauthenticated
    if access.user_id is None:
        return Viewer(access, principals.refresh)
    assert isinstance(request.session, SessionStore)
    login_id = request.session.find_id()
    if login_id is None:
        raise Unauthenticated

    def recheck(_: Access) -> Access | None:
        user = signed_in_user(login_id)
        return None if user is None else principals.access_for_user(user)

    return Viewer(access, recheck, identity=login_id, login_id=login_id)


def socket_request(scope: Mapping[str, Any]) -> HttpRequest:
    """A socket's opening handshake, as the request that it is."""
    scheme = {"ws": "http", "wss": "https"}.get(scope.get("scheme", "ws"), "http")
    request = ASGIRequest({**scope, "method": "GET", "scheme": scheme}, BytesIO())
    request.session = SessionStore(request.COOKIES.get(settings.SESSION_COOKIE_NAME))
    return request


def open_socket_viewer(request: HttpRequest) -> Viewer:
    """Like `open_viewer`; a login must come from our own pages. Raises Forbidden otherwise."""
    if "authorization" not in request.headers and "x-api-key" not in request.headers:
        if settings.SESSION_COOKIE_NAME in request.COOKIES:
            _require_same_origin(request)
        request.user = auth.get_user(request)
    return open_viewer(request)


def _require_same_origin(request: HttpRequest) -> None:
    """A browser sends a login's cookie along whoever opens the socket, and no CSRF token."""
    origin = request.headers.get("origin")
    try:
        own = origin_of(request)
    except DisallowedHost:
        own = None
    if origin is None or origin not in {own, *settings.CSRF_TRUSTED_ORIGINS}:
        raise Forbidden(
            "origin_not_allowed",
            "A socket that a login opens must come from our own pages; use an API key elsewhere.",
        )
