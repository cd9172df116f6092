"""The same act on many sessions: a result for each, and one taking back (BR-133)."""

from __future__ import annotations

from typing import Any

import pytest

from core.ids import Prefix, encode_id, uuid7
from sessions_app.api.bulk import IDS_MAX
from sessions_app.domain.vocabulary import Visibility
from sessions_app.models import Session
from sessions_app.services.archiving import archive_session, unarchive_session
from sessions_app.services.folders import create_folder, move_session
from sessions_app.services.personal import set_pinned
from tests.api.client import Caller, refusal
from tests.factories import Cast, make_session, send
from tests.services.test_children import allow_private

PATH = "/v1/sessions/bulk"


def act(caller: Caller, action: str, sessions: list[Session], **more: Any) -> Any:
    ids = [session.public_id for session in sessions]
    return caller.post(PATH, {"action": action, "ids": ids, **more}).json()


def undo(caller: Caller, token: str) -> Any:
    return caller.post(PATH, {"action": "undo", "undo": token}).json()


def outcomes(body: Any) -> list[tuple[bool, bool, str | None]]:
    return [
        (row["ok"], row["changed"], row["error"] and row["error"]["code"]) for row in body["data"]
    ]


def are_archived(*sessions: Session) -> list[bool]:
    found = Session.objects.in_bulk([session.pk for session in sessions])
    return [found[session.pk].archived_at is not None for session in sessions]


def test_each_has_its_result_and_one_undo_takes_back_what_was_done(cast: Cast) -> None:
    allow_private(cast)
    caller, access = Caller(cast, "member"), cast.access("member")
    idle, busy, before = (make_session(cast) for _ in range(3))
    send(cast, busy)
    archive_session(access=access, session_id=before.pk)
    hidden = make_session(cast, by="second_member", visibility=Visibility.PRIVATE)
    body = act(caller, "archive", [idle, busy, before, hidden, idle])
    assert outcomes(body) == [
        (True, True, None),
        (False, False, "target_working"),
        (True, False, None),
        (False, False, "not_found"),
        (True, False, None),
    ]
    assert are_archived(idle, busy, before, hidden) == [True, False, True, False]
    assert outcomes(undo(caller, body["undo"])) == [(True, True, None)]
    assert are_archived(idle, busy, before) == [False, False, True]
    assert outcomes(undo(caller, body["undo"])) == [(True, False, None)]


def test_pins_and_folders_survive_and_children_come_along(cast: Cast) -> None:
    caller, access = Caller(cast, "member"), cast.access("member")
    folder = create_folder(access=access, workspace_id=cast.workspace.pk, name="Maps")
    session = make_session(cast)
    child = make_session(cast, parent_id=session.pk)
    move_session(access=access, session_id=session.pk, folder_id=folder.pk)
    set_pinned(access=access, session_id=session.pk, pinned=True)
    shown = caller.get(f"/v1/sessions/{session.public_id}").json()
    body = act(caller, "archive", [session])
    assert are_archived(session, child) == [True, True]
    undo(caller, body["undo"])
    assert are_archived(session, child) == [False, False]
    after = caller.get(f"/v1/sessions/{session.public_id}").json()
    assert {k: after[k] for k in ("pinned", "folder_id")} == {
        k: shown[k] for k in ("pinned", "folder_id")
    }


def test_what_somebody_did_since_is_not_taken_back(cast: Cast) -> None:
    caller, access = Caller(cast, "member"), cast.access("member")
    session = make_session(cast)
    token = act(caller, "archive", [session])["undo"]
    unarchive_session(access=access, session_id=session.pk)
    archive_session(access=access, session_id=session.pk)
    assert outcomes(undo(caller, token)) == [(True, False, None)]
    assert are_archived(session) == [True]


def test_restoring_and_moving_are_taken_back(cast: Cast) -> None:
    caller, access = Caller(cast, "member"), cast.access("member")
    maps, tides = (
        create_folder(access=access, workspace_id=cast.workspace.pk, name=name)
        for name in ("Maps", "Tides")
    )
    first, second = make_session(cast), make_session(cast)
    move_session(access=access, session_id=first.pk, folder_id=maps.pk)
    body = act(caller, "move", [first, second], folder_id=tides.public_id)
    assert set(Session.objects.values_list("folder_id", flat=True)) == {tides.pk}
    undo(caller, body["undo"])
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.folder_id, second.folder_id) == (maps.pk, None)
    archive_session(access=access, session_id=first.pk)
    token = act(caller, "unarchive", [first, second])["undo"]
    assert are_archived(first) == [False]
    undo(caller, token)
    assert are_archived(first, second) == [True, False]


def test_a_token_is_its_makers_and_not_for_ever(cast: Cast, settings: Any) -> None:
    caller, session = Caller(cast, "member"), make_session(cast)
    token = act(caller, "archive", [session])["undo"]
    wrong = {"action": "undo", "undo": token}
    other = Caller(cast, "second_member").post(PATH, wrong)
    assert refusal(other) == (400, "invalid_undo", "undo")
    for bent in (token[:-1], f"{token}x", "x", "\x00"):
        assert caller.post(PATH, {"action": "undo", "undo": bent}).status_code == 400
    settings.BULK_UNDO_SECONDS = -1
    assert refusal(caller.post(PATH, wrong)) == (400, "invalid_undo", "undo")
    assert are_archived(session) == [True]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"action": "archive"}, "ids"),
        ({"action": "archive", "ids": []}, "ids"),
        ({"action": "archive", "ids": "x"}, "ids"),
        ({"action": "archive", "ids": [7]}, "ids[0]"),
        ({"action": "move", "ids": ["ses_" + "0" * 32]}, "folder_id"),
        ({"action": "archive", "ids": ["ses_" + "0" * 32], "folder_id": None}, "folder_id"),
        ({"action": "undo"}, "undo"),
        ({"action": "delete", "ids": ["ses_" + "0" * 32]}, "action"),
        ({"action": None}, "action"),
    ],
)
def test_what_is_wrong_is_named(cast: Cast, body: dict[str, Any], param: str) -> None:
    response = Caller(cast, "member").post(PATH, body)
    assert (response.status_code, response.json()["error"]["param"]) == (400, param)


def test_five_hundred_at_once_and_no_more(cast: Cast) -> None:
    """BR-133: of which three are not the caller's to change."""
    caller = Caller(cast, "member")
    allow_private(cast)
    theirs = [make_session(cast, by="owner", visibility=Visibility.PRIVATE) for _ in range(3)]
    own = [make_session(cast) for _ in range(5)]
    unknown = [encode_id(Prefix.SESSION, uuid7()) for _ in range(IDS_MAX - 8)]
    ids = [*(each.public_id for each in (*own, *theirs)), *unknown]
    body = caller.post(PATH, {"action": "archive", "ids": ids}).json()
    assert [row["id"] for row in body["data"]] == ids
    assert [row["ok"] for row in body["data"]] == [True] * 5 + [False] * (IDS_MAX - 5)
    assert are_archived(*own, *theirs) == [True] * 5 + [False] * 3
    too_many = caller.post(PATH, {"action": "archive", "ids": [*ids, ids[0]]})
    assert refusal(too_many)[:2] == (400, "too_long")
