"""The log of one attempt: the step loop's port, over the session services and the journal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import orjson
import structlog

from core.ids import Prefix, encode_id, event_id
from engine.database import patiently
from engine.journal import Journal, JournalEntry, Written
from engine.ports import DeltaKind, Fact, Fenced, LogEvent, ModelChoice
from sessions_app.domain.events import Draft
from sessions_app.services import attempts
from sessions_app.services.attempts import Lease, LeaseLost

R = TypeVar("R")
log = structlog.get_logger(__name__)


class ServiceStore:
    """Writes of the journal, through the session services; keys are leases."""

    async def write_groups(self, groups: Sequence[tuple[object, Sequence[Fact]]]) -> Written:
        leases = {_lease(key).attempt_id: key for key, _ in groups}
        result = await in_db_thread(
            attempts.record_groups,
            groups=[(_lease(key), [_draft(fact) for fact in facts]) for key, facts in groups],
        )
        return Written(
            frozenset(leases[attempt] for attempt in result.written),
            frozenset(leases[attempt] for attempt in result.locked),
            frozenset(leases[attempt] for attempt in result.fenced),
        )

    async def write(self, key: object, facts: Sequence[Fact]) -> range:
        try:
            return await in_db_thread(
                attempts.record, lease=_lease(key), drafts=[_draft(fact) for fact in facts]
            )
        except LeaseLost as error:
            raise Fenced from error
