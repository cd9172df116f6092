"""Commands that meet in one session at the same moment, many times over: each is done once."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from django.db import connection

from sessions_app.domain.events import EVENT_TYPES
from sessions_app.eventlog import read_after
from sessions_app.models import Session
from sessions_app.services import attempts
from sessions_app.services.holding import pause_session, resume_session
from sessions_app.services.sessions import SessionChanges, update_session
from sessions_app.services.turns import Prompt, submit_prompt
from sessions_app.services.verification import verify_session
from tests.factories import WORKER_TOKEN, Cast, claim, make_session, message, send


def together(*works: Callable[[], object]) -> None:
    barrier = threading.Barrier(len(works))

    def run(work: Callable[[], object]) -> None:
        barrier.wait()
        try:
            work()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(works)) as pool:
        for done in [pool.submit(run, work) for work in works]:
            done.result()


def count(session: Session, *types: str) -> Counter[str]:
    assert set(types) <= set(EVENT_TYPES)
    found = read_after(session_id=session.pk, after=0, limit=1_000, types=types)
    return Counter(event.type for event in found)


def test_an_end_a_steer_and_a_new_title_at_once_lose_none_of_each_other(
    committed_cast: Cast,
) -> None:
    """BR-035, without the child's result."""
    access = committed_cast.access("member")
    for number in range(100):
        session = make_session(committed_cast)
        send(committed_cast, session)
        lease = claim().lease

        def finish(lease: attempts.Lease = lease) -> None:
            with suppress(attempts.LeaseLost):  # the steer came first
                attempts.record(lease=lease, drafts=[message("The answer")])
                attempts.finish_turn(lease=lease, outcome=attempts.Completed())

        def steer(session: Session = session) -> None:
            prompt = Prompt(content="Only March", delivery="steer")
            submit_prompt(access=access, session_id=session.pk, prompt=prompt)

        def rename(session: Session = session, title: str = f"Tide {number}") -> None:
            update_session(
                access=access, session_id=session.pk, changes=SessionChanges(title=title)
            )

        together(finish, steer, rename)
        session.refresh_from_db()
        assert session.title == f"Tide {number}"
        assert count(session, "user.message", "session.updated") == {
            "user.message": 2,
            "session.updated": 1,
        }
        assert sum(count(session, "turn.completed", "turn.superseded").values()) == 1
        attempts.acknowledge_quiet(lease=lease)
        following = claim().lease
        assert following.session_id == session.pk
        attempts.finish_turn(lease=following, outcome=attempts.Completed())
        assert verify_session(session_id=session.pk) == []


def test_ten_resumes_at_once_release_what_was_held_once(committed_cast: Cast) -> None:
    """BR-042."""
    access = committed_cast.access("member")
    session = make_session(committed_cast)
    pause_session(access=access, session_id=session.pk)
    for _ in range(3):
        send(committed_cast, session)

    def resume() -> Any:
        return resume_session(access=access, session_id=session.pk)

    together(*[resume] * 10)
    assert count(session, "session.resumed") == {"session.resumed": 1}
    started = []
    while (claimed := attempts.claim_turn(worker="w", token=WORKER_TOKEN)) is not None:
        started.append(claimed.lease.turn_id)
        attempts.finish_turn(lease=claimed.lease, outcome=attempts.Completed())
    assert len(started) == len(set(started)) == 3
    assert verify_session(session_id=session.pk) == []
