"""The one door for writing the log, and how it is read. Nothing else touches the event table."""

from sessions_app.eventlog.append import Fenced, GroupResult, append, append_groups
from sessions_app.eventlog.compact import compact
from sessions_app.eventlog.purge import purge_events
from sessions_app.eventlog.read import (
    StoredEvent,
    count_appended,
    head,
    heads,
    read_after,
    read_after_each,
    read_at,
    read_before,
    read_texts,
    read_turn,
)
from sessions_app.eventlog.refusals import count_refused, refused_writes
from sessions_app.eventlog.usage import TurnUsage, sum_usage

__all__ = [
    "Fenced",
    "GroupResult",
    "StoredEvent",
    "TurnUsage",
    "append",
    "append_groups",
    "compact",
    "count_appended",
    "count_refused",
    "head",
    "heads",
    "purge_events",
    "read_after",
    "read_after_each",
    "read_at",
    "read_before",
    "read_texts",
    "read_turn",
    "refused_writes",
    "sum_usage",
]
