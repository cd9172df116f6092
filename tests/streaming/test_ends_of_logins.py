"""A login that ends takes its open sockets and streams along, within two seconds, and no others.

Through real servers, and with the forms that people use, in another process than the one that
holds the sockets where the server is uvicorn.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from django.conf import settings
from django.test import Client
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from core.db import in_db_thread
from orgs.login_store import digest_of
from orgs.models import Login, User
from orgs.roles import WorkspaceRole
from orgs.services.members import remove_organization_member
from orgs.services.passwords import make_reset_mail
from orgs.services.workspaces import remove_workspace_member, set_workspace_role
from tests.factories import PASSWORD, Cast, make_session, send
from tests.streaming.helpers import until
from tests.streaming.servers import Server, Stream

NEW = "a much longer password"
SECONDS = 2.0


class Device:
    """A browser with a login, a socket and a stream."""

    def __init__(self, server: Server, user: User) -> None:
        self.server = server
        self.client = Client()
        answer = self.client.post("/sign-in/", {"email": user.email, "password": PASSWORD})
        assert answer.status_code == 302
        self.cookie = str(self.client.cookies[settings.SESSION_COOKIE_NAME].value)
        self.login_id = Login.objects.get(digest=digest_of(self.cookie)).pk
        self.user = user

    @property
    def headers(self) -> dict[str, str]:
        return {"cookie": f"{settings.SESSION_COOKIE_NAME}={self.cookie}"}

    @property
    def public_id(self) -> str:
        return Login.objects.get(pk=self.login_id).public_id

    async def open(self, session_id: str) -> None:
        url = f"ws://127.0.0.1:{self.server.port}/v1/ws"
        self.socket: ClientConnection = await connect(
            url, additional_headers=self.headers, origin=self.server.url, proxy=None
        )
        await self.socket.send('{"type":"ping"}')
        assert json.loads(await self.socket.recv())["type"] == "pong"
        path = f"{self.server.url}/v1/sessions/{session_id}/events/stream?after=0"
        self.stream = Stream(path, self.headers).start()
        await self.stream.until(lambda: self.stream.told("caught_up"))

    async def close_code(self, seconds: float) -> int | None:
        try:
            async with asyncio.timeout(seconds):
                while True:
                    await self.socket.recv()
        except TimeoutError:
            return None
        except ConnectionClosed:
            return self.socket.close_code

    async def close(self) -> None:
        await self.socket.close()
        await self.stream.close()


@asynccontextmanager
async def opened(server: Server, cast: Cast, *people: str) -> AsyncIterator[list[Device]]:
    session = await in_db_thread(make_session, cast)
    await in_db_thread(send, cast, session)
    devices = [await in_db_thread(Device, server, getattr(cast, who)) for who in people]
    for device in devices:
        await device.open(session.public_id)
    try:
        yield devices
    finally:
        for device in devices:
            await device.close()


def change_password(mine: Device, other: Device) -> None:
    answer = mine.client.post("/account/password", {"current": PASSWORD, "new": NEW})
    assert answer["Location"] == "/account/?done=password"


def reset_password(mine: Device, other: Device) -> None:
    message = make_reset_mail(email=mine.user.email, origin="")
    assert message is not None
    link = next(line for line in str(message.body).splitlines() if line.startswith("/password"))
    assert Client().post(link, {"new": NEW})["Location"] == "/sign-in/?renewed"


def sign_out(mine: Device, other: Device) -> None:
    mine.client.post("/sign-out/")


def sign_out_operators_way(mine: Device, other: Device) -> None:
    User.objects.filter(pk=mine.user.pk).update(is_staff=True)
    assert mine.client.post("/admin/logout/").status_code == 302


def sign_out_the_other(mine: Device, other: Device) -> None:
    mine.client.post(f"/account/logins/{other.public_id}/end")


def sign_out_elsewhere(mine: Device, other: Device) -> None:
    mine.client.post("/account/logins/others/end")


def sign_out_everywhere(mine: Device, other: Device) -> None:
    mine.client.post("/account/logins/all/end")


MINE, OTHER = "mine", "other"


@pytest.mark.parametrize(
    ("act", "ended"),
    [
        (change_password, {OTHER}),
        (reset_password, {MINE, OTHER}),
        (sign_out, {MINE}),
        (sign_out_operators_way, {MINE}),
        (sign_out_the_other, {OTHER}),
        (sign_out_elsewhere, {OTHER}),
        (sign_out_everywhere, {MINE, OTHER}),
    ],
)
async def test_what_a_login_has_open_ends_with_it_and_nothing_else(
    server: Server,
    committed_cast: Cast,
    postgres_bus: str,
    act: Callable[[Device, Device], None],
    ended: set[str],
) -> None:
    people = ("member", "member", "second_member")
    async with opened(server, committed_cast, *people) as (mine, other, stranger):
        await in_db_thread(act, mine, other)
        devices = {MINE: mine, OTHER: other, "stranger": stranger}
        told = await asyncio.gather(*(each.close_code(SECONDS) for each in devices.values()))
        codes = dict(zip(devices, told, strict=True))
        assert codes == {name: 4401 if name in ended else None for name in devices}
        for name, device in devices.items():
            assert device.stream.has_ended is (name in ended), name
            if name in ended:
                (problem,) = device.stream.told("error")
                assert "authentication_error" in problem.data


def lose_membership(cast: Cast) -> None:
    remove_organization_member(
        access=cast.access("owner"),
        organization_id=cast.organization.pk,
        user_id=cast.second_member.pk,
    )


def lose_workspace(cast: Cast) -> None:
    remove_workspace_member(
        access=cast.access("owner"), workspace_id=cast.workspace.pk, user_id=cast.second_member.pk
    )


@pytest.mark.parametrize("act", [lose_membership, lose_workspace])
async def test_who_is_removed_sees_nothing_more_within_two_seconds(
    server: Server, committed_cast: Cast, postgres_bus: str, act: Callable[[Cast], None]
) -> None:
    async with opened(server, committed_cast, "second_member", "member") as (gone, stays):
        await in_db_thread(act, committed_cast)
        await until(lambda: gone.stream.has_ended, SECONDS)
        assert not stays.stream.has_ended
        (problem,) = gone.stream.told("error")
        assert "not_found_error" in problem.data
        # The login is good: it is only that nothing is there for it any more.
        assert await gone.close_code(0.2) is None


async def test_a_role_that_changes_counts_for_what_is_open(
    server: Server, committed_cast: Cast, postgres_bus: str
) -> None:
    """A viewer goes on reading, and may do nothing more, by a page that was open before."""
    cast = committed_cast
    async with opened(server, cast, "second_member") as (device,):
        session = await in_db_thread(make_session, cast)
        path = f"/s/{session.public_id}/send"
        assert (await in_db_thread(device.client.post, path, {"text": "Hello"})).status_code == 302
        await in_db_thread(
            set_workspace_role,
            access=await in_db_thread(cast.access, "owner"),
            workspace_id=cast.workspace.pk,
            user_id=cast.second_member.pk,
            role=WorkspaceRole.VIEWER,
        )
        assert (await in_db_thread(device.client.post, path, {"text": "Hello"})).status_code == 403
        assert await device.close_code(SECONDS) is None
        assert not device.stream.has_ended
