"""Joining runs of deltas of one message into one event that says the last seq it covers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

import orjson

from sessions_app.domain.events import DELTA_TYPES
from sessions_app.eventlog.read import StoredEvent


def compact(events: Iterable[StoredEvent]) -> list[StoredEvent]:
    """Neighbouring deltas of one message become the last of them, with all their text and
    `first_seq`. The order is kept.
    """
    return [joined for run in _runs(events) for joined in _join(run)]


def _runs(events: Iterable[StoredEvent]) -> Iterator[list[StoredEvent]]:
    for _, run in groupby(events, key=_run_key):
        yield list(run)


def _run_key(event: StoredEvent) -> tuple[str, object]:
    if event.type not in DELTA_TYPES:
        return event.type, event.seq
    return event.type, event.data["message_id"]


def _join(run: list[StoredEvent]) -> list[StoredEvent]:
    if len(run) == 1:
        return run
    last = run[-1]
    text = "".join(event.data["text"] for event in run)
    joined = last.data | {"text": text, "first_seq": run[0].seq}
    return [
        StoredEvent(
            last.seq,
            last.type,
            last.turn_id,
            last.attempt,
            orjson.dumps(joined).decode(),
            run[0].seq,
        )
    ]
