"""Browsers in which somebody has signed in before: who is locked out elsewhere by the guesses of
strangers comes in from there.

What such a browser keeps signs nobody in. It is bound to an account and its present password, and
signed by this server: who knew an older password is a stranger with all the browsers they had.
"""

from __future__ import annotations

import hashlib
import secrets

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.crypto import constant_time_compare

from orgs.models import User

COOKIE = "sederunt_device"
PATH = "/sign-in/"
KEPT_SECONDS = 60 * 60 * 24 * 365
_SALT = "orgs.known_devices"


def known_device(request: HttpRequest, email: str) -> str:
    """Which browser of this account it is; empty for one that nobody signed in with as them."""
    value = request.get_signed_cookie(COOKIE, default=None, salt=_SALT, max_age=KEPT_SECONDS)
    account, _, rest = (value or "").partition(":")
    device, _, password = rest.partition(":")
    if account != _account(email) or not constant_time_compare(password, _password(email)):
        return ""
    return device


def remember_device(request: HttpRequest, response: HttpResponseBase, email: str) -> None:
    device = known_device(request, email) or secrets.token_hex(8)
    response.set_signed_cookie(
        COOKIE,
        f"{_account(email)}:{device}:{_password(email)}",
        salt=_SALT,
        max_age=KEPT_SECONDS,
        path=PATH,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def _account(email: str) -> str:
    return hashlib.sha256(email.casefold().encode()).hexdigest()[:16]


def _password(email: str) -> str:
    """Another one for each password that the account ever has, which it does not tell."""
    user = User.objects.filter(email__iexact=email).first()
    return user.get_session_auth_hash()[:16] if user else ""
