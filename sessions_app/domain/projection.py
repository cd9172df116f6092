"""What events do to the row of their session. The row is the fold of the log, by construction:
`eventlog.append` writes exactly what this says, and `verify_log` folds the log with it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from core.text import one_line
from sessions_app.domain.vocabulary import SessionStatus

PREVIEW_MAX_CHARACTERS = 180
TIMES = {
    "session.archived": {"archived_at": True},
    "session.unarchived": {"archived_at": False},
    "session.paused": {"paused_at": True},
    "session.resumed": {"paused_at": False},
}
UPDATABLE_COLUMNS = frozenset({"title", "metadata"})


@dataclass(slots=True)
class RowChange:
    """Columns to set; how many messages came; whether content came (it moves `activity_at`)."""

    columns: dict[str, Any] = field(default_factory=dict)
    messages: int = 0
    agent_message_offset: int | None = None  # of the last agent message within the batch, from 1
    times: dict[str, bool] = field(default_factory=dict)  # columns set to the moment, or emptied

    @property
    def is_empty(self) -> bool:
        return not (self.columns or self.messages or self.times)


def project(events: Iterable[tuple[str, Mapping[str, Any]]]) -> RowChange:
    """`events` are (type, payload) in the order of the log."""
    change = RowChange()
    for offset, (kind, payload) in enumerate(events, start=1):
        _apply(change, kind, payload, offset)
    return change


def _apply(change: RowChange, kind: str, payload: Mapping[str, Any], offset: int) -> None:
    match kind:
        case "session.created":
            change.columns |= {"title": payload["title"], "metadata": payload["metadata"]}
            change.columns |= {"status": SessionStatus.IDLE.value, "stop_reason": None}
            change.columns["visibility"] = payload["visibility"]
        case "session.visibility_changed":
            change.columns["visibility"] = payload["visibility"]
        case "session.updated":
            changed = payload["changes"]
            change.columns |= {k: changed[k] for k in UPDATABLE_COLUMNS & changed.keys()}
        case "session.status_running":
            change.columns |= {"status": SessionStatus.RUNNING.value, "stop_reason": None}
        case "session.status_rescheduled":
            change.columns["status"] = SessionStatus.RESCHEDULING.value
        case "session.status_idle":
            change.columns |= {
                "status": SessionStatus.IDLE.value,
                "stop_reason": payload["stop_reason"],
            }
        case "session.status_terminated":
            change.columns |= {"status": SessionStatus.TERMINATED.value, "stop_reason": None}
        case "session.archived" | "session.unarchived" | "session.paused" | "session.resumed":
            change.times |= TIMES[kind]
        case "user.message" | "agent.message":
            change.messages += 1
            change.columns["preview_text"] = preview(payload["content"])
            if kind == "agent.message":
                change.agent_message_offset = offset


def preview(content: Iterable[Mapping[str, Any]]) -> str:
    """The beginning of a message on one line, at most 180 characters."""
    text = " ".join(block.get("text", "") for block in content if block.get("type") == "text")
    return one_line(text[: PREVIEW_MAX_CHARACTERS * 4])[:PREVIEW_MAX_CHARACTERS]
