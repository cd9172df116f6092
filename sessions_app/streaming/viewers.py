"""Whose stream this is: a key or a login, by the API's rules, computed anew while it is open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib import auth
from django.http import parse_cookie
from django.http.request import split_domain_port, validate_host

from core.errors import Forbidden, Unauthenticated
from orgs import principals
from orgs.access import Access
from orgs.models import User
from sessions_app.streaming.followers import Viewer

_LOGINS = import_module(settings.SESSION_ENGINE)


@dataclass(frozen=True, slots=True)
class Credentials:
    """An API key, or the key of a login; `has_key` even where the header holds nonsense."""

    api_key: str = ""
    login_key: str = ""
    has_key: bool = False


@dataclass(slots=True)
class _Login:
    """As much of a request as Django's authentication looks at."""

    session: Any


def read_credentials(headers: Mapping[str, str]) -> Credentials:
    """From header names in lower case. A key beats a cookie."""
    if "authorization" in headers:
        scheme, _, value = headers["authorization"].partition(" ")
        key = value.strip() if scheme.lower() == "bearer" else ""
        return Credentials(api_key=key, has_key=True)
    if "x-api-key" in headers:
        return Credentials(api_key=headers["x-api-key"].strip(), has_key=True)
    return Credentials(login_key=_login_key(headers.get("cookie", "")))


def open_viewer(credentials: Credentials) -> Viewer:
    """Raises Unauthenticated."""
    if credentials.has_key:
        return Viewer(principals.authenticate_key(credentials.api_key), principals.refresh)
    login_key = credentials.login_key

    def recheck(_: Access) -> Access | None:
        user = _signed_in_user(login_key)
        return None if user is None else principals.access_for_user(user)

    user = _signed_in_user(login_key)
    if user is None:
        raise Unauthenticated
    return Viewer(principals.access_for_user(user), recheck)


def require_same_origin(headers: Mapping[str, str], *, scheme: str) -> None:
    """A browser sends a login's cookie along whoever opens the socket: only our pages may.

    Raises Forbidden `origin_not_allowed`, also where there is no Origin at all.
    """
    origin = headers.get("origin", "")
    host = headers.get("host", "")
    secure = "https" if scheme in {"wss", "https"} else "http"
    allowed = {f"{secure}://{host}", *settings.CSRF_TRUSTED_ORIGINS}
    if _is_forwarded_https(headers):
        allowed.add(f"https://{host}")
    domain, _ = split_domain_port(urlsplit(origin).netloc.lower())
    is_ours = validate_host(domain, settings.ALLOWED_HOSTS) if domain else False
    if origin not in allowed or not (is_ours or origin in settings.CSRF_TRUSTED_ORIGINS):
        raise Forbidden(
            "origin_not_allowed",
            "A socket that a login opens must come from our own pages; use an API key elsewhere.",
        )


def _is_forwarded_https(headers: Mapping[str, str]) -> bool:
    if not settings.SECURE_PROXY_SSL_HEADER:
        return False
    name, value = settings.SECURE_PROXY_SSL_HEADER
    return headers.get(name.removeprefix("HTTP_").replace("_", "-").lower()) == value


def _login_key(cookie: str) -> str:
    return parse_cookie(cookie).get(settings.SESSION_COOKIE_NAME, "")


def _signed_in_user(login_key: str) -> User | None:
    """By Django's own rules: the login exists, and its password has not changed since."""
    if not login_key:
        return None
    user = auth.get_user(_Login(_LOGINS.SessionStore(login_key)))  # type: ignore[arg-type]
    return user if isinstance(user, User) and user.is_active else None
