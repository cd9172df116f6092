"""The queue in people's hands, until a worker claims the turn."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.errors import Conflict, Forbidden, InvalidInput, NotFound
from sessions_app import eventlog
from sessions_app.models import ComposerDraft, Session, Turn
from sessions_app.selectors import list_queue
from sessions_app.services import attempts
from sessions_app.services.attempts import Completed, Failed
from sessions_app.services.composer_drafts import save_draft
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
from tests.factories import WORKER_TOKEN, Cast, claim, make_session, send


def texts(cast: Cast, session: Session) -> list[str]:
    queue = list_queue(access=cast.access("member"), session_id=session.pk)
    return [turn.preview_text for turn in queue.turns]


def queued(session: Session, text: str) -> QueuedTurn:
    session.refresh_from_db()
    turn = session.turns.get(preview_text=text)
    return QueuedTurn(session.pk, turn.pk, session.queue_version)


def busy_with(cast: Cast, *prompts: str) -> tuple[Session, attempts.Claim]:
    session = make_session(cast)
    send(cast, session, "running")
    claimed = claim()
    for prompt in prompts:
        send(cast, session, prompt)
    return session, claimed


def test_a_blocked_queue_is_listed_edited_emptied_and_reordered(cast: Cast) -> None:
    """BR-025, BR-032."""
    access = cast.access("member")
    session, running = busy_with(cast, "one", "two", "three")
    delete_queued(access=access, queued=queued(session, "one"))
    moved = move_queued(access=access, queued=queued(session, "three"), position=1)
    assert [turn.preview_text for turn in moved.turns] == ["three", "two"]
    draft = edit_queued(access=access, queued=queued(session, "three"))
    assert draft.text == "three"
    saved = save_draft(
        access=access,
        workspace_id=session.workspace_id,
        session_id=session.pk,
        text="three, but shorter",
        expected_revision=draft.revision,
    )
    send(cast, session, "four")
    prompt = Prompt(content="three, but shorter", draft_revision=saved.revision)
    submit_prompt(access=access, session_id=session.pk, prompt=prompt)
    assert texts(cast, session) == ["three, but shorter", "two", "four"]
    assert ComposerDraft.objects.get().text == ""
    started = []
    attempts.finish_turn(lease=running.lease, outcome=Completed())
    while claimed := attempts.claim_turn(worker="w", token=WORKER_TOKEN):
        started.append(Turn.objects.get(pk=claimed.lease.turn_id).preview_text)
        attempts.finish_turn(lease=claimed.lease, outcome=Completed())
    assert started == ["three, but shorter", "two", "four"]
    events = eventlog.read_after(session_id=session.pk, after=0, limit=200)
    edits = [e.data["replaces"] for e in events if e.type == "turn.edited"]
    assert edits == [Turn.objects.get(preview_text="three").public_id]
    assert verify_session(session_id=session.pk) == []


def test_an_edit_keeps_what_the_person_was_writing(cast: Cast) -> None:
    access = cast.access("member")
    session, _ = busy_with(cast, "one")
    save_draft(
        access=access,
        workspace_id=session.workspace_id,
        session_id=session.pk,
        text="half a thought",
        expected_revision=0,
    )
    draft = edit_queued(access=access, queued=queued(session, "one"))
    assert draft.text == "one\n\nhalf a thought"


def test_a_draft_that_was_emptied_gives_its_place_up(cast: Cast) -> None:
    access = cast.access("member")
    session, _ = busy_with(cast, "one", "two")
    draft = edit_queued(access=access, queued=queued(session, "one"))
    for text in ("", "something else"):
        draft = save_draft(
            access=access,
            workspace_id=session.workspace_id,
            session_id=session.pk,
            text=text,
            expected_revision=draft.revision,
        )
    prompt = Prompt(content="something else", draft_revision=draft.revision)
    submit_prompt(access=access, session_id=session.pk, prompt=prompt)
    assert texts(cast, session) == ["two", "something else"]


def test_a_key_has_no_draft_to_edit_in(cast: Cast) -> None:
    session, _ = busy_with(cast, "one")
    with pytest.raises(Forbidden, match="needs_a_person"):
        edit_queued(access=cast.workspace_key.access, queued=queued(session, "one"))
    assert texts(cast, session) == ["one"]


def test_send_now_keeps_the_turn_and_replaces_the_running_one(cast: Cast) -> None:
    session, running = busy_with(cast, "one", "two")
    wanted = queued(session, "two")
    promote_queued(access=cast.access("member"), queued=wanted)
    assert Turn.objects.get(preview_text="running").status == "superseded"
    assert attempts.claim_turn(worker="w", token=WORKER_TOKEN) is None
    attempts.acknowledge_quiet(lease=running.lease)
    assert claim().lease.turn_id == wanted.turn_id
    assert texts(cast, session) == ["one"]
    assert verify_session(session_id=session.pk) == []


@pytest.mark.parametrize("command", [delete_queued, edit_queued, promote_queued])
def test_a_stale_version_is_refused_with_the_queue_as_it_is(cast: Cast, command: object) -> None:
    session, _ = busy_with(cast, "one", "two")
    seen = queued(session, "one")
    send(cast, session, "three")
    with pytest.raises(Conflict, match="stale_version") as refused:
        command(access=cast.access("member"), queued=seen)  # type: ignore[operator]
    current = refused.value.details["current"]
    assert [turn["preview_text"] for turn in current["data"]] == ["one", "two", "three"]
    assert current["version"] == seen.expected_version + 1
    assert texts(cast, session) == ["one", "two", "three"]


def test_a_claimed_turn_says_so_whatever_the_version(cast: Cast) -> None:
    session = make_session(cast)
    send(cast, session, "one")
    seen = queued(session, "one")
    claim()
    for wanted in (seen, queued(session, "one")):
        with pytest.raises(Conflict, match="turn_started"):
            delete_queued(access=cast.access("member"), queued=wanted)


def test_the_last_queued_prompt_deleted_leaves_nothing_to_claim(cast: Cast) -> None:
    session = make_session(cast)
    send(cast, session, "one")
    delete_queued(access=cast.access("member"), queued=queued(session, "one"))
    session.refresh_from_db()
    assert not session.is_working
    assert attempts.claim_turn(worker="w", token=WORKER_TOKEN) is None
    assert verify_session(session_id=session.pk) == []


def test_who_may_not_control_the_session_reaches_no_queued_turn(cast: Cast) -> None:
    session, _ = busy_with(cast, "one")
    wanted = queued(session, "one")
    with pytest.raises(Forbidden):
        delete_queued(access=cast.access("viewer"), queued=wanted)
    with pytest.raises(NotFound):
        delete_queued(access=cast.access("outsider"), queued=wanted)
    other, _ = busy_with(cast, "elsewhere")
    strange = QueuedTurn(other.pk, wanted.turn_id, 3)
    with pytest.raises(NotFound):
        delete_queued(access=cast.access("member"), queued=strange)
    with pytest.raises(InvalidInput, match="invalid_position"):
        move_queued(access=cast.access("member"), queued=wanted, position=0)


@pytest.mark.django_db(transaction=True)
def test_of_a_claim_and_a_delete_at_once_one_wins(committed_cast: Cast) -> None:
    """BR-029, BR-034."""
    for number in range(20):
        session = make_session(committed_cast)
        send(committed_cast, session, f"prompt {number}")
        wanted = queued(session, f"prompt {number}")

        def claim_it() -> UUID | None:
            try:
                claimed = attempts.claim_turn(worker="w", token=WORKER_TOKEN)
                return claimed.lease.turn_id if claimed else None
            finally:
                connection.close()

        def delete_it(wanted: QueuedTurn = wanted) -> bool:
            try:
                delete_queued(access=committed_cast.access("member"), queued=wanted)
            except Conflict as refused:
                return refused.code != "turn_started"
            else:
                return True
            finally:
                connection.close()

        with ThreadPoolExecutor(2) as pool:
            claimed, deleted = pool.submit(claim_it), pool.submit(delete_it)
            assert (claimed.result() is None) == deleted.result()
        assert verify_session(session_id=session.pk) == []


@pytest.mark.slow
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(moves=st.lists(st.tuples(st.integers(0, 6), st.integers(1, 9)), max_size=12))
def test_any_moves_end_where_a_list_would(cast: Cast, moves: list[tuple[int, int]]) -> None:
    access = cast.access("member")
    session, _ = busy_with(cast, *"abcdefg")
    model = list("abcdefg")
    for which, position in moves:
        letter = model.pop(which)
        model.insert(position - 1, letter)
        move_queued(access=access, queued=queued(session, letter), position=position)
        assert texts(cast, session) == model


@pytest.mark.slow
def test_many_moves_into_one_gap_find_room(cast: Cast) -> None:
    session, _ = busy_with(cast, *"abcdefg")
    for number in range(60):
        letter = texts(cast, session)[-1]
        move_queued(access=cast.access("member"), queued=queued(session, letter), position=2)
        assert texts(cast, session)[1] == letter, number


def test_a_failed_turn_is_retried_before_what_is_queued_and_only_once(cast: Cast) -> None:
    access = cast.access("member")
    session, running = busy_with(cast, "next")
    attempts.finish_turn(lease=running.lease, outcome=Failed("provider_down", "It is down."))
    second = claim()
    failed = Turn.objects.get(preview_text="running")
    receipt = retry_turn(access=access, session_id=session.pk, turn_id=failed.pk)
    with pytest.raises(Conflict, match="already_retried"):
        retry_turn(access=access, session_id=session.pk, turn_id=failed.pk)
    send(cast, session, "last")
    assert texts(cast, session) == ["running", "last"]
    attempts.finish_turn(lease=second.lease, outcome=Completed())
    assert claim().lease.turn_id == receipt.turn_id
    assert verify_session(session_id=session.pk) == []


def test_what_did_not_fail_is_not_retried(cast: Cast) -> None:
    session, running = busy_with(cast)
    access = cast.access("member")
    with pytest.raises(Conflict, match="turn_not_failed"):
        retry_turn(access=access, session_id=session.pk)
    attempts.finish_turn(lease=running.lease, outcome=Completed())
    with pytest.raises(Conflict, match="turn_not_failed"):
        retry_turn(access=access, session_id=session.pk)
    with pytest.raises(NotFound):
        retry_turn(access=access, session_id=make_session(cast).pk)
