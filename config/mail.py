"""From one URL to Django's settings for sending mail."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

_BACKENDS = "django.core.mail.backends"
# Seconds. A mail server that says nothing holds up its sender no longer than this.
TIMEOUT_SECONDS = 10
PORTS = {"smtp": 587, "smtps": 465}


def settings_of(url: str) -> dict[str, Any]:
    """`smtps://user:password@host`, `smtp://host:25?tls=no`, or empty: mail goes to the log.

    `smtp` begins in clear and turns to TLS, unless `tls=no` says otherwise.
    """
    if not url or url == "console:":
        return {"EMAIL_BACKEND": f"{_BACKENDS}.console.EmailBackend"}
    parts = urlsplit(url)
    query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    turns_to_tls = query.pop("tls", "yes")
    if parts.scheme not in PORTS or not parts.hostname:
        raise ImproperlyConfigured("EMAIL_URL must begin with smtps:// or smtp:// and name a host.")
    if query or turns_to_tls not in {"yes", "no"}:
        raise ImproperlyConfigured("EMAIL_URL takes no other option than tls=yes or tls=no.")
    return {
        "EMAIL_BACKEND": f"{_BACKENDS}.smtp.EmailBackend",
        "EMAIL_HOST": parts.hostname,
        "EMAIL_PORT": parts.port or PORTS[parts.scheme],
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_SSL": parts.scheme == "smtps",
        "EMAIL_USE_TLS": parts.scheme == "smtp" and turns_to_tls == "yes",
        "EMAIL_TIMEOUT": TIMEOUT_SECONDS,
    }
