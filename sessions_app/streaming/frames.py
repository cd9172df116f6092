"""What a follower is told. A durable event is encoded once and handed to all its followers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from core.ids import Prefix, encode_id
from sessions_app.eventlog import StoredEvent


class Ended(StrEnum):
    """Why a stream ends before its reader does."""

    GONE = "gone"  # access was lost
    REVOKED = "revoked"  # the login or the key is no longer good
    DELETED = "deleted"
    CURSOR_AHEAD = "cursor_ahead"  # the log is shorter than what was read: it was restored
    RESTART = "restart"


class LogEvent:
    """A stored event with its frames, each made at first use and then shared."""

    __slots__ = ("_socket", "_sse", "event", "seq", "type")

    def __init__(self, event: StoredEvent) -> None:
        self.event = event
        self.seq = event.seq
        self.type = event.type
        self._sse: bytes | None = None
        self._socket: str | None = None

    @property
    def size(self) -> int:
        return len(self.event.json)

    @property
    def sse(self) -> bytes:
        """The stored text has no raw line breaks, so it is one `data:` line."""
        if self._sse is None:
            text = f"id: {self.seq}\nevent: {self.type}\ndata: {self.event.json}\n\n"
            self._sse = text.encode()
        return self._sse

    def socket(self, session_id: UUID) -> str:
        """All followers of one hub track ask for the same session."""
        if self._socket is None:
            public_id = encode_id(Prefix.SESSION, session_id)
            self._socket = (
                f'{{"type":"event","session":"{public_id}","seq":{self.seq},'
                f'"event":{self.event.json}}}'
            )
        return self._socket


@dataclass(frozen=True, slots=True)
class Ready:
    """The first frame. `after` is where the stream begins, `head` how far the log goes now.

    `filtered`: only some types follow, so the seqs have holes by nature.
    """

    session_id: UUID
    after: int
    head: int
    filtered: bool


@dataclass(frozen=True, slots=True)
class Events:
    """One or more events, in order, each after the last that was told."""

    events: Sequence[LogEvent]


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """Told once: what follows is live. `seq` is how far the reader has the log."""

    seq: int


@dataclass(frozen=True, slots=True)
class Heartbeat:
    pass


@dataclass(frozen=True, slots=True)
class Closed:
    """The last frame, unless the reader left first."""

    reason: Ended


Frame = Ready | Events | CaughtUp | Heartbeat | Closed
