"""The strip above the composer: what the session does now, and the prompts that wait behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from core.clock import now
from core.ids import Prefix, encode_id
from sessions_app.domain.vocabulary import STARTED_UNFINISHED, TurnSource, TurnStatus
from sessions_app.models import QUEUE_ORDER, Session, Turn
from sessions_app.web import provider_waits
from sessions_app.web.naming import counted

QUEUE_SHOWN = 20  # in the strip; the queue's own page shows all
ROWS_OPEN = 3


@dataclass(frozen=True, slots=True)
class QueueRow:
    """`why` says what it waits for. `is_next`: it starts by itself, in a moment."""

    turn: Turn
    place: int
    why: str
    is_next: bool
    is_last: bool
    may_promote: bool

    @property
    def is_machine(self) -> bool:
        """Written by the agent of the session above, on behalf of the turn's author."""
        return self.turn.source == TurnSource.MACHINE

    @property
    def author(self) -> str:
        return (
            self.turn.author.name if self.turn.author else getattr(self.turn.author_key, "name", "")
        )


def strip_context(session: Session, *, shown: int = QUEUE_SHOWN) -> dict[str, Any]:
    """For `parts/strip.html`. Shows nothing for a session that is idle and not held."""
    started = _started(session)
    queue = session.turns.filter(status=TurnStatus.QUEUED).order_by(*QUEUE_ORDER)
    turns = list(queue.select_related("author", "author_key")[: shown + 1])
    total = len(turns) if len(turns) <= shown else queue.count()
    turns = turns[:shown]
    rows = _rows(session, started, turns, total)
    opened = rows if total <= ROWS_OPEN else rows[: ROWS_OPEN - 1]
    return {
        "running": started,
        "provider_wait": provider_waits.current(session) if started else {},
        "queued": opened,
        "queued_more": rows[len(opened) :],
        "queued_total": total,
        "queued_hidden": total - len(opened),
        "is_cut": total > shown,
        "starting": turns[0] if turns and started is None and not session.is_paused else None,
        "is_quiet": not _waits_for_quiet(session),
        "awaits": counted(session.awaited, "child session") if session.awaited else "",
        "parent_id": session.parent_id and encode_id(Prefix.SESSION, session.parent_id),
        "may_steer": started is not None and not session.is_paused,
        "has_strip": bool(started or turns or session.is_paused),
    }


def _started(session: Session) -> Turn | None:
    if session.started_turn_id is None:
        return None
    unfinished = Turn.objects.filter(status__in=sorted(STARTED_UNFINISHED))
    return unfinished.filter(pk=session.started_turn_id).first()


def _rows(session: Session, started: Turn | None, turns: list[Turn], total: int) -> list[QueueRow]:
    """Each waits for the one before it; the first for what holds the session."""
    is_free = started is None and not session.is_paused
    rows = []
    for place, turn in enumerate(turns, start=1):
        rows.append(
            QueueRow(
                turn=turn,
                place=place,
                why=f"after {place - 1}" if place > 1 else _why_first(session, started),
                is_next=is_free and place == 1,
                is_last=place == total,
                may_promote=not session.is_paused and (started is not None or place > 1),
            )
        )
    return rows


def _why_first(session: Session, started: Turn | None) -> str:
    if started is not None:
        return f"after turn {started.number}"
    if session.is_paused:
        return "held: paused"
    return "waits for the stopped turn to end" if _waits_for_quiet(session) else "starts next"


def _waits_for_quiet(session: Session) -> bool:
    """What was stopped may still be at work; the next turn never runs beside it."""
    return session.ready_at is not None and session.ready_at > now()
