"""What is one person's own is told to nobody else who listens: its whole life long not a frame, and
no byte of the streams that others read (BR-089, BR-092).
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest

from core.db import in_db_thread
from sessions_app.streaming.hub import Hub
from tests.api.hiding import Hidden, Workspace, erase
from tests.factories import Cast, send
from tests.streaming.helpers import Tab, whole_log
from tests.streaming.servers import Server, Stream, key_of
from tests.streaming.test_socket import tab_of

STRANGERS = (
    "second_member",
    "admin",
    "owner",
    "bare_admin",
    "viewer",
    "workspace_key",
    "organization_key",
    "bare_key",
    "outsider",
)
SEE_NO_WORKSPACE = {"bare_admin", "bare_key", "outsider"}
SLOW_SECONDS = 60.0
QUIET_SECONDS = 3.0  # beyond every poll and every pause in which frames are gathered


async def listen(tab: Tab, workspace: Workspace, hidden: Hidden, cast: Cast) -> None:
    """To all that a page listens to, and to the hidden session by its id."""
    for each in (cast.workspace, cast.other_workspace):
        await tab.say("sidebar", workspace=each.public_id)
        roots = [workspace.session.public_id, hidden.session_id]
        await tab.say("trees", workspace=each.public_id, sessions=roots)
    for session in (workspace.session.public_id, workspace.child.public_id, hidden.session_id):
        await tab.say("subscribe", session=session, after=0)
    await heard_out(tab, workspace, hidden, cast)


async def heard_out(tab: Tab, workspace: Workspace, hidden: Hidden, cast: Cast) -> None:
    """Until each thing that was asked has its answer, however slow the machine is."""
    for each in (cast.workspace, cast.other_workspace):
        await tab.until(lambda at=each.public_id: answers(tab, "ready", workspace=at), SLOW_SECONDS)
    for session in (workspace.session.public_id, workspace.child.public_id, hidden.session_id):
        await tab.until(lambda at=session: answers(tab, "caught_up", session=at), SLOW_SECONDS)
    if tab.told("ready", workspace=cast.workspace.public_id):
        child = workspace.child.public_id
        await tab.until(lambda: child in str(tab.told("sidebar")), SLOW_SECONDS)


def answers(tab: Tab, type_: str, **about: str) -> list[dict[str, Any]]:
    return tab.told(type_, **about) + tab.told("error", **about)


def frames_of(tab: Tab) -> list[dict[str, Any]]:
    """A row that is read anew tells the same: what counts is what it says."""
    return [frame for frame in tab.frames if frame["type"] != "pong"]


async def test_nothing_of_its_life_is_told_to_others(
    committed_cast: Cast, hub: Hub, postgres_bus: str
) -> None:
    cast = committed_cast
    workspace: Workspace = await in_db_thread(Workspace, cast)
    hidden = Hidden.to_be()
    maker = await tab_of(cast, "member")
    tabs = {name: await tab_of(cast, name) for name in STRANGERS}
    for tab in (maker, *tabs.values()):
        await listen(tab, workspace, hidden, cast)
    before = {name: frames_of(tab) for name, tab in tabs.items()}
    heard = len(frames_of(maker))
    made = await in_db_thread(hidden.make, workspace)
    await maker.until(lambda: hidden.word in str(maker.frames))
    await maker.until_told("inbox")
    await asyncio.sleep(QUIET_SECONDS)
    await in_db_thread(erase, workspace, made)
    await maker.until(lambda: any(frame.get("removed") for frame in maker.told("sidebar")))
    await asyncio.sleep(QUIET_SECONDS)
    assert {name: frames_of(tab) for name, tab in tabs.items()} == before
    assert len(frames_of(maker)) > heard
    # They do listen: what all may see comes at once.
    await in_db_thread(send, cast, workspace.session)
    for name, tab in tabs.items():
        if name not in SEE_NO_WORKSPACE:
            await tab.until(lambda at=name, each=tab: len(frames_of(each)) > len(before[at]))
    for tab in (maker, *tabs.values()):
        await tab.close()


@pytest.mark.parametrize("name", ["workspace_key", "organization_key", "read_only_key"])
async def test_a_stream_of_a_shared_session_is_the_same_bytes(
    server: Server, committed_cast: Cast, postgres_bus: str, name: str
) -> None:
    cast = committed_cast
    workspace: Workspace = await in_db_thread(Workspace, cast)
    hidden = Hidden.to_be()

    async def read(session_id: str) -> tuple[int, list[str], str]:
        path = f"{server.url}/v1/sessions/{session_id}/events/stream?after=0"
        stream = Stream(path, key_of(cast, name)).start()
        await stream.until(lambda: stream.told("caught_up") or stream.has_ended)
        told = [f"{m.event} {m.id} {m.data}" for m in stream.messages]
        body = re.sub(r"req_\w+", "·", stream.body.decode())
        await stream.close()
        return stream.status, told, body.replace(session_id, "·")

    shared = workspace.session.public_id
    without = await read(shared), await read(hidden.session_id)
    made = await in_db_thread(hidden.make, workspace)
    assert (await read(shared), await read(hidden.session_id)) == without
    assert without[1][0] == 404
    assert len(without[0][1]) > len(await in_db_thread(whole_log, workspace.session.pk))
    assert "caught_up" in json.dumps(without[0][1])
    await in_db_thread(erase, workspace, made)
    assert (await read(shared), await read(hidden.session_id)) == without
