"""Random commands at a parent and its children: results come once, waits end, cancels reach all.

The rules for one session are in `test_turn_machine`; these are the ones between sessions.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.db.models.functions import Now
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from core.clock import now
from core.errors import Conflict, DomainError
from orgs.access import Access
from sessions_app import eventlog
from sessions_app.domain.events import Draft
from sessions_app.domain.vocabulary import TERMINAL_TURN, WaitKind, WaitStatus
from sessions_app.models import Attempt, Session, Turn, Wait
from sessions_app.services import attempts
from sessions_app.services.archiving import archive_session, delete_session, unarchive_session
from sessions_app.services.attempts import Completed, Failed, Lease, LeaseLost
from sessions_app.services.calls import Call
from sessions_app.services.cancelling import cancel_session
from sessions_app.services.children.awaiting import wait_for_children
from sessions_app.services.children.spawning import NewChild, spawn_child
from sessions_app.services.holding import pause_session, resume_session
from sessions_app.services.interruption import interrupt_session
from sessions_app.services.settling import expire_waits
from sessions_app.services.turns import Prompt, submit_prompt
from sessions_app.services.verification import verify_session
from tests.factories import WORKER_TOKEN, Cast, make_session
from tests.services.test_turn_machine import call, pick

WORK = ["start", "start", "start", "await", "await", "wait", "wait", "done", "done", "fail"]
FAMILY_MAX = 8


class FamilyMachine(RuleBasedStateMachine):
    cast: Cast
    access: Access
    top: Session

    def __init__(self) -> None:
        super().__init__()
        self.leases: list[Lease] = []
        self.history = transaction.atomic()
        self.history.__enter__()

    # ------------------------------------------------------------------------- people

    @rule(which=pick, steer=st.booleans())
    def send(self, which: int, steer: bool) -> None:
        prompt = Prompt(content="Go.", delivery="steer" if steer else "queue")
        with suppress(Conflict):
            submit_prompt(access=self.access, session_id=self.one(which).pk, prompt=prompt)

    @rule(which=pick)
    def stop(self, which: int) -> None:
        interrupt_session(access=self.access, session_id=self.one(which).pk)

    @rule(which=pick, hold=st.booleans())
    def pause_or_resume(self, which: int, hold: bool) -> None:
        command = pause_session if hold else resume_session
        with suppress(Conflict):
            command(access=self.access, session_id=self.one(which).pk)

    @rule(which=pick, back=st.booleans())
    def archive_or_restore(self, which: int, back: bool) -> None:
        session = self.one(which)
        with suppress(Conflict):
            if back:
                unarchive_session(access=self.access, session_id=session.pk)
            else:
                archive_session(access=self.access, session_id=session.pk, stop=True)

    @rule(which=pick, really=st.integers(0, 4))
    def cancel_or_delete(self, which: int, really: int) -> None:
        session = self.one(which)
        owner = self.cast.access("owner")
        if really == 0:
            cancel_session(access=owner, session_id=session.pk)
        elif really == 1 and session.pk != self.top.pk:
            delete_session(access=owner, session_id=session.pk, stop=True)

    # ------------------------------------------------------------------------ workers

    @rule()
    def claim(self) -> None:
        if (claimed := attempts.claim_turn(worker="w", token=WORKER_TOKEN)) is not None:
            self.leases.append(claimed.lease)

    @rule(which=pick, what=st.sampled_from(WORK))
    def work(self, which: int, what: str) -> None:
        if self.leases:
            with suppress(LeaseLost):
                self._write(self.leases[which % len(self.leases)], what)

    @rule()
    def let_time_pass(self) -> None:
        gone = Now() - timedelta(seconds=1)
        Attempt.objects.update(lease_expires_at=gone)
        Session.objects.filter(quiet_at__isnull=False).update(quiet_at=gone)
        Session.objects.filter(ready_at__gt=Now()).update(ready_at=gone)
        attempts.reap_expired(at=now())

    @rule()
    def let_waits_expire(self) -> None:
        Wait.objects.filter(expires_at__isnull=False).update(expires_at=Now())
        expire_waits()

    def _write(self, lease: Lease, what: str) -> None:
        match what:
            case "start":
                self._effect(lease, self._start)
            case "await":
                self._effect(lease, self._await)
            case "wait":
                attempts.suspend_turn(lease=lease)
            case "done":
                attempts.finish_turn(lease=lease, outcome=Completed())
            case "fail":
                attempts.finish_turn(lease=lease, outcome=Failed("provider_down", "It is down."))

    def _effect(self, lease: Lease, do: Any) -> None:
        (seq,) = attempts.record(lease=lease, drafts=[call()])
        made = Call(lease.session_id, seq, "call_1", "session.call")
        attempts.record_effect(
            lease=lease, call=made, effect=lambda parent, turn: do(made, parent, turn)
        )

    def _start(self, made: Call, parent: Session, turn: Turn) -> Draft:
        if Session.objects.count() >= FAMILY_MAX:
            raise Conflict("enough", "The family is large enough.")
        child = spawn_child(
            parent, turn=turn, attempt=1, tool_use_id=made.tool_use_id, new=NewChild("Go.")
        )
        return made.result({"session_id": child.public_id})

    def _await(self, made: Call, parent: Session, turn: Turn) -> Draft:
        timeout = 60 if made.tool_use_seq % 2 else None
        return wait_for_children(parent, turn=turn, call=made, named=None, timeout_seconds=timeout)

    def one(self, which: int) -> Session:
        family = list(Session.objects.order_by("pk"))
        return family[which % len(family)]

    # ---------------------------------------------------------------------- the rules

    @invariant()
    def every_log_and_its_rows_agree(self) -> None:
        for pk in Session.objects.values_list("pk", flat=True):
            assert verify_session(session_id=pk) == []

    @invariant()
    def a_child_at_rest_has_reported_and_one_with_work_has_not(self) -> None:
        for child in Session.objects.filter(parent__isnull=False):
            unfinished = child.turns.exclude(status__in=TERMINAL_TURN).exists()
            assert (child.turn_count > child.reported_turns) == unfinished

    @invariant()
    def results_count_up(self) -> None:
        """Never two for the same turn, and the row points at the newest."""
        for child in Session.objects.filter(parent__isnull=False, result_seq__isnull=False):
            events = eventlog.read_after(
                session_id=child.parent_id, after=0, limit=10_000, types=["child.result"]
            )
            own = [e for e in events if e.data["child_id"] == child.public_id]
            turns = [event.data["child_turn_id"] for event in own]
            assert len(turns) == len(set(turns))
            assert own[-1].seq == child.result_seq

    @invariant()
    def an_open_wait_has_somebody_to_wait_for(self) -> None:
        for wait in Wait.objects.filter(status=WaitStatus.OPEN, kind=WaitKind.CHILDREN):
            children = Session.objects.filter(pk__in=wait.request["remaining"])
            assert children
            for child in children:
                assert child.archived_at is None
                assert child.turns.exclude(status__in=TERMINAL_TURN).exists()

    @invariant()
    def below_a_cancelled_session_nothing_lives(self) -> None:
        dead = set(Session.objects.filter(status="terminated").values_list("pk", flat=True))
        for session in Session.objects.all():
            if dead & set(session.ancestor_ids):
                assert session.status == "terminated"

    def teardown(self) -> None:
        try:
            self._come_to_the_end()
        finally:
            transaction.set_rollback(True)
            self.history.__exit__(None, None, None)

    def _come_to_the_end(self) -> None:
        """Released, and with one worker that finishes all: every turn ends, every wait with it."""
        for session in Session.objects.order_by("depth", "pk"):
            with suppress(DomainError):
                unarchive_session(access=self.access, session_id=session.pk)
            with suppress(DomainError):
                resume_session(access=self.access, session_id=session.pk)
        self.let_time_pass()
        while (claimed := attempts.claim_turn(worker="w", token=WORKER_TOKEN)) is not None:
            attempts.finish_turn(lease=claimed.lease, outcome=Completed())
        assert not Turn.objects.exclude(status__in=TERMINAL_TURN).exists()
        assert not Wait.objects.filter(status=WaitStatus.OPEN).exists()
        self.a_child_at_rest_has_reported_and_one_with_work_has_not()


def run_machine(cast: Cast, examples: int) -> None:
    given = {"cast": cast, "access": cast.access("member"), "top": make_session(cast)}
    run_state_machine_as_test(
        type("Machine", (FamilyMachine,), given),
        settings=settings(
            max_examples=examples,
            stateful_step_count=25,
            phases=[Phase.explicit, Phase.reuse, Phase.generate],
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.slow
def test_two_random_families_break_no_rule(cast: Cast) -> None:
    run_machine(cast, 2)


@pytest.mark.slow
def test_20_random_families_break_no_rule(cast: Cast) -> None:
    run_machine(cast, 20)


@pytest.mark.proof
@pytest.mark.timeout(3600)
def test_2000_random_families_break_no_rule(cast: Cast) -> None:
    run_machine(cast, 2_000)
