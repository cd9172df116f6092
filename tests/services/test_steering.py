"""Steer, Stop and what follows: the old attempt writes nothing more, and the new turn waits for
it to be quiet.
"""

from __future__ import annotations

import pytest

from sessions_app import eventlog
from sessions_app.models import Session, Turn
from sessions_app.services import attempts
from sessions_app.services.attempts import Completed, LeaseLost
from sessions_app.services.interruption import interrupt_session
from sessions_app.services.model_settings import RequestedSettings
from sessions_app.services.sessions import SessionChanges, update_session
from sessions_app.services.turns import Prompt, submit_prompt
from sessions_app.services.verification import verify_session
from tests.factories import WORKER_TOKEN, Cast, claim, delta, make_session, send


def steer(cast: Cast, session: Session, text: str) -> object:
    prompt = Prompt(content=text, delivery="steer")
    return submit_prompt(access=cast.access("member"), session_id=session.pk, prompt=prompt)


def statuses(session: Session) -> dict[str, str]:
    return dict(session.turns.values_list("preview_text", "status"))


def try_claim() -> attempts.Claim | None:
    return attempts.claim_turn(worker="w", token=WORKER_TOKEN)


def test_a_steer_supersedes_the_running_turn_and_waits_until_it_is_quiet(cast: Cast) -> None:
    """BR-055, BR-057, BR-058."""
    session = make_session(cast)
    send(cast, session, "count the notes")
    lease = claim().lease
    attempts.open_step(lease=lease, step=1)
    attempts.record(lease=lease, drafts=[delta("Two, three")])
    steer(cast, session, "only those of March")

    assert statuses(session) == {"count the notes": "superseded", "only those of March": "queued"}
    with pytest.raises(LeaseLost):
        attempts.record(lease=lease, drafts=[delta("four")])
    assert try_claim() is None
    attempts.acknowledge_quiet(lease=lease)
    claimed = try_claim()
    assert claimed is not None
    events = eventlog.read_after(session_id=session.pk, after=0, limit=100)
    sealed = [e.data for e in events if e.type == "agent.message"]
    assert [(m["content"][0]["text"], m["interrupted"]) for m in sealed] == [("Two, three", True)]
    kinds = [e.type for e in events]
    assert kinds.index("turn.superseded") < kinds.index("turn.started", 8)
    assert "session.status_idle" not in kinds
    assert verify_session(session_id=session.pk) == []


def test_the_steered_turn_may_start_when_the_lease_of_a_dead_worker_has_run_out(
    cast: Cast,
) -> None:
    session = make_session(cast)
    send(cast, session, "one")
    claim()
    steer(cast, session, "two")
    session.refresh_from_db()
    assert session.quiet_at is not None
    assert session.ready_at == session.quiet_at


def test_steers_go_in_the_order_of_their_acceptance_before_what_is_queued(cast: Cast) -> None:
    """BR-024."""
    session = make_session(cast)
    send(cast, session, "zero")
    lease = claim().lease
    steer(cast, session, "1")
    send(cast, session, "2")
    steer(cast, session, "3")
    attempts.acknowledge_quiet(lease=lease)
    started = []
    while (claimed := try_claim()) is not None:
        started.append(Turn.objects.get(pk=claimed.lease.turn_id).preview_text)
        attempts.finish_turn(lease=claimed.lease, outcome=Completed())
    assert started == ["1", "3", "2"]


def test_a_steer_into_an_idle_session_is_a_send(cast: Cast) -> None:
    session = make_session(cast)
    steer(cast, session, "first of all")
    assert claim().lease.session_id == session.pk


def test_after_a_stop_the_next_prompt_waits_for_the_old_attempt_too(cast: Cast) -> None:
    """BR-054: with an empty queue at the moment of the Stop."""
    session = make_session(cast)
    send(cast, session, "one")
    lease = claim().lease
    interrupt_session(access=cast.access("member"), session_id=session.pk)
    send(cast, session, "two")
    assert try_claim() is None
    attempts.acknowledge_quiet(lease=lease)
    assert try_claim() is not None


def test_a_late_quiet_word_of_an_older_attempt_frees_nothing(cast: Cast) -> None:
    session = make_session(cast)
    send(cast, session, "one")
    first = claim().lease
    steer(cast, session, "two")
    Session.objects.filter(pk=session.pk).update(ready_at="2026-01-01T00:00Z")
    second = claim().lease
    steer(cast, session, "three")
    attempts.acknowledge_quiet(lease=first)
    assert try_claim() is None
    attempts.acknowledge_quiet(lease=second)
    assert try_claim() is not None


def test_a_steer_while_recovering_replaces_the_turn_at_once(cast: Cast) -> None:
    session = make_session(cast)
    send(cast, session, "one")
    attempts.hand_over(lease=claim().lease)
    steer(cast, session, "two")
    assert statuses(session)["one"] == "superseded"
    assert Turn.objects.get(pk=claim().lease.turn_id).preview_text == "two"
    assert verify_session(session_id=session.pk) == []


def test_settings_changed_in_a_turns_last_step_are_the_next_turns(cast: Cast) -> None:
    session = make_session(cast)
    send(cast, session, "one")
    lease = claim().lease
    attempts.open_step(lease=lease, step=1)
    wanted = SessionChanges(requested=RequestedSettings(model="demo/assistant"))
    update_session(access=cast.access("member"), session_id=session.pk, changes=wanted)
    attempts.finish_turn(lease=lease, outcome=Completed())
    send(cast, session, "two")
    assert claim().settings.model_id == "assistant"
    session.refresh_from_db()
    assert session.checkpoint_settings == {}
