"""Lists: filters, order, cursors that nobody can bend, and a constant cost."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import quote

import orjson
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from core.clock import rfc3339
from core.ids import Prefix, encode_id
from orgs.services.workspaces import remove_workspace_member
from sessions_app.domain.end_user import EndUser
from sessions_app.models import Session
from sessions_app.services.archiving import archive_session
from tests.api.client import Caller, refusal
from tests.factories import Cast, make_session


@pytest.fixture
def path(workspace_id: str) -> str:
    return f"/v1/sessions?workspace_id={workspace_id}"


def titles(response: Any) -> list[str]:
    assert response.status_code == 200, response.content
    return [row["title"] for row in response.json()["data"]]


def walk(caller: Caller, path: str) -> list[str]:
    """The titles of all pages."""
    found, page = [], ""
    while True:
        response = caller.get(f"{path}{page}")
        found += titles(response)
        body = response.json()
        assert body["has_more"] is (body["next_page"] is not None)
        if not body["has_more"]:
            return found
        page = f"&page={body['next_page']}"


def test_the_plain_list_is_newest_first_and_pages_in_both_directions(
    cast: Cast, member: Caller, path: str
) -> None:
    made = [make_session(cast, title=f"{number:02}").title for number in range(23)]
    assert walk(member, f"{path}&limit=7") == made[::-1]
    assert walk(member, f"{path}&limit=7&order=asc") == made
    assert len(titles(member.get(path))) == 20


def test_rows_of_one_moment_come_once_each(cast: Cast, member: Caller, path: str) -> None:
    rows = [make_session(cast, title=f"{number:02}") for number in range(20)]
    Session.objects.update(created_at=rows[0].created_at)
    for order in ("asc", "desc"):
        found = walk(member, f"{path}&limit=3&order={order}")
        assert sorted(found) == [f"{number:02}" for number in range(20)]


def test_rows_that_come_meanwhile_repeat_nothing(cast: Cast, member: Caller, path: str) -> None:
    old = {make_session(cast, title=f"old {number}").title for number in range(10)}
    found, page = [], ""
    while True:
        response = member.get(f"{path}&limit=3{page}")
        found += titles(response)
        make_session(cast, title="new")
        if not response.json()["has_more"]:
            break
        page = f"&page={response.json()['next_page']}"
    assert sorted(found) == sorted(old)


def test_filters(cast: Cast, member: Caller, path: str) -> None:
    tides, coast = (make_session(cast, title=title) for title in ("Tides", "Coast"))
    member.post(f"/v1/sessions/{coast.public_id}/archive")
    assert titles(member.get(path)) == ["Tides"]
    assert titles(member.get(f"{path}&include_archived=true")) == ["Coast", "Tides"]
    assert titles(member.get(f"{path}&archived=only")) == ["Coast"]
    assert titles(member.get(f"{path}&query=tIDe")) == ["Tides"]
    assert titles(member.get(f"{path}&statuses[]=idle&statuses[]=running")) == ["Tides"]
    assert titles(member.get(f"{path}&statuses[]=terminated")) == []
    assert titles(member.get(f"{path}&pinned=true")) == []
    member.put(f"/v1/sessions/{tides.public_id}/pin")
    assert titles(member.get(f"{path}&pinned=true")) == ["Tides"]
    moment = quote(rfc3339(tides.created_at) or "")
    assert titles(member.get(f"{path}&created_at[gte]={moment}")) == ["Tides"]
    assert titles(member.get(f"{path}&created_at[gt]={moment}")) == []
    assert titles(member.get(f"{path}&agent_id=agt_{'0' * 32}")) == []


def test_a_list_by_name_begins_with_a_unless_told_otherwise(
    cast: Cast, member: Caller, path: str
) -> None:
    for title in ("Tides", "coast", "Harbour"):
        make_session(cast, title=title)
    assert titles(member.get(f"{path}&sort=name")) == ["coast", "Harbour", "Tides"]
    assert titles(member.get(f"{path}&sort=name&order=desc")) == ["Tides", "Harbour", "coast"]
    assert titles(member.get(f"{path}&sort=name&query=o")) == ["coast", "Harbour"]


def test_an_end_user_is_found_by_the_exact_pair(cast: Cast, member: Caller, path: str) -> None:
    for title, source, own_id in (("A", "shop", "42"), ("B", "desk", "42"), ("C", "shop", "4")):
        make_session(cast, title=title, end_user=EndUser(source, own_id))
    make_session(cast, title="D")
    assert titles(member.get(f"{path}&end_user[source]=shop&end_user[id]=42")) == ["A"]
    assert titles(member.get(f"{path}&end_user[source]=SHOP&end_user[id]=42")) == []
    for sent, missing in (("source", "id"), ("id", "source")):
        refused = member.get(f"{path}&end_user[{sent}]=shop")
        assert refusal(refused) == (400, "field_required", f"end_user[{missing}]")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("end_user=shop", ("unknown_parameter", "end_user")),
        ("end_user[id]=", ("field_blank", "end_user[id]")),
        ("limit=0", ("out_of_range", "limit")),
        ("limit=-1", ("out_of_range", "limit")),
        ("limit=101", ("out_of_range", "limit")),
        ("limit=1e9", ("invalid_type", "limit")),
        ("limit=abc", ("invalid_type", "limit")),
        ("limit=", ("invalid_type", "limit")),
        ("limit=1&limit=2", ("repeated_parameter", "limit")),
        ("statuses[]=asleep", ("invalid_choice", "statuses[][0]")),
        ("pinned=1", ("invalid_type", "pinned")),
        ("parent_id=ses_1", ("invalid_id", "parent_id")),
        ("created_at[gte]=yesterday", ("invalid_value", "created_at[gte]")),
        ("created_at[near]=2026-01-01", ("unknown_parameter", "created_at[near]")),
        ("sort=colour", ("invalid_choice", "sort")),
        ("sort=archived", ("invalid_value", "sort")),
        ("sort=archived&include_archived=true", ("invalid_value", "sort")),
        ("query=%00", ("invalid_text", "query")),
        ("query=" + "x" * 201, ("too_long", "query")),
        ("memory_store_id=1", ("unknown_parameter", "memory_store_id")),
        ("page=AAAA", ("invalid_cursor", "page")),
        ("page=" + "A" * 2000, ("too_long", "page")),
    ],
)
def test_lists_refuse_what_they_do_not_know(
    member: Caller, path: str, query: str, expected: tuple[str, str]
) -> None:
    assert refusal(member.get(f"{path}&{query}")) == (400, *expected)


def test_the_lists_of_others_are_not_found(cast: Cast, caller, path: str) -> None:
    foreign = encode_id(Prefix.WORKSPACE, cast.other_workspace.pk)
    for name, asked in (("outsider", path), ("member", f"/v1/sessions?workspace_id={foreign}")):
        response = caller(name).get(asked)
        assert refusal(response) == (404, "workspace_not_found", "workspace_id")


def test_a_bent_cursor_shows_nothing_of_others(cast: Cast, caller, path: str) -> None:
    for number in range(5):
        make_session(cast, title=f"mine {number}")
        make_session(cast, by="outsider", workspace_id=cast.other_workspace.pk, title="theirs")
    member, outsider = caller("member"), caller("outsider")
    cursor = member.get(f"{path}&limit=2").json()["next_page"]
    decoded = orjson.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    foreign = encode_id(Prefix.WORKSPACE, cast.other_workspace.pk)
    # A cursor carries a position and nothing else: in another tenant's list it is refused.
    response = outsider.get(f"/v1/sessions?workspace_id={foreign}&page={cursor}")
    assert refusal(response) == (400, "cursor_of_another_query", "page")
    digest, segment, moment, pk = decoded
    theirs = Session.objects.filter(title="theirs")[0].pk.hex
    for bent in (
        [digest, segment, moment, theirs],
        [digest, segment, "9999-12-31T23:59:59.999999Z", pk],
        [digest, 0, moment, pk],
        [digest, segment, "0001-01-01T00:00:00Z", pk],
        [digest, segment, "2026-01-01T00:00:00", pk],
        [digest, 2**63, moment, pk],
        [digest, segment, moment, "zz"],
        [digest, segment, moment, pk, 1],
        [digest],
        {"a": 1},
    ):
        page = base64.urlsafe_b64encode(orjson.dumps(bent)).rstrip(b"=").decode()
        response = member.get(f"{path}&limit=2&page={page}")
        if response.status_code == 200:
            assert all(title.startswith("mine") for title in titles(response))
        else:
            assert refusal(response)[0] == 400


def test_who_loses_access_between_pages_sees_no_more(cast: Cast, caller, path: str) -> None:
    for number in range(5):
        make_session(cast, title=f"{number}")
    member = caller("second_member")
    cursor = member.get(f"{path}&limit=2").json()["next_page"]
    remove_workspace_member(
        access=cast.access("owner"), workspace_id=cast.workspace.pk, user_id=cast.second_member.pk
    )
    response = member.get(f"{path}&limit=2&page={cursor}")
    assert refusal(response) == (404, "workspace_not_found", "workspace_id")


def test_a_list_costs_the_same_for_three_rows_and_for_thirty(
    cast: Cast, member: Caller, path: str
) -> None:
    member.get(path)  # the first request tells the shared budget
    counts = []
    for number in (3, 30):
        while Session.objects.count() < number:
            make_session(cast, title="row")
        with CaptureQueriesContext(connection) as captured:
            assert len(titles(member.get(f"{path}&limit=100"))) == number
        counts.append(len(captured))
    # Login and user, three for the access, the page.
    assert counts == [6, 6]


def test_list_rows_leave_out_what_may_be_long(cast: Cast, member: Caller, path: str) -> None:
    session = make_session(cast)
    (row,) = member.get(path).json()["data"]
    whole = member.get(f"/v1/sessions/{session.public_id}").json()
    assert whole["agent"]["system"]
    assert {**whole, "agent": {**whole["agent"], "system": None}} == row


def test_workspaces_and_models_are_listed(cast: Cast, caller, workspace_id: str) -> None:
    rows = caller("member").get("/v1/workspaces").json()["data"]
    assert [(row["name"], row["kind"], row["role"]) for row in rows] == [
        ("Field notes", "shared", "member"),
        ("Personal", "personal", "administrator"),
    ]
    (row,) = caller("workspace_key").get("/v1/workspaces").json()["data"]
    assert (row["id"], row["role"]) == (workspace_id, None)
    models = caller("workspace_key").get("/v1/models").json()["data"]
    assert [model["id"] for model in models] == ["demo/assistant", "demo/scripted"]
    first = caller("member").get("/v1/models?limit=1").json()
    rest = caller("member").get(f"/v1/models?limit=1&page={first['next_page']}").json()
    assert [model["id"] for model in (*first["data"], *rest["data"])] == [
        "demo/assistant",
        "demo/scripted",
    ]


def test_archived_sessions_are_paged_by_when_they_were_archived(
    cast: Cast, member: Caller, path: str
) -> None:
    made = [make_session(cast, title=title) for title in ("one", "two", "three")]
    for place in (1, 0, 2):
        archive_session(access=cast.access("member"), session_id=made[place].pk)
    found = walk(member, f"{path}&archived=only&sort=archived&limit=1")
    assert found == ["three", "one", "two"]
