"""The parts of a session page that are state, not history: each can be rendered alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import tzinfo
from typing import Any

from django.template.loader import render_to_string

from orgs.access import Access
from orgs.roles import Action
from sessions_app import selectors
from sessions_app.domain.vocabulary import SessionStatus
from sessions_app.models import Session, Turn
from sessions_app.web.strip import strip_context

# Which parts an event may change.
REGIONS_BY_TYPE: dict[str, frozenset[str]] = {
    "session.updated": frozenset({"title", "model"}),
    "session.archived": frozenset({"state", "strip", "foot", "menu"}),
    "session.unarchived": frozenset({"state", "strip", "foot", "menu"}),
    "session.status_running": frozenset({"state", "strip"}),
    "session.status_rescheduled": frozenset({"state", "strip"}),
    "session.status_idle": frozenset({"state", "strip"}),
    "session.status_terminated": frozenset({"state", "strip", "foot", "menu"}),
    "user.message": frozenset({"strip", "state", "title"}),
    "session.paused": frozenset({"state", "strip", "menu"}),
    "session.resumed": frozenset({"state", "strip", "menu"}),
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
    "agent.tool_use": frozenset({"state"}),
    "agent.question": frozenset({"state"}),
    "agent.question_closed": frozenset({"state", "strip"}),
    "user.tool_confirmation": frozenset({"state", "strip"}),
    "user.question_response": frozenset({"state", "strip"}),
    "turn.waiting": frozenset({"state", "strip"}),
    "model.usage": frozenset({"usage"}),
}
ALL_REGIONS = ("title", "state", "model", "strip", "foot", "menu", "usage")
_STATE_WORDS = {
    "needs_you": "Needs you",
    "failed": "Failed",
    "paused": "Paused",
    "working": "Working",
    "retrying": "Waiting",
    "": "",
}


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
    """The strongest: needs you, failed, paused, working. Empty: idle."""
    reason = (session.stop_reason or {}).get("type")
    is_at_work = session.is_working or session.status == SessionStatus.RUNNING
    if _needs_people(session):
        return "needs_you"
    if reason in {"error", "retries_exhausted"} and not is_at_work:
        return "failed"
    if session.is_paused and session.status != SessionStatus.TERMINATED:
        return "paused"
    if session.status == SessionStatus.RESCHEDULING:
        return "retrying"
    return "working" if is_at_work else ""


def _needs_people(session: Session) -> bool:
    """Something is open, here or below; also while the turn still runs other calls."""
    return session.is_waiting if session.open_waits is None else session.open_waits > 0


def state_word(state: str) -> str:
    return _STATE_WORDS[state]


def may(access: Access, action: Action, session: Session) -> bool:
    return access.may(action, session.workspace_id, maker_id=session.maker_id)


def session_context(
    *, session: Session, access: Access, zone: tzinfo | None, names: Collection[str] = ALL_REGIONS
) -> dict[str, Any]:
    """What the named parts show. The session was read with this access just now."""
    state = session_state(session)
    context: dict[str, Any] = {
        "session": session,
        "session_id": session.public_id,
        "title": display_title(session),
        "state": state,
        "state_word": state_word(state),
        "may_control": may(access, Action.SESSION_CONTROL, session),
        "may_administer": may(access, Action.SESSION_ADMINISTER, session),
        "is_archived": session.archived_at is not None,
        "is_open": session.archived_at is None and session.status != SessionStatus.TERMINATED,
        "zone": zone,
    }
    if "strip" in names:
        context |= strip_context(session)
    if "usage" in names:
        context["usage"] = _usage(session)
    return context


def render_regions(
    *, session: Session, access: Access, zone: tzinfo | None, names: Collection[str]
) -> dict[str, str]:
    """Markup by name."""
    context = session_context(session=session, access=access, zone=zone, names=names)
    return {name: render_to_string(f"parts/{name}.html", context) for name in sorted(names)}


def _usage(session: Session) -> dict[str, Any]:
    used = selectors.sum_usage(session)
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
