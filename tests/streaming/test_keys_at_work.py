"""Keys through real servers: they stop in every process, and leave no trace of what they are."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from core.db import in_db_thread
from orgs.models import ApiKey, User
from orgs.roles import Scope
from orgs.services.invitations import NewInvitation, create_invitation
from orgs.services.passwords import make_reset_mail
from tests.factories import Cast, Key, make_key, make_session, send
from tests.streaming.conftest import direct_url
from tests.streaming.helpers import sign_in
from tests.streaming.servers import Server, Stream, subscribe_to

SECONDS = 2.0
MARKER = "sed_w_MARKER00_MARKERMARKERMARKERMARKERMARKER00"
TOKEN = "a" * 32


@pytest.fixture(scope="module")
def pair(django_db_setup: None) -> Iterator[list[Server]]:
    """Two web processes that share nothing but the database."""
    servers = [Server("uvicorn", direct_url()) for _ in "ab"]
    for each in servers:
        each.start()
    yield servers
    for each in servers:
        each.stop()


class Person:
    """A browser's session, as its scripts send it."""

    def __init__(self, server: Server, user: User) -> None:
        self._url = server.url
        self._headers = {"cookie": f"{sign_in(user)}; csrftoken={TOKEN}", "x-csrftoken": TOKEN}

    def send(self, method: str, path: str, body: Any = None) -> httpx.Response:
        return httpx.request(method, self._url + path, json=body, headers=self._headers)


async def open_socket(server: Server, secret: str, query: str = "") -> ClientConnection:
    headers = {"authorization": f"Bearer {secret}"} if secret else {}
    url = f"ws://127.0.0.1:{server.port}/v1/ws{query}"
    return await connect(url, additional_headers=headers, proxy=None)


async def told(socket: ClientConnection, *types: str) -> dict[str, Any]:
    while True:
        frame = json.loads(await socket.recv())
        if frame["type"] in types:
            return dict(frame)


async def closed_with(socket: ClientConnection, seconds: float = SECONDS) -> int | None:
    async with asyncio.timeout(seconds):
        try:
            while True:
                await socket.recv()
        except ConnectionClosed:
            return socket.close_code


async def test_a_key_revoked_in_one_process_stops_in_every_process(
    pair: list[Server], committed_cast: Cast, postgres_bus: str
) -> None:
    """BR-087."""
    cast = committed_cast
    key, other = cast.workspace_key, cast.read_only_key
    async with AsyncExitStack() as stack:
        sockets = [
            await stack.enter_async_context(await open_socket(server, secret))
            for server in pair
            for secret in (key.secret, other.secret)
        ]
        for socket in sockets:
            await socket.send('{"type":"ping"}')
            await told(socket, "pong")
        owner = await in_db_thread(Person, pair[0], cast.owner)
        path = f"/v1/organizations/{cast.organization.public_id}/api_keys/{key.row.public_id}"
        answer = await in_db_thread(owner.send, "DELETE", path)
        assert answer.status_code == 204, answer.text
        codes = await asyncio.gather(closed_with(sockets[0]), closed_with(sockets[2]))
        assert codes == [4401, 4401]
        for server in pair:
            bearer = {"authorization": f"Bearer {key.secret}"}
            refused = await in_db_thread(httpx.get, f"{server.url}/v1/sessions", headers=bearer)
            assert refused.json()["error"]["code"] == "revoked_api_key"
        for socket in (sockets[1], sockets[3]):
            await socket.send('{"type":"ping"}')
            await told(socket, "pong")


async def test_a_key_whose_maker_may_do_less_does_less_on_its_open_sockets(
    pair: list[Server], committed_cast: Cast, postgres_bus: str
) -> None:
    """BR-087: what the socket was allowed before is refused on it, in every process."""
    cast = committed_cast
    session = await in_db_thread(make_session, cast)
    key: Key = await in_db_thread(
        make_key, cast.admin, cast.organization, cast.workspace, [Scope.FULL]
    )
    wish = subscribe_to(session)
    async with AsyncExitStack() as stack:
        sockets = [
            await stack.enter_async_context(await open_socket(server, key.secret))
            for server in pair
        ]
        for socket in sockets:
            await socket.send(wish)
            await told(socket, "caught_up")
        owner = await in_db_thread(Person, pair[0], cast.owner)
        path = f"/v1/workspaces/{cast.workspace.public_id}/members/{cast.admin.public_id}"
        assert (await in_db_thread(owner.send, "DELETE", path)).status_code == 204
        async with asyncio.timeout(SECONDS):
            for socket in sockets:
                assert (await told(socket, "error"))["code"] == "not_found"
        for socket in sockets:
            await socket.send(wish)
            assert (await told(socket, "error", "event"))["code"] == "not_found"
        bearer = {"authorization": f"Bearer {key.secret}"}
        for server in pair:
            answer = await in_db_thread(
                httpx.get, f"{server.url}/v1/sessions/{session.public_id}", headers=bearer
            )
            assert answer.status_code == 404


def wrong_uses(server: Server) -> list[httpx.Response]:
    """A key that is none, wherever one could put it."""
    base, session = f"{server.url}/v1", f"{server.url}/v1/sessions/ses_{'0' * 32}"
    headers: list[dict[str, str]] = [
        {"authorization": f"Bearer {MARKER}"},
        {"authorization": MARKER},
        {"authorization": f"Basic {MARKER}"},
        {"x-api-key": MARKER},
        {"cookie": f"sederunt_login={MARKER}"},
        {"anthropic-workspace-id": MARKER},
        {"last-event-id": MARKER},
    ]
    answers = []
    for sent in headers:
        pages = [f"{base}/sessions", f"{session}/events/stream", f"{server.url}/"]
        pages.append(f"{server.url}/metrics")
        answers += [httpx.get(address, headers=sent) for address in pages]
        answers.append(httpx.post(f"{base}/sessions", headers=sent, json={"title": 1}))
    for name in ("api_key", "access_token", "token", "key", "page"):
        answers.append(httpx.get(f"{base}/sessions?{name}={MARKER}"))
        answers.append(httpx.get(f"{session}/events/stream?{name}={MARKER}"))
        answers.append(httpx.get(f"{server.url}/sign-in/?{name}={MARKER}"))
    return answers


def wrong_bodies(server: Server, good: str) -> list[httpx.Response]:
    bearer = {"authorization": f"Bearer {good}"}
    bodies: list[Any] = [{"api_key": MARKER}, {"speed": MARKER}, [MARKER], MARKER]
    sent = [httpx.post(f"{server.url}/v1/sessions", headers=bearer, json=each) for each in bodies]
    form = {"email": MARKER, "password": MARKER}
    return [*sent, httpx.post(f"{server.url}/sign-in/", data=form)]


@pytest.mark.parametrize("level", ["INFO", "DEBUG"])
async def test_what_was_sent_as_a_key_is_found_nowhere(
    django_db_setup: None, committed_cast: Cast, postgres_bus: str, level: str
) -> None:
    """BR-098: answers, sockets, logs, the audit log and its export, metrics, pages."""
    cast = committed_cast
    server = Server("uvicorn", direct_url(), LOG_LEVEL=level)
    server.start()
    try:
        answers = await in_db_thread(wrong_uses, server)
        answers += await in_db_thread(wrong_bodies, server, cast.organization_key.secret)
        frames = []
        for secret, query in ((MARKER, ""), ("", f"?api_key={MARKER}"), ("", f"?token={MARKER}")):
            async with await open_socket(server, secret, query) as socket:
                frames.append(await socket.recv())
                assert await closed_with(socket) == 4401
        owner = await in_db_thread(Person, server, cast.owner)
        organization = cast.organization.public_id
        pages = [
            await in_db_thread(owner.send, "GET", path)
            for path in (
                f"/v1/organizations/{organization}/audit",
                f"/v1/organizations/{organization}/api_keys",
                f"/owner/{organization}/keys/",
                f"/owner/{organization}/audit/",
                "/metrics",
            )
        ]
        export = await in_db_thread(owner.send, "POST", f"/owner/{organization}/audit/export/")
        assert [each.status_code for each in (*pages, export)] == [200] * 6
    finally:
        server.stop()
    assert len(answers) > 40
    for answer in answers:
        assert answer.status_code in {200, 302, 400, 401, 403, 404, 422}, answer.url
    texts = [*frames, *server.log().splitlines()]
    for answer in (*answers, *pages, export):
        texts += [answer.text, str(answer.headers)]
    assert [text for text in texts if "MARKER" in text] == []
    assert "WARNING django.request Unauthorized" in server.log()


async def test_a_keys_secret_is_in_one_answer_and_nowhere_else(
    pair: list[Server], committed_cast: Cast, postgres_bus: str
) -> None:
    cast, server = committed_cast, pair[0]
    owner = await in_db_thread(Person, server, cast.owner)
    base = f"/v1/organizations/{cast.organization.public_id}"
    new = {"name": "Shop", "scopes": ["read"]}
    made = await in_db_thread(owner.send, "POST", f"{base}/api_keys", new)
    assert made.status_code == 201
    secret = re.findall(r"sed_o_\w{8}_[\w-]+", made.text)[0]
    hidden = secret[14:]
    pages = [f"{base}/api_keys", f"{base}/audit", base]
    pages += [f"/owner/{cast.organization.public_id}/{page}/" for page in ("keys", "audit")]
    for page in pages:
        answer = await in_db_thread(owner.send, "GET", page)
        assert answer.status_code == 200
        assert hidden not in answer.text, page
    bearer = {"authorization": f"Bearer {secret}"}
    used = await in_db_thread(httpx.get, f"{server.url}/v1/workspaces", headers=bearer)
    assert used.status_code == 200
    assert hidden not in used.text + str(used.headers) + server.log()
    rows = await in_db_thread(lambda: list(ApiKey.objects.values()))
    assert hidden not in str(rows)


async def test_no_log_has_a_key_after_sockets_and_streams(
    server: Server, committed_cast: Cast, postgres_bus: str
) -> None:
    """BR-102: under either server, with the access log that it keeps by itself."""
    cast = committed_cast
    secret = cast.workspace_key.secret
    session = await in_db_thread(make_session, cast)
    await in_db_thread(send, cast, session)
    path = f"{server.url}/v1/sessions/{session.public_id}/events/stream?after=0"
    for headers in ({"authorization": f"Bearer {secret}"}, {"x-api-key": secret}):
        stream = Stream(path, headers).start()
        await stream.until(lambda each=stream: each.told("caught_up"))
        await stream.close()
        url = f"ws://127.0.0.1:{server.port}/v1/ws"
        async with connect(url, additional_headers=headers, proxy=None) as socket:
            await socket.send(subscribe_to(session))
            await told(socket, "caught_up")
    text = server.log()
    assert secret not in text
    assert secret[14:] not in text


async def test_a_key_in_an_address_opens_nothing(
    pair: list[Server], committed_cast: Cast, postgres_bus: str
) -> None:
    """BR-102: nobody is led to put one where it is written down."""
    cast, server = committed_cast, pair[0]
    secret = cast.workspace_key.secret
    session = await in_db_thread(make_session, cast)
    for name in ("api_key", "key", "token", "access_token", "authorization"):
        for path in ("workspaces", f"sessions/{session.public_id}/events/stream"):
            answer = await in_db_thread(httpx.get, f"{server.url}/v1/{path}?{name}={secret}")
            assert answer.status_code in {400, 401}, (name, path)
            assert secret not in answer.text
        async with await open_socket(server, "", f"?{name}={secret}") as socket:
            assert await closed_with(socket) == 4401
    assert secret not in server.log()


async def test_no_log_has_the_link_of_an_invitation_or_of_a_new_password(
    pair: list[Server], committed_cast: Cast, postgres_bus: str
) -> None:
    """BR-094: a link that is refused for what was typed there is as good as before."""
    cast, server = committed_cast, pair[0]
    access = await in_db_thread(cast.access, "owner")
    _, token = await in_db_thread(
        create_invitation,
        access=access,
        organization_id=cast.organization.pk,
        new=NewInvitation("greta@example.test"),
    )
    mail = await in_db_thread(make_reset_mail, email=cast.member.email, origin="")
    assert mail is not None
    reset = next(line for line in str(mail.body).splitlines() if line.startswith("/password"))
    for link, fields in (
        (f"/invitation/{token}/", {"name": "Greta Olsen", "password": "short"}),
        (reset, {"new": "short"}),
    ):
        with httpx.Client(base_url=server.url) as browser:
            page = await in_db_thread(browser.get, link)
            assert page.status_code == 200
            assert page.headers["referrer-policy"] == "strict-origin"
            form = {**fields, "csrfmiddlewaretoken": browser.cookies["csrftoken"]}
            refused = await in_db_thread(lambda b=browser, f=form, at=link: b.post(at, data=f))
            assert refused.status_code == 400
            assert (await in_db_thread(browser.get, f"{link}x")).status_code == 404
    text = server.log()
    assert "Bad Request: /invitation/…" in text
    assert "Bad Request: /password-reset/…" in text
    for secret in (token, reset.rstrip("/").rpartition("/")[2]):
        assert secret not in text
