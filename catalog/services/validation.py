"""What may be written into providers and models."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from ipaddress import ip_address
from typing import Any
from urllib.parse import SplitResult, urlsplit

from django.conf import settings
from django.db import close_old_connections, connection

from catalog.kinds import ReasoningEffort
from core.errors import InvalidInput
from core.outbound import Address, AddressRefused, HostUnknown, admitted_addresses, resolve
from core.text import has_visible, is_storable

BASE_URL_MAX_CHARACTERS = 500
KEY_MAX_CHARACTERS = 1_000
MODEL_NAME_MAX_CHARACTERS = 200
ALIASES_MAX = 20
CONTEXT_MAX_TOKENS = 1_000_000_000
PRICE_BELOW = Decimal(1_000_000)
PRICE_DECIMALS = 6
RESOLVE_SECONDS = 3.0
# At once, in one process: names that nobody answers for must not take all its threads.
_resolving = threading.BoundedSemaphore(4)
# Shorter keys would be half told by their end.
END_SHOWN_FROM_CHARACTERS = 16
_SLUG = re.compile(r"[a-z0-9][a-z0-9_-]{0,49}")
_PRINTABLE = re.compile(r"[!-~]+")


def require_slug(slug: str) -> str:
    """Raises InvalidInput `invalid_slug`."""
    if not _SLUG.fullmatch(slug):
        raise InvalidInput(
            "invalid_slug",
            "A short name has 1 to 50 small letters, digits, “-” or “_”.",
            param="slug",
        )
    return slug


def require_key(key: str) -> str:
    """Of a provider. Raises InvalidInput `invalid_provider_key`, which does not repeat it."""
    key = key.strip()
    if len(key) > KEY_MAX_CHARACTERS or not _PRINTABLE.fullmatch(key):
        raise InvalidInput(
            "invalid_provider_key",
            f"A key has 1 to {KEY_MAX_CHARACTERS:,} characters of ASCII, without spaces.",
            param="api_key",
        )
    return key


def end_of_key(key: str) -> str:
    return key[-4:] if len(key) >= END_SHOWN_FROM_CHARACTERS else ""


def require_base_url(text: str) -> str:
    """Without a slash at its end; empty for the vendor's own. Raises InvalidInput
    `invalid_base_url`. It asks nobody: see `require_reachable`.
    """
    text = text.strip()
    if not text:
        return ""
    parts = _split(text)
    if len(text) > BASE_URL_MAX_CHARACTERS or not _PRINTABLE.fullmatch(text) or "\\" in text:
        raise _invalid_url(f"It has at most {BASE_URL_MAX_CHARACTERS} characters of plain ASCII.")
    if parts is None or parts.scheme not in {"http", "https"} or not parts.hostname:
        raise _invalid_url("Write an address that begins with https://.")
    if "@" in parts.netloc:
        raise _invalid_url("Leave name and password out of the address; the key has its own field.")
    if parts.query or parts.fragment or text.endswith(("?", "#")):
        raise _invalid_url("Leave out what comes after “?” or “#”.")
    return text.rstrip("/")


def require_reachable(base_url: str) -> None:
    """Nothing private that the operator does not allow, as far as can be told within seconds: a
    name that is not known passes, and so does one while many are asked for. Whoever connects looks
    again. Raises InvalidInput `address_refused`.
    """
    parts = _split(base_url)
    if parts is None or not parts.hostname:
        return
    try:
        admitted_addresses(
            scheme=parts.scheme,
            host=parts.hostname,
            port=parts.port or (443 if parts.scheme == "https" else 80),
            addresses=_addresses_of(parts.hostname),
            places=settings.PROVIDER_PRIVATE_HOSTS,
        )
    except AddressRefused as error:
        raise InvalidInput("address_refused", str(error), param="base_url") from None
    except _NotTold:
        return


def clean_model(fields: Mapping[str, Any], *, at: str = "") -> dict[str, Any]:
    """The given fields of a model as they are stored; `at`: the path to them. Raises InvalidInput
    `invalid_model`.
    """
    return {name: _CLEANERS[name](value, f"{at}{name}") for name, value in fields.items()}


def _split(text: str) -> SplitResult | None:
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return None
    return parts


class _NotTold(Exception):
    """Which addresses a name has."""


def _addresses_of(host: str) -> list[Address]:
    try:
        return [ip_address(host)]
    except ValueError:
        pass
    if not _resolving.acquire(blocking=False):
        raise _NotTold
    try:
        if not connection.in_atomic_block:
            close_old_connections()  # others may have ours while we wait for a stranger
        return asyncio.run(resolve(host, within_seconds=RESOLVE_SECONDS))
    except (HostUnknown, TimeoutError):
        raise _NotTold from None
    finally:
        _resolving.release()


def _invalid_url(message: str) -> InvalidInput:
    return InvalidInput("invalid_base_url", message, param="base_url")


def _invalid_model(message: str, param: str) -> InvalidInput:
    return InvalidInput("invalid_model", message, param=param)


def _name(value: Any, param: str) -> str:
    text = str(value).strip()
    fits = 0 < len(text) <= MODEL_NAME_MAX_CHARACTERS and is_storable(text) and has_visible(text)
    if not fits or not text.isprintable():
        raise _invalid_model(f"Use 1 to {MODEL_NAME_MAX_CHARACTERS} characters.", param)
    return text


def _aliases(value: Iterable[str], param: str) -> list[str]:
    names = list(dict.fromkeys(_name(each, param) for each in value))
    if len(names) > ALIASES_MAX:
        raise _invalid_model(f"At most {ALIASES_MAX} aliases.", param)
    return names


def _context_size(value: int | None, param: str) -> int | None:
    if value is not None and not 0 < value <= CONTEXT_MAX_TOKENS:
        raise _invalid_model(f"Use 1 to {CONTEXT_MAX_TOKENS:,} tokens.", param)
    return value


def _price(value: Decimal | None, param: str) -> Decimal | None:
    if value is None:
        return None
    exponent = value.as_tuple().exponent if value.is_finite() else None
    fits = isinstance(exponent, int) and exponent >= -PRICE_DECIMALS and 0 <= value < PRICE_BELOW
    if not fits:
        raise _invalid_model(
            f"A price is 0 to below {PRICE_BELOW:,}, with at most {PRICE_DECIMALS} decimals.", param
        )
    return value


def _efforts(value: Iterable[str], param: str) -> list[str]:
    wanted = set(value)
    if wanted - set(ReasoningEffort):
        raise _invalid_model(f"Use some of {', '.join(ReasoningEffort)}.", param)
    return [effort.value for effort in ReasoningEffort if effort in wanted]


def _flag(value: bool, _: str) -> bool:
    return value


_CLEANERS: Mapping[str, Callable[[Any, str], Any]] = {
    "model_id": _name,
    "display_name": _name,
    "aliases": _aliases,
    "context_size": _context_size,
    "efforts": _efforts,
    "input_price": _price,
    "output_price": _price,
    "is_enabled": _flag,
    "is_default": _flag,
}
