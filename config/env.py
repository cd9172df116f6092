"""Typed readers for environment variables. A wrong value stops the start with a sentence."""

from __future__ import annotations

import os
from ipaddress import IPv4Network, IPv6Network, ip_network

from django.core.exceptions import ImproperlyConfigured

from core.outbound import Place


def text(name: str, default: str = "") -> str:
    return os.environ.get(name, default).strip()


def required(name: str, why: str) -> str:
    value = text(name)
    if not value:
        raise ImproperlyConfigured(f"Set {name}: {why}")
    return value


def number(name: str, default: int, *, minimum: int = 0, maximum: int = 2**31) -> int:
    raw = text(name)
    if not raw:
        return default
    try:
        value = int(raw)
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be a whole number, not {raw!r}.") from None
    if not minimum <= value <= maximum:
        raise ImproperlyConfigured(f"{name} must be between {minimum} and {maximum}.")
    return value


def flag(name: str, default: bool = False) -> bool:
    raw = text(name).lower()
    if not raw:
        return default
    if raw in {"1", "true", "yes", "on"}:
        return True
    if raw in {"0", "false", "no", "off"}:
        return False
    raise ImproperlyConfigured(f"{name} must be yes or no, not {raw!r}.")


def words(name: str) -> list[str]:
    """Comma-separated, blanks dropped."""
    return [word.strip() for word in text(name).split(",") if word.strip()]


def networks(name: str, default: str) -> list[IPv4Network | IPv6Network]:
    """Addresses and networks, comma-separated; `none` for none at all."""
    raw = text(name) or default
    if raw.lower() == "none":
        return []
    try:
        return [ip_network(word.strip()) for word in raw.split(",") if word.strip()]
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} must be addresses or networks: {error}.") from None


def places(name: str, default: str) -> list[Place]:
    """Hosts, addresses and networks, each with a port or without; `none` for none at all."""
    raw = text(name) or default
    if raw.lower() == "none":
        return []
    try:
        return [Place.parse(word.strip()) for word in raw.split(",") if word.strip()]
    except ValueError as error:
        raise ImproperlyConfigured(
            f"{name} must be hosts, addresses or networks, each with a port or without: {error}."
        ) from None


def choice(name: str, default: str, allowed: set[str]) -> str:
    value = text(name, default) or default
    if value not in allowed:
        raise ImproperlyConfigured(f"{name} must be one of {', '.join(sorted(allowed))}.")
    return value
