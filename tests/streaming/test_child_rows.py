"""Rows below a root: told to those who have its tree open, and to nobody else."""

from __future__ import annotations

from typing import Any

import pytest

from core.db import in_db_thread
from core.ids import encode_id, uuid7
from sessions_app.models import Session
from sessions_app.services.archiving import archive_session, delete_session
from sessions_app.streaming import rendering
from sessions_app.streaming.hub import Hub
from sessions_app.streaming.messages import TREES_MAX
from sessions_app.streaming.socket import SIDEBARS_MAX
from sessions_app.web.live import LiveRenderer
from sessions_app.web.sidebar import render_row
from tests.factories import Cast, make_session, send
from tests.streaming.helpers import Tab
from tests.streaming.test_socket import tab_of


async def make_family(cast: Cast, **fields: Any) -> tuple[Session, Session]:
    parent = await in_db_thread(make_session, cast, title="Parent", **fields)
    child = await in_db_thread(make_session, cast, title="Child", parent_id=parent.pk)
    return parent, child


async def watch(cast: Cast, name: str, *roots: Session) -> Tab:
    tab = await tab_of(cast, name)
    await tab.say("sidebar", workspace=cast.workspace.public_id)
    await tab.until_told("ready", workspace=cast.workspace.public_id)
    if roots:
        named = [root.public_id for root in roots]
        await tab.say("trees", workspace=cast.workspace.public_id, sessions=named)
    return tab


def rows(tab: Tab, session: Session) -> list[dict[str, Any]]:
    told = [row for frame in tab.told("sidebar") for row in frame["rows"]]
    return [row for row in told if row["id"] == session.public_id]


def removed(tab: Tab) -> set[str]:
    return {each for frame in tab.told("sidebar") for each in frame["removed"]}


async def test_a_childs_row_reaches_who_has_its_tree_open(committed_cast: Cast, hub: Hub) -> None:
    parent, child = await make_family(committed_cast)
    shown = await watch(committed_cast, "viewer", parent)
    closed = await watch(committed_cast, "owner")
    await shown.until(lambda: rows(shown, child))  # at once, as it is now
    shown.frames.clear()
    await in_db_thread(send, committed_cast, child, "When is high water?")
    await shown.until(lambda: rows(shown, child), seconds=3)
    row = rows(shown, child)[-1]
    assert (row["parent_id"], row["working"]) == (parent.public_id, True)
    await closed.until(lambda: any(row["working"] for row in rows(closed, parent)), seconds=3)
    assert rows(closed, child) == []
    assert removed(closed) == set()
    for tab in (shown, closed):
        await tab.close()


async def test_a_tree_that_is_closed_again_is_told_no_more(committed_cast: Cast, hub: Hub) -> None:
    parent, child = await make_family(committed_cast)
    tab = await watch(committed_cast, "member", parent)
    await tab.until(lambda: rows(tab, child))
    await tab.say("trees", workspace=committed_cast.workspace.public_id, sessions=[])
    await tab.say("ping")
    await tab.until_told("pong")
    tab.frames.clear()
    await in_db_thread(send, committed_cast, child)
    await tab.until(lambda: rows(tab, parent), seconds=3)
    assert rows(tab, child) == []
    await tab.close()


async def test_trees_may_be_named_before_the_workspace_is_followed(
    committed_cast: Cast, hub: Hub
) -> None:
    parent, child = await make_family(committed_cast)
    tab = await tab_of(committed_cast)
    workspace = committed_cast.workspace.public_id
    await tab.say("trees", workspace=workspace, sessions=[parent.public_id])
    await tab.say("sidebar", workspace=workspace)
    await tab.until(lambda: rows(tab, child))
    grandchild = await in_db_thread(make_session, committed_cast, parent_id=child.pk)
    await tab.until(lambda: rows(tab, grandchild), seconds=3)
    await tab.close()


async def test_a_child_that_goes_is_told_to_who_was_shown_it(
    committed_cast: Cast, hub: Hub
) -> None:
    parent, child = await make_family(committed_cast)
    other = await in_db_thread(make_session, committed_cast, parent_id=parent.pk)
    tab = await watch(committed_cast, "member", parent)
    await tab.until(lambda: rows(tab, child) and rows(tab, other))
    owner = await in_db_thread(committed_cast.access, "owner")
    await in_db_thread(archive_session, access=owner, session_id=child.pk)
    await in_db_thread(delete_session, access=owner, session_id=other.pk)
    await tab.until(lambda: removed(tab) == {child.public_id, other.public_id}, seconds=3)
    await tab.close()


async def test_a_private_tree_is_told_to_its_maker_alone(committed_cast: Cast, hub: Hub) -> None:
    committed_cast.organization.allows_private_sessions = True
    await in_db_thread(committed_cast.organization.save)
    parent, child = await make_family(committed_cast, visibility="private")
    own = await watch(committed_cast, "member", parent)
    other = await watch(committed_cast, "owner", parent)
    await own.until(lambda: rows(own, child))
    await in_db_thread(send, committed_cast, child)
    await own.until(lambda: rows(own, child)[-1]["working"], seconds=3)
    member = await in_db_thread(committed_cast.access, "member")
    await in_db_thread(archive_session, access=member, session_id=parent.pk, stop=True)
    await own.until(lambda: child.public_id in removed(own), seconds=3)
    shared = await in_db_thread(make_session, committed_cast)
    await other.until(lambda: rows(other, shared), seconds=3)
    told = {row["id"] for frame in other.told("sidebar") for row in frame["rows"]}
    assert (told | removed(other)) & {parent.public_id, child.public_id} == set()
    for tab in (own, other):
        await tab.close()


async def test_a_tree_of_another_tenant_tells_nothing(committed_cast: Cast, hub: Hub) -> None:
    parent, child = await make_family(committed_cast)
    tab = await tab_of(committed_cast, "outsider")
    own = committed_cast.other_workspace.public_id
    await tab.say("sidebar", workspace=own)
    await tab.until_told("ready", workspace=own)
    await tab.say("trees", workspace=own, sessions=[parent.public_id])
    await tab.say(
        "trees", workspace=committed_cast.workspace.public_id, sessions=[parent.public_id]
    )
    await in_db_thread(send, committed_cast, child)
    await in_db_thread(
        make_session, committed_cast, by="outsider", workspace_id=committed_cast.other_workspace.pk
    )
    frame = await tab.until_told("sidebar", seconds=3)
    assert [row["title"] for row in frame["rows"]] == [""]
    assert rows(tab, child) == []
    await tab.close()


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({}, "invalid_value", "sessions"),
        ({"sessions": "ses_1"}, "invalid_value", "sessions"),
        ({"sessions": ["ses_1"]}, "invalid_id", "sessions"),
        ({"sessions": [7]}, "invalid_id", "sessions"),
        ({"sessions": ["x"] * (TREES_MAX + 1)}, "invalid_value", "sessions"),
        ({"sessions": [], "extra": 1}, "unknown_field", "extra"),
        ({"sessions": [], "workspace": None}, "invalid_id", "workspace"),
    ],
)
async def test_a_bent_message_is_refused(
    committed_cast: Cast, hub: Hub, fields: dict[str, Any], code: str, param: str
) -> None:
    tab = await tab_of(committed_cast)
    await tab.say("trees", **{"workspace": committed_cast.workspace.public_id, **fields})
    problem = await tab.until_told("error")
    assert (problem["code"], problem["param"]) == (code, param)
    await tab.close()


async def test_no_more_workspaces_than_a_socket_may_follow(committed_cast: Cast, hub: Hub) -> None:
    tab = await tab_of(committed_cast)
    for _ in range(SIDEBARS_MAX + 1):
        await tab.say("trees", workspace=encode_id("wrk", uuid7()), sessions=[])
    assert (await tab.until_told("error"))["code"] == "too_many_sidebars"
    await tab.close()


async def test_a_childs_row_comes_with_its_markup(committed_cast: Cast, hub: Hub) -> None:
    rendering.plug(make_event_renderer=LiveRenderer, render_row=render_row)
    try:
        parent, child = await make_family(committed_cast)
        tab = await watch(committed_cast, "member", parent)
        await tab.until(lambda: rows(tab, child))
        assert "is-child" in rows(tab, child)[-1]["html"]
        await tab.close()
    finally:
        rendering.unplug()
