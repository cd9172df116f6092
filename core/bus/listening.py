"""Hearing hints: a link that is opened again whenever it breaks, and says so."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Collection
from types import TracebackType

from core.bus.hints import RESYNC, unpack
from core.bus.transport import current_way

logger = logging.getLogger(__name__)

_RETRY_FIRST, _RETRY_MAX = 0.1, 2.0


class Subscription:
    """`async for hints in subscription`; also a context manager, which closes the link.

    Gives sets of hints, and RESYNC after every (re)connect: by then the link listens, so whoever
    catches up on RESYNC misses nothing. It never raises because of a lost link.
    """

    def __init__(self, prefixes: Collection[str]) -> None:
        self._prefixes = frozenset([prefixes] if isinstance(prefixes, str) else prefixes)
        self._hints = self._listen()
        self.is_connected = False

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> frozenset[str]:
        return await self._hints.__anext__()

    async def __aenter__(self) -> Subscription:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._hints.aclose()

    async def _listen(self) -> AsyncGenerator[frozenset[str]]:
        delay = _RETRY_FIRST
        while True:
            way, url = current_way()
            try:
                async with way.open_link(url) as link:
                    self.is_connected = True
                    delay = _RETRY_FIRST
                    yield RESYNC
                    async for payloads in link.batches():
                        hints = unpack(payloads, self._prefixes)
                        if hints:
                            yield hints
            except way.errors as error:
                logger.warning("bus.link_lost error=%s", type(error).__name__)
            finally:
                self.is_connected = False
            await asyncio.sleep(delay)
            delay = min(delay * 2, _RETRY_MAX)


def listen(prefixes: Collection[str] = ()) -> Subscription:
    """Hear hints of these kinds (`("s", "e")`); of all kinds when none is named."""
    return Subscription(prefixes)
