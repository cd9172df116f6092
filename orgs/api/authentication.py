"""From a request to an `Access`: an API key, or a person's login with a CSRF token.

Imports no views: REST framework loads this while they are being made. What was sent as a key is
never echoed, logged or stored.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.http import HttpRequest
from rest_framework.authentication import BaseAuthentication, CSRFCheck
from rest_framework.request import Request

from core.api.errors import AUTHENTICATE
from core.errors import Forbidden, InvalidInput, NotFound, Unauthenticated
from core.ids import InvalidId, Prefix, decode_id
from orgs.access import Access
from orgs.models import User
from orgs.principals import access_for_user, authenticate_key

WORKSPACE_HEADER = "anthropic-workspace-id"
KEY_MAX_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class KeyCaller:
    """What REST framework takes for the user of a request that carried a key."""

    access: Access
    is_authenticated: bool = True
    is_active: bool = True

    @property
    def pk(self) -> str:
        return self.access.principal.public_id


class AccessAuthentication(BaseAuthentication):
    """Sets `request.user`, and the access as `request.auth` and `request.access`."""

    def authenticate(self, request: Request) -> tuple[User | KeyCaller, Access] | None:
        http_request = request._request
        access = authenticate_request(http_request)
        if access is None:
            return None
        http_request.access = access  # type: ignore[attr-defined]
        user = http_request.user
        caller = user if access.user_id and isinstance(user, User) else KeyCaller(access)
        return caller, access

    def authenticate_header(self, request: Request) -> str:
        return AUTHENTICATE


def access_of(request: Request) -> Access:
    """The access of an authenticated request."""
    access = request.auth
    assert isinstance(access, Access)
    return access


def authenticate_request(request: HttpRequest) -> Access | None:
    """For plain Django views too. None where the request says nothing about who it is from.

    Raises Unauthenticated for a key that is not good, Forbidden without a CSRF token, InvalidInput
    or NotFound for the workspace that the header selects.
    """
    secret = _sent_key(request)
    if secret is not None:
        return _select_workspace(request, authenticate_key(secret))
    user = request.user
    if not isinstance(user, User) or not user.is_active:
        return None
    _require_csrf(request)
    return _select_workspace(request, access_for_user(user))


def _sent_key(request: HttpRequest) -> str | None:
    header = request.headers.get("authorization")
    secret = request.headers.get("x-api-key")
    if header is not None:
        scheme, _, secret = header.strip().partition(" ")
        if scheme.lower() != "bearer":
            raise Unauthenticated(
                "invalid_authorization", "Send the header as “Authorization: Bearer <key>”."
            )
    if secret is None:
        return None
    secret = secret.strip()
    if not 0 < len(secret) <= KEY_MAX_CHARACTERS or not (secret.isascii() and secret.isprintable()):
        raise Unauthenticated("invalid_api_key", "This API key is not known here; check it.")
    return secret


def _require_csrf(request: HttpRequest) -> None:
    """A login cookie is sent by any page that makes a browser ask; a token is not."""
    check = CSRFCheck(lambda _: None)  # type: ignore[arg-type]
    check.process_request(request)
    if check.process_view(request, None, (), {}):  # type: ignore[arg-type]
        raise Forbidden(
            "csrf_failed", "Send the CSRF token of this login in the header X-CSRFToken."
        )


def _select_workspace(request: HttpRequest, access: Access) -> Access:
    """The workspace that the header names becomes the one that create and list use."""
    sent = request.headers.get(WORKSPACE_HEADER)
    if sent is None:
        return access
    try:
        workspace_id = decode_id(Prefix.WORKSPACE, sent)
    except InvalidId as error:
        raise InvalidInput("invalid_id", str(error), param=WORKSPACE_HEADER) from None
    if workspace_id not in access.grants:
        raise NotFound("workspace_not_found", "There is no such workspace.", param=WORKSPACE_HEADER)
    return replace(access, default_workspace_id=workspace_id)
