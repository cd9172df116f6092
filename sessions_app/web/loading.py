"""The events that one page of a transcript needs, however long the log: few, and bounded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.ids import InvalidId, Prefix, decode_id
from sessions_app import selectors
from sessions_app.domain.events import DELTA_TYPES, EVENT_TYPES
from sessions_app.eventlog import StoredEvent
from sessions_app.models import Session, Turn
from sessions_app.services.children.results import results_of
from sessions_app.web.child_items import CARD, told_result
from sessions_app.web.items import Item, Json
from sessions_app.web.transcript import Transcript
from sessions_app.web.waits import settle_past

PAGE_EVENTS = 120
PAGE_BYTES = 60_000
_WHOLE_TYPES = frozenset(EVENT_TYPES) - DELTA_TYPES
_BREAKS = frozenset({"attempt.ended", "turn.recovering", "session.status_rescheduled"})
_TURN_ENDS = frozenset({"turn.completed", "turn.failed", "turn.cancelled", "turn.superseded"})
_TEXT_BEGINS = frozenset({"step.checkpoint", "attempt.started", "session.status_running"})


@dataclass(frozen=True, slots=True)
class Page:
    """`before` leads to the page above; None at the beginning of the log."""

    transcript: Transcript
    before: int | None
    head: int


def load_page(*, session: Session, before: int | None = None, up_to: int | None = None) -> Page:
    """The newest page, or the one above `before`. The caller has checked who reads.

    `up_to` is the last seq that counts: where a live stream goes on from.
    """
    last = session.head_seq if up_to is None else up_to
    ceiling = last + 1 if before is None else min(before, last + 1)
    found = selectors.read_events(
        session, before=ceiling, limit=PAGE_EVENTS + 1, types=_WHOLE_TYPES
    )
    events, more = _cut(found)
    whole = _with_unsealed(session, events, ceiling, is_newest=before is None)
    transcript = Transcript(lambda turn: _find_prompt(session, turn))
    _begin_in_midst(transcript, whole)
    transcript.add_all(whole)
    if before is not None:
        transcript.drop_unstarted()
        _settle_past(session, transcript)
    return Page(transcript, events[0].seq if more and events else None, last)


def _cut(newest_first: Sequence[StoredEvent]) -> tuple[list[StoredEvent], bool]:
    """At most so many events and bytes, and where possible from the start of a turn."""
    kept: list[StoredEvent] = []
    size = 0
    for event in newest_first[:PAGE_EVENTS]:
        size += min(len(event.json), 6_000)
        if kept and size > PAGE_BYTES:
            break
        kept.append(event)
    more = len(kept) < len(newest_first)
    kept.reverse()
    if not more:
        return kept, False
    starts = [place for place, event in enumerate(kept) if event.type == "turn.started"]
    if not starts:
        starts = [p for p, event in enumerate(kept) if event.type == "step.checkpoint"]
    return (kept[starts[0] :] if starts else kept), True


def _begin_in_midst(transcript: Transcript, events: Sequence[StoredEvent]) -> None:
    """A page that begins within a turn knows that the turn has started."""
    if events and events[0].type == "step.checkpoint":
        transcript.add(events[0])


def _with_unsealed(
    session: Session, events: list[StoredEvent], ceiling: int, *, is_newest: bool
) -> list[StoredEvent]:
    """Adds the deltas that no final event repeats: of broken attempts, and of what runs now."""
    deltas: list[StoredEvent] = []
    begin: int | None = None
    for event in events:
        if event.type in _TEXT_BEGINS:
            begin = event.seq
        elif event.type in {"agent.message", "agent.thinking"}:
            begin = event.seq if begin is not None else None
        elif event.type in _BREAKS and begin is not None:
            deltas += _deltas(session, begin, event.seq)
            begin = None
        elif event.type in _TURN_ENDS:
            begin = None
    if is_newest and begin is not None:
        deltas += _deltas(session, begin, ceiling)
    return sorted([*events, *deltas], key=lambda event: event.seq) if deltas else events


def _settle_past(session: Session, transcript: Transcript) -> None:
    """What was decided on a later page; and what failed here is not the newest."""
    settle_past(session, transcript.items)
    for item in transcript.items:
        if item.type == "turn.failed":
            item.facts["may_retry"] = False
    _settle_cards(session, [item for item in transcript.items if item.type == CARD])


def _settle_cards(session: Session, cards: list[Item]) -> None:
    """The newest result of each child, wherever it stands. Two queries, or none."""
    if not cards:
        return
    named = {decode_id(Prefix.SESSION, card.facts["child"]): card for card in cards}
    children = list(session.children.filter(pk__in=named))
    for pk, data in results_of(session, children).items():
        named[pk].facts["result"] = told_result(dict(data))


def _deltas(session: Session, after: int, before: int) -> list[StoredEvent]:
    """Whole, as a page that was open all the time has them."""
    if before - after <= 1:
        return []
    return selectors.read_texts(session, after=after, before=before)


def _find_prompt(session: Session, turn: str) -> Json | None:
    """The prompt of a turn that waited so long that it stands on another page."""
    try:
        turn_id = decode_id(Prefix.TURN, turn)
    except InvalidId:
        return None
    seq = Turn.objects.filter(pk=turn_id).values_list("prompt_seq", flat=True).first()
    if seq is None:
        return None
    found = selectors.read_events(session, after=seq - 1, limit=1)
    return found[0].data if found else None
