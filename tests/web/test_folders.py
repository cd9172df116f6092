"""Folders as the sidebar shows them: groups of their own, with pages of their own."""

from __future__ import annotations

import re
from typing import Any

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from orgs.models import User
from sessions_app.models import Folder, Session
from sessions_app.services.folders import create_folder, move_session
from sessions_app.services.personal import set_pinned
from tests.factories import Cast, make_session


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def fill(cast: Cast, name: str, count: int) -> tuple[Folder, list[Session]]:
    member = cast.access("member")
    folder = create_folder(access=member, workspace_id=cast.workspace.pk, name=name)
    inside = [make_session(cast, title=f"{name} {n:02}") for n in range(count)]
    for session in inside:
        move_session(access=member, session_id=session.pk, folder_id=folder.pk)
    return folder, inside


def groups_in(html: str) -> dict[str, list[str]]:
    """The titles of the rows of each group, in their order."""
    parts = re.split(r'<details class="group" data-group="([^"]+)"', html)[1:]
    titles = [re.findall(r'row-title" dir="auto">([^<]*)<', part) for part in parts[1::2]]
    return dict(zip(parts[::2], titles, strict=True))


def test_folders_stand_behind_the_pinned_and_each_row_in_one_group(cast: Cast) -> None:
    tides, inside = fill(cast, "Tides", 12)
    kilns, _ = fill(cast, "Kilns", 0)
    plain = make_session(cast, title="Plain")
    set_pinned(access=cast.access("member"), session_id=inside[3].pk, pinned=True)
    page = f"/w/{cast.workspace.public_id}/sidebar/"
    mine = groups_in(browser(cast.member).get(page).content.decode())
    assert list(mine) == ["pinned", tides.public_id, kilns.public_id, "today"]
    assert mine["pinned"] == ["Tides 03"]
    newest = [f"Tides {n:02}" for n in range(11, -1, -1) if n != 3]
    assert mine[tides.public_id] == newest[:10]
    assert mine["today"] == [plain.title]
    theirs = browser(cast.viewer)
    shown = theirs.get(page).content.decode()
    assert "pinned" not in groups_in(shown)
    [older] = re.findall(rf'href="(/w/\w+/group/{tides.public_id}/\?cursor=[^"]+)"', shown)
    more = theirs.get(older).content.decode()
    assert "Tides 01" in more
    assert "Tides 00" in more
    assert "Tides 02" not in re.sub("<nav.*?</nav>", "", more, flags=re.DOTALL)


def test_the_sidebar_costs_the_same_however_many_folders_there_are(cast: Cast) -> None:
    client = browser(cast.member)
    counts = set()
    for first in (0, 10):
        for number in range(first, first + 3 + first):
            fill(cast, f"Folder {number}", 2)
        with CaptureQueriesContext(connection) as queries:
            client.get(f"/w/{cast.workspace.public_id}/sidebar/")
        counts.add(len(queries))
    assert len(counts) == 1


def test_hostile_forms_are_refused_in_words(cast: Cast) -> None:
    folder, [session] = fill(cast, "Tides", 1)
    folders, move = f"/w/{cast.workspace.public_id}/folders", f"/s/{session.public_id}/move"
    its = f"{folders}/{folder.public_id}"
    cases: list[tuple[str, User, str, dict[str, Any], int]] = [
        ("made", cast.member, folders, {"name": "Kilns"}, 200),
        ("no name", cast.member, folders, {}, 400),
        ("NUL", cast.member, folders, {"name": "a\x00"}, 400),
        ("taken", cast.member, folders, {"name": "TIDES"}, 409),
        ("place 0", cast.member, its, {"position": "0"}, 400),
        ("far place", cast.member, its, {"position": "9" * 15}, 200),
        ("reads only", cast.viewer, folders, {"name": "x"}, 403),
        ("reads only", cast.viewer, f"{its}/delete", {}, 403),
        ("a stranger", cast.outsider, folders, {"name": "x"}, 404),
        ("a stranger", cast.outsider, its, {"name": "x"}, 404),
        ("a stranger", cast.outsider, move, {"folder": folder.public_id}, 404),
        ("no folder", cast.member, move, {"folder": session.public_id}, 404),
        ("out", cast.member, move, {"folder": ""}, 200),
        ("shut", cast.viewer, f"/w/{cast.workspace.public_id}/fold", {"group": "today"}, 200),
        ("no group", cast.viewer, f"/w/{cast.workspace.public_id}/fold", {"group": "x"}, 404),
    ]
    for what, user, path, sent, status in cases:
        answer = browser(user).post(path, sent, HTTP_ACCEPT="application/json")
        assert answer.status_code == status, (what, answer.content)
    client, groups = browser(cast.viewer), f"/w/{cast.workspace.public_id}/sidebar/"
    for folded in ("1", "0"):
        sent = {"group": folder.public_id, "folded": folded}
        client.post(f"/w/{cast.workspace.public_id}/fold", sent)
        head = f'data-group="{folder.public_id}" data-is-folder'
        assert (f"{head} open>" in client.get(groups).content.decode()) is (folded == "0")
        assert f"{head} open>" in browser(cast.member).get(groups).content.decode()
