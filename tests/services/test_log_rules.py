"""What the database itself refuses, whoever asks."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from core.ids import uuid7
from sessions_app import eventlog
from sessions_app.domain.events import Draft, InvalidPayload, UnknownEventType
from sessions_app.models import Attempt, Event, Session, Turn
from sessions_app.models.event import AppendOnly
from sessions_app.services import attempts
from tests.factories import Cast, claim, delta, make_session, message, send


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE sessions_app_event SET payload = '{}'",
        "DELETE FROM sessions_app_event",
        "UPDATE sessions_app_event SET seq = seq + 100",
    ],
)
def test_the_database_refuses_to_change_an_event(cast: Cast, statement: str) -> None:
    make_session(cast)
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        execute(statement)


@pytest.mark.parametrize("seqs", [[3], [1], [2, 4], [2, 3]])
def test_the_database_refuses_a_gap_a_repeat_or_a_number_beyond_the_head(
    cast: Cast, seqs: list[int]
) -> None:
    session = make_session(cast)
    with pytest.raises(IntegrityError), transaction.atomic():
        execute(
            "INSERT INTO sessions_app_event (session_id, seq, type, version, payload, created_at) "
            "SELECT %s, unnest(%s::bigint[]), 'turn.completed', 1, '{}', now()",
            [session.pk, seqs],
        )


def test_the_database_refuses_events_of_no_session(cast: Cast) -> None:
    with pytest.raises(IntegrityError, match="gap"), transaction.atomic():
        execute(
            "INSERT INTO sessions_app_event (session_id, seq, type, version, payload, created_at)"
            " VALUES (%s, 1, 'turn.completed', 1, '{}', now())",
            [uuid7()],
        )


def test_the_door_of_a_purge_opens_for_its_own_session_alone(cast: Cast) -> None:
    one, other = make_session(cast), make_session(cast)
    eventlog.purge_events(session_id=one.pk)
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        execute("DELETE FROM sessions_app_event WHERE session_id = %s", [other.pk])


def test_one_session_has_one_started_turn_and_one_live_attempt(cast: Cast) -> None:
    session = make_session(cast)
    send(cast, session)
    send(cast, session)
    claim()
    with pytest.raises(IntegrityError, match="one_unfinished_started_turn"), transaction.atomic():
        Turn.objects.filter(number=2).update(status="recovering")
    first = Attempt.objects.get()
    with pytest.raises(IntegrityError, match="one_live_attempt"), transaction.atomic():
        Attempt.objects.create(
            session=session,
            turn=first.turn,
            number=2,
            worker="w",
            token=uuid7(),
            lease_expires_at=first.lease_expires_at,
        )


def test_models_of_events_cannot_be_saved_or_deleted(cast: Cast) -> None:
    make_session(cast)
    event = Event.objects.get()
    with pytest.raises(AppendOnly):
        event.save()
    with pytest.raises(AppendOnly):
        event.delete()


def test_an_unknown_type_or_a_wrong_payload_never_becomes_a_draft() -> None:
    with pytest.raises(UnknownEventType):
        Draft("turn.exploded", {})
    with pytest.raises(InvalidPayload, match="lacks text"):
        Draft("agent.message_delta", {"message_id": "m"})
    with pytest.raises(InvalidPayload, match="has no colour"):
        Draft("turn.completed", {"colour": "red"})


def test_an_append_is_one_statement(cast: Cast) -> None:
    session = make_session(cast)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        eventlog.append(
            session_id=session.pk,
            drafts=[Draft("session.updated", {"changes": {"title": f"{n}"}}) for n in range(50)],
        )
    assert len(queries) == 1


def test_deltas_of_many_turns_are_one_statement(cast: Cast) -> None:
    for _ in range(5):
        send(cast, make_session(cast))
    leases = [claim().lease for _ in range(5)]
    with CaptureQueriesContext(connection) as queries:
        attempts.record_groups(groups=[(lease, [delta("x")] * 10) for lease in leases])
    assert len(queries) == 1


def test_groups_are_for_events_that_leave_the_row_alone(cast: Cast) -> None:
    send(cast, make_session(cast))
    with pytest.raises(ValueError, match="row"):
        attempts.record_groups(groups=[(claim().lease, [message("x")])])


def test_the_wire_text_is_built_once_and_is_whole(cast: Cast) -> None:
    session = make_session(cast)
    send(cast, session, 'Grüße 👋 \u2028 "quoted"')
    event = eventlog.read_after(session_id=session.pk, after=1, limit=1)[0]
    data = event.data
    assert data["id"] == f"evt_{session.pk.hex}_2"
    assert data["content"] == [{"type": "text", "text": 'Grüße 👋 \u2028 "quoted"'}]
    assert data["processed_at"] is None
    assert data["turn_id"].startswith("trn_")
    assert data["created_at"].endswith("Z")
    assert data["author"]["name"] == "Chiara Novak"


def test_compacting_joins_runs_of_deltas_and_says_what_they_cover(cast: Cast) -> None:
    session = make_session(cast)
    send(cast, session)
    lease = claim().lease
    attempts.record(lease=lease, drafts=[delta(c) for c in "abc"] + [message("abc")])
    attempts.record(lease=lease, drafts=[delta("z", "msg_" + "1" * 32)])
    events = eventlog.read_after(session_id=session.pk, after=0, limit=100)
    joined = [e for e in eventlog.compact(events) if e.type == "agent.message_delta"]
    assert [(e.first_seq, e.seq, e.data["text"]) for e in joined] == [(7, 9, "abc"), (11, 11, "z")]
    assert joined[0].data["first_seq"] == 7


def execute(statement: str, parameters: list[object] | None = None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)


def test_a_session_row_survives_its_json_round_trip(cast: Cast) -> None:
    session = make_session(cast, metadata={"team": "north"}, origin={"type": "work", "n": [1]})
    stored = Session.objects.get(pk=session.pk)
    assert stored.metadata == {"team": "north"}
    assert stored.origin == {"type": "work", "n": [1]}
