"""A session that becomes its maker's alone vanishes from what others have open."""

from __future__ import annotations

import time

from core.db import in_db_thread
from sessions_app.domain.vocabulary import Visibility
from sessions_app.services.visibility import set_visibility
from sessions_app.streaming.hub import Hub
from tests.factories import Cast, make_session
from tests.services.test_children import allow_private, make_child
from tests.streaming.test_socket import tab_of


async def test_others_lose_it_within_two_seconds_and_its_maker_does_not(
    committed_cast: Cast, hub: Hub, postgres_bus: str
) -> None:
    cast = committed_cast
    await in_db_thread(allow_private, cast)
    session = await in_db_thread(make_session, cast)
    child = await in_db_thread(make_child, cast, session)
    names = ("member", "owner", "second_member", "workspace_key")
    maker, *others = [await tab_of(cast, name) for name in names]
    for tab in (maker, *others):
        await tab.say("sidebar", workspace=cast.workspace.public_id)
        await tab.until_told("ready")
        for each in (session, child):
            await tab.say("subscribe", session=each.public_id, after=0)
            await tab.until_told("caught_up", session=each.public_id)
    access = await in_db_thread(cast.access, "member")
    began = time.monotonic()
    await in_db_thread(
        set_visibility,
        access=access,
        session_id=session.pk,
        visibility=Visibility.PRIVATE,
    )
    for tab in others:
        for each in (session, child):
            await tab.until_told("error", seconds=3, session=each.public_id)
        await tab.until_told("sidebar", removed=[session.public_id])
    assert time.monotonic() - began < 2
    told = [frame["event"]["type"] for frame in maker.told("event")]
    assert told.count("session.visibility_changed") == 2
    assert not maker.told("error")
    assert not [frame for frame in maker.told("sidebar") if frame["removed"]]
    for tab in (maker, *others):
        await tab.close()
