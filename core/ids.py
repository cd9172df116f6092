"""Identifiers: uuid7 inside, prefixed hex at the edge, event ids computed from session and seq."""

from __future__ import annotations

import os
import threading
import time
from enum import StrEnum
from uuid import UUID

MAX_SEQ = 2**63 - 1


class InvalidId(ValueError):
    """The text is not an identifier of the expected kind."""


class Prefix(StrEnum):
    ORGANIZATION = "org"
    WORKSPACE = "wrk"
    USER = "usr"
    KEY = "key"
    AGENT = "agt"
    SESSION = "ses"
    TURN = "trn"
    ATTEMPT = "att"
    EVENT = "evt"
    PROVIDER = "prv"
    MODEL = "mdl"
    MESSAGE = "msg"
    INVITATION = "inv"
    AUDIT = "aud"
    LOGIN = "lgn"
    FOLDER = "fld"


_lock = threading.Lock()
_last_tick = 0


def uuid7() -> UUID:
    """A time-ordered UUID (RFC 9562, version 7), strictly rising within this process.

    The 12 bits after the milliseconds carry the fraction of the millisecond (RFC 9562, method 3),
    so that ids made in one burst sort in the order in which they were made.
    """
    global _last_tick
    tick = time.time_ns() * 4096 // 1_000_000
    with _lock:
        _last_tick = tick = max(tick, _last_tick + 1)
    milliseconds, fraction = tick >> 12, tick & 0xFFF
    tail = int.from_bytes(os.urandom(8)) & (2**62 - 1)
    return UUID(int=milliseconds << 80 | 0x7 << 76 | fraction << 64 | 0b10 << 62 | tail)


def encode_id(prefix: str, value: UUID) -> str:
    return f"{prefix}_{value.hex}"


def decode_id(prefix: str, text: object) -> UUID:
    """The UUID behind `ses_<32 lowercase hex digits>`. Raises InvalidId."""
    head = f"{prefix}_"
    if not isinstance(text, str) or not text.startswith(head):
        raise InvalidId(f"An id that begins with {head} was expected.")
    return _uuid_from_hex(text[len(head) :])


def event_id(session_id: UUID, seq: int) -> str:
    return f"evt_{session_id.hex}_{seq}"


def parse_event_id(text: object) -> tuple[UUID, int]:
    """Session and seq behind an event id. Raises InvalidId."""
    parts = text.split("_") if isinstance(text, str) else []
    if len(parts) != 3 or parts[0] != Prefix.EVENT:
        raise InvalidId("An event id looks like evt_<session>_<seq>.")
    seq = parts[2]
    if not (seq.isascii() and seq.isdigit() and len(seq) <= 19 and 0 < int(seq) <= MAX_SEQ):
        raise InvalidId("An event id ends with a positive seq.")
    return _uuid_from_hex(parts[1]), int(seq)


def _uuid_from_hex(digits: str) -> UUID:
    if len(digits) != 32 or set(digits) - set("0123456789abcdef"):
        raise InvalidId("An id ends with 32 lowercase hex digits.")
    return UUID(hex=digits)
