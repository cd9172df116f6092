"""Child sessions over HTTP: made by a parent's id, listed by it, shown as a tree."""

from __future__ import annotations

from typing import Any

import pytest

from sessions_app.models import Session
from tests.api.client import Caller, refusal
from tests.factories import Cast, make_session

SENT = [{"type": "user.message", "content": "Look at the left."}]


@pytest.fixture
def parent(cast: Cast) -> Session:
    return make_session(cast, title="Survey")


def make(caller: Caller, parent: Session, **fields: Any) -> Any:
    return caller.post("/v1/sessions", {"parent_id": parent.public_id, **fields})


def test_a_child_is_made_in_its_parents_workspace_with_its_first_prompt(
    parent: Session, member: Caller
) -> None:
    made = make(member, parent, title="Left", initial_events=SENT)
    assert made.status_code == 201
    child = made.json()
    assert child["parent_id"] == parent.public_id
    assert child["workspace_id"] == member.get(path(parent)).json()["workspace_id"]
    started = member.get(f"{path(parent)}/events?types[]=child.started").json()["data"]
    assert [(e["child_id"], e["title"], e["prompt_text"]) for e in started] == [
        (child["id"], "Left", "Look at the left.")
    ]
    assert started[0]["author"]["type"] == "user"
    listed = member.get("/v1/sessions?workspace_id=" + child["workspace_id"]).json()["data"]
    assert [each["id"] for each in listed] == [parent.public_id]
    assert listed[0]["working"] is True


def path(session: Session) -> str:
    return f"/v1/sessions/{session.public_id}"


def test_one_key_makes_one_child(parent: Session, member: Caller) -> None:
    body = {"parent_id": parent.public_id}
    first, second = (member.post("/v1/sessions", body, idempotency_key="left-1") for _ in range(2))
    assert first.json()["id"] == second.json()["id"]
    assert parent.children.count() == 1


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"visibility": "private"}, (403, "private_not_allowed", "visibility")),
        ({"end_user": {"source": "a", "id": "1"}}, (403, "differs_from_parent", "end_user")),
        ({"parent_id": "ses_" + "0" * 32}, (404, "parent_not_found", "parent_id")),
        ({"parent_id": 7}, (400, "invalid_id", "parent_id")),
        ({"parent_id": "wrk_" + "0" * 32}, (400, "invalid_id", "parent_id")),
    ],
)
def test_what_cannot_be_a_child_is_refused_and_nothing_is_written(
    parent: Session, member: Caller, fields: dict[str, Any], expected: tuple[int, str, str]
) -> None:
    body = {"parent_id": parent.public_id, **fields}
    assert refusal(member.post("/v1/sessions", body)) == expected
    assert Session.objects.count() == 1


def test_of_a_parent_one_may_not_see_nothing_is_told(cast: Cast, parent: Session) -> None:
    outsider = Caller(cast, "outsider")
    assert refusal(make(outsider, parent)) == (404, "parent_not_found", "parent_id")
    for below in ("children", "tree"):
        assert outsider.get(f"{path(parent)}/{below}").status_code == 404


def test_children_are_listed_in_pages_and_as_a_tree(parent: Session, member: Caller) -> None:
    ids = [make(member, parent, title=str(number)).json()["id"] for number in range(3)]
    first = member.get(f"{path(parent)}/children?limit=2").json()
    second = member.get(f"{path(parent)}/children?limit=2&page={first['next_page']}").json()
    assert [row["id"] for row in first["data"] + second["data"]] == ids
    member.post(f"/v1/sessions/{ids[0]}/archive", {})
    assert len(member.get(f"{path(parent)}/children").json()["data"]) == 2
    assert len(member.get(f"{path(parent)}/children?archived=only").json()["data"]) == 1
    below = member.post("/v1/sessions", {"parent_id": ids[1]}).json()["id"]
    tree = member.get(f"{path(parent)}/tree").json()
    assert (tree["ancestors"], tree["truncated"]) == ([], False)
    assert [node["id"] for node in tree["session"]["children"]] == ids[1:]
    assert [node["id"] for node in tree["session"]["children"][0]["children"]] == [below]
    inner = member.get(f"/v1/sessions/{below}/tree").json()
    assert [row["id"] for row in inner["ancestors"]] == [parent.public_id, ids[1]]


def test_children_are_listed_by_their_parent_whatever_its_partition(
    cast: Cast, member: Caller
) -> None:
    parent = make_session(cast, origin={"type": "chat"})
    child = make(member, parent).json()
    assert child["origin"] == {"type": "chat"}
    query = f"workspace_id={child['workspace_id']}&parent_id={parent.public_id}"
    listed = member.get(f"/v1/sessions?{query}").json()["data"]
    assert [row["id"] for row in listed] == [child["id"]]
    other = member.get(f"/v1/sessions?{query}&origin_type=work").json()["data"]
    assert other == []
