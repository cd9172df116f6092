"""One journal for a worker process: the text of all its running turns, written in one statement.

Text that models stream is collected and written every few dozen milliseconds, for all turns in one
group. A session that is locked goes with the next flush; a fenced one loses its turn and nobody
else's. Anything that is not text is written at once, after the text that came before it.

An outage at commit leaves open whether a batch was written. Then the log itself is asked, so that
no text is lost and none is there twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from engine.database import CONNECTION_ERRORS, Pauses
from engine.logs import get_logger
from engine.ports import DeltaKind, Fact, Fenced

log = get_logger(__name__)

# Text of one turn that may wait for the database, in characters; then its model has to wait.
PENDING_MAX_CHARACTERS = 262_144


@dataclass(frozen=True, slots=True)
class Written:
    """What became of a group: the turns that were written, locked and fenced, by their key."""

    written: frozenset[object]
    locked: frozenset[object]
    fenced: frozenset[object]


class JournalStore(Protocol):
    """Where a journal writes to. Keys are opaque; `Fenced` where a turn may no longer write."""

    async def write_groups(self, groups: Sequence[tuple[object, Sequence[Fact]]]) -> Written: ...

    async def write(self, key: object, facts: Sequence[Fact]) -> range: ...

    async def find_written(self, key: object, fact: Fact) -> int | None:
        """The seq of this fact in the log of the attempt, if it got there."""

    async def count_written(self, key: object, message_id: str) -> int:
        """How many characters of this message's deltas are in the log."""


@dataclass(slots=True)
class _Run:
    """Neighbouring deltas of one message: written as one event."""

    kind: DeltaKind
    message_id: str
    text: str

    def fact(self) -> Fact:
        return Fact(self.kind, {"message_id": self.message_id, "text": self.text})


@dataclass(slots=True, eq=False)
class JournalEntry:
    """The journal of one attempt. `on_fenced` is called once, when it may no longer write."""

    key: object
    journal: Journal
    on_fenced: Callable[[], None]
    # Held while something of this turn is on its way to the database: keeps the order.
    writing: asyncio.Lock = field(default_factory=asyncio.Lock)
    is_fenced: bool = False
    # Characters not yet known to be in the log, those on their way included.
    size: int = 0
    _pending: list[_Run] = field(default_factory=list)
    _drained: asyncio.Event = field(default_factory=asyncio.Event)
    # Characters of each message known to be in the log.
    _confirmed: dict[str, int] = field(default_factory=dict)

    async def delta(self, kind: DeltaKind, message_id: str, text: str) -> None:
        while self.size > PENDING_MAX_CHARACTERS and not self.is_fenced:
            self._drained.clear()
            await self._drained.wait()
        self._require_live()
        self._add(_Run(kind, message_id, text))
        self.size += len(text)
        self.journal.note(self, len(text))

    @property
    def has_pending(self) -> bool:
        return bool(self._pending)

    async def record(self, facts: Sequence[Fact]) -> range:
        """Write the pending text and then `facts`, all or nothing; the seqs of `facts`."""
        async with self.writing:
            self._require_live()
            runs = self.take()
            seqs = await self._write([*(run.fact() for run in runs), *facts])
            self.confirm(runs)
            return seqs[len(runs) :]

    async def settle(self) -> None:
        """Returns when all text given so far is written."""
        async with self.writing:
            self._require_live()
            runs = self.take()
            if runs:
                await self._write([run.fact() for run in runs])
                self.confirm(runs)

    async def _write(self, facts: Sequence[Fact]) -> range:
        pauses = Pauses()
        while True:
            try:
                return await self.journal.store.write(self.key, facts)
            except Fenced:
                self.fence()
                raise
            except CONNECTION_ERRORS as error:
                log.warning("journal_waits_for_database", error=type(error).__name__)
            await pauses.wait()
            if (last := await self._find(facts[-1])) is not None:
                return range(last - len(facts) + 1, last + 1)

    async def _find(self, fact: Fact) -> int | None:
        """The seq of `fact`; a delta was written if the log has more text than was confirmed."""
        store = self.journal.store
        if fact.type not in set(DeltaKind):
            return await store.find_written(self.key, fact)
        message_id = str(fact.payload["message_id"])
        written = await store.count_written(self.key, message_id)
        return 0 if written > self._confirmed.get(message_id, 0) else None

    def _add(self, run: _Run) -> None:
        last = self._pending[-1] if self._pending else None
        if last and last.message_id == run.message_id and last.kind == run.kind:
            last.text += run.text
        else:
            self._pending.append(run)

    def take(self) -> list[_Run]:
        runs, self._pending = self._pending, []
        return runs

    def give_back(self, runs: Sequence[_Run]) -> None:
        """Put runs that were not written in front of what has come since."""
        since = self.take()
        for run in (*runs, *since):
            self._add(run)

    def confirm(self, runs: Sequence[_Run]) -> None:
        for run in runs:
            known = self._confirmed.get(run.message_id, 0)
            self._confirmed[run.message_id] = known + len(run.text)
            self.size -= len(run.text)
        self._drained.set()

    async def was_written(self, runs: Sequence[_Run]) -> bool:
        return await self._find(runs[-1].fact()) is not None

    def fence(self) -> None:
        if not self.is_fenced:
            self.is_fenced = True
            self._pending.clear()
            self._drained.set()
            self.on_fenced()

    def _require_live(self) -> None:
        if self.is_fenced:
            raise Fenced


class Journal:
    def __init__(self, store: JournalStore, *, flush_seconds: float, flush_characters: int) -> None:
        self.store = store
        self._flush_seconds = flush_seconds
        self._flush_characters = flush_characters
        self._entries: set[JournalEntry] = set()
        self._waiting = asyncio.Event()
        self._full = asyncio.Event()

    def open(self, key: object, on_fenced: Callable[[], None]) -> JournalEntry:
        entry = JournalEntry(key, self, on_fenced)
        self._entries.add(entry)
        return entry

    def close(self, entry: JournalEntry) -> None:
        self._entries.discard(entry)

    def note(self, entry: JournalEntry, added: int) -> None:
        """Text was added: begin the wait for the next flush, or end it."""
        self._waiting.set()
        if entry.size >= self._flush_characters > entry.size - added:
            self._full.set()

    async def run(self) -> None:
        """Flush for ever; ends by cancellation."""
        while True:
            await self._waiting.wait()
            with suppress(TimeoutError):  # the usual case: time is up before there is much text
                await asyncio.wait_for(self._full.wait(), self._flush_seconds)
            self._waiting.clear()
            self._full.clear()
            await self.flush()

    async def flush(self) -> None:
        # A turn that is just being written takes its text along itself.
        ready = [e for e in self._entries if e.has_pending and not e.writing.locked()]
        for entry in ready:
            await entry.writing.acquire()
        try:
            # A record that was first in line has taken its text along meanwhile.
            await self._write([(e, e.take()) for e in ready if e.has_pending])
        finally:
            for entry in ready:
                entry.writing.release()

    async def _write(self, groups: Sequence[tuple[JournalEntry, list[_Run]]]) -> None:
        if not groups:
            return
        try:
            result = await self.store.write_groups(
                [(entry.key, [run.fact() for run in runs]) for entry, runs in groups]
            )
        except CONNECTION_ERRORS as error:
            log.warning("journal_waits_for_database", error=type(error).__name__)
            await self._find_out(groups)
            return
        for entry, runs in groups:
            if entry.key in result.fenced:
                entry.fence()
            elif entry.key in result.locked:
                self._put_back(entry, runs)
            else:
                entry.confirm(runs)

    async def _find_out(self, groups: Sequence[tuple[JournalEntry, list[_Run]]]) -> None:
        """After an outage: what the log has is confirmed, the rest goes with the next flush."""
        for entry, runs in groups:
            if await entry.was_written(runs):
                entry.confirm(runs)
            else:
                self._put_back(entry, runs)

    def _put_back(self, entry: JournalEntry, runs: Sequence[_Run]) -> None:
        if not entry.is_fenced:
            entry.give_back(runs)
            self._waiting.set()
