"""Guessing passwords is slow: failures are counted per address and per account, successes not."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable

FAILURES_PER_ACCOUNT = 8
FAILURES_PER_ADDRESS = 40
WINDOW_SECONDS = 300
KEYS_MAX = 20_000  # remembered; the one unused for longest is forgotten


class FailureThrottle:
    """In memory and per process: a restart forgives, and no request costs a write."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()

    def wait_seconds(self, email: str, address: str) -> int:
        """How long to wait before the next try; 0: now."""
        with self._lock:
            return max(
                self._wait(f"account:{email.casefold()}", FAILURES_PER_ACCOUNT),
                self._wait(f"address:{address}", FAILURES_PER_ADDRESS),
            )

    def note_failure(self, email: str, address: str) -> None:
        with self._lock:
            for key in (f"account:{email.casefold()}", f"address:{address}"):
                times = self._failures.setdefault(key, deque(maxlen=FAILURES_PER_ADDRESS))
                times.append(self._clock())
                self._failures.move_to_end(key)
            while len(self._failures) > KEYS_MAX:
                self._failures.popitem(last=False)

    def forget(self, email: str) -> None:
        """After a success of this account."""
        with self._lock:
            self._failures.pop(f"account:{email.casefold()}", None)

    def _wait(self, key: str, limit: int) -> int:
        times = self._failures.get(key)
        if times is None:
            return 0
        oldest = self._clock() - WINDOW_SECONDS
        while times and times[0] < oldest:
            times.popleft()
        if len(times) < limit:
            return 0
        return int(times[-limit] - oldest) + 1
