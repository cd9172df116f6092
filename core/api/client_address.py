"""From where a client really came, where a proxy that we trust says so.

Anybody can send `X-Forwarded-For`: it counts only from a connection of a trusted proxy, and of its
entries only those that trusted proxies wrote, from the right.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any

Network = IPv4Network | IPv6Network


class ClientAddress:
    """Around everything else, for HTTP and sockets alike, whatever server runs us."""

    def __init__(self, application: Any, trusted: Sequence[Network]) -> None:
        self._application = application
        self._trusted = trusted

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        client = scope.get("client")
        if client and self._is_trusted(_parse(client[0])):
            told = [value for name, value in scope["headers"] if name == b"x-forwarded-for"]
            found = self._find(b",".join(told).decode("latin-1"), client[0])
            scope = {**scope, "client": (found, 0 if found != client[0] else client[1])}
        await self._application(scope, receive, send)

    def _find(self, told: str, nearest: str) -> str:
        """The first from the right that is no trusted proxy; nonsense ends the search."""
        found = nearest
        for entry in reversed(told.split(",")):
            parsed = _parse(entry.strip())
            if parsed is None:
                break
            found = str(parsed)
            if not self._is_trusted(parsed):
                break
        return found

    def _is_trusted(self, address: IPv4Address | IPv6Address | None) -> bool:
        return address is not None and any(address in network for network in self._trusted)


def _parse(text: str) -> IPv4Address | IPv6Address | None:
    """Some proxies add the port, and brackets around a version 6 address."""
    text = text.strip().strip('"')
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        parsed = ip_address(text)
    except ValueError:
        return None
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
    return mapped or parsed
