"""What closes the log of a turn that was ended from outside: its text and its open calls."""

from __future__ import annotations

from collections.abc import Sequence

from core.ids import event_id
from sessions_app import eventlog
from sessions_app.domain.events import Draft
from sessions_app.eventlog import StoredEvent
from sessions_app.models import Turn
from sessions_app.services.open_waits import close_open_waits

CLOSING_TYPES = (
    "attempt.started",
    "step.checkpoint",
    "agent.message",
    "agent.tool_use",
    "agent.tool_started",
    "agent.question",
    "child.awaited",
    "agent.tool_result",
)
# The text of a message begins anew after each of these.
TEXT_BEGINS_AFTER = frozenset({"attempt.started", "step.checkpoint", "agent.message"})
ASKING = frozenset({"agent.question", "child.awaited"})
NEVER_RUN = "This call has no result: the turn ended while it waited."
UNKNOWN_OUTCOME = (
    "The outcome of this call is unknown: the turn was stopped while it ran. "
    "Look before repeating it."
)


def closing_drafts(turn: Turn, attempt: int | None) -> list[Draft]:
    """Closes what the turn leaves open: the partial text of its message, calls, waits."""
    if turn.started_seq is None:
        return []
    events = eventlog.read_turn(
        session_id=turn.session_id,
        turn_id=turn.pk,
        since=turn.started_seq,
        types=CLOSING_TYPES,
    )
    return [
        *_sealed_text(turn, events, attempt),
        *close_open_waits(turn),
        *_closed_calls(turn, events, attempt),
    ]


def _sealed_text(turn: Turn, events: Sequence[StoredEvent], attempt: int | None) -> list[Draft]:
    """The text of the last message, where the live attempt was in the middle of it.

    Its deltas alone are read: the session is held meanwhile, and a turn may have many thousands.
    """
    begins = [event.seq for event in events if event.type in TEXT_BEGINS_AFTER]
    if attempt is None or not begins:
        return []
    deltas = eventlog.read_turn(
        session_id=turn.session_id,
        turn_id=turn.pk,
        since=begins[-1],
        types=("agent.message_delta",),
    )
    pieces = [event.data for event in deltas]
    message_id = pieces[-1]["message_id"] if pieces else ""
    text = "".join(piece["text"] for piece in pieces if piece["message_id"] == message_id)
    if not text:
        return []
    settings = turn.settings or {}
    return [
        Draft(
            "agent.message",
            {
                "message_id": message_id,
                "content": [{"type": "text", "text": text}],
                "model": {k: settings.get(k) for k in ("provider_id", "model_id")},
                "interrupted": True,
            },
            turn_id=turn.pk,
            attempt=attempt,
        )
    ]


def _closed_calls(turn: Turn, events: Sequence[StoredEvent], attempt: int | None) -> list[Draft]:
    """Those that ran as unknown; those that waited for a person as never run."""
    started = {event.data["tool_use_id"] for event in events if event.type == "agent.tool_started"}
    asked = {event.data["tool_use_id"] for event in events if event.type in ASKING}
    answered = {event.data["tool_use_id"] for event in events if event.type == "agent.tool_result"}
    open_calls = [
        event
        for event in events
        if event.type == "agent.tool_use" and event_id(turn.session_id, event.seq) not in answered
    ]
    drafts = []
    for event in open_calls:
        tool_use_id = event_id(turn.session_id, event.seq)
        is_unstarted = event.data["evaluated_permission"] == "ask" and tool_use_id not in started
        never_ran = is_unstarted or tool_use_id in asked
        payload = {
            "tool_use_id": tool_use_id,
            "call_id": event.data["call_id"],
            "name": event.data["name"],
            "content": [{"type": "text", "text": NEVER_RUN if never_ran else UNKNOWN_OUTCOME}],
            "is_error": True,
            "outcome": "cancelled" if never_ran else "unknown",
        }
        drafts.append(Draft("agent.tool_result", payload, turn_id=turn.pk, attempt=attempt))
    return drafts
