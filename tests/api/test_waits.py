"""Approvals and questions over HTTP: what waits is listed, answers are events that are sent."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.models import Event, Wait
from tests.api.client import Caller, refusal
from tests.api.test_idempotency import in_parallel
from tests.factories import Cast
from tests.services.test_waits import Asking


@pytest.fixture
def asking(cast: Cast) -> Asking:
    return Asking(cast)


def path_of(asking: Asking) -> str:
    return f"/v1/sessions/{asking.session.public_id}"


def confirmation(tool_use_id: Any, result: Any = "allow", **fields: Any) -> dict[str, Any]:
    return {
        "type": "user.tool_confirmation",
        "tool_use_id": tool_use_id,
        "result": result,
        **fields,
    }


def response(question_id: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "user.question_response", "question_id": question_id, **fields}


def send(caller: Caller, asking: Asking, *events: Any, **headers: str) -> Any:
    return caller.post(f"{path_of(asking)}/events", {"events": list(events)}, **headers)


def test_what_waits_is_listed_with_all_that_an_answer_needs(asking: Asking, member: Caller) -> None:
    approval, question = asking.approval(), asking.question(allow_skip=True, expires_in=60)
    asking.suspend()
    pending = member.get(f"{path_of(asking)}/pending").json()
    assert (pending["next_page"], pending["has_more"]) == (None, False)
    first, second = pending["data"]
    assert (first["id"], first["tool_use_id"]) == (approval, approval)
    assert (first["kind"], first["tool_name"]) == ("approval", "probe.append_asked")
    assert first["input"] == {"line": "x"}
    assert (second["id"], second["kind"]) == (question, "question")
    assert second["questions"][0]["text"] == "Its name?"
    assert (second["allow_skip"], second["expires_at"] is None) == (True, False)
    assert member.get("/v1/inbox").json()["data"] == pending["data"]
    shown = member.get(path_of(asking)).json()
    assert (shown["status"], shown["working"], shown["waiting"]) == ("idle", True, 2)
    assert shown["stop_reason"] == {"type": "requires_action", "event_ids": [approval, question]}


def test_what_waits_in_a_session_comes_in_pages(asking: Asking, member: Caller) -> None:
    ids = [asking.approval() for _ in range(3)]
    asking.suspend()
    path = f"{path_of(asking)}/pending"
    first = member.get(f"{path}?limit=2").json()
    assert ([row["id"] for row in first["data"]], first["has_more"]) == (ids[:2], True)
    rest = member.get(f"{path}?limit=2&page={first['next_page']}").json()
    assert ([row["id"] for row in rest["data"]], rest["next_page"]) == (ids[2:], None)
    assert refusal(member.get(f"{path}?limit=0"))[:2] == (400, "out_of_range")
    assert refusal(member.get(f"{path}?page=x"))[:2] == (400, "invalid_cursor")
    assert refusal(member.get(f"/v1/inbox?page={first['next_page']}"))[1] == (
        "cursor_of_another_query"
    )


def test_several_are_decided_in_one_request(asking: Asking, member: Caller) -> None:
    first, second, question = asking.approval(), asking.approval(), asking.question()
    asking.suspend()
    sent = send(
        member,
        asking,
        confirmation(first, scope="session"),
        confirmation(second, "deny", deny_message="Too late"),
        response(question, answers={"name": {"text": "Tern"}}),
    )
    assert sent.status_code == 202
    one, two, three = sent.json()["data"]
    assert (one["result"], one["scope"], one["tool_name"]) == (
        "allow", "session", "probe.append_asked",
    )  # fmt: skip
    assert (two["result"], two["deny_message"], two["tool_use_id"]) == ("deny", "Too late", second)
    assert (three["answers"], three["skip"]) == ({"name": {"text": "Tern"}}, False)
    assert three["author"]["name"] == "Chiara Novak"
    assert member.get("/v1/inbox").json()["data"] == []
    assert member.get(path_of(asking)).json()["status"] == "running"


def test_all_are_decided_or_none(asking: Asking, member: Caller) -> None:
    approval = asking.approval()
    refused = send(member, asking, confirmation(approval), confirmation("evt_1"))
    assert refusal(refused) == (400, "unknown_tool_use", "events[1].tool_use_id")
    assert Wait.objects.get().status == "open"


def test_a_repetition_with_a_key_gets_the_first_answer(asking: Asking, key: Caller) -> None:
    approval = asking.approval()
    first = send(key, asking, confirmation(approval), idempotency_key="k")
    again = send(key, asking, confirmation(approval), idempotency_key="k")
    assert again.content == first.content
    assert again.headers["idempotent-replayed"] == "true"
    late = send(key, asking, confirmation(approval))
    assert refusal(late) == (409, "already_decided", None)
    assert late.headers["x-should-retry"] == "false"


@pytest.mark.parametrize(
    ("event", "code", "param"),
    [
        (confirmation(5), "invalid_type", "tool_use_id"),
        (confirmation("x" * 201), "too_long", "tool_use_id"),
        (confirmation("evt_1", "maybe"), "invalid_choice", "result"),
        (confirmation("evt_1", True), "invalid_type", "result"),
        (confirmation("evt_1", scope="for ever"), "invalid_choice", "scope"),
        (confirmation("evt_1", deny_message=["x"]), "invalid_type", "deny_message"),
        (confirmation("evt_1", remember=True), "unknown_field", "remember"),
        ({"type": "user.tool_confirmation", "result": "allow"}, "field_required", "tool_use_id"),
        (response(None), "field_null", "question_id"),
        (response("evt_1"), "unknown_question", "question_id"),
        (response("evt_1", answers=[]), "invalid_type", "answers"),
        (response("evt_1", skip="yes"), "invalid_type", "skip"),
    ],
)
def test_odd_shapes_are_refused(
    asking: Asking, member: Caller, event: Any, code: str, param: str
) -> None:
    asking.approval()
    assert refusal(send(member, asking, event)) == (400, code, f"events[0].{param}")


def test_an_answer_is_refused_with_its_path(asking: Asking, member: Caller) -> None:
    question = asking.question()
    for answers, code, param in [
        ({}, "answer_required", "answers.name"),
        ({"name": {"text": "a\x00"}}, "invalid_text", "answers.name.text"),
        ({"name": 5}, "invalid_answer", "answers.name"),
        ({"nme": {}}, "unknown_question", "answers.nme"),
    ]:
        refused = send(member, asking, response(question, answers=answers))
        assert refusal(refused) == (400, code, f"events[0].{param}")


def test_who_may_not_decide_is_told_so_or_finds_nothing(asking: Asking, caller: Any) -> None:
    event = confirmation(asking.approval())
    assert send(caller("viewer"), asking, event).status_code == 403
    assert send(caller("read_only_key"), asking, event).status_code == 403
    assert refusal(send(caller("outsider"), asking, event)) == (404, "not_found", None)
    assert Wait.objects.get().status == "open"


def test_twenty_answers_at_once_are_one_decision(committed_cast: Cast) -> None:
    asking = Asking(committed_cast)
    approval = asking.approval()
    callers = [Caller(committed_cast, "workspace_key") for _ in range(20)]
    answers = in_parallel(
        20, lambda n: send(callers[n], asking, confirmation(approval, ("allow", "deny")[n % 2]))
    )
    assert Counter(answer.status_code for answer in answers) == {202: 1, 409: 19}
    assert Event.objects.filter(type="user.tool_confirmation").count() == 1


def test_the_inbox_costs_the_same_for_one_and_for_many(cast: Cast, member: Caller) -> None:
    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert member.get("/v1/inbox").status_code == 200
        return len(queries)

    Asking(cast).approval()
    cost()  # the first request tells the shared budget
    few = cost()
    for _ in range(4):
        Asking(cast).approval()
    assert cost() == few


def test_the_inbox_pages_and_names_a_workspace(
    cast: Cast, member: Caller, workspace_id: str
) -> None:
    ids = [Asking(cast).approval() for _ in range(3)]
    page = member.get(f"/v1/inbox?limit=2&workspace_id={workspace_id}").json()
    assert [wait["id"] for wait in page["data"]] == ids[:2]
    cursor = page["next_page"]
    rest = member.get(f"/v1/inbox?limit=2&workspace_id={workspace_id}&page={cursor}").json()
    assert ([wait["id"] for wait in rest["data"]], rest["has_more"]) == (ids[2:], False)
    assert member.get("/v1/inbox?order=desc").json()["data"][0]["id"] == ids[2]
    assert refusal(member.get(f"/v1/inbox?page={cursor}"))[1] == "cursor_of_another_query"
    assert member.get("/v1/inbox?workspace_id=wrk_" + "0" * 32).json()["data"] == []
