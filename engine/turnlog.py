"""The log of one attempt: the step loop's port, over the session services and the journal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ParamSpec, TypeVar, cast

from django.db import transaction

from core.db import in_db_thread
from core.ids import Prefix, encode_id, event_id, parse_event_id
from engine.database import patiently
from engine.failures import describe
from engine.journal import JournalEntry, Written
from engine.ports import (
    Completed,
    DeltaKind,
    Effect,
    Fact,
    Failed,
    Fenced,
    HandedOver,
    LogEvent,
    ModelChoice,
    Outcome,
    ToolContext,
    Waiting,
)
from sessions_app.domain.events import Draft
from sessions_app.eventlog import StoredEvent
from sessions_app.services import attempts
from sessions_app.services.attempts import Claim, Lease, LeaseLost
from sessions_app.services.calls import Call
from sessions_app.services.open_waits import asks

P = ParamSpec("P")
R = TypeVar("R")


class DurableTurnLog:
    """One attempt's TurnLog. Text goes through the journal, everything else straight in."""

    def __init__(self, claim: Claim, entry: JournalEntry) -> None:
        self._lease = claim.lease
        self._entry = entry

    async def read(self, after: int = 0) -> Sequence[LogEvent]:
        stored = await patiently(attempts.read_turn_log, lease=self._lease, after=after)
        return [_log_event(event) for event in stored]

    async def open_step(self, step: int) -> ModelChoice:
        # Text of a request that failed stands before the checkpoint, so that it reads as abandoned.
        await self._entry.settle()
        settings = await self._call(attempts.open_step, lease=self._lease, step=step)
        return ModelChoice(
            settings.provider_id, settings.model_id, settings.reasoning_effort, settings.speed
        )

    async def delta(self, kind: DeltaKind, message_id: str, text: str) -> None:
        await self._entry.delta(kind, message_id, text)

    async def record(self, facts: Sequence[Fact]) -> Sequence[LogEvent]:
        seqs = await self._entry.record(facts)
        return [self._as_logged(fact, seq) for fact, seq in zip(facts, seqs, strict=True)]

    async def apply(self, effect: Effect, context: ToolContext, name: str) -> None:
        await self._entry.settle()
        session_id, seq = parse_event_id(context.tool_use_id)
        call = Call(session_id, seq, context.call_id, name)
        do = partial(effect.do, call=call, attempt=self._lease.attempt)
        await self._call(attempts.record_effect, lease=self._lease, call=call, effect=do)

    async def suspend(self) -> bool:
        await self._entry.settle()
        return await self._call(attempts.suspend_turn, lease=self._lease)

    async def settle(self) -> None:
        await self._entry.settle()

    async def mark_rescheduling(self, code: str, reason: str, retry_after_seconds: float) -> None:
        await self._entry.settle()
        await self._call(
            attempts.mark_rescheduling,
            lease=self._lease,
            code=code,
            message=describe(code, reason),
            retry_after_seconds=retry_after_seconds,
        )

    async def mark_running(self) -> None:
        await self._call(attempts.mark_running, lease=self._lease)

    async def _call(self, func: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return await patiently(func, *args, **kwargs)
        except LeaseLost as error:
            raise Fenced from error

    def _as_logged(self, fact: Fact, seq: int) -> LogEvent:
        turn_id = encode_id(Prefix.TURN, self._lease.turn_id)
        envelope = {
            "id": event_id(self._lease.session_id, seq),
            "type": fact.type,
            "seq": seq,
            "turn_id": turn_id,
        }
        return LogEvent(seq, fact.type, turn_id, {**fact.payload, **envelope})


async def end_attempt(lease: Lease, entry: JournalEntry, outcome: Outcome | None) -> None:
    """Write how the attempt ended; `outcome` None: it was fenced, and has stopped now."""
    try:
        if isinstance(outcome, Waiting):
            return
        if outcome is None:
            raise Fenced
        await entry.settle()
        match outcome:
            case HandedOver():
                await patiently(attempts.hand_over, lease=lease)
            case Completed():
                await patiently(attempts.finish_turn, lease=lease, outcome=attempts.Completed())
            case Failed(code, message):
                failed = attempts.Failed(code, message)
                await patiently(attempts.finish_turn, lease=lease, outcome=failed)
    except (Fenced, LeaseLost):
        # Also where an outage hid that the end had been written: then there is nothing to do.
        await patiently(attempts.acknowledge_quiet, lease=lease)


def _committed(func: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """In a transaction that begins before it: when its outcome is lost, its row locks tell whether
    it may still be under way. A statement that commits by itself could begin after we have asked.
    """
    with transaction.atomic():
        return func(*args, **kwargs)


class ServiceStore:
    """Writes of the journal, through the session services; keys are leases."""

    async def write_groups(self, groups: Sequence[tuple[object, Sequence[Fact]]]) -> Written:
        keys = {_lease(key).attempt_id: key for key, _ in groups}
        result = await in_db_thread(
            _committed,
            attempts.record_groups,
            groups=[(_lease(key), _drafts(facts)) for key, facts in groups],
        )
        return Written(
            frozenset(keys[attempt] for attempt in result.written),
            frozenset(keys[attempt] for attempt in result.locked),
            frozenset(keys[attempt] for attempt in result.fenced),
        )

    async def write(self, key: object, facts: Sequence[Fact]) -> range:
        drafts = _drafts(facts)
        record = attempts.record_ask if any(map(asks, drafts)) else attempts.record
        try:
            return await in_db_thread(_committed, record, lease=_lease(key), drafts=drafts)
        except LeaseLost as error:
            raise Fenced from error

    async def find_written(self, key: object, fact: Fact) -> int | None:
        found = await self._own_events(key, fact.type)
        return next((e.seq for e in found if _says(e.data, fact.payload)), None)

    async def count_written(self, key: object, message_id: str) -> int:
        found = await self._own_events(key, *DeltaKind)
        return sum(len(e.data["text"]) for e in found if e.data["message_id"] == message_id)

    async def _own_events(self, key: object, *types: str) -> list[StoredEvent]:
        return await patiently(attempts.read_own_log, lease=_lease(key), types=types)


def _says(body: Mapping[str, Any], payload: Mapping[str, Any]) -> bool:
    """Compared as JSON: what comes back from the log has lists where tuples went in."""
    return all(body.get(name) == value for name, value in payload.items())


def _lease(key: object) -> Lease:
    return cast("Lease", key)


def _drafts(facts: Sequence[Fact]) -> list[Draft]:
    return [Draft(fact.type, fact.payload) for fact in facts]


def _log_event(event: StoredEvent) -> LogEvent:
    turn_id = encode_id(Prefix.TURN, event.turn_id) if event.turn_id else None
    return LogEvent(event.seq, event.type, turn_id, event.data)
