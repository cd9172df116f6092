"""The one door for writing the log, and how it is read. Nothing else touches the event table."""

from sessions_app.eventlog.append import Fenced, GroupResult, append, append_groups
from sessions_app.eventlog.children import find_child_results, find_told_results
from sessions_app.eventlog.compact import compact
from sessions_app.eventlog.copying import (
    CopiedTurn,
    copy_history,
    find_begun_turns,
    find_following,
    find_newest_message,
    hold_log,
)
from sessions_app.eventlog.purge import purge_events
from sessions_app.eventlog.read import (
    StoredEvent,
    count_appended,
    find_newest_of_turn,
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
    "CopiedTurn",
    "Fenced",
    "GroupResult",
    "StoredEvent",
    "TurnUsage",
    "append",
    "append_groups",
    "compact",
    "copy_history",
    "count_appended",
    "count_refused",
    "find_begun_turns",
    "find_child_results",
    "find_following",
    "find_newest_message",
    "find_newest_of_turn",
    "find_told_results",
    "head",
    "heads",
    "hold_log",
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
