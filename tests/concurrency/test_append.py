"""Eight writers, some of whom roll back: commit order is seq order, without a gap."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest
from django.db import connection, transaction

from sessions_app import eventlog
from sessions_app.domain.events import Draft
from sessions_app.models import Session, Turn
from sessions_app.services import attempts
from sessions_app.services.interruption import interrupt_session
from sessions_app.services.verification import verify_session
from tests.factories import Cast, make_session, send


class RolledBack(Exception):
    pass


def append_many(session_id: UUID, writer: int, rounds: int) -> int:
    kept = 0
    chance = random.Random(writer)
    try:
        for _ in range(rounds):
            size = chance.randint(1, 4)
            try:
                with transaction.atomic():
                    drafts = [
                        Draft("session.updated", {"changes": {"metadata": {"by": str(writer)}}})
                    ] * size
                    eventlog.append(session_id=session_id, drafts=drafts)
                    if chance.random() < 0.3:
                        raise RolledBack
                kept += size
            except RolledBack:
                continue
    finally:
        connection.close()
    return kept


def test_a_tailing_reader_misses_nothing_of_eight_writers_with_rollbacks(
    committed_cast: Cast,
) -> None:
    session = make_session(committed_cast)
    done = threading.Event()
    seen: list[int] = []

    def tail() -> None:
        try:
            while True:
                finished = done.is_set()
                after = seen[-1] if seen else 0
                page = eventlog.read_after(session_id=session.pk, after=after, limit=500)
                seen.extend(event.seq for event in page)
                if finished and not page:
                    return
                time.sleep(0.001)
        finally:
            connection.close()

    reader = threading.Thread(target=tail)
    reader.start()
    with ThreadPoolExecutor(8) as pool:
        kept = sum(pool.map(lambda writer: append_many(session.pk, writer, 40), range(8)))
    done.set()
    reader.join()
    assert seen == list(range(1, kept + 2))
    assert verify_session(session_id=session.pk) == []


@pytest.mark.parametrize("count", [30, pytest.param(250, marks=pytest.mark.proof)])
def test_two_workers_never_claim_the_same_turn(committed_cast: Cast, count: int) -> None:
    """BR-034. Each session has two turns."""
    sessions = [make_session(committed_cast) for _ in range(count)]
    for session in sessions:
        send(committed_cast, session)
        send(committed_cast, session)

    def work(number: int) -> list[UUID]:
        token = UUID(int=number + 1)
        claimed = []
        try:
            while (claim := attempts.claim_turn(worker=f"w{number}", token=token)) is not None:
                claimed.append(claim.lease.turn_id)
                attempts.finish_turn(lease=claim.lease, outcome=attempts.Completed())
        finally:
            connection.close()
        return claimed

    with ThreadPoolExecutor(8) as pool:
        claimed = [turn for turns in pool.map(work, range(8)) for turn in turns]
    # A worker that finds nothing stops: what is left was locked by another one just then.
    claimed += work(9)
    assert len(claimed) == len(set(claimed)) == 2 * count
    assert set(Turn.objects.values_list("status", "attempt_count")) == {("completed", 1)}
    assert all(verify_session(session_id=session.pk) == [] for session in sessions)


def test_twenty_prompts_at_once_queue_behind_one_another(committed_cast: Cast) -> None:
    session = make_session(committed_cast)

    def submit(number: int) -> int | None:
        try:
            return send(committed_cast, session, f"prompt {number}").seq
        finally:
            connection.close()

    with ThreadPoolExecutor(20) as pool:
        seqs = list(pool.map(submit, range(20)))
    assert len(set(seqs)) == 20
    numbers = Turn.objects.order_by("prompt_seq").values_list("number", flat=True)
    assert list(numbers) == list(range(1, 21))
    assert Session.objects.get().head_seq == 41


@pytest.mark.parametrize("times", [25, pytest.param(500, marks=pytest.mark.proof)])
def test_a_stop_that_races_the_natural_end_leaves_one_ending(
    committed_cast: Cast, times: int
) -> None:
    """BR-051."""
    access = committed_cast.access("member")
    for _ in range(times):
        session = make_session(committed_cast)
        send(committed_cast, session)
        claimed = attempts.claim_turn(worker="w", token=UUID(int=1))
        assert claimed is not None
        lease = claimed.lease
        barrier = threading.Barrier(2)

        def stop(pk: UUID = session.pk, barrier: threading.Barrier = barrier) -> None:
            try:
                barrier.wait()
                interrupt_session(access=access, session_id=pk)
            finally:
                connection.close()

        def finish(lease: attempts.Lease = lease, barrier: threading.Barrier = barrier) -> None:
            try:
                barrier.wait()
                attempts.finish_turn(lease=lease, outcome=attempts.Completed())
            except attempts.LeaseLost:
                return
            finally:
                connection.close()

        with ThreadPoolExecutor(2) as pool:
            for future in [pool.submit(stop), pool.submit(finish)]:
                future.result()
        assert verify_session(session_id=session.pk) == []
