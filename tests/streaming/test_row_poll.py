"""The poll tells of rows that changed, and of none that only others moved."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from core.db import in_db_thread
from sessions_app.domain.vocabulary import Visibility
from sessions_app.services.archiving import archive_session
from sessions_app.services.visibility import set_visibility
from sessions_app.streaming import hub as hub_module
from sessions_app.streaming import rows
from sessions_app.streaming.hub import Hub
from sessions_app.streaming.rows import find_changed, read_row_states
from tests.factories import Cast, make_session
from tests.services.test_children import allow_private
from tests.streaming.test_socket import tab_of

WORKSPACE = UUID(int=1)
START = datetime(2026, 1, 1, tzinfo=UTC)


def window(numbers: list[int], *, look: str = "", of: int = 3) -> rows.Window:
    """Sessions by when they were active: of all these the newest `of`."""
    top = sorted(numbers, reverse=True)[:of]
    places = {UUID(int=n): (START + timedelta(minutes=n), UUID(int=n)) for n in top}
    shown = {UUID(int=n): (look if n == top[0] else "",) for n in top}
    return rows.Window(shown, places, min(places.values()) if len(top) == of else None)


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ([1, 2, 3], [1, 2, 3], set()),
        ([1, 2, 3], [1, 2, 3, 4], {4}),  # 1 was pushed over the edge
        ([1, 2, 3, 4], [1, 2, 3], {4}),  # 1 was let in
        ([1, 2, 3, 4], [1, 2, 4], {3}),
        ([2, 3], [2], {3}),
        ([2], [1, 2], {1}),
        ([2, 3, 4], [3, 4], {2}),
    ],
)
def test_only_what_came_or_went_itself_is_told(
    before: list[int], after: list[int], changed: set[int]
) -> None:
    found = find_changed({WORKSPACE: window(before)}, {WORKSPACE: window(after)})
    assert found.get(WORKSPACE, set()) == {UUID(int=n) for n in changed}


def test_what_looks_different_is_told() -> None:
    found = find_changed(
        {WORKSPACE: window([1, 2, 3])}, {WORKSPACE: window([1, 2, 3], look="working")}
    )
    assert found == {WORKSPACE: {UUID(int=3)}}


@pytest.mark.django_db
def test_the_edge_is_known_where_there_is_one(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "ROWS_POLLED", 3)
    made = [make_session(cast) for _ in range(2)]
    pk = cast.workspace.pk
    assert read_row_states([pk])[pk].floor is None
    made += [make_session(cast) for _ in range(2)]
    found = read_row_states([pk])[pk]
    assert found.rows.keys() == {each.pk for each in made[1:]}
    assert found.floor == (made[1].activity_at, made[1].pk)


async def test_a_private_session_moves_no_row_of_anybody_else(
    committed_cast: Cast, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither when it comes nor when it goes, in a workspace with more rows than are polled."""
    monkeypatch.setattr(rows, "ROWS_POLLED", 3)
    await in_db_thread(allow_private, committed_cast)
    for _ in range(5):
        await in_db_thread(make_session, committed_cast)
    polled = []

    def noting(workspace_ids: list[UUID]) -> rows.RowStates:
        polled.append(read_row_states(workspace_ids))
        return polled[-1]

    monkeypatch.setattr(hub_module, "read_row_states", noting)
    own, other = await tab_of(committed_cast), await tab_of(committed_cast, "owner")
    for tab in (own, other):
        await tab.say("sidebar", workspace=committed_cast.workspace.public_id)
        await tab.until_told("ready")

    async def poll_twice() -> None:
        """Once from before, once from after whatever was done."""
        done = len(polled) + 2
        await own.until(lambda: len(polled) >= done)

    await poll_twice()
    session = await in_db_thread(make_session, committed_cast, visibility=Visibility.PRIVATE)
    await poll_twice()
    access = await in_db_thread(committed_cast.access, "member")
    await in_db_thread(archive_session, access=access, session_id=session.pk)
    await poll_twice()
    assert [row["id"] for frame in own.told("sidebar") for row in frame["rows"]] == [
        session.public_id
    ]
    assert other.told("sidebar") == []
    for tab in (own, other):
        await tab.close()


@pytest.mark.django_db
def test_who_may_see_a_session_is_part_of_how_its_row_looks(cast: Cast) -> None:
    """Else a lost hint would leave a hidden one in the lists of others."""
    allow_private(cast)
    session, pk = make_session(cast), cast.workspace.pk
    before = read_row_states([pk])
    set_visibility(
        access=cast.access("member"), session_id=session.pk, visibility=Visibility.PRIVATE
    )
    assert find_changed(before, read_row_states([pk])) == {pk: {session.pk}}
