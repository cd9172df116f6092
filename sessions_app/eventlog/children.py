"""What a parent's log says of its child sessions. Both reads touch no other event."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from django.db import connection

from core.ids import parse_event_id
from sessions_app.eventlog.read import WIRE, StoredEvent, run_read

# `newest_child_result` is the index behind it: one look for each child, however many results.
_NEWEST_RESULT = f"""
SELECT seq, type, turn_id, attempt, {WIRE}
FROM unnest(%(children)s::text[]) AS child_id
CROSS JOIN LATERAL (
    SELECT * FROM sessions_app_event
    WHERE session_id = %(session)s AND type = 'child.result' AND payload ->> 'child_id' = child_id
    ORDER BY seq DESC LIMIT 1
) AS event
ORDER BY seq
"""
_TOLD = """
SELECT jsonb_array_elements_text(payload -> 'child_result_ids') FROM sessions_app_event
WHERE session_id = %(session)s AND turn_id = %(turn)s AND seq >= %(since)s
  AND type = 'agent.tool_result' AND payload ? 'child_result_ids'
"""


def find_child_results(*, session_id: UUID, child_ids: Collection[str]) -> list[StoredEvent]:
    """The newest `child.result` of each of these children that has one, oldest first."""
    return run_read(_NEWEST_RESULT, {"session": session_id, "children": list(child_ids)})


def find_told_results(*, session_id: UUID, turn_id: UUID, since: int) -> set[int]:
    """The seqs of those results that calls of this turn, from seq `since` on, have told."""
    with connection.cursor() as cursor:
        cursor.execute(_TOLD, {"session": session_id, "turn": turn_id, "since": since})
        return {parse_event_id(told)[1] for (told,) in cursor}
