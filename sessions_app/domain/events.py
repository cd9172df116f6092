"""The types of facts: each with a version and a frozen payload class. Old versions parse for ever.

An unknown type is an error at append and tolerated at reading.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from uuid import UUID

from sessions_app.domain import payloads


class UnknownEventType(LookupError):
    """No such type is registered."""


class InvalidPayload(ValueError):
    """The payload lacks a field of its type, or has one too many."""


@dataclass(frozen=True, slots=True)
class EventType:
    name: str
    payload_class: type
    version: int = 1
    is_delta: bool = False
    is_input: bool = False  # sent by a client; processed later than it is written


@dataclass(frozen=True, slots=True)
class Draft:
    """An event that has no number yet. The payload is checked against its type at once."""

    type: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    turn_id: UUID | None = None
    attempt: int | None = None

    def __post_init__(self) -> None:
        check_payload(event_type(self.type), self.payload)


def event_type(name: str) -> EventType:
    """Raises UnknownEventType."""
    try:
        return EVENT_TYPES[name]
    except KeyError:
        raise UnknownEventType(f"{name} is not a registered event type.") from None


def check_payload(kind: EventType, payload: Mapping[str, Any]) -> None:
    """Raises InvalidPayload."""
    required, known = _fields(kind.payload_class)
    if missing := required - payload.keys():
        raise InvalidPayload(f"{kind.name} lacks {', '.join(sorted(missing))}.")
    if unknown := payload.keys() - known:
        raise InvalidPayload(f"{kind.name} has no {', '.join(sorted(unknown))}.")


@cache
def _fields(payload_class: type) -> tuple[frozenset[str], frozenset[str]]:
    fields = dataclasses.fields(payload_class)
    required = frozenset(
        f.name
        for f in fields
        if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    )
    return required, frozenset(f.name for f in fields)


_TYPES = (
    EventType("session.created", payloads.SessionCreated),
    EventType("session.forked", payloads.SessionForked),
    EventType("session.updated", payloads.SessionUpdated),
    EventType("session.archived", payloads.Nothing),
    EventType("session.unarchived", payloads.Nothing),
    EventType("session.status_running", payloads.Nothing),
    EventType("session.status_rescheduled", payloads.StatusRescheduled),
    EventType("session.status_idle", payloads.StatusIdle),
    EventType("session.status_terminated", payloads.By),
    EventType("session.paused", payloads.Held),
    EventType("session.resumed", payloads.Held),
    EventType("session.visibility_changed", payloads.VisibilityChanged),
    EventType("session.error", payloads.Error),
    EventType("user.message", payloads.UserMessage, is_input=True),
    EventType("user.interrupt", payloads.UserInterrupt),
    EventType("user.tool_confirmation", payloads.ToolConfirmation),
    EventType("user.question_response", payloads.QuestionResponse),
    EventType("turn.queued", payloads.TurnQueued),
    EventType("turn.started", payloads.TurnStarted),
    EventType("turn.waiting", payloads.TurnWaiting),
    EventType("turn.recovering", payloads.TurnRecovering),
    EventType("turn.completed", payloads.Nothing),
    EventType("turn.failed", payloads.Error),
    EventType("turn.cancelled", payloads.TurnCancelled),
    EventType("turn.superseded", payloads.TurnSuperseded),
    EventType("turn.withdrawn", payloads.TurnWithdrawn),
    EventType("turn.edited", payloads.TurnEdited),
    EventType("queue.changed", payloads.QueueChanged),
    EventType("attempt.started", payloads.Nothing),
    EventType("attempt.ended", payloads.AttemptEnded),
    EventType("step.checkpoint", payloads.StepCheckpoint),
    EventType("agent.thinking_delta", payloads.Delta, is_delta=True),
    EventType("agent.thinking", payloads.Thinking),
    EventType("agent.message_delta", payloads.Delta, is_delta=True),
    EventType("agent.message", payloads.AgentMessage),
    EventType("agent.tool_use", payloads.ToolUse),
    EventType("agent.tool_started", payloads.ToolStarted),
    EventType("agent.question", payloads.Question),
    EventType("agent.question_closed", payloads.QuestionClosed),
    EventType("agent.tool_result", payloads.ToolResult),
    EventType("child.started", payloads.ChildStarted),
    EventType("child.awaited", payloads.ChildAwaited),
    EventType("child.result", payloads.ChildResult, is_input=True),
    EventType("model.usage", payloads.ModelUsage),
)
EVENT_TYPES: Mapping[str, EventType] = {kind.name: kind for kind in _TYPES}
DELTA_TYPES = frozenset(kind.name for kind in _TYPES if kind.is_delta)
INPUT_TYPES = frozenset(kind.name for kind in _TYPES if kind.is_input)
