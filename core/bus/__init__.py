"""The bell: hints between processes, after commit. It carries no news and promises nothing.

`ring` says "look there"; `listen` hears it. Whoever hears reads the database with their own
access; whoever misses a hint finds out at the next poll. Hints travel over NOTIFY, or over Redis
pub/sub where `REDIS_URL` is set.

| hint | look at |
|---|---|
| `s:<session hex>:<seq>:<workspace hex>:<row>` | a session's log; `row` 1: its light row too |
| `q` | the queue: a turn may be claimable |
| `c:<attempt hex>` | the control state of that attempt |
| `e` | the access epochs |
| `f:<workspace hex>` | the folders of that workspace |
| `d:<user hex>:<session hex>:<revision>` | that person's unsent text in a session |
"""

from __future__ import annotations

from core.bus.bell import close, flush, ring
from core.bus.hints import (
    RESYNC,
    DraftHint,
    SessionHint,
    WaitsHint,
    parse_draft_hint,
    parse_folders_hint,
    parse_session_hint,
    parse_waits_hint,
)
from core.bus.listening import Subscription, listen

__all__ = [
    "RESYNC",
    "DraftHint",
    "SessionHint",
    "Subscription",
    "WaitsHint",
    "close",
    "flush",
    "listen",
    "parse_draft_hint",
    "parse_folders_hint",
    "parse_session_hint",
    "parse_waits_hint",
    "ring",
]
