"""What a way to carry hints must offer, and which one the settings name."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol

from django.conf import settings


class Sender(Protocol):
    """Used by the bell's thread alone."""

    url: str

    def send(self, payloads: Sequence[str]) -> None:
        """Raises one of the way's errors."""

    def close(self) -> None: ...


class Receiver(Protocol):
    """An open link that already listens."""

    def batches(self) -> AsyncIterator[Sequence[str]]:
        """Payloads as they come. Raises one of the way's errors when the link is gone."""


class Opener(Protocol):
    def __call__(self, url: str) -> AbstractAsyncContextManager[Receiver]: ...


class SenderMaker(Protocol):
    def __call__(self, url: str) -> Sender: ...


@dataclass(frozen=True, slots=True)
class Way:
    """`errors`: what a link raises that is lost, or cannot be had."""

    make_sender: SenderMaker
    open_link: Opener
    errors: tuple[type[Exception], ...]


def current_way() -> tuple[Way, str]:
    """The one in use, and where it leads.

    Each is imported when it is used: Redis's client alone is a fifth of a process's start.
    """
    is_redis = bool(settings.REDIS_URL)
    module = import_module("core.bus.redis_pubsub" if is_redis else "core.bus.postgres")
    way: Way = module.WAY
    return way, settings.REDIS_URL or settings.DATABASE_DIRECT_URL
