"""Stopping in order: open streams end at once, so that the server need not wait for them."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from types import FrameType

from sessions_app.streaming.hub import Hub

logger = logging.getLogger(__name__)


def drain_on_signals(hub: Hub) -> None:
    """Put ourselves before the server's own handlers of SIGTERM and SIGINT.

    Servers stop accepting first and then wait for responses; a stream would keep them waiting.
    Where nobody handles the signal, or outside the main thread, nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        _chain(number, hub, loop)


def _chain(number: signal.Signals, hub: Hub, loop: asyncio.AbstractEventLoop) -> None:
    server = signal.getsignal(number)
    if not callable(server):
        return

    def handle(signum: int, frame: FrameType | None) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(hub.drain)
        server(signum, frame)

    signal.signal(number, handle)
