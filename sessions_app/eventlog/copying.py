"""The beginning of one log repeated in another: numbered anew, with its payloads and times.

Ids that payloads contain are those of the copy: of calls and questions, computed from the new
seqs, and of turns. One statement, however long the history is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from sessions_app.domain.events import DELTA_TYPES
from sessions_app.domain.forking import (
    BEGINNING_TYPES,
    ENDING_TYPES,
    MESSAGE_TYPES,
    SAID_TYPES,
    STATE_TYPES,
    Following,
)
from sessions_app.domain.projection import preview
from sessions_app.eventlog.read import read_before

# Events to which rows refer.
REFERRED_TYPES = frozenset({"user.message", "turn.started", "agent.tool_use", "agent.question"}) | {
    "child.awaited"
}
HOLD = "SELECT head_seq FROM sessions_app_session WHERE id = %s FOR KEY SHARE"
FOLLOWING = """
SELECT min(seq) FILTER (WHERE type = ANY(%(said)s)),
       min(seq) FILTER (WHERE type = 'model.usage'),
       max(seq) FILTER (WHERE type = ANY(%(endings)s))
FROM sessions_app_event WHERE session_id = %(session)s AND turn_id = %(turn)s AND seq > %(after)s
"""
BEGUN = """
SELECT DISTINCT turn_id FROM sessions_app_event
WHERE session_id = %(session)s AND seq <= %(through)s AND type = ANY(%(beginnings)s)
"""
NEWEST_MESSAGE = """
SELECT message.seq FROM sessions_app_event AS message
LEFT JOIN (
    SELECT turn_id, min(seq) AS seq FROM sessions_app_event
    WHERE session_id = %(session)s AND type = ANY(%(beginnings)s) GROUP BY turn_id
) AS begun ON begun.turn_id = message.turn_id AND message.type = 'user.message'
WHERE message.session_id = %(session)s AND message.type = ANY(%(messages)s)
  AND (message.type = 'agent.message' OR begun.seq IS NOT NULL)
ORDER BY coalesce(begun.seq, message.seq) DESC LIMIT 1
"""
# Deltas are repeated where no whole text does it: what a broken attempt left.
COPY = """
WITH turn AS (
    SELECT * FROM unnest(%(old_turns)s::uuid[], %(new_turns)s::uuid[], %(numbers)s::int[])
        AS given (old_id, new_id, number)
), whole AS (
    SELECT type || '_delta' AS delta_type, payload ->> 'message_id' AS message_id
    FROM sessions_app_event
    WHERE session_id = %(source)s AND seq <= %(through)s
      AND type IN ('agent.message', 'agent.thinking')
), kept AS MATERIALIZED (
    SELECT event.seq AS old_seq, row_number() OVER (ORDER BY event.seq) AS place, event.type,
           event.version, turn.new_id, turn.number, event.attempt, event.payload, event.created_at
    FROM sessions_app_event AS event LEFT JOIN turn ON turn.old_id = event.turn_id
    WHERE event.session_id = %(source)s AND event.seq <= %(through)s
      AND (turn.old_id IS NOT NULL OR event.type = 'child.result')
      AND event.type <> ALL(%(state)s)
      AND NOT (event.type = ANY(%(deltas)s) AND EXISTS (
          SELECT 1 FROM whole WHERE whole.delta_type = event.type
            AND whole.message_id = event.payload ->> 'message_id'))
), tally AS (
    SELECT count(*) AS events, count(*) FILTER (WHERE type = ANY(%(messages)s)) AS messages,
           max(place) FILTER (WHERE type = 'agent.message') AS last_answer
    FROM kept
), bumped AS (
    UPDATE sessions_app_session AS session
    SET head_seq = head_seq + events, inherited_seq = head_seq + events,
        message_count = message_count + messages,
        agent_message_seq = coalesce(head_seq + last_answer, agent_message_seq)
    FROM tally WHERE session.id = %(target)s
    RETURNING head_seq - events AS base
), written AS (
    INSERT INTO sessions_app_event
        (session_id, seq, type, version, turn_id, attempt, payload, created_at)
    SELECT %(target)s, base + kept.place, kept.type, kept.version, kept.new_id, kept.attempt,
           kept.payload
           || CASE WHEN called.place IS NULL THEN '{}'::jsonb ELSE
              jsonb_build_object('tool_use_id', %(prefix)s || (base + called.place)) END
           || CASE WHEN asked.place IS NULL THEN '{}'::jsonb ELSE
              jsonb_build_object('question_id', %(prefix)s || (base + asked.place)) END
           || CASE WHEN kept.type IN ('turn.queued', 'turn.started')
              THEN jsonb_build_object('number', kept.number) ELSE '{}'::jsonb END
           || CASE WHEN named.new_id IS NULL THEN '{}'::jsonb ELSE jsonb_build_object(
              CASE kept.type WHEN 'turn.queued' THEN 'retry_of' ELSE 'by' END,
              'trn_' || replace(named.new_id::text, '-', '')) END
           || CASE WHEN told.results IS NULL THEN '{}'::jsonb ELSE
              jsonb_build_object('child_result_ids', told.results) END
           || CASE WHEN kept.type = 'user.tool_confirmation'
              THEN '{"scope": "once"}'::jsonb ELSE '{}'::jsonb END,
           kept.created_at
    FROM bumped CROSS JOIN kept
    LEFT JOIN kept AS called
      ON called.old_seq::text = split_part(kept.payload ->> 'tool_use_id', '_', 3)
    LEFT JOIN kept AS asked
      ON asked.old_seq::text = split_part(kept.payload ->> 'question_id', '_', 3)
    LEFT JOIN LATERAL (
        SELECT jsonb_agg(%(prefix)s || (base + result.place)) AS results
        FROM jsonb_array_elements_text(kept.payload -> 'child_result_ids') AS told_id
        JOIN kept AS result ON result.old_seq::text = split_part(told_id, '_', 3)
        WHERE kept.payload ? 'child_result_ids'
    ) AS told ON true
    LEFT JOIN turn AS named
      ON 'trn_' || replace(named.old_id::text, '-', '') = CASE kept.type
         WHEN 'turn.queued' THEN kept.payload ->> 'retry_of'
         WHEN 'turn.superseded' THEN kept.payload ->> 'by' END
)
SELECT old_seq, base + place FROM bumped CROSS JOIN kept WHERE type = ANY(%(referred)s)
"""


@dataclass(frozen=True, slots=True)
class CopiedTurn:
    """A turn of the source, and what it is called in the copy."""

    old_id: UUID
    new_id: UUID
    number: int


def hold_log(session_id: UUID) -> bool:
    """Keeps a log from being purged until the transaction ends, while it is appended to freely.

    False where it is gone.
    """
    return bool(_rows(HOLD, [session_id]))


def find_newest_message(session_id: UUID) -> int | None:
    """The seq of the last message of the conversation. A prompt stands where its turn begins."""
    constants = {"messages": sorted(MESSAGE_TYPES), "beginnings": sorted(BEGINNING_TYPES)}
    found = _joined(NEWEST_MESSAGE, {"session": session_id, **constants})
    return found[0][0] if found else None


def find_following(*, session_id: UUID, turn_id: UUID, after: int) -> Following:
    types = {"said": sorted(SAID_TYPES), "endings": sorted(ENDING_TYPES)}
    parameters = {"session": session_id, "turn": turn_id, "after": after, **types}
    return Following(*_rows(FOLLOWING, parameters)[0])


def find_begun_turns(*, session_id: UUID, through: int) -> list[UUID]:
    """The turns that began up to a seq, in no order."""
    parameters = {"session": session_id, "through": through, "beginnings": sorted(BEGINNING_TYPES)}
    return [turn_id for (turn_id,) in _rows(BEGUN, parameters)]


def copy_history(
    *, source_id: UUID, target_id: UUID, through: int, turns: Sequence[CopiedTurn]
) -> dict[int, int]:
    """Appends what `turns` wrote up to `through` to a session that this transaction has made.

    Returns old seq → new seq of the prompts, starts, calls and questions.
    """
    parameters = {
        "source": source_id,
        "target": target_id,
        "through": through,
        "prefix": f"evt_{target_id.hex}_",
        "old_turns": [turn.old_id for turn in turns],
        "new_turns": [turn.new_id for turn in turns],
        "numbers": [turn.number for turn in turns],
        "state": sorted(STATE_TYPES),
        "deltas": sorted(DELTA_TYPES),
        "messages": sorted(MESSAGE_TYPES),
        "referred": sorted(REFERRED_TYPES),
    }
    seqs = dict(_joined(COPY, parameters))
    _write_preview(target_id)
    return seqs


def _write_preview(session_id: UUID) -> None:
    newest = read_before(session_id=session_id, before=2**62, limit=1, types=MESSAGE_TYPES)
    if newest:
        text = preview(newest[0].data["content"])
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE sessions_app_session SET preview_text = %s WHERE id = %s",
                [text, session_id],
            )


def _joined(sql: str, parameters: Any) -> list[tuple[Any, ...]]:
    """Without nested loops. Statistics of many short logs let the planner expect a row or two of
    this one too, and to look through ten thousand for each of ten thousand took it half a minute.
    """
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_nestloop = off")
        found = _rows(sql, parameters)
        cursor.execute("SET LOCAL enable_nestloop TO DEFAULT")
    return found


def _rows(sql: str, parameters: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return list(cursor.fetchall())
