"""What a person keeps beside a session, and the session's end, at the same moment.

Rows that refer to a session are checked at commit. Whoever adds one keeps the session until then,
and whoever deletes it waits for them: so the one is told that it is gone, or the other takes along
what was added.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.errors import NotFound
from sessions_app import eventlog
from sessions_app.models import Session


def require_kept(session: Session) -> None:
    """It stays until this transaction ends. Raises NotFound where it is gone."""
    if not eventlog.hold_log(session.pk):
        raise NotFound


def take_whole(session: Session, below: Sequence[Session]) -> None:
    """Of a tree that this transaction holds: nobody adds to it any more."""
    rows = Session.objects.filter(pk__in=[session.pk, *(each.pk for each in below)])
    list(rows.select_for_update().order_by("depth", "id").values_list("pk"))
