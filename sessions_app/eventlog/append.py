"""Appending: the session's row is locked, numbered and changed, and the facts inserted, in one
statement. Commit order is seq order because the row lock is held until commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson
from django.db import connection

from sessions_app.domain.events import Draft, event_type
from sessions_app.domain.projection import RowChange, project
from sessions_app.eventlog.announce import announce, announce_rows

BOOKKEEPING = frozenset(
    {
        "title_source",
        "turn_count",
        "queue_version",
        "live_attempt_id",
        "started_turn_id",
        "quiet_at",
        "pause_revision",
        "resume_revision",
        "ready_at",
        "next_settings",
        "checkpoint_settings",
        "model_settings",
        "model_label",
        "visibility",
        "reported_turns",
        "result_seq",
        "archiving_id",
    }
)
JSON_COLUMNS = frozenset(
    {
        "metadata",
        "stop_reason",
        "next_settings",
        "checkpoint_settings",
        "model_settings",
    }
)

APPEND = """
WITH bumped AS (
    UPDATE sessions_app_session SET head_seq = head_seq + %(count)s{assignments}
    WHERE id = %(session)s{fence}
    RETURNING head_seq - %(count)s AS base, workspace_id, ancestor_ids
), written AS (
    INSERT INTO sessions_app_event
        (session_id, seq, type, version, turn_id, attempt, payload, created_at)
    SELECT %(session)s, base + draft.place, draft.type, draft.version, draft.turn_id,
           draft.attempt, draft.payload, clock_timestamp()
    FROM bumped, jsonb_to_recordset(%(drafts)s::jsonb) AS draft (
        place int, type text, version int, turn_id uuid, attempt int, payload jsonb
    )
)
SELECT base, workspace_id, ancestor_ids FROM bumped
"""

# Locked in one order, and never waited for: a locked session's drafts go with the next flush.
APPEND_GROUPS = """
WITH draft AS (
    SELECT * FROM jsonb_to_recordset(%(drafts)s::jsonb) AS d (
        session_id uuid, fence uuid, place int, type text, version int, turn_id uuid, attempt int,
        payload jsonb
    )
), wanted AS (
    SELECT session_id, fence, count(*) AS length FROM draft GROUP BY session_id, fence
), held AS (
    SELECT session.id, wanted.fence, wanted.length
    FROM sessions_app_session AS session
    JOIN wanted ON wanted.session_id = session.id AND session.live_attempt_id = wanted.fence
    ORDER BY session.depth, session.id
    FOR NO KEY UPDATE OF session SKIP LOCKED
), bumped AS (
    UPDATE sessions_app_session AS session SET head_seq = head_seq + held.length
    FROM held WHERE session.id = held.id
    RETURNING session.id, held.fence, session.head_seq, head_seq - held.length AS base,
              session.workspace_id
), written AS (
    INSERT INTO sessions_app_event
        (session_id, seq, type, version, turn_id, attempt, payload, created_at)
    SELECT bumped.id,
           bumped.base + row_number() OVER (PARTITION BY draft.session_id ORDER BY draft.place),
           draft.type, draft.version, draft.turn_id, draft.attempt, draft.payload,
           clock_timestamp()
    FROM bumped JOIN draft ON draft.session_id = bumped.id AND draft.fence = bumped.fence
)
SELECT id, fence, head_seq, workspace_id FROM bumped
"""


class Fenced(Exception):
    """The attempt that wanted to write is no longer the live one, or the session is gone."""


@dataclass(frozen=True, slots=True)
class GroupResult:
    """Fences under which drafts were written, and those to be tried again or no longer live."""

    written: frozenset[UUID]
    skipped: frozenset[UUID]


def append(
    *,
    session_id: UUID,
    drafts: Sequence[Draft],
    turn_id: UUID | None = None,
    attempt: int | None = None,
    fence: UUID | None = None,
    row: Mapping[str, Any] | None = None,
) -> range:
    """Append to one session's log; returns the seqs given. One round trip.

    `turn_id` and `attempt` fill drafts that name none. `fence` is the id of the attempt that
    must still be the live one. `row` sets bookkeeping columns in the same statement; what the
    drafts themselves do to the row follows from them. Raises Fenced.
    """
    change = project((draft.type, draft.payload) for draft in drafts)
    assignments, values = _assignments(change, row or {})
    sql = APPEND.format(
        assignments=assignments, fence=" AND live_attempt_id = %(fence)s" if fence else ""
    )
    parameters = {
        "session": session_id,
        "count": len(drafts),
        "fence": fence,
        **values,
        "drafts": _encode(
            _columns(draft, place, turn_id, attempt) for place, draft in enumerate(drafts, start=1)
        ),
    }
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        found = cursor.fetchone()
    if found is None:
        raise Fenced
    base, workspace_id, ancestor_ids = found
    changed = bool(assignments)
    announce(
        session_id=session_id,
        seq=base + len(drafts),
        workspace_id=workspace_id,
        row_changed=changed,
    )
    if changed:
        announce_rows(session_ids=ancestor_ids, workspace_id=workspace_id)
    return range(base + 1, base + len(drafts) + 1)


def append_groups(*, groups: Sequence[tuple[UUID, UUID, Sequence[Draft]]]) -> GroupResult:
    """Append (session id, fence, drafts) of many sessions in one statement.

    For drafts that leave the row alone (deltas): ValueError otherwise. Sessions that are locked
    or fenced are skipped without failing the others, another attempt of their session included.
    """
    flat = [(session, fence, draft) for session, fence, drafts in groups for draft in drafts]
    drafts = [draft for _, _, draft in flat]
    if not project((draft.type, draft.payload) for draft in drafts).is_empty:
        raise ValueError("append_groups is for events that do not change a session's row")
    encoded = _encode(
        {"session_id": session, "fence": fence, **_columns(draft, place, None, None)}
        for place, (session, fence, draft) in enumerate(flat)
    )
    with connection.cursor() as cursor:
        cursor.execute(APPEND_GROUPS, {"drafts": encoded})
        rows = cursor.fetchall()
    for session_id, _, seq, workspace_id in rows:
        announce(session_id=session_id, seq=seq, workspace_id=workspace_id, row_changed=False)
    written = frozenset(fence for _, fence, _, _ in rows)
    return GroupResult(written, frozenset(fence for _, fence, _ in groups) - written)


def _columns(draft: Draft, place: int, turn_id: UUID | None, attempt: int | None) -> dict[str, Any]:
    return {
        "place": place,
        "type": draft.type,
        "version": event_type(draft.type).version,
        "turn_id": draft.turn_id or turn_id,
        "attempt": draft.attempt or attempt,
        "payload": draft.payload,
    }


def _encode(rows: Iterable[dict[str, Any]]) -> str:
    """One JSON parameter: arrays of thousands of texts cost the driver more than the insert."""
    return orjson.dumps(list(rows), default=dict).decode()


def _assignments(change: RowChange, row: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The SET list beyond the number, and its parameters. Column names come from code alone."""
    if unknown := row.keys() - BOOKKEEPING:
        raise ValueError(f"not bookkeeping columns: {sorted(unknown)}")
    parts: list[str] = []
    values: dict[str, Any] = {}
    for column, value in {**change.columns, **row}.items():
        if column == "ready_at" and value == "now":
            parts.append("ready_at = clock_timestamp()")
            continue
        is_json = column in JSON_COLUMNS
        parts.append(f"{column} = %(set_{column})s" + ("::jsonb" if is_json else ""))
        encoded = (
            orjson.dumps(value, default=dict).decode() if is_json and value is not None else value
        )
        values[f"set_{column}"] = encoded
    if change.messages:
        parts.append("activity_at = clock_timestamp()")
        parts.append("message_count = message_count + %(messages)s")
        values["messages"] = change.messages
    if change.agent_message_offset:
        parts.append("agent_message_seq = head_seq + %(agent_message_offset)s")
        values["agent_message_offset"] = change.agent_message_offset
    for column, is_set in change.times.items():
        parts.append(f"{column} = {'clock_timestamp()' if is_set else 'NULL'}")
    return "".join(f", {part}" for part in parts), values
