"""Where the web app plugs in its markup, so that a socket can send HTML and know none of it.

`config.asgi` sets both. The callables run on a database thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol
from uuid import UUID

from orgs.access import Access
from sessions_app import selectors
from sessions_app.eventlog import StoredEvent
from sessions_app.models import Session


class EventRenderer(Protocol):
    """Of one subscription; it may remember what it has rendered."""

    access: Access

    def render_all(self, events: Sequence[StoredEvent]) -> Sequence[Any]:
        """For each event something JSON-ready; None where the page shows nothing for it."""


# Called with the session, the follower's access, and the seq after which events follow.
MakeEventRenderer = Callable[[Session, Access, int], EventRenderer]
RenderRow = Callable[[Session, Access], str]

_plugged: dict[str, Any] = {}


def plug(*, make_event_renderer: MakeEventRenderer, render_row: RenderRow) -> None:
    _plugged["events"] = make_event_renderer
    _plugged["row"] = render_row


def unplug() -> None:
    _plugged.clear()


def has_renderers() -> bool:
    return bool(_plugged)


def make_event_renderer(*, access: Access, session_id: UUID, after: int) -> EventRenderer:
    """Raises NotFound."""
    session = selectors.get_session(access=access, session_id=session_id)
    renderer: EventRenderer = _plugged["events"](session, access, after)
    return renderer


def render_events(
    renderer: EventRenderer, access: Access, events: Sequence[StoredEvent]
) -> Sequence[Any]:
    """With the viewer's access of this moment."""
    renderer.access = access
    return renderer.render_all(events)


def row_html(session: Session, access: Access) -> dict[str, str]:
    """`{"html": …}`, or nothing where no markup is plugged in."""
    return {"html": _plugged["row"](session, access)} if "row" in _plugged else {}
