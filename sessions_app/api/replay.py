"""Replay: pages of a log, bounded in events and in bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any
from uuid import UUID

import orjson
from django.conf import settings

from core.api.pagination import page_json
from core.cursors import decode_cursor, encode_cursor
from core.errors import InvalidInput
from core.ids import MAX_SEQ
from orgs.access import Access
from sessions_app.eventlog import StoredEvent, compact
from sessions_app.models import Session
from sessions_app.selectors import get_session, read_events
from sessions_app.streaming.positions import parse_types

FIRST_READ = 32  # events; later reads follow from how large these were


@dataclass(frozen=True, slots=True)
class Reading:
    """Events with `after` < seq < `before`, in one direction. `before` None: whatever comes.

    An open end is not the head: a log that grows must not change the query of a cursor.
    """

    session: Session
    after: int
    before: int | None
    descending: bool
    types: frozenset[str] | None
    compact: bool

    @property
    def fingerprint(self) -> str:
        # Without `compact`: a reader may ask for the next page either way.
        types = sorted(self.types) if self.types else None
        bounds = [self.session.pk.hex, self.after, self.before, self.descending, types]
        return orjson.dumps(bounds).decode()


def replay(access: Access, session_id: UUID, values: Mapping[str, Any]) -> dict[str, Any]:
    """A page of the wire. Raises NotFound; InvalidInput for a position beyond the head."""
    session = get_session(access=access, session_id=session_id)
    reading = _reading(session, values)
    position = _position(reading, values["page"])
    events, more = _page(reading, position, values["limit"])
    next_page = encode_cursor(reading.fingerprint, [events[-1].seq]) if more else None
    shown = compact(events) if reading.compact and not reading.descending else events
    return page_json((orjson.Fragment(event.json) for event in shown), next_page)


def _reading(session: Session, values: Mapping[str, Any]) -> Reading:
    head = session.head_seq
    after, before = values.get("after"), values.get("before")
    if after is not None and after > head:
        raise InvalidInput(
            "cursor_ahead",
            f"The position {after} lies beyond the end of this log, which is {head}.",
            param="after",
            details={"head": head},
        )
    newest_first = before is not None and after is None
    order = values.get("order") or ("desc" if newest_first else "asc")
    if order == "desc" and values["compact"]:
        raise InvalidInput("compact_needs_asc", "Joined runs are read oldest first.", param="order")
    return Reading(
        session,
        after or 0,
        before,
        order == "desc",
        parse_types(values.get("types[]", []), param="types"),
        values["compact"],
    )


def _position(reading: Reading, page: str) -> int | None:
    if not page:
        return None
    (seq,) = decode_cursor(reading.fingerprint, page, [int])
    if not 0 <= seq <= MAX_SEQ:
        raise InvalidInput(
            "invalid_cursor",
            "Send the page cursor exactly as the last answer gave it.",
            param="page",
        )
    return int(seq)


def _page(reading: Reading, position: int | None, limit: int) -> tuple[list[StoredEvent], bool]:
    """At most `limit` events and PAGE_MAX_BYTES (but one at least), and whether more follow."""
    kept: list[StoredEvent] = []
    size = 0
    for event in _within(reading, position, limit + 1):
        size += len(event.json.encode())
        if kept and (len(kept) == limit or size > settings.PAGE_MAX_BYTES):
            return kept, True
        kept.append(event)
    return kept, False


def _within(reading: Reading, position: int | None, limit: int) -> Iterator[StoredEvent]:
    if reading.descending:
        yield from takewhile(lambda e: e.seq > reading.after, _read(reading, position, limit))
    elif (end := reading.before) is not None:
        yield from takewhile(lambda e: e.seq < end, _read(reading, position, limit))
    else:
        yield from _read(reading, position, limit)


def _read(reading: Reading, position: int | None, limit: int) -> Iterator[StoredEvent]:
    """In pieces: events may be large, and a page of them is bounded in bytes."""
    side = "before" if reading.descending else "after"
    at = _start(reading) if position is None else position
    left, piece = limit, FIRST_READ
    while left > 0:
        count = min(left, piece)
        events = read_events(reading.session, limit=count, types=reading.types, **{side: at})
        yield from events
        if len(events) < count:
            return
        at, left = events[-1].seq, left - len(events)
        average = sum(len(event.json) for event in events) // len(events) + 1
        piece = max(1, settings.PAGE_MAX_BYTES // average)


def _start(reading: Reading) -> int:
    if not reading.descending:
        return reading.after
    return MAX_SEQ if reading.before is None else reading.before
