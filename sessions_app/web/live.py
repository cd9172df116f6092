"""What a socket sends as HTML: small patches that bring an open page to where a reload would be.

Patches are `put` (an item, whole, after another), `grow` (the blocks of a text from the n-th
on), `drop`, `region` (a part of the page that is state) and `say` (for the status region).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from core.errors import NotFound
from orgs.access import Access
from orgs.roles import Action
from sessions_app import selectors
from sessions_app.domain.events import DELTA_TYPES
from sessions_app.eventlog import StoredEvent
from sessions_app.models import Session
from sessions_app.web.child_items import relatives_named
from sessions_app.web.family import find_relatives
from sessions_app.web.items import Change, Item
from sessions_app.web.loading import load_page
from sessions_app.web.markdown import render_blocks
from sessions_app.web.regions import may, regions_of, render_regions
from sessions_app.web.rendering import render_item

Patch = dict[str, Any]
_SAID = {
    "turn.started": "The turn has started.",
    "turn.completed": "The answer is complete.",
    "turn.failed": "The turn failed.",
    "turn.cancelled": "The turn was stopped.",
    "turn.superseded": "A newer prompt took the turn's place.",
    "turn.waiting": "The session waits for an answer.",
    "turn.recovering": "The turn was interrupted and goes on.",
    "session.paused": "The session is paused.",
    "session.resumed": "The session goes on.",
}


@dataclass(slots=True)
class GrowingText:
    """Renders a growing text block by block: what stands above the last block never changes."""

    done_blocks: int = 0  # whole blocks before `start`
    start: int = 0  # where the last block begins

    def grow(self, text: str) -> tuple[int, str]:
        """The number of blocks to keep, and the markup of all after them."""
        keep = self.done_blocks
        made = render_blocks(text[self.start :])
        if made.count > 1:
            self.done_blocks += made.count - 1
            self.start += made.last_start
        return keep, made.html


@dataclass(slots=True)
class LiveRenderer:
    """Of one subscription. It begins with what the page at `after` shows, and goes on from it."""

    session: Session
    access: Access
    after: int
    _page: Any = field(init=False, default=None)
    _growing: dict[str, GrowingText] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._page = load_page(session=self.session, up_to=self.after).transcript
        self._page.forget_closed()

    def render_all(self, events: Sequence[StoredEvent]) -> list[dict[str, Any] | None]:
        """One answer an event. Deltas of one text that come together grow it once, and parts of
        the page are rendered once, with the last event.
        """
        answers: list[dict[str, Any] | None] = []
        for place, event in enumerate(events):
            changes = self._page.add(event)
            if _goes_on(events, place):
                changes = [change for change in changes if change.kind != "grow"]
            patches = [self._patch(change) for change in changes]
            if said := _said(event):
                patches.append({"op": "say", "text": said})
            answers.append({"patches": patches} if patches else None)
        if answers and (names := regions_of(event.type for event in events)):
            answers[-1] = {
                "patches": [*(answers[-1] or {"patches": []})["patches"], *self._regions(names)]
            }
        return answers

    def _patch(self, change: Change) -> Patch:
        item = change.item
        if change.kind == "drop":
            return {"op": "drop", "key": item.key}
        if change.kind == "grow":
            return self._grow(item)
        self._growing.pop(item.key, None)
        may_control = may(self.access, Action.SESSION_CONTROL, self.session)
        may_fork = may(self.access, Action.SESSION_CREATE, self.session)
        html = render_item(
            item,
            session=self.session,
            may_control=may_control,
            may_fork=may_fork,
            relatives=find_relatives(self.access, relatives_named([item])),
        )
        patch = {"op": "put", "key": item.key, "html": html}
        return {**patch, "after": self._page.previous_key(item)}

    def _grow(self, item: Item) -> Patch:
        growing = self._growing.setdefault(item.key, GrowingText())
        keep, html = growing.grow(item.text)
        return {"op": "grow", "key": item.key, "keep": keep, "html": html}

    def _regions(self, names: frozenset[str]) -> list[Patch]:
        try:
            session = selectors.get_session(access=self.access, session_id=self.session.pk)
        except NotFound:  # the stream itself ends within two seconds
            return []
        parts = render_regions(session=session, access=self.access, zone=None, names=names)
        return [{"op": "region", "name": name, "html": html} for name, html in parts.items()]


def _said(event: StoredEvent) -> str:
    if event.type == "turn.waiting" and not event.data["event_ids"]:
        return "The session waits for its child sessions."
    return _SAID.get(event.type, "")


def _goes_on(events: Sequence[StoredEvent], place: int) -> bool:
    """The next event adds to the same text: then this one need not be shown by itself."""
    event = events[place]
    if event.type not in DELTA_TYPES or place + 1 == len(events):
        return False
    following = events[place + 1]
    return following.type == event.type and following.data.get("message_id") == event.data.get(
        "message_id"
    )
