"""Turns, attempts and waits as the log tells them, against their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from core.ids import event_id, parse_event_id
from sessions_app.domain.projection import TIMES, project
from sessions_app.domain.vocabulary import (
    STARTED_UNFINISHED,
    TERMINAL_TURN,
    AttemptStatus,
    SessionStatus,
    TurnStatus,
    WaitKind,
    WaitStatus,
)
from sessions_app.eventlog import StoredEvent
from sessions_app.models import Attempt, Session, Turn, Wait

TURN_STATUS_AFTER = {
    "turn.queued": TurnStatus.QUEUED,
    "turn.started": TurnStatus.RUNNING,
    "attempt.started": TurnStatus.RUNNING,
    "turn.waiting": TurnStatus.WAITING,
    "turn.recovering": TurnStatus.RECOVERING,
    "turn.completed": TurnStatus.COMPLETED,
    "turn.failed": TurnStatus.FAILED,
    "turn.cancelled": TurnStatus.CANCELLED,
    "turn.superseded": TurnStatus.SUPERSEDED,
    "turn.withdrawn": TurnStatus.WITHDRAWN,
}
TERMINAL_EVENTS = frozenset(
    name for name, status in TURN_STATUS_AFTER.items() if status in TERMINAL_TURN
)
HOLDING = frozenset({*TIMES, "session.status_terminated"})
DECISIONS = frozenset(
    {
        "user.tool_confirmation",
        "user.question_response",
        "agent.question_closed",
        "agent.tool_result",
    }
)
COMPARED_TURN = ("status", "number", "prompt_seq", "started_seq", "attempt_count", "error")
COMPARED_WAIT = ("turn_id", "kind", "tool_use_seq", "status")


@dataclass(slots=True)
class _Turn:
    status: TurnStatus | None = None
    number: int | None = None
    prompt_seq: int | None = None
    started_seq: int | None = None
    error: Any = None
    attempts: dict[int, AttemptStatus] = field(default_factory=dict)
    endings: int = 0

    @property
    def attempt_count(self) -> int:
        return len(self.attempts)


@dataclass(slots=True)
class _Wait:
    turn_id: UUID | None
    kind: WaitKind
    tool_use_seq: int
    status: WaitStatus = WaitStatus.OPEN


def turn_problems(session: Session, events: Sequence[StoredEvent]) -> list[str]:
    """Sentences on turns, their attempts, and the columns of the session that follow from both."""
    folded = _fold_turns(events)
    rows = {turn.pk: turn for turn in session.turns.all()}
    problems = [f"turn {turn_id} has no row" for turn_id in folded.keys() - rows.keys()]
    problems += [
        f"turn {pk} ended more than once" for pk, turn in folded.items() if turn.endings > 1
    ]
    for turn_id, row in rows.items():
        told = folded.get(turn_id, _Turn())
        problems += _differences(f"turn {turn_id}", row, told, COMPARED_TURN)
    live = list(session.attempts.all())
    return [
        *problems,
        *_attempts(live, folded),
        *_bookkeeping(session, events, folded, live),
    ]


def _fold_turns(events: Sequence[StoredEvent]) -> dict[UUID, _Turn]:
    folded: dict[UUID, _Turn] = {}
    for event in events:
        if event.turn_id is None:
            continue
        if event.type == "user.message" or event.type in TURN_STATUS_AFTER:
            _note(folded.setdefault(event.turn_id, _Turn()), event)
        elif event.type == "attempt.ended" and event.attempt is not None:
            outcome = AttemptStatus(event.data["outcome"])
            folded.setdefault(event.turn_id, _Turn()).attempts[event.attempt] = outcome
    return folded


def _note(turn: _Turn, event: StoredEvent) -> None:
    turn.status = TURN_STATUS_AFTER.get(event.type, turn.status)
    turn.endings += event.type in TERMINAL_EVENTS
    match event.type:
        case "user.message":
            turn.prompt_seq = event.seq
        case "turn.queued":
            turn.number = event.data["number"]
        case "turn.started":
            turn.started_seq = event.seq
        case "turn.failed":
            turn.error = event.data["error"]
        case "attempt.started" if event.attempt is not None:
            turn.attempts[event.attempt] = AttemptStatus.RUNNING


def _attempts(rows: Sequence[Attempt], folded: dict[UUID, _Turn]) -> list[str]:
    shown = {(row.turn_id, row.number): row.status for row in rows}
    told = {
        (turn_id, number): status
        for turn_id, turn in folded.items()
        for number, status in turn.attempts.items()
    }
    return [
        f"attempt {number} of turn {turn_id} is {shown.get((turn_id, number))}, "
        f"the log says {told.get((turn_id, number))}"
        for turn_id, number in sorted(shown.keys() | told.keys())
        if shown.get((turn_id, number)) != told.get((turn_id, number))
    ]


def _bookkeeping(
    session: Session,
    events: Sequence[StoredEvent],
    folded: dict[UUID, _Turn],
    rows: Sequence[Attempt],
) -> list[str]:
    started = next((pk for pk, turn in folded.items() if turn.status in STARTED_UNFINISHED), None)
    live = {
        (pk, number)
        for pk, turn in folded.items()
        for number, status in turn.attempts.items()
        if status == AttemptStatus.RUNNING
    }
    fence = next((row.pk for row in rows if (row.turn_id, row.number) in live), None)
    numbers = [turn.number or 0 for turn in folded.values()]
    told = {
        "started_turn_id": started,
        "live_attempt_id": fence,
        "turn_count": max(numbers, default=0),
    }
    problems = [
        f"{column} is {getattr(session, column)}, the log says {value}"
        for column, value in told.items()
        if getattr(session, column) != value
    ]
    versions = [event.data["version"] for event in events if event.type == "queue.changed"]
    if session.queue_version < max(versions, default=0):
        problems.append(
            f"queue_version is {session.queue_version}, behind the log's {versions[-1]}"
        )
    if (session.ready_at is not None) != _is_claimable(session, events, folded, started):
        problems.append(f"ready_at is {session.ready_at}, which is not what the log says")
    return problems


def _is_claimable(
    session: Session,
    events: Sequence[StoredEvent],
    folded: dict[UUID, _Turn],
    started: UUID | None,
) -> bool:
    """Whether a worker may take something up, as `services.ending.ready_at` decides it."""
    row = project((event.type, event.data) for event in events if event.type in HOLDING)
    is_over = row.columns.get("status") == SessionStatus.TERMINATED
    if is_over or row.times.get("paused_at") or row.times.get("archived_at"):
        return False
    if started is None:
        return any(turn.status == TurnStatus.QUEUED for turn in folded.values())
    if folded[started].status == TurnStatus.WAITING:
        return not any(
            wait.status == WaitStatus.OPEN for wait in _fold_waits(session, events).values()
        )
    return folded[started].status == TurnStatus.RECOVERING


def wait_problems(session: Session, events: Sequence[StoredEvent]) -> list[str]:
    """Sentences on what asks people or waits for children, and how it was decided."""
    folded = _fold_waits(session, events)
    rows = {wait.event_seq: wait for wait in session.waits.all()}
    problems = [
        f"the wait of event {seq} is in the row or the log alone"
        for seq in sorted(rows.keys() ^ folded.keys())
    ]
    for seq in sorted(rows.keys() & folded.keys()):
        problems += _differences(f"the wait of event {seq}", rows[seq], folded[seq], COMPARED_WAIT)
    return problems


def _fold_waits(session: Session, events: Sequence[StoredEvent]) -> dict[int, _Wait]:
    """By the seq of the event that asks."""
    waits: dict[int, _Wait] = {}
    asked: dict[str, int] = {}  # tool_use_id → seq of its newest event that asks
    for event in events:
        if event.type == "agent.tool_use" and event.data["evaluated_permission"] == "ask":
            waits[event.seq] = _Wait(event.turn_id, WaitKind.APPROVAL, event.seq)
            asked[event_id(session.pk, event.seq)] = event.seq
        elif event.type == "agent.question":
            tool_use_id = event.data["tool_use_id"]
            called = parse_event_id(tool_use_id)[1]
            waits[event.seq] = _Wait(event.turn_id, WaitKind.QUESTION, called)
            asked[tool_use_id] = event.seq
        elif event.type == "child.awaited":
            tool_use_id = event.data["tool_use_id"]
            called = parse_event_id(tool_use_id)[1]
            waits[event.seq] = _Wait(event.turn_id, WaitKind.CHILDREN, called)
            asked[tool_use_id] = event.seq
        elif event.type in DECISIONS:
            seq = asked.get(event.data["tool_use_id"])
            if seq is not None and waits[seq].status == WaitStatus.OPEN:
                waits[seq].status = _decided(event)
    return waits


def _decided(event: StoredEvent) -> WaitStatus:
    outcome = event.data.get("outcome")
    if outcome == "expired":
        return WaitStatus.EXPIRED
    return WaitStatus.CANCELLED if outcome in {"cancelled", "unknown"} else WaitStatus.ANSWERED


def _differences(what: str, row: Turn | Wait, told: Any, names: Sequence[str]) -> list[str]:
    return [
        f"{what}: {name} is {getattr(row, name)}, the log says {getattr(told, name)}"
        for name in names
        if getattr(row, name) != getattr(told, name)
    ]
