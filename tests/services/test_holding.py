"""Pause and Resume: the same turn goes on, nothing is queued by them, and nothing is lost."""

from __future__ import annotations

import pytest

from core.errors import Conflict, Forbidden, NotFound
from sessions_app import eventlog
from sessions_app.domain.holds import Mark, is_held
from sessions_app.models import Session, Turn
from sessions_app.services import attempts
from sessions_app.services.attempts import Completed
from sessions_app.services.cancelling import cancel_session
from sessions_app.services.holding import (
    pause_session,
    pause_workspace,
    resume_session,
    resume_workspace,
)
from sessions_app.services.interruption import interrupt_session
from sessions_app.services.turns import Prompt, submit_prompt
from sessions_app.services.verification import verify_session
from tests.factories import WORKER_TOKEN, Cast, claim, make_session, send


def pause(cast: Cast, session: Session) -> Session:
    return pause_session(access=cast.access("member"), session_id=session.pk)


def resume(cast: Cast, session: Session) -> Session:
    return resume_session(access=cast.access("member"), session_id=session.pk)


def try_claim() -> attempts.Claim | None:
    return attempts.claim_turn(worker="w", token=WORKER_TOKEN)


def count(session: Session, kind: str) -> int:
    events = eventlog.read_after(session_id=session.pk, after=0, limit=1000)
    return sum(event.type == kind for event in events)


def test_the_same_turn_goes_on_as_a_new_attempt(cast: Cast) -> None:
    session = make_session(cast)
    send(cast, session, "one")
    lease = claim().lease
    assert pause(cast, session).is_paused
    assert attempts.heartbeat(leases=[lease]).held == {lease.attempt_id}
    attempts.hand_over(lease=lease)
    turn = Turn.objects.get()
    assert (turn.status, turn.losses) == ("recovering", 0)
    assert try_claim() is None
    resume(cast, session)
    again = claim().lease
    assert (again.turn_id, again.attempt) == (turn.pk, 2)
    attempts.finish_turn(lease=again, outcome=Completed())
    assert verify_session(session_id=session.pk) == []


def test_prompts_to_a_paused_session_are_held_and_released_once(cast: Cast) -> None:
    """BR-040."""
    session = make_session(cast)
    pause(cast, session)
    receipts = [send(cast, session, text) for text in ("a", "b", "c")]
    assert all(receipt.held for receipt in receipts)
    session.refresh_from_db()
    assert not session.is_working
    assert try_claim() is None
    resume(cast, session)
    resume(cast, session)
    started = []
    while (claimed := try_claim()) is not None:
        started.append(Turn.objects.get(pk=claimed.lease.turn_id).preview_text)
        attempts.finish_turn(lease=claimed.lease, outcome=Completed())
    assert started == ["a", "b", "c"]
    assert verify_session(session_id=session.pk) == []


def test_repeating_either_writes_nothing(cast: Cast) -> None:
    """BR-042."""
    session = make_session(cast)
    for _ in range(3):
        pause(cast, session)
    for _ in range(3):
        resume(cast, session)
    assert (count(session, "session.paused"), count(session, "session.resumed")) == (1, 1)


def test_a_send_may_release_what_is_held(cast: Cast) -> None:
    session = make_session(cast)
    pause(cast, session)
    prompt = Prompt(content="now", resume=True)
    receipt = submit_prompt(access=cast.access("member"), session_id=session.pk, prompt=prompt)
    assert not receipt.held
    assert claim().lease.session_id == session.pk


def test_a_pause_outlasts_steers_losses_and_stops(cast: Cast) -> None:
    session = make_session(cast)
    send(cast, session, "one")
    lease = claim().lease
    pause(cast, session)
    prompt = Prompt(content="two", delivery="steer")
    access = cast.access("member")
    assert submit_prompt(access=access, session_id=session.pk, prompt=prompt).held
    attempts.acknowledge_quiet(lease=lease)
    assert try_claim() is None
    session.refresh_from_db()
    assert session.stop_reason == {"type": "paused"}
    interrupt_session(access=access, session_id=session.pk)
    assert try_claim() is None
    resume(cast, session)
    assert Turn.objects.get(pk=claim().lease.turn_id).preview_text == "two"
    assert verify_session(session_id=session.pk) == []


def test_a_stop_of_what_was_paused_in_mid_turn_ends_it(cast: Cast) -> None:
    session = make_session(cast)
    send(cast, session, "one")
    lease = claim().lease
    pause(cast, session)
    attempts.hand_over(lease=lease)
    interrupt_session(access=cast.access("member"), session_id=session.pk)
    assert Turn.objects.get().status == "cancelled"
    resume(cast, session)
    assert try_claim() is None
    session.refresh_from_db()
    assert not session.is_working


def test_a_workspace_is_held_as_a_whole(cast: Cast) -> None:
    busy, idle = make_session(cast), make_session(cast)
    send(cast, busy, "one")
    owner = cast.access("owner")
    pause_workspace(access=owner, workspace_id=cast.workspace.pk)
    assert send(cast, idle, "two").held
    assert try_claim() is None
    busy.refresh_from_db()
    assert busy.is_paused
    resume(cast, busy)
    assert claim().lease.session_id == busy.pk
    resume_workspace(access=owner, workspace_id=cast.workspace.pk)
    assert claim().lease.session_id == idle.pk
    assert verify_session(session_id=idle.pk) == []


@pytest.mark.parametrize("role", ["viewer", "second_member"])
def test_only_an_administrator_holds_a_workspace(cast: Cast, role: str) -> None:
    with pytest.raises(Forbidden):
        pause_workspace(access=cast.access(role), workspace_id=cast.workspace.pk)
    with pytest.raises(NotFound):
        pause_workspace(access=cast.access("outsider"), workspace_id=cast.workspace.pk)


def test_a_cancelled_session_is_neither_held_nor_released(cast: Cast) -> None:
    session = make_session(cast)
    send(cast, session, "one")
    send(cast, session, "two")
    lease = claim().lease
    cancelled = cancel_session(access=cast.access("owner"), session_id=session.pk)
    assert cancelled.status == "terminated"
    assert set(session.turns.values_list("status", flat=True)) == {"cancelled"}
    assert attempts.heartbeat(leases=[lease]).fenced == {lease.attempt_id}
    for command in (pause, resume):
        with pytest.raises(Conflict, match="session_terminated"):
            command(cast, session)
    with pytest.raises(Conflict, match="session_terminated"):
        send(cast, session, "three")
    cancel_session(access=cast.access("owner"), session_id=session.pk)
    assert count(session, "session.status_terminated") == 1
    assert verify_session(session_id=session.pk) == []


@pytest.mark.parametrize(
    ("marks", "held"),
    [
        ([Mark(), Mark(), Mark()], False),
        ([Mark(pause=1), Mark(), Mark()], True),
        ([Mark(pause=1, resume=2), Mark(), Mark()], False),
        ([Mark(), Mark(pause=1), Mark()], True),
        ([Mark(resume=2), Mark(pause=1), Mark()], False),
        ([Mark(resume=1), Mark(pause=2), Mark()], True),
        ([Mark(), Mark(resume=3), Mark(pause=2)], False),
        ([Mark(pause=5), Mark(resume=6), Mark()], True),
        ([Mark(pause=5, resume=4), Mark(resume=6), Mark(pause=3)], True),
    ],
)
def test_a_resume_frees_from_pauses_at_its_place_and_above(marks: list[Mark], held: bool) -> None:
    assert is_held(marks) is held
