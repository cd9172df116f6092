"""Every message of a socket × everyone → what is told: a session, or of nothing (BR-082).

A socket only reads: prompts, stops and answers go over HTTP, where the access matrix has them.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from core.db import in_db_thread
from core.ids import Prefix, encode_id, uuid7
from sessions_app.domain.vocabulary import Visibility
from sessions_app.models import Session
from sessions_app.services.sessions import NewSession, create_session
from sessions_app.streaming.hub import Hub
from sessions_app.streaming.messages import _PARSERS
from tests.api.callers import secrets_of_keys
from tests.api.matrix_rows import DEAD_KEYS, KEYS
from tests.factories import Cast, make_session, send
from tests.services.test_children import allow_private
from tests.streaming.helpers import Tab
from tests.streaming.test_socket import ORIGIN, tab_of

# Which of the targets a caller is told of: the workspace's, one that the member keeps for
# themselves, one in the member's personal workspace, one of the outsider's. All others do not
# exist for them.
NOBODY = (*DEAD_KEYS, "nobody")
SHARED, PRIVATE, PERSONAL, THEIRS = "shared", "private", "personal", "theirs"
SEES: dict[str, set[str]] = {
    "owner": {SHARED},
    "admin": {SHARED},
    "second_member": {SHARED},
    "member": {SHARED, PRIVATE, PERSONAL},
    "viewer": {SHARED},
    "outsider": {THEIRS},
    **{key: {SHARED} for key in KEYS},
    "bare_admin": set(),
    "bare_key": set(),
    **{key: set() for key in NOBODY},
}
# How each message is asked about a session, or about its workspace; None asks about nothing.
MESSAGES: dict[str, tuple[dict[str, Any], ...]] = {
    "subscribe": (
        {"session": "{session}", "after": 0},
        {"session": "{session}"},
        {"session": "{session}", "after": 0, "types": ["user.message"]},
    ),
    "sidebar": ({"workspace": "{workspace}"}, {"workspace": "{workspace}", "cursor": "x"}),
    "trees": ({"workspace": "{workspace}", "sessions": ["{session}"]},),
    "unsubscribe": ({"session": "{session}"}, {"workspace": "{workspace}"}),
    "focus": ({"session": "{session}"},),
    "ping": ({},),
}
QUIET = ("trees", "unsubscribe", "focus", "ping")  # they tell nothing by themselves


def targets(cast: Cast) -> dict[str, tuple[str, str]]:
    """Public ids of a session and its workspace, by kind."""
    allow_private(cast)
    personal = cast.member.personal_workspaces.get(organization=cast.organization)
    made: dict[str, Session] = {
        SHARED: make_session(cast, title="Survey"),
        PRIVATE: make_session(cast, visibility=Visibility.PRIVATE),
        PERSONAL: create_session(
            access=cast.access("member"), new=NewSession(workspace_id=personal.pk)
        ),
        THEIRS: make_session(cast, by="outsider", workspace_id=cast.other_workspace.pk),
    }
    send(cast, made[SHARED])
    return {
        kind: (each.public_id, encode_id(Prefix.WORKSPACE, each.workspace_id))
        for kind, each in made.items()
    }


def fill(message: Any, session: str, workspace: str) -> Any:
    if isinstance(message, dict):
        return {name: fill(value, session, workspace) for name, value in message.items()}
    if isinstance(message, list):
        return [fill(each, session, workspace) for each in message]
    if isinstance(message, str):
        return message.replace("{session}", session).replace("{workspace}", workspace)
    return message


async def open_as(cast: Cast, name: str, secrets: dict[str, str]) -> Tab:
    if name in secrets:
        headers = {"host": "localhost:8000", "authorization": f"Bearer {secrets[name]}"}
    elif name == "nobody":
        headers = dict(ORIGIN)
    else:
        return await tab_of(cast, name)
    tab = Tab(headers)
    await tab.open()
    return tab


async def ask(tab: Tab, type_: str, message: dict[str, Any]) -> list[dict[str, Any]]:
    """What is told from now on until it is level, refused, or has nothing to say."""
    before = len(tab.frames)
    await tab.say(type_, **message)
    if type_ in QUIET:
        pongs = len(tab.told("pong"))
        await tab.say("ping")
        await tab.until(lambda: len(tab.told("pong")) > pongs)
        return [frame for frame in tab.frames[before:] if frame["type"] != "pong"]
    ends = {"subscribe": "caught_up", "sidebar": "ready"}
    last = {ends[type_], "error"}
    await tab.until(lambda: any(frame["type"] in last for frame in tab.frames[before:]))
    await tab.say(
        "unsubscribe", **{k: v for k, v in message.items() if k in {"session", "workspace"}}
    )
    return tab.frames[before:]


def test_every_message_has_a_row() -> None:
    assert MESSAGES.keys() == _PARSERS.keys()


@pytest.mark.parametrize("name", [name for name in SEES if name not in NOBODY])
async def test_a_socket_tells_of_what_its_caller_sees_and_of_nothing_else(
    committed_cast: Cast, hub: Hub, name: str
) -> None:
    cast = committed_cast
    there = await in_db_thread(targets, cast)
    secrets = await in_db_thread(secrets_of_keys, cast)
    never = encode_id(Prefix.SESSION, uuid7()), encode_id(Prefix.WORKSPACE, uuid7())
    tab = await open_as(cast, name, secrets)
    for type_, messages in MESSAGES.items():
        for message in messages:
            nothing = await ask(tab, type_, fill(message, *never))
            for kind, ids in there.items():
                told = await ask(tab, type_, fill(message, *ids))
                sees = kind in SEES[name]
                if type_ == "sidebar":  # of the workspace, which may be seen without the session
                    sees = sees or (kind == PRIVATE and SHARED in SEES[name])
                if type_ in QUIET:
                    assert told == nothing == [], (type_, kind)
                elif sees:
                    assert all(frame["type"] != "error" for frame in told), (type_, kind)
                else:
                    assert _without(told, *ids) == _without(nothing, *never), (type_, kind)
                    assert [frame["code"] for frame in told] == ["not_found"], (type_, kind)
    await tab.close()


def _without(frames: list[dict[str, Any]], *ids: str) -> str:
    text = re.sub(r"req_\w+", "·", str(frames))
    for each in ids:
        text = text.replace(each, "·")
    return text


@pytest.mark.parametrize("name", NOBODY)
async def test_who_is_nobody_is_told_that_alone(committed_cast: Cast, hub: Hub, name: str) -> None:
    secrets = await in_db_thread(secrets_of_keys, committed_cast)
    tab = await open_as(committed_cast, name, secrets)
    await tab.until(lambda: tab.close_code is not None)
    assert tab.close_code == 4401
    assert [frame["type"] for frame in tab.frames] == ["error"]
    await tab.close()
