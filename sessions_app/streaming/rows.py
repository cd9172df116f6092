"""The poll behind row hints: how the top rows of the watched workspaces look, without access.

Shared by all followers, who read the rows again with their own access when one looks different.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import connection

from sessions_app.domain.vocabulary import DEFAULT_ORIGIN_TYPE
from sessions_app.querysets import AWAITED, HAS_CHILDREN, OPEN_WAITS, WORKS_BELOW

ROWS_POLLED: Final = 50  # of each workspace, the newest
Place = tuple[datetime, UUID]  # in the order of the list


@dataclass(frozen=True, slots=True)
class Window:
    """The top rows of a workspace: what each shows. `floor`: below it nothing was looked at."""

    rows: Mapping[UUID, tuple[Any, ...]]
    places: Mapping[UUID, Place]
    floor: Place | None

    def shows(self, place: Place) -> bool:
        return self.floor is None or place >= self.floor


RowStates = Mapping[UUID, Window]

# The columns that a row shows. The inner query reads one index in its own order.
_SHOWN = f"""
    row.id, visibility, status, title, message_count, model_label, agent_message_seq,
    started_turn_id IS NOT NULL OR ready_at IS NOT NULL, paused_at IS NOT NULL,
    {OPEN_WAITS.format(row="row")}, {WORKS_BELOW.format(row="row")},
    {AWAITED.format(row="row")}::text, {HAS_CHILDREN.format(row="row")}
"""
_STATES = f"""
SELECT watched.id, row.activity_at, {_SHOWN}
FROM unnest(%s::uuid[]) AS watched (id)
CROSS JOIN LATERAL (
    SELECT * FROM sessions_app_session
    WHERE workspace_id = watched.id AND origin_type = %s
      AND parent_id IS NULL AND archived_at IS NULL
    ORDER BY activity_at DESC, id DESC LIMIT %s
) AS row
"""  # noqa: S608 (constants alone)


def read_row_states(workspace_ids: Collection[UUID]) -> RowStates:
    """Workspace → its top rows. One query."""
    rows: dict[UUID, dict[UUID, tuple[Any, ...]]] = {pk: {} for pk in workspace_ids}
    places: dict[UUID, dict[UUID, Place]] = {pk: {} for pk in workspace_ids}
    with connection.cursor() as cursor:
        cursor.execute(_STATES, [list(workspace_ids), DEFAULT_ORIGIN_TYPE, ROWS_POLLED])
        for workspace_id, moment, session_id, *shown in cursor:
            rows[workspace_id][session_id] = tuple(shown)
            places[workspace_id][session_id] = (moment, session_id)
    return {pk: _window(rows[pk], places[pk]) for pk in rows}


def _window(rows: Mapping[UUID, tuple[Any, ...]], places: Mapping[UUID, Place]) -> Window:
    is_full = len(rows) == ROWS_POLLED
    return Window(rows, places, min(places.values()) if is_full else None)


def find_changed(before: RowStates, after: RowStates) -> dict[UUID, set[UUID]]:
    """Per workspace in both: sessions that came, went or look different.

    What others pushed over the edge, or let in there, did not change itself: to tell of it would
    tell those who see it that something happened which they may not see.
    """
    changed: dict[UUID, set[UUID]] = {}
    for workspace_id in before.keys() & after.keys():
        old, new = before[workspace_id], after[workspace_id]
        different = {pk for pk in old.rows.keys() & new.rows.keys() if old.rows[pk] != new.rows[pk]}
        different |= {pk for pk in new.rows.keys() - old.rows.keys() if old.shows(new.places[pk])}
        different |= {pk for pk in old.rows.keys() - new.rows.keys() if new.shows(old.places[pk])}
        if different:
            changed[workspace_id] = different
    return changed
