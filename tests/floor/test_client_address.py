"""Whose word counts for where a client came from."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from config import env
from core.api.client_address import ClientAddress

TRUSTED = [ip_network("10.0.0.0/8"), ip_network("::1")]


async def seen_from(peer: str, *forwarded: str) -> str:
    seen: list[Any] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["client"][0])

    headers = [(b"x-forwarded-for", value.encode()) for value in forwarded]
    scope = {"type": "http", "client": (peer, 5), "headers": headers}
    await ClientAddress(application, TRUSTED)(scope, None, None)
    assert scope["client"] == (peer, 5)
    return str(seen[0])


@pytest.mark.parametrize("peer", ["203.0.113.9", "2001:db8::1", "11.0.0.1", ""])
async def test_a_stranger_says_nothing_about_themselves(peer: str) -> None:
    assert await seen_from(peer, "198.51.100.1") == peer


@pytest.mark.parametrize(
    ("forwarded", "found"),
    [
        (["198.51.100.1"], "198.51.100.1"),
        # What the client wrote stands left of what the proxy wrote.
        (["10.1.1.1, 203.0.113.9"], "203.0.113.9"),
        (["127.0.0.1, 6.6.6.6, 203.0.113.9, 10.0.0.7"], "203.0.113.9"),
        (["6.6.6.6", "203.0.113.9"], "203.0.113.9"),
        (["10.0.0.8, 10.0.0.9"], "10.0.0.8"),
        (["203.0.113.9:4711"], "203.0.113.9"),
        (["[2001:db8::5]:4711"], "2001:db8::5"),
        (['"2001:db8::5"'], "2001:db8::5"),
        (["::ffff:203.0.113.9"], "203.0.113.9"),
        (["unknown"], "10.0.0.1"),
        (["6.6.6.6, nonsense, 10.0.0.2"], "10.0.0.2"),
        ([""], "10.0.0.1"),
        ([], "10.0.0.1"),
    ],
)
async def test_a_proxy_that_we_trust_tells_the_nearest_one_that_we_do_not(
    forwarded: list[str], found: str
) -> None:
    assert await seen_from("10.0.0.1", *forwarded) == found


async def test_a_connection_without_an_address_passes() -> None:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        assert scope["client"] is None

    await ClientAddress(application, TRUSTED)({"type": "http", "client": None}, None, None)


def test_the_setting_names_addresses_and_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROXIES", "10.0.0.0/8, ::1")
    assert env.networks("PROXIES", "127.0.0.1") == TRUSTED
    monkeypatch.setenv("PROXIES", "none")
    assert env.networks("PROXIES", "127.0.0.1") == []
    monkeypatch.delenv("PROXIES")
    assert env.networks("PROXIES", "127.0.0.1") == [ip_network("127.0.0.1")]
    monkeypatch.setenv("PROXIES", "the proxy")
    with pytest.raises(ImproperlyConfigured, match="PROXIES must be addresses"):
        env.networks("PROXIES", "")
