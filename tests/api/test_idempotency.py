"""Idempotency keys: done once, however often and however parallel it is sent (BR-043, 044, 047)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections

from core.clock import now
from orgs.roles import Scope
from orgs.services.keys import revoke_api_key
from sessions_app.models import Event, IdempotencyRecord, Session, Turn
from sessions_app.services import idempotency
from tests.api.client import Caller, refusal
from tests.factories import Cast, make_key, make_session

PROMPT = {"events": [{"type": "user.message", "content": "Once"}]}


def in_parallel(count: int, work: Callable[[int], Any]) -> list[Any]:
    """`work(0)` … at the same moment, in threads with connections of their own."""
    barrier = threading.Barrier(count)

    def run(number: int) -> Any:
        barrier.wait()
        try:
            return work(number)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def test_twenty_sends_with_one_key_are_one_turn(committed_cast: Cast) -> None:
    session = make_session(committed_cast)
    path = f"/v1/sessions/{session.public_id}/events"
    callers = [Caller(committed_cast, "workspace_key") for _ in range(20)]
    answers = in_parallel(20, lambda n: callers[n].post(path, PROMPT, idempotency_key="k-1"))
    assert {answer.status_code for answer in answers} == {202}
    replayed = [answer for answer in answers if answer.headers.get("idempotent-replayed")]
    assert len(replayed) == 19
    assert len({answer.content for answer in answers}) == 1
    assert Turn.objects.count() == 1
    assert Event.objects.filter(type="user.message").count() == 1


def test_twenty_creations_with_one_key_are_one_session(committed_cast: Cast) -> None:
    callers = [Caller(committed_cast, "workspace_key") for _ in range(20)]
    body = {"title": "Once", "initial_events": PROMPT["events"]}
    answers = in_parallel(20, lambda n: callers[n].post("/v1/sessions", body, idempotency_key="k"))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert sum("idempotent-replayed" in answer.headers for answer in answers) == 19
    assert Session.objects.count() == Turn.objects.count() == 1


def test_a_twin_of_a_failure_does_the_work_itself(committed_cast: Cast) -> None:
    """Half of the callers fail: what fails leaves the key free, and exactly one succeeds."""
    session = make_session(committed_cast)
    path = f"/v1/sessions/{session.public_id}/events"
    callers = [Caller(committed_cast, "workspace_key") for _ in range(10)]
    callers[0].post(f"/v1/sessions/{session.public_id}/archive")

    def work(number: int) -> Any:
        if number == 0:
            return callers[0].post(f"/v1/sessions/{session.public_id}/unarchive")
        return callers[number].post(path, PROMPT, idempotency_key="k")

    answers = in_parallel(10, work)[1:]
    assert {answer.status_code for answer in answers} <= {202, 409}
    again = callers[1].post(path, PROMPT, idempotency_key="k")
    assert again.status_code == 202
    assert Turn.objects.count() == 1


def test_keys_with_different_bodies_at_once_do_one_of_them(committed_cast: Cast) -> None:
    session = make_session(committed_cast)
    path = f"/v1/sessions/{session.public_id}/events"
    callers = [Caller(committed_cast, "workspace_key") for _ in range(8)]

    def work(number: int) -> Any:
        body = {"events": [{"type": "user.message", "content": f"Body {number}"}]}
        return callers[number].post(path, body, idempotency_key="k")

    answers = in_parallel(8, work)
    assert sorted(answer.status_code for answer in answers) == [202] + [409] * 7
    codes = {answer.json()["error"]["code"] for answer in answers if answer.status_code == 409}
    assert codes == {"idempotency_key_reused"}
    assert Turn.objects.count() == 1


def test_another_body_is_refused(key: Caller, session_path: str) -> None:
    path = f"{session_path}/events"
    assert key.post(path, PROMPT, idempotency_key="k").status_code == 202
    other = {"events": [{"type": "user.message", "content": "Twice"}]}
    response = key.post(path, other, idempotency_key="k")
    assert refusal(response) == (409, "idempotency_key_reused", "Idempotency-Key")
    assert response["x-should-retry"] == "false"


def test_the_order_of_names_makes_no_other_body(key: Caller) -> None:
    first = key.post("/v1/sessions", b'{"title": "a", "agent": "default"}', idempotency_key="k")
    second = key.post("/v1/sessions", b'{"agent":"default","title":"a"}', idempotency_key="k")
    assert second["idempotent-replayed"] == "true"
    assert first.content == second.content
    assert "idempotent-replayed" not in first.headers


def test_a_key_is_one_principals_and_one_targets(cast: Cast, caller, session_path: str) -> None:
    other = f"/v1/sessions/{make_session(cast).public_id}"
    for name in ("member", "owner", "workspace_key"):
        for path in (session_path, other):
            response = caller(name).post(f"{path}/events", PROMPT, idempotency_key="k")
            assert response.status_code == 202
            assert "idempotent-replayed" not in response.headers
    assert Turn.objects.count() == 6


def test_failures_are_not_kept(key: Caller, session_path: str) -> None:
    path = f"{session_path}/events"
    bad = {"events": [{"type": "user.message", "content": ""}]}
    assert key.post(path, bad, idempotency_key="k").status_code == 400
    assert not IdempotencyRecord.objects.exists()
    assert key.post(path, PROMPT, idempotency_key="k").status_code == 202


def test_a_replay_checks_access_again(cast: Cast, caller) -> None:
    key = make_key(cast.owner, cast.organization, cast.workspace, [Scope.FULL])
    bearer = {"authorization": f"Bearer {key.secret}"}
    created = caller().post("/v1/sessions", {}, idempotency_key="c", **bearer)
    path = f"/v1/sessions/{created.json()['id']}"
    sent = caller().post(f"{path}/events", PROMPT, idempotency_key="s", **bearer)
    assert (created.status_code, sent.status_code) == (201, 202)
    key.row.scopes = ["read"]
    key.row.save()
    for asked, body, name in (("/v1/sessions", {}, "c"), (f"{path}/events", PROMPT, "s")):
        response = caller().post(asked, body, idempotency_key=name, **bearer)
        assert refusal(response) == (403, "missing_scope", None)
    revoke_api_key(key=key.row)
    response = caller().post("/v1/sessions", {}, idempotency_key="c", **bearer)
    assert refusal(response) == (401, "revoked_api_key", None)


def test_a_replay_of_a_session_that_is_gone_is_not_found(caller) -> None:
    owner = caller("owner")
    made = owner.post("/v1/sessions", {}, idempotency_key="k").json()
    owner.delete(f"/v1/sessions/{made['id']}")
    response = owner.post("/v1/sessions", {}, idempotency_key="k")
    assert refusal(response) == (404, "not_found", None)


def test_a_key_is_forgotten_after_a_day(key: Caller, session_path: str) -> None:
    path = f"{session_path}/events"
    key.post(path, PROMPT, idempotency_key="k")
    IdempotencyRecord.objects.update(created_at=now() - timedelta(hours=25))
    again = key.post(path, PROMPT, idempotency_key="k")
    assert "idempotent-replayed" not in again.headers
    assert Turn.objects.count() == 2


def test_expired_keys_of_others_are_swept_away(
    committed_cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "SWEEP_EVERY", 1)
    key = Caller(committed_cast, "workspace_key")
    for number in range(3):
        key.post("/v1/sessions", {}, idempotency_key=f"old {number}")
    IdempotencyRecord.objects.update(created_at=now() - timedelta(hours=25))
    key.post("/v1/sessions", {}, idempotency_key="new")
    assert [record.key for record in IdempotencyRecord.objects.all()] == ["new"]


@pytest.mark.parametrize("value", ["x" * 256, "naïve", "tab\there"])
def test_keys_are_printable_and_short(key: Caller, value: str) -> None:
    response = key.post("/v1/sessions", {}, idempotency_key=value)
    assert refusal(response) == (400, "invalid_idempotency_key", "Idempotency-Key")
    assert not Session.objects.exists()


def test_prompts_at_once_are_all_kept_in_one_order(committed_cast: Cast) -> None:
    session = make_session(committed_cast)
    path = f"/v1/sessions/{session.public_id}/events"
    callers = [Caller(committed_cast, "workspace_key") for _ in range(12)]
    answers = in_parallel(12, lambda n: callers[n].post(path, PROMPT))
    assert {answer.status_code for answer in answers} == {202}
    session.refresh_from_db()
    seqs = list(Event.objects.filter(session_id=session.pk).values_list("seq", flat=True))
    assert sorted(seqs) == list(range(1, session.head_seq + 1))
    assert sorted(Turn.objects.values_list("number", flat=True)) == list(range(1, 13))


def test_deleting_a_session_erases_the_answers_kept_about_it_but_not_the_keys(cast: Cast) -> None:
    caller = Caller(cast, "workspace_key")
    body = {"title": "A private matter", "initial_events": PROMPT["events"]}
    created = caller.post("/v1/sessions", body, idempotency_key="made").json()
    path = f"/v1/sessions/{created['id']}"
    caller.post(f"{path}/events", PROMPT, idempotency_key="sent")
    caller.delete(f"{path}?stop=true")
    kept = IdempotencyRecord.objects.values_list("key", "response")
    assert sorted(kept) == [("made", ""), ("sent", "")]
    again = caller.post("/v1/sessions", body, idempotency_key="made")
    assert refusal(again) == (404, "not_found", None)
    assert not Session.objects.exists()
