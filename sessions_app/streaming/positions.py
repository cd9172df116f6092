"""Where a stream begins. A position that cannot be right is an error, never "from now"."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from core.errors import InvalidInput
from core.ids import MAX_SEQ
from orgs.access import Access
from sessions_app import selectors
from sessions_app.domain.events import EVENT_TYPES


@dataclass(frozen=True, slots=True)
class Start:
    """The stream tells what follows `after`; the log went to `head` when this was read."""

    after: int
    head: int


def parse_position(value: object, *, param: str) -> int:
    """A seq from a query string, a header or JSON. Raises InvalidInput `invalid_position`."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 19:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_SEQ:
        raise InvalidInput(
            "invalid_position",
            "A position is the seq of the last event read: a whole number, 0 for the beginning.",
            param=param,
        )
    return value


def parse_types(values: Sequence[object], *, param: str) -> frozenset[str] | None:
    """None for all types. Raises InvalidInput `unknown_event_type`."""
    for place, value in enumerate(values):
        if not isinstance(value, str) or value not in EVENT_TYPES:
            raise InvalidInput(
                "unknown_event_type",
                "That is not the name of an event type.",
                param=f"{param}[{place}]",
                details={"known": sorted(EVENT_TYPES)},
            )
    return frozenset(str(value) for value in values) or None


def find_start(*, access: Access, session_id: UUID, position: int | None, param: str) -> Start:
    """Without a position: at the oldest unfinished turn's prompt, else at the head.

    Raises NotFound, and InvalidInput `cursor_ahead` for a position that the log does not reach.
    """
    session = selectors.get_session(access=access, session_id=session_id)
    head = session.head_seq
    if position is None:
        turn = selectors.find_oldest_unfinished_turn(access=access, session_id=session_id)
        return Start(head if turn is None else turn.prompt_seq - 1, head)
    if position > head:
        raise InvalidInput(
            "cursor_ahead",
            f"The position {position} lies beyond the end of this log, which is {head}; "
            "read the session again from the beginning.",
            param=param,
            details={"head": head},
        )
    return Start(position, head)


def may_read(*, access: Access, session_id: UUID) -> None:
    """Raises NotFound."""
    selectors.get_session(access=access, session_id=session_id)


def is_wanted(types: Collection[str] | None, event_type: str) -> bool:
    return types is None or event_type in types
