"""Which addresses the server connects to where people, not operators, say where.

Whoever administers an organization is not the operator of the machine, and what they write must not
reach what only the machine can reach. A name is resolved here, once, and the connection goes to the
very address that was looked at: what the name means a moment later counts for nothing.
"""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

Address = IPv4Address | IPv6Address
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
# What `is_global` admits all the same: special uses, and Azure's metadata behind a public number.
_INSIDE = tuple(
    map(ip_network, ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32", "3fff::/20"))
)
_PLACE = re.compile(r"(?:\[(?P<six>[^\]]+)\]|(?P<host>[^:\[\]]+))(?::(?P<port>[0-9]{1,5}))?")
_HOST = re.compile(
    r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*"
)


class NoAddress(Exception):
    """There is nothing to connect to. Its text is a sentence for people."""


class AddressRefused(NoAddress):
    """The rule forbids to connect there."""


class HostUnknown(NoAddress):
    """The name has no address."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the operator allows to connect, although it is private or without TLS. `port` None:
    any. `host`: a name in small letters, or a network.
    """

    host: str | IPv4Network | IPv6Network
    port: int | None = None

    @classmethod
    def parse(cls, text: str) -> Place:
        """`name`, `name:port`, an address or network, `address:port`, `[address]:port`. Raises
        ValueError.
        """
        try:
            return cls(ip_network(text))
        except ValueError:
            found = _PLACE.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is no host, address or network")
        port = int(found["port"]) if found["port"] else None
        if port is not None and not 0 < port < 65_536:
            raise ValueError(f"{text!r} has no port between 1 and 65535")
        host = found["six"] or found["host"].lower().rstrip(".")
        if found["six"] or "/" in host or host.replace(".", "").isdigit():
            return cls(ip_network(host), port)
        if not _HOST.fullmatch(host):
            raise ValueError(f"{text!r} is no host, address or network")
        return cls(host, port)

    def admits(self, host: str, port: int, address: Address) -> bool:
        if self.port not in {None, port}:
            return False
        if isinstance(self.host, str):
            return self.host == host.lower().rstrip(".")
        return address in self.host


def is_public(address: Address) -> bool:
    """Whether it lies in the open internet, also where it carries another address within."""
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address in _NAT64:
            inner = IPv4Address(int(address) & 0xFFFF_FFFF)
        if inner is not None:
            return is_public(inner)
        if address not in _GLOBAL_UNICAST:
            return False
    is_special = address.is_multicast or any(address in network for network in _INSIDE)
    return address.is_global and not is_special


def require_admitted(
    *, scheme: str, host: str, port: int, address: Address, places: Iterable[Place]
) -> None:
    """Raises AddressRefused."""
    if any(place.admits(host, port, address) for place in places):
        return
    if not is_public(address):
        raise AddressRefused(
            f"{host} leads into a private network, where this server does not connect unless its "
            "operator allows it."
        )
    if scheme != "https":
        raise AddressRefused(f"{host} has to be reached by https, so that no key goes in clear.")


def admitted_addresses(
    *, scheme: str, host: str, port: int, addresses: Iterable[Address], places: Iterable[Place]
) -> list[Address]:
    """Those of a name's addresses that may be connected to. Raises AddressRefused where there is
    none, for the reason of the last one.
    """
    admitted: list[Address] = []
    refusal = AddressRefused(f"{host} has no address.")
    places = tuple(places)
    for address in addresses:
        try:
            require_admitted(scheme=scheme, host=host, port=port, address=address, places=places)
            admitted.append(address)
        except AddressRefused as error:
            refusal = error
    if not admitted:
        raise refusal
    return admitted


def cause_of(error: BaseException | None) -> NoAddress | None:
    """Why there was nothing to connect to, somewhere below what HTTP clients made of it."""
    while error is not None and not isinstance(error, NoAddress):
        error = error.__cause__
    return error


async def resolve(host: str, *, within_seconds: float | None) -> list[Address]:
    """Raises HostUnknown, TimeoutError. A resolver that hangs holds up nobody but its thread."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[Address]] = loop.create_future()

    def tell(found: list[Address]) -> None:
        if not answer.done():
            answer.set_result(found)

    def ask() -> None:
        found = _look_up(host)
        with suppress(RuntimeError):  # the loop that asked may have ended long ago
            loop.call_soon_threadsafe(tell, found)

    threading.Thread(target=ask, name="resolver", daemon=True).start()
    addresses = await asyncio.wait_for(answer, within_seconds)
    if not addresses:
        raise HostUnknown(f"The name {host} is not known.")
    return addresses


def _look_up(host: str) -> list[Address]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(ip_address(each[4][0]) for each in found))
