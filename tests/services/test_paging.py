"""Pages that are walked while rows move: what nobody touched is on exactly one of them."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orgs.access import Access
from sessions_app.listing import SessionQuery, Sort, list_sessions
from sessions_app.models import Folder, Session
from sessions_app.services.archiving import archive_session, delete_session
from sessions_app.services.folders import move_session
from sessions_app.services.personal import set_pinned
from sessions_app.services.sessions import SessionChanges, update_session
from tests.factories import Cast, make_session, send

SORTS = [Sort.CREATED, Sort.UPDATED, Sort.SIDEBAR, Sort.NAME]
COUNT = 12
DEEDS = ("bump", "pin", "archive", "delete", "rename", "move", "create")
disturbances = st.lists(
    st.lists(st.tuples(st.sampled_from(DEEDS), st.integers(0, COUNT - 1)), max_size=3),
    max_size=8,
)


def disturb(cast: Cast, member: Access, deed: str, session: Session) -> None:
    if deed == "create":
        make_session(cast, title=session.title)
    elif not Session.objects.filter(pk=session.pk, archived_at=None).exists():
        return
    elif deed == "bump":
        send(cast, session)
    elif deed == "pin":
        pinned = Session.objects.with_personal_state(member.user_id).get(pk=session.pk).pinned_at
        set_pinned(access=member, session_id=session.pk, pinned=pinned is None)
    elif deed == "move":
        folder = Folder.objects.get_or_create(workspace=cast.workspace, name="Kilns", position=1)
        move_session(access=member, session_id=session.pk, folder_id=folder[0].pk)
    elif deed == "archive":
        archive_session(access=member, session_id=session.pk, stop=True)
    elif deed == "delete":
        delete_session(access=member, session_id=session.pk, stop=True)
    else:
        changes = SessionChanges(title=f"{session.title[::-1]}x")
        update_session(access=member, session_id=session.pk, changes=changes)


@pytest.mark.slow
@pytest.mark.parametrize("sort", SORTS)
@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(between=disturbances, limit=st.integers(1, 5), ascending=st.booleans(), same=st.booleans())
def test_whatever_moves_between_pages_untouched_rows_come_once_and_in_order(
    cast: Cast,
    sort: Sort,
    between: list[list[tuple[str, int]]],
    limit: int,
    ascending: bool,
    same: bool,
) -> None:
    Session.objects.filter(workspace=cast.workspace).update(origin_type="past")
    member = cast.access("member")
    made = [make_session(cast, title="same" if same else f"{n % 5}") for n in range(COUNT)]
    if same:
        Session.objects.update(created_at=made[0].created_at, activity_at=made[0].created_at)
    for session in made[:3]:
        set_pinned(access=member, session_id=session.pk, pinned=True)

    def page_at(page: str, size: int = limit) -> tuple[list[Session], str | None]:
        query = SessionQuery(
            cast.workspace.pk, sort=sort, ascending=ascending, limit=size, page=page
        )
        found = list_sessions(access=member, query=query)
        return found.rows, found.next_page

    before = [row.pk for row in page_at("", 100)[0]]
    touched: set[object] = set()
    found: list[object] = []
    page: str | None = ""
    turns = iter(between)
    while page is not None:
        rows, page = page_at(page)
        found += [row.pk for row in rows]
        for deed, number in next(turns, ()):
            if deed != "create":
                touched.add(made[number].pk)
            disturb(cast, member, deed, made[number])
    untouched = {session.pk for session in made} - touched
    assert [pk for pk in found if pk in untouched] == [pk for pk in before if pk in untouched]


@pytest.mark.parametrize("sort", SORTS)
def test_500_sessions_of_one_moment_are_each_on_one_page_in_one_order(
    cast: Cast, sort: Sort
) -> None:
    first = make_session(cast, title="same")
    fields = [field.name for field in Session._meta.local_concrete_fields if not field.generated]
    copied = {name: getattr(first, name) for name in fields if name != "id"}
    Session.objects.bulk_create(Session(**copied) for _ in range(499))
    walked = {}
    for ascending in (False, True):
        rows, page = [], ""
        while page is not None:
            query = SessionQuery(
                cast.workspace.pk, sort=sort, ascending=ascending, limit=7, page=page
            )
            found = list_sessions(access=cast.access("member"), query=query)
            rows += [row.pk for row in found.rows]
            page = found.next_page
        assert len(rows) == len(set(rows)) == 500
        walked[ascending] = rows
    assert walked[True] == walked[False][::-1]
