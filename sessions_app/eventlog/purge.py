"""The one door through which events leave: the purge of a whole session."""

from __future__ import annotations

from uuid import UUID

from django.db import connection


def purge_events(*, session_id: UUID) -> int:
    """Deletes the log of one session, within a transaction; returns how many events went."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('sederunt.purge', %s, true)", [str(session_id)])
        cursor.execute("DELETE FROM sessions_app_event WHERE session_id = %s", [session_id])
        count: int = cursor.rowcount
        cursor.execute("SELECT set_config('sederunt.purge', '', true)")
    return count
