"""Times as people read them, in the zone that the browser told us."""

from __future__ import annotations

from datetime import date, datetime, timedelta

MINUTE, HOUR, DAY = 60, 3_600, 86_400


def age(passed: timedelta) -> str:
    """`now 41s 6m 3h 2d 5w`: narrow, for columns. Never in the future."""
    seconds = max(0, int(passed.total_seconds()))
    if seconds < 10:
        return "now"
    if seconds < MINUTE:
        return f"{seconds}s"
    if seconds < HOUR:
        return f"{seconds // MINUTE}m"
    if seconds < DAY:
        return f"{seconds // HOUR}h"
    if seconds < 100 * DAY:
        return f"{seconds // DAY}d"
    return f"{seconds // (7 * DAY)}w"


def left(ahead: timedelta) -> str:
    """`41s left`; `no time left` once it is over."""
    return f"{age(ahead)} left" if ahead > timedelta(seconds=10) else "no time left"


def full_time(local: datetime) -> str:
    return f"{local.day} {local:%B %Y, %H:%M:%S}"


def duration(milliseconds: int | None) -> str:
    """`0.2 s`, `12 s`, `3 min 20 s`."""
    if milliseconds is None:
        return ""
    seconds = milliseconds / 1000
    if seconds < 10:
        return f"{max(seconds, 0.1):.1f} s"
    if seconds < MINUTE:
        return f"{round(seconds)} s"
    minutes, rest = divmod(round(seconds), MINUTE)
    return (
        f"{minutes} min {rest:02} s"
        if minutes < MINUTE
        else f"{minutes // 60} h {minutes % 60} min"
    )


def day_name(day: date, today: date) -> str:
    if day == today:
        return "Today"
    if day == today - timedelta(days=1):
        return "Yesterday"
    name = f"{day.day} {day:%B}"
    return name if day.year == today.year else f"{name} {day.year}"
