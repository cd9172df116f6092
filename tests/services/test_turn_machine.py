"""Random commands, deaths and late writes against the real services: the rules hold after each.

One session, as many workers as claims, any of them late. Whatever happens, the log is contiguous
and folds to the rows, one attempt lives at most, each turn ends once, and nothing is lost.

What can happen is a method with `@rule`. What must hold is a function of `RULES`: it is given what
the rows show (`Seen`) after every step that wrote one, and raises where that is wrong. Tables whose
rows the rules read, the log's among them, stand in `TABLES`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from core.clock import now
from core.errors import Conflict
from orgs.access import Access
from sessions_app.domain.events import Draft
from sessions_app.domain.vocabulary import (
    STARTED_UNFINISHED,
    TERMINAL_TURN,
    AttemptStatus,
    TurnStatus,
    WaitStatus,
)
from sessions_app.models import Attempt, Event, Session, Turn, Wait
from sessions_app.selectors import list_queue
from sessions_app.services import attempts
from sessions_app.services.attempts import Completed, Failed, Lease, LeaseLost
from sessions_app.services.cancelling import cancel_session
from sessions_app.services.holding import pause_session, resume_session
from sessions_app.services.interruption import interrupt_session
from sessions_app.services.queueing import (
    QueuedTurn,
    delete_queued,
    edit_queued,
    move_queued,
    promote_queued,
)
from sessions_app.services.retrying import retry_turn
from sessions_app.services.turns import Prompt, submit_prompt
from sessions_app.services.verification import verify_session
from sessions_app.services.waits import Confirmation, confirm_call
from tests.factories import WORKER_TOKEN, Cast, delta, make_session

WORK = ["step", "text", "call", "ask", "ask", "wait", "wait", "done", "fail", "leave"]
pick = st.integers(0, 1_000)


class TurnMachine(RuleBasedStateMachine):
    """Each history starts from the same fresh session and is undone at its end.

    Undone, its rows can be pruned. Left in one long transaction, they slow the next histories down.
    """

    cast: Cast
    access: Access
    session: Session

    def __init__(self) -> None:
        super().__init__()
        self.leases: list[Lease] = []
        self.accepted = 0
        self.written: set[tuple[str, ...]] = set()
        self.history = transaction.atomic()
        self.history.__enter__()

    # ------------------------------------------------------------------------- people

    @rule(delivery=st.sampled_from(["queue", "queue", "steer"]), resume=st.booleans())
    def send(self, delivery: str, resume: bool) -> None:
        prompt = Prompt(
            content=f"prompt {self.accepted}", delivery=delivery, resume=resume, draft_revision=0
        )
        with suppress(Conflict):
            submit_prompt(access=self.access, session_id=self.session.pk, prompt=prompt)
            self.accepted += 1

    @rule()
    def pause(self) -> None:
        with suppress(Conflict):
            assert pause_session(access=self.access, session_id=self.session.pk).is_paused

    @rule()
    def resume(self) -> None:
        with suppress(Conflict):
            assert not resume_session(access=self.access, session_id=self.session.pk).is_paused

    @rule()
    def stop(self) -> None:
        had = self.seen.row.started_turn_id is not None
        stopped = interrupt_session(access=self.access, session_id=self.session.pk)
        assert stopped.changed == had

    @rule(which=pick, what=st.sampled_from(["delete", "edit", "promote", "move"]), to=pick)
    def touch_the_queue(self, which: int, what: str, to: int) -> None:
        queue = list_queue(access=self.access, session_id=self.session.pk)
        if not queue.turns:
            return
        turn = queue.turns[which % len(queue.turns)]
        queued = QueuedTurn(self.session.pk, turn.pk, queue.version)
        if what == "move":
            position = to % len(queue.turns) + 1
            moved = move_queued(access=self.access, queued=queued, position=position)
            assert {each.pk for each in moved.turns} == {each.pk for each in queue.turns}
        else:
            command: Any = {
                "delete": delete_queued,
                "edit": edit_queued,
                "promote": promote_queued,
            }[what]
            command(access=self.access, queued=queued)

    @rule(which=pick)
    def touch_a_turn_with_a_stale_version(self, which: int) -> None:
        turns = self.seen.turns
        if turns:
            turn = turns[which % len(turns)]
            stale = QueuedTurn(self.session.pk, turn.pk, self.seen.row.queue_version + 1)
            with pytest.raises(Conflict):
                delete_queued(access=self.access, queued=stale)

    @rule()
    def retry(self) -> None:
        with suppress(Conflict):
            if self.seen.turns:
                retry_turn(access=self.access, session_id=self.session.pk)
                self.accepted += 1

    @rule(which=pick, allow=st.booleans())
    def decide(self, which: int, allow: bool) -> None:
        waits = list(self.session.waits.order_by("event_seq"))
        if not waits:
            return
        wait = waits[which % len(waits)]
        decide = partial(
            confirm_call,
            access=self.access,
            session_id=self.session.pk,
            confirmation=Confirmation(wait.event_id, allow=allow),
        )
        if wait.status == WaitStatus.OPEN:
            decide()
        else:
            with pytest.raises(Conflict, match=r"already_decided|wait_closed"):
                decide()

    @rule(really=st.integers(0, 9))
    def cancel(self, really: int) -> None:
        if not really:
            cancel_session(access=self.cast.access("owner"), session_id=self.session.pk)

    # ------------------------------------------------------------------------ workers

    @rule()
    def claim(self) -> None:
        row = self.seen.row
        claimed = attempts.claim_turn(worker="w", token=WORKER_TOKEN)
        if claimed is None:
            assert row.ready_at is None or row.ready_at > now() - timedelta(seconds=1)
            return
        assert claimed.lease.session_id == self.session.pk
        assert not row.is_paused
        self.leases.append(claimed.lease)

    @rule(which=pick, what=st.sampled_from(WORK))
    def work(self, which: int, what: str) -> None:
        if not self.leases:
            return
        lease = self.leases[which % len(self.leases)]
        if self.seen.row.live_attempt_id == lease.attempt_id:
            self._write(lease, what)
        else:
            with pytest.raises(LeaseLost):
                self._write(lease, what)
            assert written_rows(self.session) == self.written

    @rule(which=pick)
    def say_quiet(self, which: int) -> None:
        if self.leases:
            lease = self.leases[which % len(self.leases)]
            if self.seen.row.live_attempt_id != lease.attempt_id:
                attempts.acknowledge_quiet(lease=lease)

    @rule()
    def let_time_pass(self) -> None:
        """Every lease runs out, and what is not quiet is now."""
        gone = Now() - timedelta(seconds=1)
        Attempt.objects.filter(session=self.session).update(lease_expires_at=gone)
        Session.objects.filter(pk=self.session.pk, quiet_at__isnull=False).update(quiet_at=gone)
        later = Session.objects.filter(pk=self.session.pk, ready_at__gt=Now())
        later.update(ready_at=gone)
        attempts.reap_expired(at=now())

    def _write(self, lease: Lease, what: str) -> None:
        match what:
            case "step":
                attempts.open_step(lease=lease, step=1)
            case "text":
                attempts.record(lease=lease, drafts=[delta("words ")])
            case "call":
                attempts.record(lease=lease, drafts=[call()])
            case "ask":
                attempts.record_ask(lease=lease, drafts=[call("ask")])
            case "wait":
                is_open = bool(self.seen.open_waits)
                assert attempts.suspend_turn(lease=lease) == is_open
            case "done":
                attempts.finish_turn(lease=lease, outcome=Completed())
            case "fail":
                attempts.finish_turn(lease=lease, outcome=Failed("provider_down", "It is down."))
            case "leave":
                attempts.hand_over(lease=lease)

    # ---------------------------------------------------------------------- the rules

    @invariant()
    def every_rule_holds(self) -> None:
        """Where no row was written since the last look, what held then holds still."""
        written = written_rows(self.session)
        if written == self.written:
            return
        self.written = written
        self.seen = look(self.session)
        for holds in RULES:
            holds(self, self.seen)

    def teardown(self) -> None:
        try:
            self._come_to_the_end()
        finally:
            transaction.set_rollback(True)
            self.history.__exit__(None, None, None)

    def _come_to_the_end(self) -> None:
        """Left alone with one worker, everything that was accepted comes to its end."""
        with suppress(Conflict):
            resume_session(access=self.access, session_id=self.session.pk)
        for wait in self.session.waits.filter(status=WaitStatus.OPEN):
            confirm_call(
                access=self.access,
                session_id=self.session.pk,
                confirmation=Confirmation(wait.event_id, allow=True),
            )
        self.let_time_pass()
        while (claimed := attempts.claim_turn(worker="w", token=WORKER_TOKEN)) is not None:
            attempts.finish_turn(lease=claimed.lease, outcome=Completed())
        statuses = set(self.session.turns.values_list("status", flat=True))
        assert statuses <= TERMINAL_TURN
        self.every_rule_holds()
        assert not self.seen.row.is_working


# ------------------------------------------------------------------------------- what must hold


@dataclass(frozen=True)
class Seen:
    """What the rows of a session show after a step."""

    row: Session
    turns: list[Turn]
    running: list[Attempt]
    open_waits: list[Wait]

    @property
    def started(self) -> Turn | None:
        pk = self.row.started_turn_id
        return next((turn for turn in self.turns if turn.pk == pk), None)


def look(session: Session) -> Seen:
    return Seen(
        row=Session.objects.get(pk=session.pk),
        turns=list(Turn.objects.filter(session=session).order_by("number")),
        running=list(Attempt.objects.filter(session=session, status=AttemptStatus.RUNNING)),
        open_waits=list(
            Wait.objects.filter(session=session, status=WaitStatus.OPEN).order_by("event_seq")
        ),
    )


def log_and_rows_agree(machine: TurnMachine, seen: Seen) -> None:
    assert verify_session(session_id=seen.row.pk) == []


def one_attempt_lives_and_one_turn_is_started(machine: TurnMachine, seen: Seen) -> None:
    row = seen.row
    live = [attempt.pk for attempt in seen.running]
    assert live == ([row.live_attempt_id] if row.live_attempt_id else [])
    started = [turn.pk for turn in seen.turns if turn.status in STARTED_UNFINISHED]
    assert started == ([row.started_turn_id] if row.started_turn_id else [])


def what_may_run_is_ready_and_nothing_else(machine: TurnMachine, seen: Seen) -> None:
    row = seen.row
    has_queue = any(turn.status == TurnStatus.QUEUED for turn in seen.turns)
    may_run = seen.started.may_be_claimed if seen.started else has_queue
    is_open = not row.is_paused and row.status != "terminated"
    assert (row.ready_at is not None) == (may_run and is_open)
    if row.ready_at and row.quiet_at and row.quiet_at > now():
        assert row.ready_at >= row.quiet_at


def only_a_started_turn_waits_and_the_session_says_for_what(
    machine: TurnMachine, seen: Seen
) -> None:
    row, waits = seen.row, seen.open_waits
    assert {wait.turn_id for wait in waits} <= {row.started_turn_id}
    if seen.started and seen.started.status == TurnStatus.WAITING and waits:
        event_ids = [wait.event_id for wait in waits]
        assert row.stop_reason == {"type": "requires_action", "event_ids": event_ids}
    else:
        assert (row.stop_reason or {}).get("type") != "requires_action"


def nothing_accepted_is_lost(machine: TurnMachine, seen: Seen) -> None:
    assert len(seen.turns) == machine.accepted


RULES: list[Callable[[TurnMachine, Seen], None]] = [
    log_and_rows_agree,
    one_attempt_lives_and_one_turn_is_started,
    what_may_run_is_ready_and_nothing_else,
    only_a_started_turn_waits_and_the_session_says_for_what,
    nothing_accepted_is_lost,
]

# Table → the column that names the session.
TABLES = {
    Session: "id",
    Turn: "session_id",
    Attempt: "session_id",
    Wait: "session_id",
    Event: "session_id",
}
# PostgreSQL's own mark of who wrote a row version, and with which statement.
WRITTEN = " UNION ALL ".join(
    f"SELECT '{table._meta.db_table}', ctid::text, xmin::text, cmin::text"
    f" FROM {table._meta.db_table} WHERE {column} = %(session)s"
    for table, column in TABLES.items()
)


def written_rows(session: Session) -> set[tuple[str, ...]]:
    """One mark for each row of the session; another after each write, equal where none was."""
    with connection.cursor() as cursor:
        cursor.execute(WRITTEN, {"session": session.pk})
        return set(cursor.fetchall())


def call(permission: str = "allow") -> Draft:
    payload = {
        "name": "probe.append",
        "input": {"line": "x"},
        "call_id": "call_1",
        "step": 1,
        "evaluated_permission": permission,
        "repeatable": False,
    }
    return Draft("agent.tool_use", payload)


def run_machine(cast: Cast, examples: int) -> None:
    given = {"cast": cast, "access": cast.access("member"), "session": make_session(cast)}
    run_state_machine_as_test(
        type("Machine", (TurnMachine,), given),
        settings=settings(
            max_examples=examples,
            stateful_step_count=15,
            phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking takes minutes
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_ten_random_histories_break_no_rule(cast: Cast) -> None:
    run_machine(cast, 10)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_200_random_histories_break_no_rule(cast: Cast) -> None:
    run_machine(cast, 200)


@pytest.mark.proof
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("shard", range(4))
def test_20000_random_histories_break_no_rule(cast: Cast, shard: int) -> None:
    """Each shard draws histories of its own, so that several processes can share them."""
    run_machine(cast, 5_000)
