"""Writes by attempts that were no longer the live one: refused, never merged, and counted.

The counter is a sequence: it survives the rollback of the very transaction that was refused, and
all processes share it.
"""

from __future__ import annotations

from django.db import connection


def count_refused(writes: int = 1) -> None:
    if writes:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT nextval('sessions_app_refused_writes') FROM generate_series(1, %s)",
                [writes],
            )


def refused_writes() -> int:
    """Since the database was made."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM sessions_app_refused_writes"
        )
        return int(cursor.fetchone()[0])
