"""Ringing: after commit, from any thread, on a thread and a connection of its own.

NOTIFY inside the append's transaction would take a lock that serialises all commits of the
database. Here it costs the caller a dictionary entry; what rings while a payload is under way
goes with the next one.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time

from core.bus.hints import everything, merge, pack
from core.bus.transport import Sender, Way, current_way

logger = logging.getLogger(__name__)

# Different hints that may wait, in a process whose link is down. Beyond it: "look at everything".
_PENDING_MAX = 10_000
# Seconds between two sends: hints of a burst share one, a single hint waits for none.
_PAUSE = 0.002
_RETRY_FIRST, _RETRY_MAX = 0.05, 2.0


class Bell:
    """One per process. Its thread starts with the first ring and ends with the process."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew: a forked child has none of its parent's threads, nor may it use its link."""
        self._changed = threading.Condition()
        self._pending: dict[str, str] = {}
        self._is_sending = False
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def ring(self, *hints: str) -> None:
        with self._changed:
            for hint in hints:
                merge(self._pending, hint)
            if len(self._pending) > _PENDING_MAX:
                self._pending = dict(everything())
            self._ensure_thread()
            self._changed.notify_all()

    def flush(self, timeout: float) -> bool:
        """Wait until nothing waits any more. False when that took longer than `timeout`."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._has_work(), timeout)

    def close(self, timeout: float) -> None:
        """Send what waits and let the connection go; a later ring opens it again."""
        with self._changed:
            self._is_closed = True
            thread, self._thread = self._thread, None
            self._changed.notify_all()
        if thread is not None:
            thread.join(timeout)

    def _has_work(self) -> bool:
        return bool(self._pending) or self._is_sending

    def _ensure_thread(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._is_closed = False
            self._thread = threading.Thread(target=self._run, name="bell", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        sender: Sender | None = None
        delay = _RETRY_FIRST
        try:
            while (batch := self._take()) is not None:
                way, url = current_way()
                try:
                    sender = _current(sender, way, url)
                    sender.send(pack(batch.values()))
                    delay = _RETRY_FIRST
                except way.errors as error:
                    logger.warning("bus.ring_failed error=%s", type(error).__name__)
                    self._put_back(batch)
                    _drop(sender)
                    sender = None
                    if self._is_closed:
                        break
                    time.sleep(delay)
                    delay = min(delay * 2, _RETRY_MAX)
                finally:
                    self._sent()
                time.sleep(_PAUSE)
        finally:
            _drop(sender)

    def _take(self) -> dict[str, str] | None:
        """All that waits; None when the bell is closed and nothing does."""
        with self._changed:
            self._changed.wait_for(lambda: self._pending or self._is_closed)
            if not self._pending:
                return None
            batch, self._pending = self._pending, {}
            self._is_sending = True
            return batch

    def _put_back(self, batch: dict[str, str]) -> None:
        with self._changed:
            newer, self._pending = self._pending, batch
            for hint in newer.values():
                merge(self._pending, hint)

    def _sent(self) -> None:
        with self._changed:
            self._is_sending = False
            self._changed.notify_all()


def _current(sender: Sender | None, way: Way, url: str) -> Sender:
    """The open link, or a new one where there is none to that place."""
    if sender is not None and sender.url == url:
        return sender
    _drop(sender)
    return way.make_sender(url)


def _drop(sender: Sender | None) -> None:
    if sender is not None:
        sender.close()


_bell = Bell()


def ring(*hints: str) -> None:
    """Tell other processes to look. Never blocks, never raises: a lost hint costs one poll."""
    try:
        _bell.ring(*hints)
    except (RuntimeError, ValueError, IndexError):
        # No thread can start while the interpreter shuts down; a garbled hint is a defect of ours.
        logger.warning("bus.ring_refused", exc_info=True)


def flush(timeout: float = 1.0) -> bool:
    """Wait, for at most `timeout` seconds, until everything rung so far has been sent."""
    return _bell.flush(timeout)


def close(timeout: float = 2.0) -> None:
    """Send what waits and close the bell's connection."""
    _bell.close(timeout)


os.register_at_fork(after_in_child=_bell.forget)
atexit.register(close, 1.0)
