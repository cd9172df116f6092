"""The poll behind row hints: how the top rows of the watched workspaces look, without access.

Shared by all followers, who read the rows again with their own access when one looks different.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final
from uuid import UUID

from django.db import connection

from sessions_app.domain.vocabulary import DEFAULT_ORIGIN_TYPE
from sessions_app.querysets import AWAITED, HAS_CHILDREN, OPEN_WAITS, WORKS_BELOW

ROWS_POLLED: Final = 50  # of each workspace, the newest
RowStates = Mapping[UUID, Mapping[UUID, tuple[Any, ...]]]

# The columns that a row shows. The inner query reads one index in its own order.
_SHOWN = f"""
    row.id, status, title, message_count, model_label, agent_message_seq,
    started_turn_id IS NOT NULL OR ready_at IS NOT NULL, paused_at IS NOT NULL,
    {OPEN_WAITS.format(row="row")}, {WORKS_BELOW.format(row="row")},
    {AWAITED.format(row="row")}::text, {HAS_CHILDREN.format(row="row")}
"""
_STATES = f"""
SELECT watched.id, {_SHOWN}
FROM unnest(%s::uuid[]) AS watched (id)
CROSS JOIN LATERAL (
    SELECT * FROM sessions_app_session
    WHERE workspace_id = watched.id AND origin_type = %s
      AND parent_id IS NULL AND archived_at IS NULL
    ORDER BY activity_at DESC, id DESC LIMIT %s
) AS row
"""  # noqa: S608 (constants alone)


def read_row_states(workspace_ids: Collection[UUID]) -> RowStates:
    """Workspace → session → what its row shows. One query."""
    states: dict[UUID, dict[UUID, tuple[Any, ...]]] = {pk: {} for pk in workspace_ids}
    with connection.cursor() as cursor:
        cursor.execute(_STATES, [list(workspace_ids), DEFAULT_ORIGIN_TYPE, ROWS_POLLED])
        for workspace_id, session_id, *shown in cursor:
            states[workspace_id][session_id] = tuple(shown)
    return states


def find_changed(before: RowStates, after: RowStates) -> dict[UUID, set[UUID]]:
    """Per workspace in both: sessions that came, went or look different."""
    changed: dict[UUID, set[UUID]] = {}
    for workspace_id in before.keys() & after.keys():
        old, new = before[workspace_id], after[workspace_id]
        # Tuples of an item differ where either side lacks the session, too.
        different = {pk for pk, _ in set(old.items()) ^ set(new.items())}
        if different:
            changed[workspace_id] = different
    return changed
