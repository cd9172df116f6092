"""The inventory of an organization: every shared session by its row, without its words."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from core.ids import Prefix, encode_id
from orgs.services.workspaces import create_shared_workspace, remove_workspace_member
from sessions_app.domain.vocabulary import Visibility
from sessions_app.services.archiving import archive_session
from tests.api.client import Caller, refusal
from tests.factories import Cast, make_session, send
from tests.services.test_children import allow_private, make_child


@pytest.fixture
def path(cast: Cast) -> str:
    return f"/v1/organizations/{cast.organization.public_id}/sessions"


def walk(caller: Caller, path: str, limit: int = 2) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor: str | None = ""
    while cursor is not None:
        page = caller.get(f"{path}?limit={limit}&page={cursor}").json()
        found += page["data"]
        cursor = page["next_page"]
    return found


def test_every_shared_session_is_in_it_once_and_nothing_else(cast: Cast, path: str) -> None:
    allow_private(cast)
    owner = cast.access("owner")
    other = create_shared_workspace(
        access=owner, organization_id=cast.organization.pk, name="Harbour"
    )
    made = [make_session(cast, title=f"{n}") for n in range(3)]
    made.append(make_session(cast, by="owner", workspace_id=other.pk))
    make_child(cast, made[0])
    make_session(cast, visibility=Visibility.PRIVATE)
    personal = cast.member.personal_workspaces.get()
    make_session(cast, workspace_id=personal.pk)
    make_session(cast, by="outsider", workspace_id=cast.other_workspace.pk)
    archive_session(access=cast.access("member"), session_id=made[1].pk)
    expected = [made[n].public_id for n in (3, 2, 0)]
    for name in ("owner", "admin", "organization_key"):
        assert [row["id"] for row in walk(Caller(cast, name), path)] == expected
    everything = Caller(cast, "owner").get(f"{path}?include_archived=true").json()["data"]
    assert [row["id"] for row in everything] == [made[n].public_id for n in (3, 2, 1, 0)]


def test_without_a_role_there_no_word_of_a_message_is_shown(cast: Cast, path: str) -> None:
    session = make_session(cast, title="Survey")
    send(cast, session, "What nobody else should read")
    assert "What nobody" in Caller(cast, "admin").get(path).content.decode()
    remove_workspace_member(
        access=cast.access("owner"), workspace_id=cast.workspace.pk, user_id=cast.admin.pk
    )
    admin = Caller(cast, "admin")
    shown = admin.get(path)
    assert "What nobody" not in shown.content.decode()
    (row,) = shown.json()["data"]
    assert (row["title"], row["preview_text"], row["message_count"]) == ("Survey", "", 1)
    assert row["workspace_id"] == encode_id(Prefix.WORKSPACE, cast.workspace.pk)
    assert admin.get(f"/v1/sessions/{session.public_id}").status_code == 404


def test_a_bent_cursor_is_refused(cast: Cast, path: str) -> None:
    answer = Caller(cast, "owner").get(f"{path}?page=AAAA")
    assert refusal(answer) == (400, "invalid_cursor", "page")


def test_a_page_costs_the_same_whatever_its_length(cast: Cast, path: str) -> None:
    owner = Caller(cast, "owner")

    def cost() -> int:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert owner.get(path).status_code == 200
        return len(queries)

    make_session(cast)
    owner.get(path)
    one = cost()
    for _ in range(10):
        make_session(cast)
    assert cost() == one
