"""`verify_log` finds what is wrong: a row that tells another story than its log."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from sessions_app.models import Session, Turn
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
