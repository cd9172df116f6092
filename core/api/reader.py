"""What a page knows of its reader from their browser: the theme that they chose, and their zone."""

from __future__ import annotations

from datetime import UTC, tzinfo
from urllib.parse import unquote
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.http import HttpRequest


def theme(request: HttpRequest) -> str:
    chosen = request.COOKIES.get("theme", "")
    return chosen if chosen in {"light", "dark"} else "system"


def zone(request: HttpRequest) -> tzinfo:
    # The page writes it percent-encoded: a zone's name has a slash.
    return zone_of(unquote(request.COOKIES.get("zone", "")))


def zone_of(name: str | None) -> tzinfo:
    """An IANA zone by name; UTC for nonsense, which a cookie may well hold."""
    if not name or len(name) > 64:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC
