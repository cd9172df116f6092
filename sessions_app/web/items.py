"""The things a transcript is made of. Plain values: folding and rendering are elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

Json = dict[str, Any]


@dataclass(slots=True)
class Call:
    """One tool call; `outcome` is empty while it runs. `is_asking`: people decide first.
    `awaits`: ids of the child sessions for whose results it waits.
    """

    key: str
    name: str
    seq: int
    at: datetime
    input: Json
    outcome: str = ""
    text: str = ""
    result_seq: int = 0
    duration_ms: int | None = None
    is_asking: bool = False
    awaits: list[str] = field(default_factory=list)


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


def item_of(data: Json, *, key: str, kind: str) -> Item:
    return Item(key, kind, data["seq"], when(data), data.get("turn_id", ""))


def text_key(kind: str, message_id: str) -> str:
    return f"{message_id}-thinking" if kind == "agent.thinking" else message_id


def when(data: Json) -> datetime:
    return datetime.fromisoformat(data["created_at"])


def text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n\n".join(block.get("text", "") for block in content if block.get("type") == "text")


def call_summary(call: Call) -> str:
    """The arguments in one line: the only text where there is one, else compact JSON."""
    values = list(call.input.values())
    texts = [value for value in values if isinstance(value, str) and value]
    if len(texts) == 1:
        return texts[0][:200]
    return orjson.dumps(call.input).decode()[:200] if call.input else ""


# Bookkeeping that the page shows elsewhere, or not at all.
SILENT_TYPES = frozenset(
    {
        "session.created",
        "session.updated",
        "session.status_idle",
        "session.error",
        "attempt.ended",
        "turn.waiting",
        "agent.tool_started",
        "model.usage",
        "turn.edited",
        "queue.changed",
    }
)
