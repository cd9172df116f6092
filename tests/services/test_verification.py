"""`verify_log` finds what is wrong: a row that tells another story than its log."""

from __future__ import annotations

import uuid
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from sessions_app import eventlog
from sessions_app.domain.events import Draft
from sessions_app.models import Session, Turn
from sessions_app.services import attempts
from sessions_app.services.queueing import QueuedTurn, move_queued
from sessions_app.services.sessions import EndUser
from sessions_app.services.verification import verify_session
from tests.factories import Cast, claim, make_session, send


@pytest.mark.parametrize(
    ("column", "value", "told"),
    [
        ("status", "running", "status"),
        ("title", "Another", "title"),
        ("message_count", 7, "message_count"),
        ("head_seq", 99, "head_seq"),
        ("preview_text", "x", "preview_text"),
        ("archived_at", "2026-01-01T00:00:00Z", "archived_at"),
        ("metadata", {"a": "b"}, "metadata"),
        ("paused_at", "2026-01-01T00:00:00Z", "paused_at"),
        ("ready_at", None, "ready_at"),
        ("started_turn_id", uuid.UUID(int=5), "started_turn_id"),
        ("live_attempt_id", uuid.UUID(int=5), "live_attempt_id"),
        ("turn_count", 7, "turn_count"),
        ("agent_message_seq", 2, "agent_message_seq"),
        ("origin", {"type": "other"}, "origin"),
        ("origin_type", "other", "origin_type"),
        ("agent_access", "session", "agent_access"),
        ("memory_scope", "off", "memory_scope"),
        ("end_user_id", "4711", "end_user"),
    ],
)
def test_a_row_that_drifted_is_named(cast: Cast, column: str, value: object, told: str) -> None:
    session = make_session(cast, title="Harbour survey")
    send(cast, session)
    assert verify_session(session_id=session.pk) == []
    Session.objects.filter(pk=session.pk).update(**{column: value})
    problems = verify_session(session_id=session.pk)
    assert len(problems) == 1
    assert told in problems[0]


def test_a_turn_that_drifted_is_named(cast: Cast) -> None:
    session = make_session(cast)
    send(cast, session)
    claim()
    Turn.objects.update(status="completed")
    assert "the log says running" in verify_session(session_id=session.pk)[0]


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("turn", "number", 9),
        ("turn", "prompt_seq", 9),
        ("turn", "started_seq", None),
        ("turn", "attempt_count", 4),
        ("turn", "error", '{"code": "internal_error"}'),
        ("attempt", "status", "lost"),
        ("attempt", "number", 4),
        ("session", "live_attempt_id", None),
        ("session", "started_turn_id", None),
        ("session", "ready_at", "2026-01-01T00:00:00Z"),
        ("wait", "kind", "question"),
        ("wait", "status", "answered"),
        ("wait", "tool_use_seq", 1),
        ("wait", "event_seq", 1),
    ],
)
def test_each_column_that_the_log_can_tell_is_compared(
    cast: Cast, table: str, column: str, value: Any
) -> None:
    session = make_session(cast)
    send(cast, session)
    use = {"name": "probe.append_asked", "input": {}, "call_id": "c", "step": 1}
    asked = Draft("agent.tool_use", {**use, "evaluated_permission": "ask", "repeatable": False})
    attempts.record_ask(lease=claim().lease, drafts=[asked])
    assert verify_session(session_id=session.pk) == []
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE sessions_app_{table} SET {column} = %s", [value])
    problems = verify_session(session_id=session.pk)
    named = {"event_seq": "in the row or the log alone", "number": "number"}.get(column, column)
    if table == "attempt":
        named = "attempt"
    assert any(named in problem for problem in problems), problems


def test_a_queue_behind_its_log_is_named(cast: Cast) -> None:
    session = make_session(cast)
    for text in ("one", "two"):
        send(cast, session, text)
    session.refresh_from_db()
    second = Turn.objects.get(number=2)
    queued = QueuedTurn(session.pk, second.pk, session.queue_version)
    move_queued(access=cast.access("member"), queued=queued, position=1)
    assert verify_session(session_id=session.pk) == []
    Session.objects.update(queue_version=1)
    assert "queue_version" in verify_session(session_id=session.pk)[0]


def test_a_session_made_by_a_key_for_an_end_user_agrees_with_its_log(cast: Cast) -> None:
    session = make_session(cast, by="workspace_key", end_user=EndUser("shop", "4711"))
    created = eventlog.read_after(session_id=session.pk, after=0, limit=1)[0].data
    assert created["end_user"] == {"source": "shop", "id": "4711"}
    assert created["author"]["id"] == cast.workspace_key.row.public_id
    assert verify_session(session_id=session.pk) == []
    Session.objects.update(end_user_id="4712", maker=cast.member)
    told = verify_session(session_id=session.pk)
    assert [problem.split()[0] for problem in told] == ["end_user", "author"]


def test_the_command_checks_all_sessions_and_fails_on_a_disagreement(cast: Cast) -> None:
    one, two = make_session(cast), make_session(cast)
    told = StringIO()
    call_command("verify_log", stdout=told)
    assert "2 sessions: log and rows agree" in told.getvalue()
    Session.objects.filter(pk=two.pk).update(title="Another")
    errors = StringIO()
    with pytest.raises(CommandError, match="1 disagreements"):
        call_command("verify_log", stderr=errors)
    assert two.public_id in errors.getvalue()
    call_command("verify_log", one.public_id, stdout=told)
    with pytest.raises(CommandError):
        call_command("verify_log", "ses_nonsense")
