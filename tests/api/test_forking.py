"""Forks over HTTP: shapes, refusals with their field, idempotency, the link."""

from __future__ import annotations

from typing import Any

import pytest

from sessions_app.models import Event, Session
from sessions_app.services import attempts
from sessions_app.services.attempts import Completed
from tests.api.client import Caller, refusal
from tests.factories import Cast, claim, make_session, message, send


@pytest.fixture
def source(cast: Cast) -> Session:
    """A prompt at seq 2, its answer at seq 7."""
    session = make_session(cast, title="Harbour survey")
    send(cast, session, "Hello")
    lease = claim().lease
    attempts.record(lease=lease, drafts=[message("Hello to you")])
    attempts.finish_turn(lease=lease, outcome=Completed())
    return session


def post(caller: Caller, source: Session, body: Any = None, **headers: str) -> Any:
    return caller.request("POST", f"/v1/sessions/{source.public_id}/fork", body or {}, **headers)


def test_a_fork_is_a_session_that_links_to_its_source(cast: Cast, source: Session) -> None:
    caller = Caller(cast, "second_member")
    response = post(caller, source, {"from_seq": 7, "title": "Another way"})
    assert response.status_code == 201
    made = response.json()
    assert made["title"] == "Another way"
    assert made["forked_from"] == {"session_id": source.public_id, "seq": 7}
    assert made["message_count"] == 2
    assert made["preview_text"] == "Hello to you"
    query = f"workspace_id={made['workspace_id']}&forked_from={source.public_id}"
    listed = caller.get(f"/v1/sessions?{query}").json()
    assert [row["id"] for row in listed["data"]] == [made["id"]]
    own = caller.request("GET", f"/v1/sessions/{source.public_id}").json()
    assert own["forked_from"] is None


def test_an_event_s_id_names_a_message_too(cast: Cast, source: Session) -> None:
    caller = Caller(cast, "workspace_key")
    body = {"from_event_id": f"evt_{source.pk.hex}_2", "include": False}
    made = post(caller, source, body).json()
    assert made["message_count"] == 0
    assert made["forked_from"]["seq"] == 2


@pytest.mark.parametrize(
    ("body", "status", "code", "param"),
    [
        ({"from_seq": 3}, 400, "not_a_message", "from_seq"),
        ({"from_seq": 999}, 400, "message_not_found", "from_seq"),
        ({"from_seq": 0}, 400, "out_of_range", "from_seq"),
        ({"from_seq": "7"}, 400, "invalid_type", "from_seq"),
        ({"from_seq": 2**63}, 400, "number_out_of_range", "from_seq"),
        ({"from_event_id": "evt_1"}, 400, "invalid_id", "from_event_id"),
        ({"from_event_id": f"evt_{'0' * 32}_7"}, 400, "message_not_found", "from_event_id"),
        ({"from_seq": 7, "from_event_id": "x"}, 400, "two_messages", "from_event_id"),
        ({"from_seq": 7, "include": False}, 400, "not_a_prompt", "include"),
        ({"include": False}, 400, "field_required", "from_seq"),
        ({"title": "x" * 121}, 400, "title_too_long", "title"),
        ({"visibility": "workspace"}, 400, "unknown_field", "visibility"),
    ],
)
def test_what_is_not_right_is_refused_by_its_field(
    cast: Cast, source: Session, body: dict[str, Any], status: int, code: str, param: str
) -> None:
    before = Session.objects.count(), Event.objects.count()
    response = post(Caller(cast, "member"), source, body)
    assert refusal(response) == (status, code, param)
    assert (Session.objects.count(), Event.objects.count()) == before


def test_a_queued_prompt_is_no_part_of_the_conversation(cast: Cast, source: Session) -> None:
    receipt = send(cast, source, "And then?")
    response = post(Caller(cast, "member"), source, {"from_seq": receipt.seq})
    assert refusal(response) == (409, "message_not_started", None)


def test_the_same_key_forks_once(cast: Cast, source: Session) -> None:
    caller = Caller(cast, "member")
    first = post(caller, source, {"from_seq": 7}, idempotency_key="one")
    again = post(caller, source, {"from_seq": 7}, idempotency_key="one")
    assert again.json() == first.json()
    assert again["idempotent-replayed"] == "true"
    other = post(caller, source, {"from_seq": 2}, idempotency_key="one")
    assert refusal(other)[:2] == (409, "idempotency_key_reused")
    assert Session.objects.count() == 2
