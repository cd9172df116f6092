"""What a way to carry hints must offer, and how one fails."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

import psycopg
import redis

LINK_ERRORS: Final = (OSError, psycopg.Error, redis.RedisError)


class Sender(Protocol):
    """Used by the bell's thread alone."""

    url: str

    def send(self, payloads: Sequence[str]) -> None:
        """Raises one of LINK_ERRORS."""

    def close(self) -> None: ...


class Receiver(Protocol):
    """An open link that already listens."""

    def batches(self) -> AsyncIterator[Sequence[str]]:
        """Payloads as they come. Raises one of LINK_ERRORS when the link is gone."""


class Opener(Protocol):
    def __call__(self, url: str) -> AbstractAsyncContextManager[Receiver]: ...
