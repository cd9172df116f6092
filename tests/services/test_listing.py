"""Pages whose order comes from an index and which stay whole while rows move."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from core.cursors import encode_cursor
from core.errors import Forbidden, InvalidInput
from orgs.access import Access
from sessions_app import listing
from sessions_app.listing import SessionQuery, Sort, list_sessions
from sessions_app.models import Session
from sessions_app.services.archiving import archive_session
from sessions_app.services.personal import set_pinned
from tests.factories import Cast, make_session, send


def walk(access: Access, cast: Cast, **query: Any) -> list[Session]:
    rows: list[Session] = []
    page: str | None = query.pop("page", "")
    while page is not None:
        result = list_sessions(
            access=access, query=SessionQuery(workspace_id=cast.workspace.pk, page=page, **query)
        )
        rows += result.rows
        page = result.next_page
    return rows


@pytest.mark.parametrize("sort", [Sort.CREATED, Sort.UPDATED, Sort.SIDEBAR, Sort.NAME])
@pytest.mark.parametrize("limit", [1, 3, 7, 100])
def test_every_session_is_on_exactly_one_page(cast: Cast, sort: Sort, limit: int) -> None:
    made = [make_session(cast, title=f"{n}") for n in range(8)]
    moment = made[0].created_at
    Session.objects.update(created_at=moment, activity_at=moment)
    member = cast.access("member")
    for session in made[2:4]:
        set_pinned(access=member, session_id=session.pk, pinned=True)
    rows = walk(member, cast, sort=sort, limit=limit)
    assert sorted(row.pk for row in rows) == sorted(session.pk for session in made)
    if sort is Sort.SIDEBAR:
        assert [row.pk for row in rows[:2]] == [made[3].pk, made[2].pk]


def test_names_are_ordered_without_case_and_accents_whatever_the_server(cast: Cast) -> None:
    for title in ("zebra", "Ärger", "apple", "Zoo", "éclair", "Eclipse", "", "日本", "x" * 120):
        make_session(cast, title=title)
    expected = ["", "apple", "Ärger", "éclair", "Eclipse", "x" * 120, "zebra", "Zoo", "日本"]
    for limit in (1, 4, 100):
        rows = walk(cast.access("member"), cast, sort=Sort.NAME, ascending=True, limit=limit)
        assert [row.title for row in rows] == expected
    backwards = walk(cast.access("member"), cast, sort=Sort.NAME, ascending=False, limit=2)
    assert [row.title for row in backwards] == expected[::-1]


def test_a_cursor_by_name_holds_the_longest_name_and_no_text_that_cannot_be_stored(
    cast: Cast,
) -> None:
    for _ in range(2):
        make_session(cast, title="\U0001f469" * 120)
    assert len(walk(cast.access("member"), cast, sort=Sort.NAME, limit=1)) == 2
    query = SessionQuery(cast.workspace.pk, sort=Sort.NAME)
    for text in ("\x00", "\x1b\x00"):
        bent = encode_cursor(query.fingerprint, [1, text, cast.workspace.pk.hex])
        with pytest.raises(InvalidInput) as refused:
            walk(cast.access("member"), cast, sort=Sort.NAME, page=bent)
        assert refused.value.code == "invalid_cursor"


def test_pins_are_one_persons_own(cast: Cast) -> None:
    first, _ = make_session(cast), make_session(cast)
    set_pinned(access=cast.access("member"), session_id=first.pk, pinned=True)
    assert walk(cast.access("member"), cast, sort=Sort.SIDEBAR)[0].pk == first.pk
    assert walk(cast.access("second_member"), cast, sort=Sort.SIDEBAR)[0].pk != first.pk


def test_archived_sessions_leave_the_list_and_have_their_own(cast: Cast) -> None:
    kept, gone = make_session(cast), make_session(cast)
    archive_session(access=cast.access("member"), session_id=gone.pk)
    assert [row.pk for row in walk(cast.access("member"), cast)] == [kept.pk]
    archived = walk(cast.access("member"), cast, archived="only", sort=Sort.ARCHIVED)
    assert [row.pk for row in archived] == [gone.pk]


def test_a_partition_is_read_alone(cast: Cast) -> None:
    make_session(cast)
    task = make_session(cast, origin={"type": "task", "task_id": "daily"})
    assert [row.pk for row in walk(cast.access("member"), cast, origin_type="task")] == [task.pk]


@pytest.mark.parametrize("near", [0, 1, 1_000])
def test_the_contains_filter_takes_text_literally_and_folds_it(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, near: int
) -> None:
    monkeypatch.setattr(listing, "NEAR", near)
    member = cast.access("member")
    harbour = make_session(cast, title="Harbour survey: 100% of C:\\tiles_a")
    cafe = make_session(cast, title="Café Ångström")
    tiles = make_session(cast, title="東京の灯台")
    plain = make_session(cast, title="plain")
    send(cast, plain, "Where does the ÉCLAIR come from?")
    for text, found in {
        "harb": [harbour],
        "HARB": [harbour],
        "0%": [harbour],
        "S_A": [harbour],
        ":\\t": [harbour],
        "s%a": [],
        "l_i": [],
        "％": [harbour],
        "cafe": [cafe],
        "ANGSTRÖM": [cafe],
        "A\u030angström": [cafe],
        "灯台": [tiles],
        "京": [tiles],
        "eclair": [plain],
        "plain where": [],
        "a": [plain, cafe, harbour],
        "nowhere": [],
        plain.public_id: [plain],
        plain.public_id[:-3].upper(): [plain],
        plain.pk.hex[:-3]: [plain],
        str(plain.pk): [plain],
        "ses_": [],
    }.items():
        for limit in (1, 30):
            rows = walk(member, cast, query=text, limit=limit)
            assert [row.pk for row in rows] == [each.pk for each in found], text
        rows = walk(member, cast, query=text, sort=Sort.SIDEBAR, limit=2)
        assert {row.pk for row in rows} == {each.pk for each in found}, text


@pytest.mark.parametrize("page", ["abc", "e30", "%%%", "x" * 2000, "W10"])
def test_a_garbled_cursor_is_refused(cast: Cast, page: str) -> None:
    query = SessionQuery(workspace_id=cast.workspace.pk, page=page)
    with pytest.raises(InvalidInput) as refusal:
        list_sessions(access=cast.access("member"), query=query)
    assert refusal.value.code in {"invalid_cursor", "cursor_of_another_query"}


def test_a_cursor_of_another_query_is_refused(cast: Cast) -> None:
    for _ in range(3):
        make_session(cast)
    member = cast.access("member")
    first = list_sessions(access=member, query=SessionQuery(cast.workspace.pk, limit=1))
    assert first.next_page
    other = SessionQuery(cast.workspace.pk, limit=1, query="x", page=first.next_page)
    with pytest.raises(InvalidInput, match="cursor_of_another_query"):
        list_sessions(access=member, query=other)


def test_an_outsiders_list_is_refused(cast: Cast) -> None:
    with pytest.raises(Forbidden):
        walk(cast.access("outsider"), cast)


@pytest.mark.parametrize("sort", [Sort.CREATED, Sort.SIDEBAR])
def test_a_page_costs_the_same_whatever_its_length(cast: Cast, sort: Sort) -> None:
    member = cast.access("member")
    counts = set()
    for _ in range(2):
        for _ in range(5):
            send(cast, make_session(cast))
        with CaptureQueriesContext(connection) as queries:
            list_sessions(access=member, query=SessionQuery(cast.workspace.pk, sort=sort))
        counts.add(len(queries))
    assert counts == {1 if sort is Sort.CREATED else 2}
