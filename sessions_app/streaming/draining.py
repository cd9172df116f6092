"""Stopping in order: open streams end at once, so that the server need not wait for them."""

from __future__ import annotations

import asyncio
import signal
import threading
from types import FrameType
from typing import Final

from sessions_app.streaming.hub import Hub

# Seconds between telling the streams and telling the server: daphne stops without asking them.
FAREWELL_SECONDS: Final = 0.2


def drain_on_signals(hub: Hub) -> None:
    """Put ourselves before the server's own handlers of SIGTERM and SIGINT.

    uvicorn stops accepting and then waits for responses, and a stream would keep it waiting;
    daphne just stops. So the streams hear it first. A second signal goes to the server at once.
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

    def say_farewell(signum: int) -> None:
        hub.drain()
        loop.call_later(FAREWELL_SECONDS, server, signum, None)

    def handle(signum: int, frame: FrameType | None) -> None:
        if loop.is_closed() or hub.is_draining or not hub.open_viewers:
            hub.is_draining = True
            server(signum, frame)
        else:
            loop.call_soon_threadsafe(say_farewell, signum)

    signal.signal(number, handle)
