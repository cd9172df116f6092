"""How often something was tried lately, counted together by all processes.

A try is counted before its outcome is known: of a hundred at the same moment no more go through
than of a hundred one after another. Where the database is away nothing is counted, and nothing
that needs counting can be tried either.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import IPv6Address, ip_address, ip_network

from django.db import connection, transaction

from core.clock import now
from core.models import RecentTries

KEPT_FOR = timedelta(days=1)
_SWEEP_CHANCE = 0.01
_COUNT = """
    INSERT INTO core_recenttries AS tries (key, times, last_at)
    VALUES (
        %(key)s,
        ARRAY[extract(epoch FROM clock_timestamp())::double precision],
        clock_timestamp()
    )
    ON CONFLICT (key) DO UPDATE SET
        times = array(
            SELECT moment FROM unnest(tries.times) AS moment
            WHERE moment > extract(epoch FROM clock_timestamp()) - %(window)s
            ORDER BY moment
        ) || extract(epoch FROM clock_timestamp())::double precision,
        last_at = clock_timestamp()
    RETURNING times
"""


@dataclass(frozen=True, slots=True)
class Try:
    """`wait_seconds`: 0 when it may be made, and is counted."""

    wait_seconds: int
    moments: Mapping[str, float]


class _TooMany(Exception):
    pass


def count_try(*, limits: Mapping[str, int], window_seconds: int) -> Try:
    """`limits`: what it counts for → how many there may be in the window. A refused one does not
    count, so that nobody locks themselves out for longer by trying on.
    """
    moments: dict[str, float] = {}
    wait = 0.0
    try:
        with transaction.atomic():
            for name in sorted(limits):  # one order, or two at once wait for each other
                times = _count(_key(name), window_seconds)
                moments[name] = times[-1]
                if len(times) > limits[name]:
                    ripe = times[-limits[name] - 1] + window_seconds
                    wait = max(wait, ripe - times[-1])
            if wait:
                raise _TooMany
    except _TooMany:
        return Try(max(1, math.ceil(wait)), {})
    if random.random() < _SWEEP_CHANCE:  # noqa: S311 (spreads a chore)
        RecentTries.objects.filter(last_at__lt=now() - KEPT_FOR).delete()
    return Try(0, moments)


def forget_try(made: Try) -> None:
    """It was a good one, and counts no more."""
    with transaction.atomic(), connection.cursor() as cursor:
        for name in sorted(made.moments):
            cursor.execute(
                "UPDATE core_recenttries SET times = array_remove(times, %s::double precision)"
                " WHERE key = %s",
                [made.moments[name], _key(name)],
            )


def forget_all(name: str) -> None:
    RecentTries.objects.filter(pk=_key(name)).delete()


def network_of(address: str) -> str:
    """What one client can come from: an IPv4 address, or all of an IPv6 network of 64 bits."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address[:64]
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    if parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped)
    return str(ip_network((parsed, 64), strict=False))


def _count(key: str, window_seconds: int) -> list[float]:
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, {"key": key, "window": window_seconds})
        (times,) = cursor.fetchone()
    return list(times)


def _key(name: str) -> str:
    """What people typed is nowhere kept in clear."""
    return hashlib.sha256(name.encode()).hexdigest()
