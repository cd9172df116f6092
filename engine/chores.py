"""What one worker of all does for all: ending lost attempts, closing expired questions, forgetting
what is over.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection

from orgs.services.sweeping import sweep
from sessions_app.services.attempts import reap_expired
from sessions_app.services.settling import expire_waits

# A number of our own among the server's advisory locks.
CHORES_LOCK = 5_337_001
# Two looks at the database that lie further apart than this: it may have been away in between.
GAP_MAX = timedelta(seconds=2.5)
SWEEP_SECONDS = 60.0


@dataclass(slots=True)
class Contact:
    """Since when the database has been there without a gap, by its own clock.

    By its own clock a gap is seen whatever it was: an outage, a connection that hung, this process
    frozen, the machine asleep.
    """

    since: datetime | None = None
    last: datetime | None = None

    def note(self, at: datetime) -> None:
        if self.since is None or self.last is None or not self.last <= at <= self.last + GAP_MAX:
            self.since = at
        self.last = at

    def lose(self) -> None:
        self.since = self.last = None

    def has_lasted(self, seconds: float) -> bool:
        if self.since is None or self.last is None:
            return False
        return self.last - self.since >= timedelta(seconds=seconds)


class Chores:
    """Those of one worker. `grace_seconds`: after an outage leases are left alone for so long,
    so that whoever still works on them can say so first.
    """

    def __init__(self, grace_seconds: float) -> None:
        self._grace_seconds = grace_seconds
        self._contact = Contact()
        self._swept_at: float | None = None

    def do(self) -> int:
        """Unless another worker is at it; returns how many attempts were lost."""
        try:
            return self._do()
        except BaseException:
            self._contact.lose()
            raise

    def _do(self) -> int:
        is_chosen, at = _ask("SELECT pg_try_advisory_lock(%s), clock_timestamp()")
        self._contact.note(at)
        if not is_chosen:
            return 0
        try:
            # Turns that lost their worker come first: a question may well expire a little later.
            may_reap = self._contact.has_lasted(self._grace_seconds)
            lost = reap_expired(at=at, after_each=self._note) if may_reap else 0
            expire_waits(after_each=self._note)
            self._sweep()
            return lost
        finally:
            _, at = _ask("SELECT pg_advisory_unlock(%s), clock_timestamp()")
            self._contact.note(at)

    def _sweep(self) -> None:
        moment = time.monotonic()
        if self._swept_at is None or moment - self._swept_at >= SWEEP_SECONDS:
            self._swept_at = moment
            sweep()

    def _note(self) -> None:
        """Long work is no gap, as long as each piece of it is short."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT clock_timestamp()")
            (at,) = cursor.fetchone()
        self._contact.note(at)


def _ask(statement: str) -> tuple[bool, datetime]:
    with connection.cursor() as cursor:
        cursor.execute(statement, [CHORES_LOCK])
        answer, at = cursor.fetchone()
    return answer, at
