"""How many requests a principal may make: a token bucket per principal and process, in memory.

It protects the server from a client that runs away, and is no bill, so that its numbers need not
be exact: with several web processes the true ceiling is that many times higher, and a restart
fills every bucket. In exchange a request costs no write, and a database in trouble gets less
work, not more.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

BUCKETS_MAX = 10_000  # principals remembered; the one unused for longest is forgotten


@dataclass(frozen=True, slots=True)
class Decision:
    """`reset_seconds`: until the bucket is full again. `retry_after_seconds`: 0 when admitted."""

    limit: int
    remaining: int
    reset_seconds: int
    retry_after_seconds: int

    @property
    def is_admitted(self) -> bool:
        return self.retry_after_seconds == 0

    @property
    def headers(self) -> dict[str, str]:
        return {
            "x-ratelimit-limit": str(self.limit),
            "x-ratelimit-remaining": str(self.remaining),
            "x-ratelimit-reset": str(self.reset_seconds),
        }


class RateLimiter:
    """`per_minute` tokens fill a bucket in a minute; it holds as many, so a burst may use all."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = per_minute
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str) -> Decision:
        moment = self._clock()
        rate = self._limit / 60
        with self._lock:
            tokens, since = self._buckets.pop(key, (float(self._limit), moment))
            tokens = min(self._limit, tokens + (moment - since) * rate)
            admitted = tokens >= 1
            left = tokens - 1 if admitted else tokens
            self._buckets[key] = (left, moment)
            if len(self._buckets) > BUCKETS_MAX:
                self._buckets.popitem(last=False)
        wait = 0 if admitted else max(1, math.ceil((1 - tokens) / rate))
        reset = math.ceil((self._limit - left) / rate)
        return Decision(self._limit, int(left), reset, wait)
