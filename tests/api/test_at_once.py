"""The same thing by many at the same moment: each change once, and nobody meets a 5xx."""

from __future__ import annotations

from collections import Counter
from typing import Any

from catalog.models import Agent
from core.ids import Prefix, encode_id
from orgs.services.founding import create_workspace
from sessions_app.models import Event, PersonalState, Session
from tests.api.client import Caller
from tests.api.test_idempotency import in_parallel
from tests.factories import Cast, claim, make_session, send

MANY = 10


def statuses(answers: list[Any]) -> Counter[int]:
    return Counter(answer.status_code for answer in answers)


def callers(cast: Cast, name: str) -> list[Caller]:
    return [Caller(cast, name) for _ in range(MANY)]


def test_archiving_at_once_writes_one_event(committed_cast: Cast) -> None:
    session = make_session(committed_cast)
    path = f"/v1/sessions/{session.public_id}/archive"
    many = callers(committed_cast, "member")
    assert statuses(in_parallel(MANY, lambda n: many[n].post(path))) == {200: MANY}
    assert Event.objects.filter(type="session.archived").count() == 1


def test_deleting_at_once_deletes_once(committed_cast: Cast) -> None:
    session = make_session(committed_cast)
    many = callers(committed_cast, "owner")
    path = f"/v1/sessions/{session.public_id}"
    assert statuses(in_parallel(MANY, lambda n: many[n].delete(path))) == {200: 1, 404: MANY - 1}
    assert not Session.objects.exists()


def test_saving_a_draft_at_once_keeps_one_and_tells_the_others(committed_cast: Cast) -> None:
    session = make_session(committed_cast)
    many = callers(committed_cast, "member")
    path = f"/v1/sessions/{session.public_id}/draft"

    def save(number: int) -> Any:
        return many[number].put(path, {"text": f"Text {number}", "expected_version": 0})

    answers = in_parallel(MANY, save)
    assert statuses(answers) == {200: 1, 409: MANY - 1}
    (kept,) = [answer.json()["text"] for answer in answers if answer.status_code == 200]
    for answer in answers:
        if answer.status_code == 409:
            assert answer.json()["error"]["details"]["current"]["text"] == kept


def test_pinning_at_once_keeps_one_pin(committed_cast: Cast) -> None:
    session = make_session(committed_cast, by="owner")
    many = callers(committed_cast, "member")
    path = f"/v1/sessions/{session.public_id}/pin"
    assert statuses(in_parallel(MANY, lambda n: many[n].put(path))) == {200: MANY}
    assert PersonalState.objects.filter(session=session, pinned_at__isnull=False).count() == 1


def test_first_sessions_at_once_share_one_default_agent(committed_cast: Cast) -> None:
    cast = committed_cast
    fresh = create_workspace(organization=cast.organization, name="Coast", administrator=cast.owner)
    many = callers(cast, "owner")
    body = {"workspace_id": encode_id(Prefix.WORKSPACE, fresh.pk)}
    answers = in_parallel(MANY, lambda n: many[n].post("/v1/sessions", body))
    assert statuses(answers) == {201: MANY}
    assert Agent.objects.filter(workspace=fresh).count() == 1


def test_updates_at_once_all_count(committed_cast: Cast) -> None:
    session = make_session(committed_cast)
    many = callers(committed_cast, "member")
    path = f"/v1/sessions/{session.public_id}"

    def update(number: int) -> Any:
        return many[number].post(path, {"metadata": {f"key {number}": "x"}})

    assert statuses(in_parallel(MANY, update)) == {200: MANY}
    session.refresh_from_db()
    assert session.metadata == {f"key {number}": "x" for number in range(MANY)}
    seqs = Event.objects.filter(session_id=session.pk).values_list("seq", flat=True)
    assert sorted(seqs) == list(range(1, session.head_seq + 1))


def test_archiving_and_sending_at_once_end_in_one_story(committed_cast: Cast) -> None:
    """Either the prompt came first and the archive was refused, or the other way round."""
    prompt = {"events": [{"type": "user.message", "content": "Hello"}]}
    outcomes = Counter(_archive_while_sending(committed_cast, prompt) for _ in range(10))
    assert sum(outcomes.values()) == 10


def _archive_while_sending(cast: Cast, prompt: dict[str, Any]) -> tuple[int, int]:
    session = make_session(cast)
    path = f"/v1/sessions/{session.public_id}"
    two = Caller(cast, "workspace_key"), Caller(cast, "workspace_key")
    requests = (f"{path}/events", prompt), (f"{path}/archive", None)
    sent, archived = in_parallel(2, lambda n: two[n].post(*requests[n]))
    session.refresh_from_db()
    if sent.status_code == 202:
        assert (archived.status_code, session.archived_at) == (409, None)
    else:
        assert (sent.status_code, archived.status_code) == (409, 200)
        assert session.turn_count == 0
    return sent.status_code, archived.status_code


def test_a_stop_is_anybodys_who_may_control_the_session_and_no_connections(
    committed_cast: Cast,
) -> None:
    """BR-059: another login of a person, another person, a key; not a key that only reads."""
    body = {"events": [{"type": "user.interrupt"}]}
    for name, expected in {
        "member": 202,
        "second_member": 202,
        "workspace_key": 202,
        "viewer": 403,
        "read_only_key": 403,
        "outsider": 404,
    }.items():
        session = make_session(committed_cast)
        send(committed_cast, session)
        claim()
        stop = Caller(committed_cast, name).post(f"/v1/sessions/{session.public_id}/events", body)
        assert stop.status_code == expected, name
        ended = Event.objects.filter(session_id=session.pk, type="turn.cancelled").count()
        assert ended == (expected == 202)
