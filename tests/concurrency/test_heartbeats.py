"""A worker's heartbeat touches the attempts of many sessions, and gets in nobody's way."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

from django.db import connection, transaction

from sessions_app.models import Attempt
from sessions_app.services import attempts
from sessions_app.services.attempts import Completed
from sessions_app.services.cancelling import cancel_session
from tests.factories import Cast, claim, make_session, send


def run(cast: Cast, parent_id: UUID | None = None) -> attempts.Lease:
    send(cast, make_session(cast, parent_id=parent_id))
    return claim().lease


def test_an_attempt_that_is_being_ended_holds_up_no_other(committed_cast: Cast) -> None:
    """Its lease is not prolonged, and it is not called fenced before the end is committed."""
    kept, ending = run(committed_cast), run(committed_cast)
    ids = {lease.attempt_id: lease for lease in (kept, ending)}

    def beat() -> attempts.Heartbeats:
        try:
            return attempts.heartbeat(leases=list(ids.values()))
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        attempts.finish_turn(lease=ending, outcome=Completed())
        meanwhile = pool.submit(beat).result(timeout=5)
    assert (meanwhile.alive, meanwhile.fenced) == ({kept.attempt_id}, frozenset())
    after = beat()
    assert (after.alive, after.fenced) == ({kept.attempt_id}, {ending.attempt_id})


def test_heartbeats_and_the_cancel_of_a_tree_never_wait_for_each_other(
    committed_cast: Cast,
) -> None:
    """The heartbeat begins with the attempts that the cancel takes last."""
    cast = committed_cast
    parent = make_session(cast)
    send(cast, parent)
    top = claim().lease
    below = [run(cast, parent.pk) for _ in range(3)]
    last = below[-1].attempt_id
    is_held, is_cancelled = threading.Event(), threading.Event()

    def cancel() -> None:
        try:
            is_held.wait(5)
            cancel_session(access=cast.access("member"), session_id=parent.pk)
            is_cancelled.set()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        cancelling = pool.submit(cancel)
        with transaction.atomic():
            Attempt.objects.select_for_update(no_key=True).get(pk=last)
            is_held.set()
            # By now the cancel has ended the others, and waits for this one.
            assert not is_cancelled.wait(0.5)
            beats = attempts.heartbeat(leases=[top, *below])
        cancelling.result(timeout=5)
    assert beats.alive == {last}
    assert beats.fenced == frozenset()
    assert len(attempts.heartbeat(leases=[top, *below]).fenced) == 4
