"""A prompt becomes a turn, an attempt runs it, it ends once; rows and log agree throughout."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection

from core.clock import now
from core.errors import Conflict, DomainError, Forbidden, InvalidInput, NotFound
from sessions_app import eventlog
from sessions_app.domain.events import DELTA_TYPES
from sessions_app.models import Session, Turn
from sessions_app.services import attempts
from sessions_app.services.archiving import archive_session, delete_session, unarchive_session
from sessions_app.services.attempts import Completed, Failed, LeaseLost
from sessions_app.services.interruption import interrupt_session
from sessions_app.services.turns import Prompt, submit_prompt
from sessions_app.services.verification import verify_session
from tests.factories import WORKER_TOKEN, Cast, claim, delta, expire, make_session, message, send


def types_of(session: Session) -> list[str]:
    return [e.type for e in eventlog.read_after(session_id=session.pk, after=0, limit=1000)]


def test_a_turn_runs_from_prompt_to_idle(cast: Cast) -> None:
    session = make_session(cast, title="Harbour survey")
    receipt = send(cast, session, "Hello there")
    lease = claim().lease
    attempts.open_step(lease=lease, step=1)
    attempts.record(lease=lease, drafts=[delta("Hi "), delta("you")])
    attempts.record(lease=lease, drafts=[message("Hi you")])
    attempts.finish_turn(lease=lease, outcome=Completed())

    assert types_of(session) == [
        "session.created",
        "user.message",
        "turn.queued",
        "turn.started",
        "session.status_running",
        "attempt.started",
        "step.checkpoint",
        "agent.message_delta",
        "agent.message_delta",
        "agent.message",
        "attempt.ended",
        "turn.completed",
        "session.status_idle",
    ]
    session.refresh_from_db()
    assert (session.status, session.message_count, session.preview_text) == ("idle", 2, "Hi you")
    assert session.stop_reason == {"type": "end_turn"}
    assert not session.is_working
    assert receipt.seq == 2
    assert verify_session(session_id=session.pk) == []


def test_the_next_queued_turn_starts_without_an_idle_between(cast: Cast) -> None:
    session = make_session(cast)
    send(cast, session, "one")
    send(cast, session, "two")
    first = claim().lease
    assert attempts.claim_turn(worker="w", token=first.token) is None
    attempts.finish_turn(lease=first, outcome=Completed())
    second = claim().lease
    assert second.turn_id != first.turn_id
    attempts.finish_turn(lease=second, outcome=Failed("provider_unavailable", "It was away."))
    assert types_of(session).count("session.status_idle") == 1
    assert verify_session(session_id=session.pk) == []
    session.refresh_from_db()
    assert session.stop_reason["error"]["code"] == "provider_unavailable"


def test_stop_fences_at_once_seals_the_text_and_closes_open_calls(cast: Cast) -> None:
    session = make_session(cast)
    send(cast, session)
    send(cast, session, "next")
    lease = claim().lease
    attempts.record(lease=lease, drafts=[delta("partial ")])
    receipt = interrupt_session(access=cast.access("second_member"), session_id=session.pk)
    assert receipt.changed
    with pytest.raises(LeaseLost):
        attempts.record(lease=lease, drafts=[delta("late")])
    with pytest.raises(LeaseLost):
        attempts.finish_turn(lease=lease, outcome=Completed())
    sealed = next(
        e.data
        for e in eventlog.read_after(session_id=session.pk, after=0, limit=100)
        if e.type == "agent.message"
    )
    assert sealed["interrupted"] is True
    assert sealed["content"][0]["text"] == "partial "
    # The next turn waits until the old attempt is quiet.
    assert attempts.claim_turn(worker="w", token=lease.token) is None
    attempts.acknowledge_quiet(lease=lease)
    assert claim().lease.turn_id != lease.turn_id
    assert verify_session(session_id=session.pk) == []


def test_stop_with_nothing_to_stop_writes_nothing_and_says_so(cast: Cast) -> None:
    session = make_session(cast)
    before = types_of(session)
    assert not interrupt_session(access=cast.access("member"), session_id=session.pk).changed
    assert types_of(session) == before


def test_a_lost_worker_is_replaced_and_the_third_loss_fails_the_turn(cast: Cast) -> None:
    session = make_session(cast)
    send(cast, session)
    for loss in (1, 2, 3):
        lease = claim().lease
        assert lease.attempt == loss
        expire(lease.attempt_id)
        assert attempts.reap_expired(at=now()) == 1
        with pytest.raises(LeaseLost):
            attempts.record(lease=lease, drafts=[delta("late")])
    turn = Turn.objects.get()
    assert turn.status == "failed"
    assert turn.error["code"] == "worker_lost"
    assert verify_session(session_id=session.pk) == []


def test_a_turn_on_its_last_chance_is_left_to_whoever_has_no_other(cast: Cast) -> None:
    risky = make_session(cast)
    send(cast, risky)
    for _ in range(2):
        expire(claim().lease.attempt_id)
        attempts.reap_expired(at=now())
    send(cast, make_session(cast))
    other = attempts.claim_turn(worker="test", token=WORKER_TOKEN, may_risk=False)
    assert other is not None
    assert not other.is_last_chance
    assert other.lease.session_id != risky.pk
    assert attempts.claim_turn(worker="test", token=WORKER_TOKEN, may_risk=False) is None
    last = claim()
    assert (last.lease.session_id, last.is_last_chance) == (risky.pk, True)


def test_progress_forgets_earlier_losses(cast: Cast) -> None:
    send(cast, make_session(cast))
    for step in (1, 2, 3, 4):
        lease = claim().lease
        attempts.open_step(lease=lease, step=step)
        expire(lease.attempt_id)
        attempts.reap_expired(at=now())
    assert Turn.objects.get().status == "recovering"


def test_an_orderly_hand_over_is_not_a_loss(cast: Cast) -> None:
    session = make_session(cast)
    send(cast, session)
    for _ in range(5):
        attempts.hand_over(lease=claim().lease)
    turn = Turn.objects.get()
    assert (turn.status, turn.losses, turn.attempt_count) == ("recovering", 0, 5)
    session.refresh_from_db()
    assert session.status == "rescheduling"


def test_a_lease_that_ran_out_is_prolonged_until_its_attempt_has_been_ended(cast: Cast) -> None:
    send(cast, make_session(cast))
    lease = claim().lease
    expire(lease.attempt_id)
    assert attempts.heartbeat(leases=[lease]).alive == {lease.attempt_id}
    assert attempts.reap_expired(at=now()) == 0
    expire(lease.attempt_id)
    assert attempts.reap_expired(at=now()) == 1
    assert attempts.heartbeat(leases=[lease]).fenced == {lease.attempt_id}


def test_what_ran_out_while_the_database_hung_is_left_alone(cast: Cast) -> None:
    send(cast, make_session(cast))
    lease = claim().lease
    asked_at = now() - timedelta(seconds=5)
    expire(lease.attempt_id)  # a second ago
    assert attempts.reap_expired(at=asked_at) == 0


def test_a_claim_whose_answer_was_lost_is_found_again(cast: Cast) -> None:
    send(cast, make_session(cast))
    claimed = claim()
    token = claimed.lease.token
    assert attempts.find_claim(token=token, known=[]) == claimed
    assert attempts.find_claim(token=token, known=[claimed.lease.attempt_id]) is None
    assert attempts.find_claim(token=uuid4(), known=[]) is None
    attempts.hand_over(lease=claimed.lease)
    assert attempts.find_claim(token=token, known=[]) is None


def test_groups_write_the_live_and_name_the_fenced(cast: Cast) -> None:
    sessions = [make_session(cast) for _ in range(3)]
    for session in sessions:
        send(cast, session)
    leases = [claim().lease for _ in sessions]
    interrupt_session(access=cast.access("member"), session_id=leases[1].session_id)
    refused = eventlog.refused_writes()
    result = attempts.record_groups(groups=[(lease, [delta("a"), delta("b")]) for lease in leases])
    assert result.written == {leases[0].attempt_id, leases[2].attempt_id}
    assert result.fenced == {leases[1].attempt_id}
    assert eventlog.refused_writes() == refused + 1
    with pytest.raises(LeaseLost):
        attempts.record(lease=leases[1], drafts=[delta("late")])
    assert eventlog.refused_writes() == refused + 2
    assert all(verify_session(session_id=session.pk) == [] for session in sessions)


@pytest.mark.parametrize("stale_first", [True, False])
def test_the_text_of_a_stale_attempt_fails_no_other_in_its_group(
    cast: Cast, stale_first: bool
) -> None:
    session = make_session(cast)
    send(cast, session)
    stale = claim().lease
    expire(stale.attempt_id)
    attempts.reap_expired(at=now())
    live = claim().lease
    groups = [(stale, [delta("late")]), (live, [delta("a"), delta("b")])]
    result = attempts.record_groups(groups=groups if stale_first else groups[::-1])
    assert (result.written, result.fenced) == ({live.attempt_id}, {stale.attempt_id})
    written = eventlog.read_after(session_id=session.pk, after=0, limit=100, types=DELTA_TYPES)
    assert [(event.attempt, event.data["text"]) for event in written] == [(2, "a"), (2, "b")]
    assert verify_session(session_id=session.pk) == []


def test_a_working_session_is_archived_only_by_a_person_who_confirms(cast: Cast) -> None:
    session = make_session(cast)
    send(cast, session)
    send(cast, session, "queued")
    claim()
    for by, stop in (("member", False), ("workspace_key", True)):
        with pytest.raises(Conflict, match="target_working"):
            archive_session(access=cast.access(by), session_id=session.pk, stop=stop)
    archive_session(access=cast.access("member"), session_id=session.pk, stop=True)
    with pytest.raises(Conflict, match="session_archived"):
        send(cast, session)
    restored = unarchive_session(access=cast.access("member"), session_id=session.pk)
    assert not restored.is_working
    assert attempts.claim_turn(worker="w", token=restored.pk) is None
    assert verify_session(session_id=session.pk) == []


def test_archiving_twice_writes_one_event(cast: Cast) -> None:
    session = make_session(cast)
    for _ in range(2):
        archive_session(access=cast.access("member"), session_id=session.pk)
    assert types_of(session).count("session.archived") == 1


def test_deleting_erases_the_log(cast: Cast) -> None:
    session = make_session(cast)
    with pytest.raises(Forbidden):
        delete_session(access=cast.access("second_member"), session_id=session.pk)
    delete_session(access=cast.access("member"), session_id=session.pk)
    assert types_of(session) == []
    with pytest.raises(NotFound):
        send(cast, session)


@pytest.mark.parametrize(
    "text", ["", "  \n", "\u200b\u2060", "\u3164", "a\x00b", "\ud800", "x" * 100_001]
)
def test_a_bad_prompt_is_refused_and_nothing_is_written(cast: Cast, text: str) -> None:
    session = make_session(cast)
    before = types_of(session)
    with pytest.raises(DomainError) as refusal:
        send(cast, session, text)
    assert refusal.value.param == "content"
    assert types_of(session) == before


def test_an_unknown_model_is_refused_before_anything_is_written(cast: Cast) -> None:
    from sessions_app.services.model_settings import RequestedSettings

    session = make_session(cast)
    prompt = Prompt(content="Hi", requested=RequestedSettings(model="nope"))
    with pytest.raises(Exception, match="model_unavailable"):
        submit_prompt(access=cast.access("member"), session_id=session.pk, prompt=prompt)
    assert types_of(session) == ["session.created"]


def test_an_unknown_delivery_is_refused(cast: Cast) -> None:
    session = make_session(cast)
    with pytest.raises(InvalidInput, match="unsupported_delivery"):
        submit_prompt(
            access=cast.access("member"),
            session_id=session.pk,
            prompt=Prompt(content="Hi", delivery="later"),
        )


def test_stopping_reads_the_text_of_the_message_under_way_and_no_other(cast: Cast) -> None:
    """The session is held meanwhile: what is read must not grow with the turn."""
    session = make_session(cast)
    send(cast, session)
    lease = claim().lease
    for step in (1, 2):
        attempts.open_step(lease=lease, step=step)
        attempts.record(lease=lease, drafts=[delta("earlier ", f"msg_{step:032}")] * 50)
    attempts.record(lease=lease, drafts=[message("earlier", f"msg_{2:032}"), delta("now ")])
    attempts.record(lease=lease, drafts=[delta("here")])
    read: list[int] = []
    with connection.execute_wrapper(_count_deltas(read)):
        interrupt_session(access=cast.access("member"), session_id=session.pk)
    assert read == [2]
    log = eventlog.read_after(session_id=session.pk, after=0, limit=200, types=["agent.message"])
    assert [event.data["content"][0]["text"] for event in log] == ["earlier", "now here"]


def test_text_of_a_request_that_was_given_up_is_not_sealed(cast: Cast) -> None:
    session = make_session(cast)
    send(cast, session)
    lease = claim().lease
    attempts.open_step(lease=lease, step=1)
    attempts.record(lease=lease, drafts=[delta("given up")])
    attempts.open_step(lease=lease, step=1)
    interrupt_session(access=cast.access("member"), session_id=session.pk)
    assert "agent.message" not in types_of(session)


def _count_deltas(read: list[int]) -> Any:
    """Notes how many deltas each read of them gave."""

    def run(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        result = execute(sql, params, many, context)
        if "FROM sessions_app_event" in sql and "agent.message_delta" in params.get("types", ()):
            read.append(context["cursor"].rowcount)
        return result

    return run
