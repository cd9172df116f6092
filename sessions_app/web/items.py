"""The things a transcript is made of. Plain values: folding and rendering are elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

Json = dict[str, Any]


@dataclass(slots=True)
class Call:
    """One tool call; `outcome` is empty while it runs."""

    key: str
    name: str
    seq: int
    at: datetime
    input: Json
    outcome: str = ""
    text: str = ""
    result_seq: int = 0
    duration_ms: int | None = None


@dataclass(slots=True)
class Item:
    """One thing in the transcript. `type` is the event type whose fragment shows it."""

    key: str
    type: str
    seq: int
    at: datetime
    turn: str = ""
    text: str = ""
    is_open: bool = False  # text still grows
    is_abandoned: bool = False
    is_interrupted: bool = False
    calls: list[Call] = field(default_factory=list)
    facts: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Change:
    """`kind`: put (new or changed as a whole), grow (text was added), drop."""

    kind: str
    item: Item


@dataclass(slots=True)
class OpenTurn:
    id: str
    number: int = 0
    step: int = 0
    model: str = ""
