"""Where the server connects to when people say where, and where it never does."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.core.exceptions import ImproperlyConfigured

from config import env
from core import outbound
from core.outbound import (
    AddressRefused,
    NoAddress,
    Place,
    admitted_addresses,
    cause_of,
    is_public,
    require_admitted,
    resolve,
)
from core.outbound_http import GuardedTransport

PRIVATE = """
    127.0.0.1 127.8.8.8 0.0.0.0 10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 169.254.169.254
    100.64.0.1 100.100.100.200 168.63.129.16 192.0.0.192 192.0.2.1 198.18.0.1 198.51.100.1
    203.0.113.1 224.0.0.1 239.1.1.1 240.0.0.1 255.255.255.255 192.88.99.1
    :: ::1 ::7f00:1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 fe80::1 fe80::1%eth0
    fc00::1 fd00:ec2::254 fec0::1 ff02::1 100::1 2001::1 2001:db8::1 3fff::1 2002:7f00:1::
    2002:a9fe:a9fe:: 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::1 5f00::1
"""
PUBLIC = "8.8.8.8 1.1.1.1 172.32.0.1 100.128.0.1 2606:4700::1111 64:ff9b::808:808"


@pytest.mark.parametrize("address", PRIVATE.split())
def test_what_is_not_the_open_internet_is_refused(address: str) -> None:
    assert not is_public(ip_address(address))
    with pytest.raises(AddressRefused, match="private network"):
        ask("https", "api.example.test", 443, address)


@pytest.mark.parametrize("address", PUBLIC.split())
def test_the_open_internet_is_reached_over_tls_alone(address: str) -> None:
    assert is_public(ip_address(address))
    ask("https", "api.example.test", 443, address)
    with pytest.raises(AddressRefused, match="https"):
        ask("http", "api.example.test", 80, address)


def ask(scheme: str, host: str, port: int, address: str, *places: str) -> None:
    require_admitted(
        scheme=scheme,
        host=host,
        port=port,
        address=ip_address(address),
        places=[Place.parse(place) for place in places],
    )


@pytest.mark.parametrize(
    ("place", "admitted", "refused"),
    [
        ("ollama.lan", [("ollama.lan", 80), ("OLLAMA.lan.", 11434)], [("x.ollama.lan", 80)]),
        ("ollama.lan:11434", [("ollama.lan", 11434)], [("ollama.lan", 22)]),
        ("10.4.0.0/16", [("any.lan", 1)], []),
        ("10.4.0.9:8000", [("any.lan", 8000)], [("any.lan", 5432)]),
        ("10.5.0.0/16", [], [("any.lan", 80)]),
        ("[fd00::7]:8000", [], [("any.lan", 8000)]),
    ],
)
def test_the_operator_names_what_is_allowed(
    place: str, admitted: list[tuple[str, int]], refused: list[tuple[str, int]]
) -> None:
    for host, port in admitted:
        ask("http", host, port, "10.4.0.9", place)
    for host, port in refused:
        with pytest.raises(AddressRefused):
            ask("http", host, port, "10.4.0.9", place)


def test_a_place_is_a_name_an_address_or_a_network() -> None:
    assert Place.parse("Ollama.LAN:80") == Place("ollama.lan", 80)
    assert Place.parse("10.0.0.0/8") == Place(ip_network("10.0.0.0/8"))
    assert Place.parse("::1") == Place(ip_network("::1"))
    assert Place.parse("[::1]:9") == Place(ip_network("::1"), 9)
    assert Place.parse("10.1.2.3:9") == Place(ip_network("10.1.2.3"), 9)


@pytest.mark.parametrize(
    "text", ["a b", "http://x", "x:99999", "x:0", "10.0.0.1/8", "10.0.0.256", "[x]", "*", ""]
)
def test_what_is_no_place_stops_the_start(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"."):
        Place.parse(text)
    monkeypatch.setenv("PLACES", f"ok.lan, {text}" if text else " , ")
    if text:
        with pytest.raises(ImproperlyConfigured, match="PLACES"):
            env.places("PLACES", "none")
    else:
        assert env.places("PLACES", "none") == []


@pytest.mark.parametrize(
    ("environment", "told"), [("production", "[]"), ("development", "127.0.0.0/8")]
)
def test_nothing_private_is_allowed_in_production_unless_it_is_named(
    environment: str, told: str, tmp_path: Path
) -> None:
    given = {
        **os.environ,
        "SEDERUNT_ENV": environment,
        "SEDERUNT_HOME": str(tmp_path),
        "SEDERUNT_SECRET_KEY": "x" * 50,
        "SEDERUNT_ENCRYPTION_KEY": "A" * 43 + "=",
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
        "ALLOWED_HOSTS": "sederunt.example",
    }
    given.pop("PROVIDER_PRIVATE_HOSTS", None)
    code = "from config import settings; print(settings.PROVIDER_PRIVATE_HOSTS)"
    command = [sys.executable, "-c", code]
    answer = subprocess.run(command, env=given, capture_output=True, text=True, check=True)
    assert told in answer.stdout


def test_of_a_names_addresses_only_the_admitted_ones_are_used() -> None:
    mixed = [ip_address("10.0.0.1"), ip_address("8.8.8.8")]
    names: dict[str, Any] = {"scheme": "https", "host": "two.example.test", "port": 443}
    assert admitted_addresses(**names, addresses=mixed, places=[]) == mixed[1:]
    with pytest.raises(AddressRefused):
        admitted_addresses(**names, addresses=mixed[:1], places=[])


@pytest.mark.parametrize("host", ["localhost", "127.1", "2130706433", "0x7f000001", "[::1]"])
async def test_other_ways_to_write_the_machine_itself_lead_nowhere(host: str) -> None:
    async with httpx2.AsyncClient(transport=GuardedTransport([])) as client:
        with pytest.raises(httpx2.ConnectError) as raised:
            await client.get(f"https://{host}/")
    assert isinstance(cause_of(raised.value), NoAddress)


async def test_a_resolver_that_hangs_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()

    def hang(*_: Any, **__: Any) -> Any:
        release.wait(20)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    with pytest.raises(TimeoutError):
        await resolve("slow.example.test", within_seconds=0.05)
    release.set()


class Seen(BaseHTTPRequestHandler):
    hosts: list[str]

    def do_GET(self) -> None:
        self.hosts.append(self.headers["Host"])
        if self.path == "/away":
            self.send_response(302)
            self.send_header("Location", "http://127.0.0.1:1/")
        else:
            self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Silent."""


@pytest.fixture
def seen() -> type[Seen]:
    return type("Fresh", (Seen,), {"hosts": []})


def serve(handler: type[Seen], wrap: ssl.SSLContext | None = None) -> ThreadingHTTPServer:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if wrap is not None:
        server.socket = wrap.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


async def test_a_name_that_changes_its_meaning_is_not_asked_twice(
    seen: type[Seen], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was looked at is what is connected to: a second answer of DNS counts for nothing."""
    server = serve(seen)
    port = server.server_port
    answers = iter(["127.0.0.1"])

    def look_up(host: str) -> list[Any]:
        assert host == "rebinding.example.test"
        return [ip_address(next(answers))]

    monkeypatch.setattr(outbound, "_look_up", look_up)
    places = [Place.parse(f"127.0.0.1:{port}")]
    async with httpx2.AsyncClient(transport=GuardedTransport(places)) as client:
        answer = await client.get(f"http://rebinding.example.test:{port}/")
        assert answer.status_code == 200
    assert seen.hosts == [f"rebinding.example.test:{port}"]
    async with httpx2.AsyncClient(transport=GuardedTransport([])) as client:
        monkeypatch.setattr(outbound, "_look_up", lambda _: [ip_address("127.0.0.1")])
        with pytest.raises(httpx2.ConnectError, match="private network"):
            await client.get(f"http://rebinding.example.test:{port}/")
    assert len(seen.hosts) == 1
    server.shutdown()
    server.server_close()


async def test_an_address_that_does_not_answer_gives_way_to_the_next(
    seen: type[Seen], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(seen)
    both = [ip_address("127.0.0.2"), ip_address("127.0.0.1")]
    monkeypatch.setattr(outbound, "_look_up", lambda _: both)
    places = [Place.parse("127.0.0.0/8")]
    async with httpx2.AsyncClient(transport=GuardedTransport(places)) as client:
        answer = await client.get(f"http://two.example.test:{server.server_port}/")
    assert answer.status_code == 200
    server.shutdown()
    server.server_close()


async def test_a_proxy_of_the_environment_is_not_asked(
    seen: type[Seen], monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = serve(seen)
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.server_port}")
    monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{proxy.server_port}")
    monkeypatch.setattr(outbound, "_look_up", lambda _: [ip_address("10.0.0.1")])
    async with httpx2.AsyncClient(transport=GuardedTransport([])) as client:
        with pytest.raises(httpx2.ConnectError, match="private network"):
            await client.get("http://inside.example.test/")
    assert seen.hosts == []
    proxy.shutdown()
    proxy.server_close()


async def test_the_certificate_is_looked_at_for_the_name_that_was_asked_for(
    seen: type[Seen], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key,
         "-out", certificate, "-subj", "/CN=right.example.test",
         "-addext", "subjectAltName=DNS:right.example.test"],
        check=True,
        capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = serve(seen, context)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    monkeypatch.setattr(outbound, "_look_up", lambda _: [ip_address("127.0.0.1")])
    places = [Place.parse("127.0.0.1")]
    async with httpx2.AsyncClient(transport=GuardedTransport(places)) as client:
        answer = await client.get(f"https://right.example.test:{server.server_port}/")
        assert answer.status_code == 200
        with pytest.raises(httpx2.ConnectError, match="certificate"):
            await client.get(f"https://wrong.example.test:{server.server_port}/")
    await asyncio.to_thread(server.shutdown)
    server.server_close()
