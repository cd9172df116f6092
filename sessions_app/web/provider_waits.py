"""While a turn waits for its model provider: why, in the provider's words, and until when."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from sessions_app.domain.vocabulary import SessionStatus
from sessions_app.models import Session
from sessions_app.selectors import read_events
from sessions_app.web.items import Item, Json, item_of

KIND = "session.status_rescheduled"


def begin(data: Json) -> list[Item]:
    """The note of it; none where the turn waits for a worker, which `turn.recovering` tells."""
    facts = _facts(data)
    if not facts:
        return []
    item = item_of(data, key=data["id"], kind=KIND)
    item.facts = {**facts, "is_over": False}
    return [item]


def end(items: Iterable[Item]) -> list[Item]:
    """The notes of waits that are over with this."""
    open_notes = [item for item in items if item.type == KIND and not item.facts["is_over"]]
    for item in open_notes:
        item.facts["is_over"] = True
    return open_notes


def current(session: Session) -> Json:
    """What this session waits for now; empty where it is not for a provider."""
    if session.status != SessionStatus.RESCHEDULING:
        return {}
    found = read_events(session, before=session.head_seq + 1, limit=1, types={KIND})
    return _facts(found[0].data) if found else {}


def _facts(data: Json) -> Json:
    reason: dict[str, Any] = data["reason"]
    if not str(reason.get("code", "")).startswith("provider_"):
        return {}
    retry_at = data.get("retry_at")
    return {
        "message": reason.get("message", ""),
        "retry_at": datetime.fromisoformat(retry_at) if retry_at else None,
    }
