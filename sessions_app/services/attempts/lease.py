"""The values that stand for a worker's right to write."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from sessions_app import eventlog
from sessions_app.domain.settings import TurnSettings
from sessions_app.domain.vocabulary import AttemptStatus
from sessions_app.models import Attempt, Session


class LeaseLost(Exception):
    """The attempt is no longer the live one; nothing was written."""


@dataclass(frozen=True, slots=True)
class Lease:
    """`attempt` is the number within the turn, the one that events carry."""

    session_id: UUID
    turn_id: UUID
    attempt_id: UUID
    attempt: int
    token: UUID
    parent_id: UUID | None


@dataclass(frozen=True, slots=True)
class Claim:
    """A turn to run. `start_seq` is its prompt's seq, `step` the next step's number.

    `tools` None: the default ones; `tools_within_default`: of those named only such.
    `is_last_chance`: one more lost worker in a row, and the turn fails.
    """

    lease: Lease
    organization_id: UUID
    workspace_id: UUID
    settings: TurnSettings
    instructions: str
    tools: tuple[str, ...] | None
    tools_within_default: bool
    start_seq: int
    step: int
    is_last_chance: bool


def refuse() -> LeaseLost:
    """The error to raise for a stale write, which is counted."""
    eventlog.count_refused()
    return LeaseLost()


def hold_session(lease: Lease) -> Session:
    """Locks the session's row for a write by this lease. Raises LeaseLost."""
    session = (
        Session.objects.select_for_update(no_key=True)
        .filter(pk=lease.session_id, live_attempt_id=lease.attempt_id)
        .first()
    )
    if session is None:
        raise refuse()
    return session


def hold_parent(parent_id: UUID | None) -> None:
    """Before a child's row, where the child may come to rest: that is written to both."""
    if parent_id is not None:
        Session.objects.select_for_update(no_key=True).filter(pk=parent_id).first()


def live_attempt(lease: Lease) -> Attempt:
    """Raises LeaseLost. The caller holds the session."""
    attempt = Attempt.objects.filter(pk=lease.attempt_id, status=AttemptStatus.RUNNING).first()
    if attempt is None:
        raise refuse()
    return attempt
