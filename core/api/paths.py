"""Ids in addresses."""

from __future__ import annotations

from uuid import UUID

from core.errors import NotFound
from core.ids import InvalidId, decode_id


def id_in_path(prefix: str, text: str) -> UUID:
    """A malformed id names nothing: NotFound, the same as an id that never existed."""
    try:
        return decode_id(prefix, text)
    except InvalidId:
        raise NotFound from None
