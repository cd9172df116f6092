"""What a hint looks like, how hints merge while they wait, and how they fit into a payload."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from core.ids import MAX_SEQ

# The channel's name, on PostgreSQL and on Redis.
CHANNEL: Final = "sederunt"
# NOTIFY refuses 8,000 bytes; hints are short, so several travel together.
PAYLOAD_MAX_BYTES: Final = 7_900
_EVERYTHING: Final = "*"
# Heard after every (re)connect, and when too much rang at once: look at everything you follow.
RESYNC: Final[frozenset[str]] = frozenset({_EVERYTHING})
_SEPARATOR: Final = " "


@dataclass(frozen=True, slots=True)
class SessionHint:
    session_id: UUID
    seq: int
    workspace_id: UUID
    changes_row: bool


def parse_session_hint(hint: str) -> SessionHint | None:
    """None for hints of other kinds, and for what another version of us may have meant."""
    parts = hint.split(":")
    if len(parts) != 5 or parts[0] != "s" or not parts[2].isdigit():
        return None
    try:
        session_id, workspace_id = UUID(hex=parts[1]), UUID(hex=parts[3])
    except ValueError:
        return None
    return SessionHint(session_id, min(int(parts[2]), MAX_SEQ), workspace_id, parts[4] == "1")


@dataclass(frozen=True, slots=True)
class DraftHint:
    user_id: UUID
    session_id: UUID
    revision: int


def parse_draft_hint(hint: str) -> DraftHint | None:
    """None for hints of other kinds."""
    parts = hint.split(":")
    if len(parts) != 4 or parts[0] != "d" or not parts[3].isdigit():
        return None
    try:
        return DraftHint(UUID(hex=parts[1]), UUID(hex=parts[2]), int(parts[3]))
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class WaitsHint:
    """`only_user_id`: the one person who may know of it; None: all who may decide there."""

    workspace_id: UUID
    only_user_id: UUID | None


def parse_waits_hint(hint: str) -> WaitsHint | None:
    """Where something asks people, or asks no more; None for hints of other kinds."""
    parts = hint.split(":")
    if len(parts) != 3 or parts[0] != "w":
        return None
    try:
        return WaitsHint(UUID(hex=parts[1]), UUID(hex=parts[2]) if parts[2] else None)
    except ValueError:
        return None


def parse_folders_hint(hint: str) -> UUID | None:
    """The workspace whose folders changed; None for hints of other kinds."""
    parts = hint.split(":")
    if len(parts) != 2 or parts[0] != "f":
        return None
    try:
        return UUID(hex=parts[1])
    except ValueError:
        return None


def merge(pending: dict[str, str], hint: str) -> None:
    """Add a hint: hints of one session become one, with the highest seq and any row change."""
    if not hint.startswith("s:"):
        pending[hint] = hint
        return
    parts = hint.split(":")
    key = ":".join(parts[:2])
    waiting = pending.get(key)
    if waiting is not None and len(parts) == 5:
        older = waiting.split(":")
        if int(older[2]) > int(parts[2]):
            parts[2] = older[2]
        if older[4] == "1":
            parts[4] = "1"
    pending[key] = ":".join(parts)


def pack(hints: Iterable[str]) -> list[str]:
    """Payloads below the limit. A hint that fits in none becomes "look at everything"."""
    payloads: list[str] = []
    size = PAYLOAD_MAX_BYTES + 1
    for each in hints:
        length = len(each.encode()) + len(_SEPARATOR)
        hint = each if length <= PAYLOAD_MAX_BYTES and _SEPARATOR not in each else _EVERYTHING
        length = len(hint.encode()) + len(_SEPARATOR)
        if size + length > PAYLOAD_MAX_BYTES:
            payloads.append(hint)
            size = length
        else:
            payloads[-1] += _SEPARATOR + hint
            size += length
    return payloads


def unpack(payloads: Iterable[str], prefixes: Collection[str]) -> frozenset[str]:
    """The hints of the wanted kinds (all, when none is named); RESYNC when one says so."""
    hints = {hint for payload in payloads for hint in payload.split(_SEPARATOR) if hint}
    if _EVERYTHING in hints:
        return RESYNC
    if not prefixes:
        return frozenset(hints)
    return frozenset(hint for hint in hints if hint.split(":", 1)[0] in prefixes)


def everything() -> Mapping[str, str]:
    return {_EVERYTHING: _EVERYTHING}
