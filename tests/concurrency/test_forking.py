"""A fork neither waits for a source that is written to, nor sees what is not committed."""

from __future__ import annotations

import threading

import pytest
from django.db import connection, transaction

from core.errors import NotFound
from sessions_app import eventlog
from sessions_app.models import Session
from sessions_app.services import attempts
from sessions_app.services.archiving import delete_session
from sessions_app.services.forking import ForkRequest, fork_session
from sessions_app.services.verification import verify_session
from tests.factories import Cast, claim, make_session, message, send

SECONDS = 10


def in_the_midst(work: object, held: threading.Event, go_on: threading.Event) -> None:
    """Runs `work` in a transaction that stays open until it may go on."""
    assert callable(work)
    try:
        with transaction.atomic():
            work()
            held.set()
            assert go_on.wait(SECONDS)
    finally:
        connection.close()


def test_a_source_that_is_written_to_is_forked_at_once(committed_cast: Cast) -> None:
    cast = committed_cast
    source = make_session(cast)
    send(cast, source, "one")
    lease = claim().lease
    held, go_on = threading.Event(), threading.Event()

    def write() -> None:
        attempts.record(lease=lease, drafts=[message("not committed")])

    writer = threading.Thread(target=in_the_midst, args=(write, held, go_on))
    writer.start()
    try:
        assert held.wait(SECONDS)
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '2s'")
        made = fork_session(access=cast.access("member"), session_id=source.pk, fork=ForkRequest())
        assert made.message_count == 1
    finally:
        go_on.set()
        writer.join()
        with connection.cursor() as cursor:
            cursor.execute("RESET lock_timeout")
    assert verify_session(session_id=made.pk) == []
    assert verify_session(session_id=source.pk) == []


def test_a_source_that_is_deleted_meanwhile_is_forked_whole_or_not_at_all(
    committed_cast: Cast,
) -> None:
    cast = committed_cast
    source = make_session(cast)
    send(cast, source, "one")
    lease = claim().lease
    attempts.record(lease=lease, drafts=[message("answer one")])
    attempts.finish_turn(lease=lease, outcome=attempts.Completed())
    access = cast.access("member")
    held, go_on = threading.Event(), threading.Event()

    def delete() -> None:
        delete_session(access=access, session_id=source.pk)

    deleter = threading.Thread(target=in_the_midst, args=(delete, held, go_on))
    deleter.start()
    assert held.wait(SECONDS)
    threading.Timer(0.3, go_on.set).start()
    with pytest.raises(NotFound):
        fork_session(access=access, session_id=source.pk, fork=ForkRequest())
    deleter.join()
    assert not Session.objects.exists()
    assert eventlog.head(source.pk) == 0
