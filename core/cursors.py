"""Opaque keyset cursors: purely positional, bound to the query that they came from.

A cursor carries the full sort key at full precision and a digest of the query. It grants nothing:
the caller's filter is applied afresh to each page.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson

from core.clock import rfc3339
from core.errors import InvalidInput

MAX_LENGTH = 1_000


def encode_cursor(query: str, position: Sequence[Any]) -> str:
    """`position` is JSON scalars: numbers, texts, RFC 3339 times."""
    raw = orjson.dumps([_digest(query), *position])
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decode_cursor(query: str, text: str, types: Sequence[type]) -> list[Any]:
    """The position, with one value for each of `types`. Raises InvalidInput `invalid_cursor`."""
    if len(text) > MAX_LENGTH:
        raise _garbled()
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        values = orjson.loads(raw)
    except (binascii.Error, ValueError) as error:
        raise _garbled() from error
    if not isinstance(values, list) or len(values) != len(types) + 1:
        raise _garbled()
    digest, *position = values
    if digest != _digest(query):
        raise InvalidInput(
            "cursor_of_another_query",
            "This cursor belongs to a query with other filters; begin again without it.",
            param="page",
        )
    if not all(type(value) is wanted for value, wanted in zip(position, types, strict=True)):
        raise _garbled()
    if encode_cursor(query, position) != text:  # padding, spaces: one position, one text
        raise _garbled()
    return position


def encode_moment(query: str, at: datetime, pk: UUID) -> str:
    """The position of a row in a list by time, newest or oldest first."""
    return encode_cursor(query, [rfc3339(at), pk.hex])


def decode_moment(query: str, text: str) -> tuple[datetime, UUID]:
    """Raises InvalidInput `invalid_cursor`."""
    at, pk = decode_cursor(query, text, [str, str])
    try:
        # A cursor's own time always names its offset; a bent one may not.
        return datetime.fromisoformat(at).astimezone(UTC), UUID(hex=pk)
    except (ValueError, OverflowError):
        raise _garbled() from None


def decode_key(query: str, text: str) -> UUID:
    """Of a list by a unique id, whose cursor is `encode_cursor(query, [id.hex])`. Raises
    InvalidInput `invalid_cursor`.
    """
    (key,) = decode_cursor(query, text, [str])
    try:
        return UUID(hex=key)
    except ValueError:
        raise _garbled() from None


def _digest(query: str) -> str:
    return hashlib.blake2s(query.encode(), digest_size=6).hexdigest()


def _garbled() -> InvalidInput:
    return InvalidInput(
        "invalid_cursor",
        "Send the page cursor exactly as the last answer gave it.",
        param="page",
    )
