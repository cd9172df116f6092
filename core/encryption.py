"""Secrets at rest: Fernet (AES-128-CBC with HMAC-SHA256) under SEDERUNT_ENCRYPTION_KEY."""

from __future__ import annotations

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

from core.errors import Unavailable


def encrypt(text: str) -> str:
    return _fernet().encrypt(text.encode()).decode()


def decrypt(token: str) -> str:
    """Raises Unavailable when the key that encrypted it is gone."""
    try:
        return _fernet().decrypt(token.encode()).decode()
    except InvalidToken as error:
        raise Unavailable(
            "undecipherable_secret",
            "A stored credential cannot be read with the present SEDERUNT_ENCRYPTION_KEY; "
            "store it again.",
        ) from error


def _fernet() -> MultiFernet:
    """Several keys, comma-separated, are tried in turn; the first encrypts (rotation)."""
    return MultiFernet([Fernet(key) for key in settings.ENCRYPTION_KEYS])
