"""What is told of many children fits into one result: measured as it is encoded, not as text."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import orjson

Entry = dict[str, Any]


def fit_entries(entries: Sequence[Entry], room: int) -> list[Entry]:
    """The entries, encoded as JSON in at most `room` bytes with the commas between them.

    Long ones are cut to the same size, so that a short one never loses a word to them.
    """
    fitted = list(entries)
    left = room - max(len(entries) - 1, 0)
    shortest_first = sorted(range(len(entries)), key=lambda place: size_of(entries[place]))
    for done, place in enumerate(shortest_first):
        fitted[place] = _fit(entries[place], left // (len(entries) - done))
        left -= size_of(fitted[place])
    return fitted


def size_of(value: Any) -> int:
    return len(orjson.dumps(value))


def _fit(entry: Entry, room: int) -> Entry:
    """First its text gives way, then the words of its error, then its title."""
    if size_of(entry) <= room:
        return entry
    fitted = {**entry, "truncated": True}
    error = fitted["error"] = dict(entry.get("error") or {})
    if not error:
        del fitted["error"]
    for words, name in ((fitted, "text"), (error, "message"), (fitted, "title")):
        excess = size_of(fitted) - room
        if excess > 0 and words.get(name):
            words[name] = _shortened(words[name], excess)
    return fitted


def _shortened(text: str, excess: int) -> str:
    """Without as many of its last characters as take `excess` bytes."""
    room = size_of(text) - excess
    length = bisect_right(range(len(text) + 1), room, key=lambda n: size_of(text[:n])) - 1
    return text[: max(length, 0)]
