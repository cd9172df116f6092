"""What a session's turns used, summed in the log itself. What a fork inherited, its source used."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.db import connection

SUM = """
SELECT coalesce(sum((payload->>'input_tokens')::bigint), 0),
       coalesce(sum((payload->>'output_tokens')::bigint), 0)
FROM sessions_app_event WHERE session_id = %s AND type = 'model.usage'
  AND seq > (SELECT inherited_seq FROM sessions_app_session WHERE id = session_id)
GROUP BY turn_id ORDER BY min(seq)
"""


@dataclass(frozen=True, slots=True)
class TurnUsage:
    """Tokens of one turn, over all its attempts."""

    input_tokens: int
    output_tokens: int


def sum_usage(session_id: UUID) -> list[TurnUsage]:
    """One entry for each turn that reported any, oldest first."""
    with connection.cursor() as cursor:
        cursor.execute(SUM, [session_id])
        return [TurnUsage(*row) for row in cursor.fetchall()]
