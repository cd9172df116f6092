"""Folders that a workspace shares, and what each person keeps shut."""

from __future__ import annotations

import pytest

from core.errors import Conflict, Forbidden, InvalidInput, NotFound
from core.ids import uuid7
from sessions_app.listing import SessionQuery, list_sessions
from sessions_app.models import FoldedGroup, Folder
from sessions_app.selectors import list_folders
from sessions_app.services.archiving import archive_session
from sessions_app.services.folders import (
    change_folder,
    create_folder,
    delete_folder,
    move_session,
    set_folded,
)
from tests.factories import Cast, make_session


def make(cast: Cast, name: str, *, by: str = "member") -> Folder:
    return create_folder(access=cast.access(by), workspace_id=cast.workspace.pk, name=name)


def order(cast: Cast) -> list[tuple[str, int]]:
    found = list_folders(access=cast.access("viewer"), workspace_id=cast.workspace.pk)
    return [(folder.name, folder.position) for folder in found]


def test_folders_stand_in_their_order_whatever_is_moved_renamed_or_deleted(cast: Cast) -> None:
    first, second, third = (make(cast, name) for name in ("Tides", "  Kiln\n logs ", "Surveys"))
    where = {"access": cast.access("second_member"), "workspace_id": cast.workspace.pk}
    assert order(cast) == [("Tides", 1), ("Kiln logs", 2), ("Surveys", 3)]
    change_folder(**where, folder_id=third.pk, position=1)
    change_folder(**where, folder_id=first.pk, position=999, name="TIDES")
    assert order(cast) == [("Surveys", 1), ("Kiln logs", 2), ("TIDES", 3)]
    delete_folder(**where, folder_id=second.pk)
    assert order(cast) == [("Surveys", 1), ("TIDES", 2)]
    with pytest.raises(NotFound):
        delete_folder(**where, folder_id=second.pk)


@pytest.mark.parametrize("name", ["", " \n", "\u200b", "\x00", "\ud800", "x" * 101])
def test_a_name_can_be_seen_and_is_bounded(cast: Cast, name: str) -> None:
    with pytest.raises(InvalidInput):
        make(cast, name)


def test_a_name_is_taken_whatever_its_case_and_folders_are_bounded(
    cast: Cast, settings: object
) -> None:
    other = make(cast, "Ärger")
    make(cast, "Tides")
    create_folder(
        access=cast.access("outsider"), workspace_id=cast.other_workspace.pk, name="Tides"
    )
    for name in ("tides", "äRGER"):
        with pytest.raises(Conflict, match="name_taken"):
            make(cast, name)
    with pytest.raises(Conflict, match="name_taken"):
        change_folder(
            access=cast.access("member"),
            workspace_id=cast.workspace.pk,
            folder_id=other.pk,
            name="TIDES",
        )
    settings.FOLDERS_MAX = 2  # type: ignore[attr-defined]
    with pytest.raises(Conflict, match="too_many_folders"):
        make(cast, "Surveys")


def test_who_only_reads_changes_no_folder_and_strangers_know_of_none(cast: Cast) -> None:
    folder = make(cast, "Tides")
    session = make_session(cast)
    with pytest.raises(Forbidden):
        make(cast, "Kilns", by="viewer")
    with pytest.raises(Forbidden):
        move_session(access=cast.access("viewer"), session_id=session.pk, folder_id=folder.pk)
    for act in (list_folders, create_folder):
        more = {"name": "Kilns"} if act is create_folder else {}
        with pytest.raises(NotFound):
            act(access=cast.access("outsider"), workspace_id=cast.workspace.pk, **more)
    with pytest.raises(NotFound):
        move_session(access=cast.access("outsider"), session_id=session.pk, folder_id=None)


def test_sessions_are_moved_in_and_out_and_stay_when_their_folder_goes(cast: Cast) -> None:
    folder, member = make(cast, "Tides"), cast.access("member")
    inside, outside, archived = (make_session(cast, title=title) for title in "abc")
    for session in (inside, inside, archived):
        moved = move_session(access=member, session_id=session.pk, folder_id=folder.pk)
        assert moved.folder_id == folder.pk
    archive_session(access=member, session_id=archived.pk)
    query = SessionQuery(cast.workspace.pk, folder_id=folder.pk)
    assert [row.pk for row in list_sessions(access=member, query=query).rows] == [inside.pk]
    delete_folder(access=member, workspace_id=cast.workspace.pk, folder_id=folder.pk)
    rows = list_sessions(access=member, query=SessionQuery(cast.workspace.pk)).rows
    assert {(row.pk, row.folder_id) for row in rows} == {(inside.pk, None), (outside.pk, None)}
    archived.refresh_from_db()
    assert archived.folder_id is None


def test_no_session_gets_into_a_folder_elsewhere_and_no_child_leaves_its_parent(cast: Cast) -> None:
    session = make_session(cast)
    child = make_session(cast, parent_id=session.pk)
    elsewhere = create_folder(
        access=cast.access("outsider"), workspace_id=cast.other_workspace.pk, name="Tides"
    )
    for folder_id in (elsewhere.pk, uuid7()):
        with pytest.raises(InvalidInput, match="folder_not_found"):
            move_session(access=cast.access("member"), session_id=session.pk, folder_id=folder_id)
    with pytest.raises(Conflict, match="child_session"):
        move_session(access=cast.access("member"), session_id=child.pk, folder_id=None)


def test_what_one_keeps_shut_is_ones_own(cast: Cast) -> None:
    folder = make(cast, "Tides")
    where = {"workspace_id": cast.workspace.pk}
    for _ in range(2):
        for group, folder_id in (("today", None), ("", folder.pk)):
            set_folded(
                access=cast.access("viewer"), **where, folded=True, group=group, folder_id=folder_id
            )
    assert {fold.user_id for fold in FoldedGroup.objects.all()} == {cast.viewer.pk}
    assert FoldedGroup.objects.count() == 2
    set_folded(access=cast.access("member"), **where, folded=False, folder_id=folder.pk)
    delete_folder(access=cast.access("member"), **where, folder_id=folder.pk)
    assert [fold.group for fold in FoldedGroup.objects.all()] == ["today"]
    with pytest.raises(Forbidden):
        set_folded(
            access=cast.access("workspace_key"), **where, folded=True, group="today", folder_id=None
        )
    with pytest.raises(NotFound):
        set_folded(
            access=cast.access("outsider"), **where, folded=True, group="today", folder_id=None
        )
