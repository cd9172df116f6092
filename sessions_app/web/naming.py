"""What a session is called, and how it stands, in the words that every page uses."""

from __future__ import annotations

from collections.abc import Collection

from sessions_app.domain.vocabulary import SessionStatus
from sessions_app.models import Session, Turn

_STATE_WORDS = {
    "needs_you": "Needs you",
    "failed": "Failed",
    "paused": "Paused",
    "working": "Working",
    "retrying": "Waiting",
    "queued": "Queued",
    "done": "Done",
    "stopped": "Stopped",
    "cancelled": "Cancelled",
    "archived": "Archived",
    "": "",
}


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
    """The strongest: needs you, failed, paused, awaiting children, working. Empty: idle."""
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
    if session.awaited:
        return "awaiting"
    return "working" if is_at_work else ""


def child_state(session: Session) -> str:
    """As `session_state`, with a word for a child that is at rest, too."""
    if session.status == SessionStatus.TERMINATED:
        return "cancelled"
    if session.archived_at is not None:
        return "archived"
    state = session_state(session)
    if state == "working" and session.started_turn_id is None and not session.works_below:
        return "queued"
    if state or not session.turn_count:
        return state
    is_stopped = (session.stop_reason or {}).get("type") == "interrupted"
    return "stopped" if is_stopped else "done"


def state_word(state: str, session: Session) -> str:
    if state == "awaiting":
        return f"Waiting for {counted(session.awaited, 'child session')}"
    return _STATE_WORDS[state]


def mark_of(state: str) -> str:
    """Whose shape tells it; some states are told by their word alone."""
    return "" if state in {"cancelled", "stopped", "archived"} else state


def short_word(state: str, session: Session) -> str:
    """For a narrow row; what it leaves out is there for screen readers."""
    return f"Waiting for {session.awaited}" if state == "awaiting" else _STATE_WORDS[state]


def counted(number: int, thing: str) -> str:
    """`1 child session`, `2 child sessions`."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def _needs_people(session: Session) -> bool:
    """Something is open, here or below; also while the turn still runs other calls."""
    return session.is_waiting if session.open_waits is None else session.open_waits > 0
