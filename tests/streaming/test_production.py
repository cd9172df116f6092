"""The server as it runs in production, behind a proxy that speaks TLS for it."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.conf import settings
from django.contrib.auth.hashers import Argon2PasswordHasher
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from core.db import in_db_thread
from orgs.models import Login, User
from tests.factories import PASSWORD, Cast
from tests.streaming.conftest import direct_url
from tests.streaming.servers import ROOT, Server

HOST = "sederunt.example"
ORIGIN = f"https://{HOST}"
# The proxy of these tests is on this machine, like the one that most have.
BY_TLS = {"host": HOST, "x-forwarded-proto": "https"}


@pytest.fixture(scope="module")
def production(
    tmp_path_factory: pytest.TempPathFactory, django_db_setup: None
) -> Iterator[Callable[..., Server]]:
    statics = tmp_path_factory.mktemp("static")
    environment = {
        "SEDERUNT_ENV": "production",
        "SEDERUNT_SECRET_KEY": "production-" * 6,
        "SEDERUNT_ENCRYPTION_KEY": base64.urlsafe_b64encode(b"k" * 32).decode(),
        "ALLOWED_HOSTS": f"{HOST},127.0.0.1",
        "BEHIND_TLS_PROXY": "yes",
        "STATIC_ROOT": str(statics),
    }
    collect(environment)
    servers: list[Server] = []

    def start(**more: str) -> Server:
        server = Server("uvicorn", direct_url(), **environment, **more)
        servers.append(server)
        server.start()
        return server

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def email(committed_cast: Cast) -> str:
    """Of somebody whose password is kept as it is in production: the suite's own way is quicker."""
    hasher = Argon2PasswordHasher()
    encoded = hasher.encode(PASSWORD, hasher.salt())
    User.objects.filter(pk=committed_cast.member.pk).update(password=encoded)
    return committed_cast.member.email


def collect(environment: dict[str, str]) -> None:
    command = [sys.executable, str(Path(ROOT) / "manage.py"), "collectstatic", "--no-input"]
    made = {**os.environ, **environment, "DATABASE_URL": direct_url()}
    subprocess.run(command, cwd=ROOT, env=made, check=True, capture_output=True)


@pytest.fixture(scope="module")
def server(production: Callable[..., Server]) -> Server:
    return production()


def flags(header: str) -> set[str]:
    return {part.strip().lower() for part in header.split(";")[1:]}


def sign_in(server: Server, email: str, password: str = PASSWORD, **headers: str) -> httpx.Response:
    """As a browser does it: with the form's token, and a referrer."""
    page = httpx.get(f"{server.url}/sign-in/", headers=BY_TLS)
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)
    assert token is not None
    form = {"email": email, "password": password, "csrfmiddlewaretoken": token[1]}
    told = {**BY_TLS, "referer": f"{ORIGIN}/sign-in/", "origin": ORIGIN, **headers}
    told["cookie"] = f"csrftoken={page.cookies['csrftoken']}"
    return httpx.post(f"{server.url}/sign-in/", data=form, headers=told)


async def test_cookies_go_over_tls_alone_and_no_script_reads_the_logins(
    server: Server, email: str
) -> None:
    answer = await in_db_thread(sign_in, server, email)
    assert answer.status_code == 302
    cookies = {c.partition("=")[0]: c for c in answer.headers.get_list("set-cookie")}
    login = cookies[settings.SESSION_COOKIE_NAME]
    assert {"secure", "httponly", "samesite=lax", "path=/"} <= flags(login)
    assert not any("domain" in each for each in flags(login))
    assert {"secure", "samesite=lax"} <= flags(cookies["csrftoken"])
    value = login.partition(";")[0]
    home = httpx.get(f"{server.url}/", headers={**BY_TLS, "cookie": value})
    page = httpx.get(f"{server.url}{home.headers['location']}", headers={**BY_TLS, "cookie": value})
    assert page.status_code == 200
    for cookie in page.headers.get_list("set-cookie"):
        assert "secure" in flags(cookie), cookie


async def test_plain_http_leads_to_tls_and_tls_stays(server: Server, committed_cast: Cast) -> None:
    plain = httpx.get(f"{server.url}/sign-in/", headers={"host": HOST})
    assert (plain.status_code, plain.headers["location"]) == (301, f"{ORIGIN}/sign-in/")
    secure = httpx.get(f"{server.url}/sign-in/", headers=BY_TLS)
    assert secure.headers["strict-transport-security"] == (
        "max-age=31536000; includeSubDomains; preload"
    )
    assert httpx.get(f"{server.url}/healthz").status_code == 200
    elsewhere = httpx.get(f"{server.url}/sign-in/", headers={**BY_TLS, "host": "evil.example"})
    assert elsewhere.status_code == 400


async def test_how_long_tls_is_insisted_on_is_a_setting(production: Callable[..., Server]) -> None:
    server = production(HSTS_SECONDS="0")
    answer = httpx.get(f"{server.url}/sign-in/", headers=BY_TLS)
    assert answer.status_code == 200
    assert "strict-transport-security" not in answer.headers


@pytest.mark.parametrize(
    ("origin", "code"), [(ORIGIN, None), (f"http://{HOST}", 4403), ("https://evil.example", 4403)]
)
async def test_a_socket_opens_from_our_own_pages_over_tls_alone(
    server: Server, email: str, postgres_bus: str, origin: str, code: int | None
) -> None:
    answer = await in_db_thread(sign_in, server, email)
    cookie = answer.headers["set-cookie"]
    login = re.search(rf"{settings.SESSION_COOKIE_NAME}=\w+", str(answer.headers))
    assert login is not None, cookie
    async with connect(
        f"ws://{HOST}/v1/ws",
        host="127.0.0.1",
        port=server.port,
        additional_headers={"cookie": login[0], "x-forwarded-proto": "https"},
        origin=origin,  # type: ignore[arg-type]
        proxy=None,
    ) as socket:
        try:
            await socket.send('{"type":"ping"}')
            said: Any = None
            while said != "pong":
                said = json.loads(await socket.recv())["type"]
            assert code is None
        except ConnectionClosed:
            assert socket.close_code == code


async def test_a_spoofed_address_neither_escapes_the_throttle_nor_is_written_down(
    server: Server, email: str
) -> None:
    """The proxy adds where it was asked from, to the right of what the client had written."""

    def guess(number: int) -> int:
        told = f"198.51.100.{number}, 203.0.113.9"
        return sign_in(server, f"{number}-{email}", "no", **{"x-forwarded-for": told}).status_code

    answers = [await in_db_thread(guess, number) for number in range(42)]
    assert answers == [401] * 40 + [429] * 2
    another = {"x-forwarded-for": "203.0.113.9, 203.0.113.10"}
    answer = await in_db_thread(lambda: sign_in(server, email, **another))
    assert answer.status_code == 302
    addresses = await in_db_thread(lambda: list(Login.objects.values_list("address", flat=True)))
    assert addresses == ["203.0.113.10"]


async def test_where_no_proxy_is_trusted_the_header_says_nothing(
    production: Callable[..., Server], email: str
) -> None:
    server = production(TRUSTED_PROXIES="none")
    told = {"x-forwarded-for": "203.0.113.10"}
    await in_db_thread(lambda: sign_in(server, email, **told))
    addresses = await in_db_thread(lambda: list(Login.objects.values_list("address", flat=True)))
    assert addresses == ["127.0.0.1"]


async def test_several_processes_count_wrong_passwords_together(
    server: Server, production: Callable[..., Server], email: str
) -> None:
    both = [server, production()]
    answers = [
        (await in_db_thread(sign_in, both[number % 2], email, "no")).status_code
        for number in range(10)
    ]
    assert answers == [401] * 8 + [429] * 2
