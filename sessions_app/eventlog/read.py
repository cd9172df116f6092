"""Reading the log. The wire text of an event is built once, here, in SQL: replay, SSE and
WebSocket hand on the very same text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson
from django.db import connection

from sessions_app.domain.events import DELTA_TYPES, INPUT_TYPES

TIME = """to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""
WIRE = f"""
    (jsonb_build_object(
        'id', 'evt_' || replace(session_id::text, '-', '') || '_' || seq,
        'type', type,
        'version', version,
        'seq', seq,
        'session_id', 'ses_' || replace(session_id::text, '-', ''),
        'created_at', {TIME})
    || CASE WHEN turn_id IS NULL THEN '{{}}'::jsonb
       ELSE jsonb_build_object('turn_id', 'trn_' || replace(turn_id::text, '-', '')) END
    || CASE WHEN attempt IS NULL THEN '{{}}'::jsonb
       ELSE jsonb_build_object('attempt', attempt) END
    || CASE WHEN type = ANY(%(deltas)s) THEN '{{}}'::jsonb
       WHEN type = ANY(%(inputs)s) THEN jsonb_build_object('processed_at', NULL)
       ELSE jsonb_build_object('processed_at', {TIME}) END
    || payload)::text
"""
SELECT = f"SELECT seq, type, turn_id, attempt, {WIRE} FROM sessions_app_event"
READ_EACH = f"""
SELECT session_id, seq, type, turn_id, attempt, {WIRE}
FROM unnest(%(sessions)s::uuid[], %(afters)s::bigint[]) AS follower (followed_id, position)
CROSS JOIN LATERAL (
    SELECT * FROM sessions_app_event
    WHERE session_id = followed_id AND seq > position ORDER BY seq LIMIT %(limit)s
) AS event
ORDER BY session_id, seq
"""
READ_TEXTS = f"""
SELECT seq, type, turn_id, attempt, {WIRE} FROM (
    SELECT event.session_id, event.seq, event.type, event.version, event.turn_id, event.attempt,
           event.created_at, event.payload || jsonb_build_object('text', run.text) AS payload
    FROM (
        SELECT min(seq) AS seq, string_agg(payload ->> 'text', '' ORDER BY seq) AS text
        FROM sessions_app_event
        WHERE session_id = %(session)s AND seq > %(after)s AND seq < %(before)s
          AND type = ANY(%(deltas)s)
        GROUP BY type, payload ->> 'message_id'
    ) AS run
    JOIN sessions_app_event AS event ON event.session_id = %(session)s AND event.seq = run.seq
) AS joined ORDER BY seq
"""
CONSTANTS = {"deltas": sorted(DELTA_TYPES), "inputs": sorted(INPUT_TYPES)}


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """`json` is the finished wire text. `first_seq` differs from `seq` for a joined run."""

    seq: int
    type: str
    turn_id: UUID | None
    attempt: int | None
    json: str
    first_seq: int = 0

    @property
    def data(self) -> dict[str, Any]:
        parsed: dict[str, Any] = orjson.loads(self.json)
        return parsed


def read_after(
    *, session_id: UUID, after: int, limit: int, types: Collection[str] | None = None
) -> list[StoredEvent]:
    """Events with seq > `after`, oldest first."""
    return run_read(
        f"{SELECT} WHERE session_id = %(session)s AND seq > %(after)s{_typed(types)}"
        " ORDER BY seq LIMIT %(limit)s",
        {"session": session_id, "after": after, "limit": limit, "types": _list(types)},
    )


def read_after_each(*, positions: Mapping[UUID, int], limit: int) -> dict[UUID, list[StoredEvent]]:
    """For each session (id → after): events with seq > after, oldest first. One query.

    At most `limit` per session; sessions without newer events are absent.
    """
    found: dict[UUID, list[StoredEvent]] = {}
    parameters: dict[str, Any] = {
        "sessions": list(positions),
        "afters": list(positions.values()),
        "limit": limit,
        **CONSTANTS,
    }
    with connection.cursor() as cursor:
        cursor.execute(READ_EACH, parameters)
        for session_id, *row in cursor:
            found.setdefault(session_id, []).append(_stored(row))
    return found


def read_at(*, session_id: UUID, seqs: Collection[int]) -> list[StoredEvent]:
    """The events with these numbers, oldest first."""
    return run_read(
        f"{SELECT} WHERE session_id = %(session)s AND seq = ANY(%(seqs)s) ORDER BY seq",
        {"session": session_id, "seqs": sorted(seqs)},
    )


def read_before(
    *, session_id: UUID, before: int, limit: int, types: Collection[str] | None = None
) -> list[StoredEvent]:
    """Events with seq < `before`, newest first."""
    return run_read(
        f"{SELECT} WHERE session_id = %(session)s AND seq < %(before)s{_typed(types)}"
        " ORDER BY seq DESC LIMIT %(limit)s",
        {"session": session_id, "before": before, "limit": limit, "types": _list(types)},
    )


def read_texts(*, session_id: UUID, after: int, before: int) -> list[StoredEvent]:
    """The deltas between two seqs, those of each message as one: its first, with all the text."""
    return run_read(READ_TEXTS, {"session": session_id, "after": after, "before": before})


def read_turn(
    *, session_id: UUID, turn_id: UUID, since: int, types: Collection[str] | None = None
) -> list[StoredEvent]:
    """One turn's events with seq >= `since`, oldest first."""
    return run_read(
        f"{SELECT} WHERE session_id = %(session)s AND seq >= %(since)s AND turn_id = %(turn)s"
        f"{_typed(types)} ORDER BY seq",
        {"session": session_id, "since": since, "turn": turn_id, "types": _list(types)},
    )


def find_newest_of_turn(
    *, session_id: UUID, turn_id: UUID, since: int, kind: str
) -> StoredEvent | None:
    """One turn's newest event of a type with seq >= `since`; the others are not read."""
    found = run_read(
        f"{SELECT} WHERE session_id = %(session)s AND seq >= %(since)s AND turn_id = %(turn)s"
        " AND type = %(kind)s ORDER BY seq DESC LIMIT 1",
        {"session": session_id, "since": since, "turn": turn_id, "kind": kind},
    )
    return found[0] if found else None


def head(session_id: UUID) -> int:
    """The newest seq; 0 for a session that is gone."""
    return heads([session_id]).get(session_id, 0)


def heads(session_ids: Iterable[UUID]) -> dict[UUID, int]:
    """The newest seq of each session that still exists. One query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, head_seq FROM sessions_app_session WHERE id = ANY(%s)", [list(session_ids)]
        )
        return dict(cursor.fetchall())


def count_appended() -> int:
    """Events ever written, from the server's statistics: no row is looked at."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(sum(n_tup_ins), 0)::bigint FROM pg_stat_user_tables"
            " WHERE relname = 'sessions_app_event'"
        )
        return int(cursor.fetchone()[0])


def run_read(sql: str, parameters: dict[str, Any]) -> list[StoredEvent]:
    """For statements of this package with the columns of SELECT."""
    with connection.cursor() as cursor:
        cursor.execute(sql, {**parameters, **CONSTANTS})
        return [_stored(row) for row in cursor.fetchall()]


def _stored(row: Sequence[Any]) -> StoredEvent:
    seq, kind, turn_id, attempt, text = row
    return StoredEvent(seq, kind, turn_id, attempt, text, first_seq=seq)


def _typed(types: Collection[str] | None) -> str:
    return "" if types is None else " AND type = ANY(%(types)s)"


def _list(types: Collection[str] | None) -> list[str]:
    return sorted(types or ())
