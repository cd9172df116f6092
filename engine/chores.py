"""What one worker of all does for all: ending lost attempts, closing expired questions."""

from __future__ import annotations

from django.db import connection

from sessions_app.services.attempts import reap_expired
from sessions_app.services.settling import expire_waits

# A number of our own among the server's advisory locks.
CHORES_LOCK = 5_337_001


def reap_if_chosen() -> int:
    """Do the chores, unless another worker is at it; returns how many attempts were lost."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [CHORES_LOCK])
        (is_chosen,) = cursor.fetchone()
    if not is_chosen:
        return 0
    try:
        expire_waits()
        return reap_expired()
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [CHORES_LOCK])
