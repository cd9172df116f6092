"""The parts of a session page that are state, not history: each can be rendered alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import tzinfo
from typing import Any

from django.template.loader import render_to_string

from orgs.access import Access
from orgs.roles import Action
from sessions_app import eventlog
from sessions_app.domain.vocabulary import STARTED_UNFINISHED, SessionStatus, TurnStatus
from sessions_app.models import QUEUE_ORDER, Session, Turn

# Which parts an event may change.
REGIONS_BY_TYPE: dict[str, frozenset[str]] = {
    "session.updated": frozenset({"title", "model"}),
    "session.archived": frozenset({"state", "strip", "foot"}),
    "session.unarchived": frozenset({"state", "strip", "foot"}),
    "session.status_running": frozenset({"state", "strip"}),
    "session.status_rescheduled": frozenset({"state", "strip"}),
    "session.status_idle": frozenset({"state", "strip"}),
    "session.status_terminated": frozenset({"state", "strip", "foot"}),
    "user.message": frozenset({"strip", "state", "title"}),
    "session.paused": frozenset({"state", "strip", "foot"}),
    "session.resumed": frozenset({"state", "strip", "foot"}),
    "queue.changed": frozenset({"strip"}),
    "turn.withdrawn": frozenset({"strip"}),
    "turn.superseded": frozenset({"strip", "usage", "state"}),
    "turn.started": frozenset({"strip", "state", "model"}),
    "turn.completed": frozenset({"strip", "usage", "state"}),
    "turn.failed": frozenset({"strip", "usage", "state"}),
    "turn.cancelled": frozenset({"strip", "usage", "state"}),
    "turn.recovering": frozenset({"strip", "state"}),
    "attempt.started": frozenset({"strip", "state"}),
    "step.checkpoint": frozenset({"strip", "model"}),
    "model.usage": frozenset({"usage"}),
}
ALL_REGIONS = ("title", "state", "model", "strip", "foot", "usage")
_STATE_WORDS = {"working": "Working", "failed": "Failed", "retrying": "Waiting", "": ""}


def regions_of(types: Iterable[str]) -> frozenset[str]:
    return frozenset().union(*(REGIONS_BY_TYPE.get(kind, frozenset()) for kind in types))


def display_title(session: Session) -> str:
    """A session without a title shows its first words, else its id."""
    if session.title:
        return session.title
    if "first_words" not in session.__dict__:
        note_first_words([session])
    return session.__dict__["first_words"] or session.public_id


def note_first_words(sessions: Collection[Session]) -> None:
    """Notes the `first_words` of those without a title: one query for all of them, or none."""
    untitled = [session for session in sessions if not session.title]
    if not untitled:
        return
    first = Turn.objects.filter(session_id__in=[session.pk for session in untitled], number=1)
    words = dict(first.values_list("session_id", "preview_text"))
    for session in untitled:
        session.__dict__["first_words"] = words.get(session.pk, "")


def session_state(session: Session) -> str:
    """The strongest: failed, working. Empty: idle."""
    if session.status == SessionStatus.RESCHEDULING:
        return "retrying"
    if session.is_working or session.status == SessionStatus.RUNNING:
        return "working"
    reason = (session.stop_reason or {}).get("type")
    return "failed" if reason in {"error", "retries_exhausted"} else ""


def state_word(state: str) -> str:
    return _STATE_WORDS[state]


def session_context(
    *, session: Session, access: Access, zone: tzinfo | None, names: Collection[str] = ALL_REGIONS
) -> dict[str, Any]:
    """What the named parts show. The session was read with this access just now."""
    state = session_state(session)
    may_control = access.may(
        Action.SESSION_CONTROL, session.workspace_id, maker_id=session.maker_id
    )
    context: dict[str, Any] = {
        "session": session,
        "session_id": session.public_id,
        "title": display_title(session),
        "state": state,
        "state_word": state_word(state),
        "may_control": may_control,
        "is_archived": session.archived_at is not None,
        "is_open": session.archived_at is None and session.status != SessionStatus.TERMINATED,
        "zone": zone,
    }
    if {"strip", "foot"} & set(names):
        context |= _work(session)
    if "usage" in names:
        context["usage"] = _usage(session)
    return context


def render_regions(
    *, session: Session, access: Access, zone: tzinfo | None, names: Collection[str]
) -> dict[str, str]:
    """Markup by name."""
    context = session_context(session=session, access=access, zone=zone, names=names)
    return {name: render_to_string(f"parts/{name}.html", context) for name in sorted(names)}


def _work(session: Session) -> dict[str, Any]:
    unfinished = session.turns.filter(status__in=[*STARTED_UNFINISHED, TurnStatus.QUEUED])
    turns = list(unfinished.select_related("author", "author_key").order_by(*QUEUE_ORDER))
    started = next((turn for turn in turns if turn.status != TurnStatus.QUEUED), None)
    queued = [turn for turn in turns if turn.status == TurnStatus.QUEUED]
    # The first of an idle session starts at once: it stands in the transcript.
    waiting = queued if started else queued[1:]
    ahead = started or (queued[0] if queued else None)
    return {
        "running": started,
        "starting": queued[0] if queued and not started else None,
        "queued": _queue_rows(waiting, ahead),
        "is_busy": ahead is not None,
    }


def _queue_rows(waiting: list[Turn], ahead: Turn | None) -> list[dict[str, Any]]:
    """Each waits for the one before it; the first for the turn that runs."""
    rows = []
    for place, turn in enumerate(waiting, start=1):
        why = f"after {place - 1}" if place > 1 else f"after turn {ahead.number if ahead else '?'}"
        author = turn.author.name if turn.author else getattr(turn.author_key, "name", "")
        rows.append({"turn": turn, "place": place, "why": why, "author": author})
    return rows


def _usage(session: Session) -> dict[str, Any]:
    used = eventlog.sum_usage(session.pk)
    totals = [turn.input_tokens + turn.output_tokens for turn in used][-7:]
    top = max(totals, default=0) or 1
    width = 100 / max(len(totals), 1)
    bars = [
        {
            "x": f"{place * width:.1f}",
            "width": f"{max(width - 2, 1):.1f}",
            "height": f"{max(2, 34 * total / top):.1f}",
            "y": f"{34 - max(2, 34 * total / top):.1f}",
        }
        for place, total in enumerate(totals)
    ]
    return {
        "input": short_number(sum(turn.input_tokens for turn in used)),
        "output": short_number(sum(turn.output_tokens for turn in used)),
        "turns": session.turn_count,
        "bars": bars if len(bars) > 1 else [],
        "first": max(session.turn_count - len(bars) + 1, 1),
    }


def short_number(number: int) -> str:
    """`950`, `76k`, `1.2M`."""
    if number < 1_000:
        return str(number)
    return f"{number / 1_000:.0f}k" if number < 1_000_000 else f"{number / 1_000_000:.1f}M"
