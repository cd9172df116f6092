"""How many requests a principal may make: a token bucket that all processes share.

A process decides by itself, from what it knew of the shared bucket last, and tells what it let
through in groups of a hundredth of the limit, so that a request costs no write. What is let
through too much is at most such a group for each further process. A database that is away stops
nothing: each process goes on with its own bucket, and tells the rest later.
"""

from __future__ import annotations

import math
import random
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from django.db import Error as DatabaseError
from django.db import connection, transaction

from core.clock import now
from core.models import Budget

BUCKETS_MAX = 10_000  # principals remembered; the one unused for longest is forgotten
GROUPS_PER_LIMIT = 100
RETRY_SECONDS = 1.0
# A bucket is full again after a minute, and then its row says nothing.
KEPT_FOR = timedelta(minutes=5)
_SWEEP_CHANCE = 0.001
_SPEND = """
    INSERT INTO core_budget AS budget (key, tokens, at)
    VALUES (%(key)s, %(limit)s - %(used)s, clock_timestamp())
    ON CONFLICT (key) DO UPDATE SET
        tokens = greatest(
            -%(limit)s,
            least(
                %(limit)s,
                budget.tokens
                    + extract(epoch FROM clock_timestamp() - budget.at) * %(limit)s / 60.0
            ) - %(used)s
        ),
        at = clock_timestamp()
    RETURNING tokens
"""
Spend = Callable[[str, int, int], float]


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


@dataclass(slots=True)
class _Bucket:
    """`untold`: admitted here, and not yet known to the others."""

    tokens: float
    since: float
    untold: int = 0
    tell_at: float = 0.0
    was_told: bool = False


def spend(key: str, limit: int, used: int) -> float:
    """Takes from the bucket that all share, and says what is left; below zero: a debt."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_SPEND, {"key": key, "limit": limit, "used": used})
        (tokens,) = cursor.fetchone()
    if random.random() < _SWEEP_CHANCE:  # noqa: S311 (spreads a chore)
        Budget.objects.filter(at__lt=now() - KEPT_FOR).delete()
    return float(tokens)


class RateLimiter:
    """`per_minute` tokens fill a bucket in a minute; it holds as many, so a burst may use all.

    `spend` None: this process counts for itself alone.
    """

    def __init__(
        self,
        per_minute: int,
        clock: Callable[[], float] = time.monotonic,
        spend: Spend | None = None,
    ) -> None:
        self._limit = per_minute
        self._rate = per_minute / 60
        self._group = max(1, per_minute // GROUPS_PER_LIMIT)
        self._clock = clock
        self._spend = spend
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, key: str) -> Decision:
        with self._lock:
            bucket = self._open(key)
            if bucket.tokens < 1:
                return self._decide(bucket, is_admitted=False)
            bucket.tokens -= 1
            bucket.untold += 1
            untold = self._due(bucket)
            if not untold:
                return self._decide(bucket, is_admitted=True)
        # Outside of the lock: other principals do not wait for the database.
        left = self._tell(key, bucket, untold)
        if left is not None and left < 0:
            self._tell(key, bucket, -1)
            with self._lock:
                return self._decide(bucket, is_admitted=False)
        with self._lock:
            return self._decide(bucket, is_admitted=True)

    def _open(self, key: str) -> _Bucket:
        moment = self._clock()
        bucket = self._buckets.pop(key, None) or _Bucket(float(self._limit), moment)
        bucket.tokens = min(self._limit, bucket.tokens + (moment - bucket.since) * self._rate)
        bucket.since = moment
        self._buckets[key] = bucket
        if len(self._buckets) > BUCKETS_MAX:
            self._buckets.popitem(last=False)
        return bucket

    def _due(self, bucket: _Bucket) -> int:
        """How many to tell now; the first at once, so that a restart fills no bucket."""
        if self._spend is None or bucket.since < bucket.tell_at:
            return 0
        if bucket.untold < self._group and bucket.was_told:
            return 0
        untold, bucket.untold = bucket.untold, 0
        return untold

    def _tell(self, key: str, bucket: _Bucket, used: int) -> float | None:
        """None: the database is away."""
        assert self._spend is not None
        try:
            left = self._spend(key, self._limit, used)
        except DatabaseError:
            with self._lock:
                bucket.untold += used
                bucket.tell_at = self._clock() + RETRY_SECONDS
            return None
        with self._lock:
            bucket.tokens, bucket.since = left - bucket.untold, self._clock()
            bucket.was_told = True
        return left

    def _decide(self, bucket: _Bucket, *, is_admitted: bool) -> Decision:
        wait = 0 if is_admitted else max(1, math.ceil((1 - bucket.tokens) / self._rate))
        reset = math.ceil((self._limit - bucket.tokens) / self._rate)
        return Decision(self._limit, max(0, int(bucket.tokens)), reset, wait)
