"""A tree under several hands at once: no deadlock, nothing escapes a cancel, nothing is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any
from uuid import UUID

import pytest
from django.db import connection

from core.errors import Conflict
from sessions_app import eventlog
from sessions_app.domain.events import Draft
from sessions_app.models import Session, Turn
from sessions_app.services import attempts
from sessions_app.services.attempts import Completed, Lease, LeaseLost
from sessions_app.services.calls import Call
from sessions_app.services.cancelling import cancel_session
from sessions_app.services.children.spawning import NewChild, spawn_child
from sessions_app.services.interruption import interrupt_session
from sessions_app.services.turns import Prompt
from sessions_app.services.verification import verify_session
from tests.factories import Cast, claim, make_session, send
from tests.services.test_turn_machine import call as tool_use

ROUNDS = pytest.mark.parametrize("rounds", [10, pytest.param(100, marks=pytest.mark.proof)])


def at_once(*works: Callable[[], None]) -> None:
    """Each in a thread and a connection of its own, from one moment on. Raises what they raise."""
    barrier = threading.Barrier(len(works))

    def run(work: Callable[[], None]) -> None:
        try:
            barrier.wait()
            work()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(works)) as pool:
        for done in [pool.submit(run, work) for work in works]:
            done.result(timeout=30)


def begin(cast: Cast, session: Session) -> Lease:
    send(cast, session)
    return claim().lease


def spawn(lease: Lease) -> Session:
    """As a call of the live attempt. Raises LeaseLost."""
    (seq,) = attempts.record(lease=lease, drafts=[tool_use()])
    made = Call(lease.session_id, seq, "call_1", "session.start_child")
    children: list[Session] = []

    def do(parent: Session, turn: Turn) -> Draft:
        child = spawn_child(
            parent, turn=turn, attempt=1, tool_use_id=made.tool_use_id, new=NewChild("Go.")
        )
        children.append(child)
        return made.result({"session_id": child.public_id})

    attempts.record_effect(lease=lease, call=made, effect=do)
    return children[0]


@ROUNDS
def test_no_child_escapes_a_cancel_that_comes_at_the_same_moment(
    committed_cast: Cast, rounds: int
) -> None:
    """Whichever comes first: nothing below a cancelled session is left alive."""
    escaped = spawned = 0
    for _ in range(rounds):
        top = make_session(committed_cast)
        below = make_session(committed_cast, parent_id=top.pk)
        lease = begin(committed_cast, below)

        def start_two(lease: Lease = lease) -> None:
            with suppress(LeaseLost):
                for _ in range(2):
                    spawn(lease)

        def cancel(pk: UUID = top.pk) -> None:
            cancel_session(access=committed_cast.access("admin"), session_id=pk)

        at_once(start_two, cancel)
        tree = list(Session.objects.filter(root_id=top.pk))
        spawned += len(tree) - 1
        escaped += sum(session.status != "terminated" for session in tree)
    assert escaped == 0
    assert spawned > 0
    assert attempts.claim_turn(worker="w", token=lease.token) is None


@ROUNDS
def test_ends_of_children_and_commands_at_their_parents_never_deadlock(
    committed_cast: Cast, rounds: int
) -> None:
    for _ in range(rounds):
        parent = make_session(committed_cast)
        running = begin(committed_cast, parent)
        children = [make_session(committed_cast, parent_id=parent.pk) for _ in range(3)]
        leases = [begin(committed_cast, child) for child in children]

        def finish(lease: Lease) -> None:
            with suppress(LeaseLost):
                attempts.finish_turn(lease=lease, outcome=Completed())

        def stop(session: Session) -> None:
            interrupt_session(access=committed_cast.access("member"), session_id=session.pk)

        def write(lease: Lease = running) -> None:
            with suppress(LeaseLost):
                for _ in range(5):
                    attempts.record(lease=lease, drafts=[tool_use()])

        at_once(
            *(lambda lease=lease: finish(lease) for lease in leases),
            lambda child=children[0]: stop(child),
            lambda session=parent: stop(session),
            write,
        )
        results = eventlog.read_after(
            session_id=parent.pk, after=0, limit=1_000, types=["child.result"]
        )
        assert len(results) == 3
        for session in (parent, *children):
            assert verify_session(session_id=session.pk) == []


def test_starts_at_once_respect_the_bound(committed_cast: Cast, settings: Any) -> None:
    settings.CHILDREN_MAX_LIVE = 3
    parent = make_session(committed_cast)
    refused: list[str] = []

    def start() -> None:
        try:
            make_session(committed_cast, parent_id=parent.pk, prompts=[Prompt("Go.")])
        except Conflict as error:
            refused.append(error.code)

    at_once(*[start] * 6)
    assert parent.children.count() == 3
    assert refused == ["too_many_children"] * 3
