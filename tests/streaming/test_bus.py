from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from core import bus
from core.bus import bell
from core.bus.hints import PAYLOAD_MAX_BYTES, merge, pack, unpack
from tests.streaming.conftest import Redis

WORKSPACE = uuid4().hex


class Ears:
    """Collects what a subscription hears."""

    def __init__(self, *prefixes: str) -> None:
        self.heard: list[frozenset[str]] = []
        self.subscription = bus.listen(prefixes)
        self._task = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        async for hints in self.subscription:
            self.heard.append(hints)

    @property
    def hints(self) -> set[str]:
        return {hint for hints in self.heard if hints is not bus.RESYNC for hint in hints}

    @property
    def resyncs(self) -> int:
        return sum(hints is bus.RESYNC for hints in self.heard)

    async def until(self, condition: Callable[[], Any], seconds: float = 10) -> None:
        async with asyncio.timeout(seconds):
            while not condition():
                await asyncio.sleep(0.01)

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self.subscription.aclose()


@pytest.fixture(params=["postgres", "redis"])
def cut_links(request: pytest.FixtureRequest) -> Callable[[], None]:
    """Ends every connection of the bus, as a restarted server or a broken network would."""
    if request.param == "redis":
        return request.getfixturevalue("redis_bus").cut
    url = request.getfixturevalue("postgres_bus")

    def cut() -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name IN ('sederunt bell', 'sederunt listener')"
                " AND datname = current_database()"
            )

    return cut


def hint(session: UUID, seq: int, row: int = 0) -> str:
    return f"s:{session.hex}:{seq}:{WORKSPACE}:{row}"


def test_hints_of_one_session_become_one_with_the_highest_seq() -> None:
    session, pending = uuid4(), {}
    for seq, row in [(5, 0), (7, 1), (6, 0)]:
        merge(pending, hint(session, seq, row))
    merge(pending, "q")
    merge(pending, "q")
    assert list(pending.values()) == [hint(session, 7, 1), "q"]


def test_payloads_stay_below_the_limit_of_notify() -> None:
    hints = [hint(uuid4(), seq) for seq in range(1_000)]
    payloads = pack(hints)
    assert max(len(payload.encode()) for payload in payloads) <= PAYLOAD_MAX_BYTES
    assert unpack(payloads, {"s"}) == frozenset(hints)


def test_a_hint_that_fits_in_no_payload_means_look_at_everything() -> None:
    assert unpack(pack(["x" * 10_000]), ()) is bus.RESYNC


def test_a_garbled_hint_is_no_session_hint() -> None:
    for text in ["", "q", "s:1:2:3:4", "s:" + "0" * 32 + ":x:" + "0" * 32 + ":1", "s:::::"]:
        assert bus.parse_session_hint(text) is None


async def test_a_listener_hears_the_kinds_that_it_asked_for(
    cut_links: Callable[[], None],
) -> None:
    ears, everything = Ears("q", "c"), Ears()
    await ears.until(lambda: ears.resyncs and everything.resyncs)
    session = uuid4()
    bus.ring("q", "e", hint(session, 3), "c:" + session.hex)
    await ears.until(lambda: len(ears.hints) == 2 and len(everything.hints) == 4)
    assert ears.hints == {"q", "c:" + session.hex}
    await ears.close()
    await everything.close()


async def test_a_burst_from_many_threads_is_heard_whole(cut_links: Callable[[], None]) -> None:
    ears = Ears("s")
    await ears.until(lambda: ears.resyncs)
    sessions = [uuid4() for _ in range(40)]

    def shout(session: UUID) -> None:
        for seq in range(1, 251):
            bus.ring(hint(session, seq))

    threads = [threading.Thread(target=shout, args=(session,)) for session in sessions]
    for thread in threads:
        thread.start()
    last = {hint(session, 250) for session in sessions}
    await ears.until(lambda: last <= ears.hints)
    assert sum(len(hints) for hints in ears.heard) < 10_000, "hints were not coalesced"
    for thread in threads:
        thread.join()
    await ears.close()


@pytest.mark.slow
async def test_after_a_lost_link_the_listener_resyncs_and_hears_again(
    cut_links: Callable[[], None],
) -> None:
    ears = Ears("s")
    await ears.until(lambda: ears.resyncs)
    for loss in range(1, 4):
        cut_links()
        bus.ring(hint(uuid4(), loss))
        await ears.until(lambda loss=loss: ears.resyncs == loss + 1)
        await ears.until(lambda: ears.subscription.is_connected)
        later = hint(uuid4(), 100)
        bus.ring(later)
        await ears.until(lambda later=later: later in ears.hints)
    await ears.close()


async def test_hints_rung_while_the_place_is_away_are_told_when_it_is_back(
    redis_bus: Redis,
) -> None:
    ears = Ears("s")
    await ears.until(lambda: ears.resyncs)
    redis_bus.stop()
    await ears.until(lambda: not ears.subscription.is_connected)
    session = uuid4()
    started = time.monotonic()
    for seq in range(1, 1_000):
        bus.ring(hint(session, seq))
    assert time.monotonic() - started < 0.5, "ringing must not wait for the link"
    assert not bus.flush(0.1)
    redis_bus.start()
    await ears.until(lambda: ears.resyncs == 2)
    await asyncio.to_thread(bus.flush, 5.0)
    await ears.close()


def test_ringing_never_raises_and_never_grows_without_bound(settings: Any) -> None:
    settings.REDIS_URL = "unix:///nowhere/at/all.sock"
    for number in range(25_000):
        bus.ring(f"c:{number:032x}")
    bus.ring("s:nonsense", "s:1:2", "")
    bus.close(0.2)
    bell._bell.forget()


@pytest.mark.parametrize("size", [7_900, 8_000, 8_100, 100_000])
async def test_hints_carry_no_bodies_so_any_event_can_be_announced(
    postgres_bus: str, size: int
) -> None:
    ears = Ears("s")
    await ears.until(lambda: ears.resyncs)
    session = uuid4()
    for _ in range(size // 100):
        bus.ring(hint(uuid4(), 1))
    bus.ring(hint(session, 1))
    await ears.until(lambda: hint(session, 1) in ears.hints)
    await ears.close()


def test_a_short_lived_process_sends_what_it_rang_before_it_ends(postgres_bus: str) -> None:
    program = "from core import bus; bus.ring('q')"
    with psycopg.connect(postgres_bus, autocommit=True) as listener:
        listener.execute("LISTEN sederunt")
        subprocess.run(
            [
                sys.executable,
                "-c",
                "from django.conf import settings\n"
                f"settings.configure(DATABASE_DIRECT_URL={postgres_bus!r}, REDIS_URL='')\n"
                + program,
            ],
            check=True,
            timeout=30,
        )
        heard = [n.payload for n in listener.notifies(timeout=5, stop_after=1)]
    assert heard == ["q"]
