"""Now, in UTC. One place, so that tests can hold it."""

from datetime import UTC, datetime


def now() -> datetime:
    return datetime.now(UTC)


def rfc3339(moment: datetime | None) -> str | None:
    """`2026-05-01T09:30:00.123456Z`; microseconds always, as the event log writes them."""
    if moment is None:
        return None
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
