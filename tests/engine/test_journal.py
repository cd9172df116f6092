"""The journal: batches, order, fences, bounds, and outages that leave a commit in doubt."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

import pytest
from django.db import OperationalError

from engine import journal as journal_module
from engine.journal import Journal, JournalEntry, Written
from engine.ports import DeltaKind, Fact, Fenced
from engine.worker import Running
from sessions_app.services.attempts import Claim

TEXT = DeltaKind.MESSAGE


@dataclass
class Store:
    """A log in memory that can be locked, fenced, or break before or after a commit."""

    logs: dict[object, list[Fact]] = field(default_factory=dict)
    groups: list[list[object]] = field(default_factory=list)
    locked: set[object] = field(default_factory=set)
    fenced: set[object] = field(default_factory=set)
    # What the next writes do: "before" or "after" the commit they break.
    breaks: list[str] = field(default_factory=list)
    slow: float = 0.0

    async def write_groups(self, groups: Sequence[tuple[object, Sequence[Fact]]]) -> Written:
        await asyncio.sleep(self.slow)
        trouble = self.breaks.pop(0) if self.breaks else ""
        if trouble == "before":
            raise OperationalError
        self.groups.append([key for key, _ in groups])
        keys = {key for key, _ in groups}
        for key, facts in groups:
            if key not in self.locked | self.fenced:
                self.logs.setdefault(key, []).extend(facts)
        if trouble == "after":
            raise OperationalError
        fenced, locked = keys & self.fenced, keys & self.locked
        return Written(frozenset(keys - fenced - locked), frozenset(locked), frozenset(fenced))

    async def write(self, key: object, facts: Sequence[Fact]) -> range:
        await asyncio.sleep(self.slow)
        trouble = self.breaks.pop(0) if self.breaks else ""
        if trouble == "before":
            raise OperationalError
        if key in self.fenced:
            raise Fenced
        log = self.logs.setdefault(key, [])
        log.extend(facts)
        if trouble == "after":
            raise OperationalError
        return range(len(log) - len(facts) + 1, len(log) + 1)

    async def find_written(self, key: object, fact: Fact) -> int | None:
        log = self.logs.get(key, [])
        return log.index(fact) + 1 if fact in log else None

    async def count_written(self, key: object, message_id: str) -> int:
        return sum(
            len(fact.payload["text"])
            for fact in self.logs.get(key, [])
            if fact.payload.get("message_id") == message_id
        )

    def text(self, key: object) -> str:
        return "".join(fact.payload.get("text", "|") for fact in self.logs.get(key, []))


@asynccontextmanager
async def flushing(store: Store, seconds: float = 0.01) -> AsyncIterator[Journal]:
    journal = Journal(store, flush_seconds=seconds, flush_characters=100)
    task = asyncio.create_task(journal.run())
    try:
        yield journal
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def opened(journal: Journal, key: object = "a") -> JournalEntry:
    return journal.open(key, lambda: None)


def fact(name: str = "model.usage") -> Fact:
    return Fact(name, {"step": 1})


async def until(check: object) -> None:
    for _ in range(500):
        if callable(check) and check():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not come to pass")


async def test_the_deltas_of_one_flush_are_one_event() -> None:
    store = Store()
    async with flushing(store) as journal:
        entry = opened(journal)
        for letter in "abc":
            await entry.delta(TEXT, "m", letter)
        await entry.delta(DeltaKind.THINKING, "t", "d")
        await until(lambda: store.logs)
    assert [fact.payload["text"] for fact in store.logs["a"]] == ["abc", "d"]


async def test_all_turns_go_in_one_group() -> None:
    store = Store()
    async with flushing(store) as journal:
        for key in "abc":
            await opened(journal, key).delta(TEXT, key, "x")
        await until(lambda: store.groups)
    assert [set(group) for group in store.groups] == [{"a", "b", "c"}]


async def test_much_text_does_not_wait_for_the_time() -> None:
    store = Store()
    async with flushing(store, seconds=60) as journal:
        await opened(journal).delta(TEXT, "m", "x" * 100)
        await until(lambda: store.logs)


async def test_a_record_takes_the_text_before_it_along() -> None:
    store = Store()
    async with flushing(store, seconds=60) as journal:
        entry = opened(journal)
        await entry.delta(TEXT, "m", "abc")
        assert await entry.record([fact(), fact("agent.tool_use")]) == range(2, 4)
    assert store.text("a") == "abc||"


async def test_order_holds_while_a_flush_is_under_way() -> None:
    store = Store(slow=0.02)
    async with flushing(store) as journal:
        entry = opened(journal)
        for number in range(20):
            await entry.delta(TEXT, f"m{number}", f"{number},")
            await asyncio.sleep(0.004)
            if number % 5 == 4:
                await entry.record([fact()])
    assert store.text("a").replace("|", "") == "".join(f"{number}," for number in range(20))
    assert store.text("a").endswith("19,|")


async def test_a_locked_session_goes_with_the_next_flush() -> None:
    store = Store(locked={"a"})
    async with flushing(store) as journal:
        locked, free = opened(journal, "a"), opened(journal, "b")
        await locked.delta(TEXT, "m", "one ")
        await free.delta(TEXT, "m", "free")
        await until(lambda: "b" in store.logs)
        await locked.delta(TEXT, "m", "two")
        store.locked.clear()
        await until(lambda: "a" in store.logs)
    assert (store.text("a"), store.text("b")) == ("one two", "free")


async def test_a_fenced_turn_is_told_and_no_other_is_hurt() -> None:
    store, told = Store(fenced={"a"}), []
    async with flushing(store) as journal:
        fenced = journal.open("a", lambda: told.append("a"))
        free = opened(journal, "b")
        await fenced.delta(TEXT, "m", "late")
        await free.delta(TEXT, "m", "free")
        await until(lambda: told)
        for refused in (fenced.delta(TEXT, "m", "x"), fenced.record([fact()]), fenced.settle()):
            with pytest.raises(Fenced):
                await refused
        await free.record([fact()])
    assert told == ["a"]
    assert store.text("b") == "free|"
    assert "a" not in store.logs


async def test_a_record_of_a_fenced_turn_is_refused() -> None:
    store, told = Store(fenced={"a"}), []
    async with flushing(store) as journal:
        entry = journal.open("a", lambda: told.append("a"))
        with pytest.raises(Fenced):
            await entry.record([fact()])
    assert told == ["a"]


@pytest.mark.parametrize("trouble", ["before", "after"])
async def test_an_outage_in_a_flush_loses_and_doubles_nothing(trouble: str) -> None:
    store = Store(breaks=[trouble])
    async with flushing(store) as journal:
        entry = opened(journal)
        for letter in "abcdefgh":
            await entry.delta(TEXT, "m", letter)
            await asyncio.sleep(0.005)
        await entry.record([fact()])
    assert store.text("a") == "abcdefgh|"


@pytest.mark.parametrize("trouble", ["before", "after"])
async def test_an_outage_in_a_record_loses_and_doubles_nothing(trouble: str) -> None:
    store = Store(breaks=[trouble, "before"] if trouble == "before" else [trouble])
    async with flushing(store, seconds=60) as journal:
        entry = opened(journal)
        await entry.delta(TEXT, "m", "abc")
        assert await entry.record([fact("x"), fact("y")]) == range(2, 4)
        await entry.delta(TEXT, "m", "def")
        await entry.settle()
    assert store.text("a") == "abc||def"


@pytest.mark.parametrize("trouble", ["before", "after"])
async def test_an_outage_in_a_settle_loses_and_doubles_nothing(trouble: str) -> None:
    store = Store(breaks=[trouble])
    async with flushing(store, seconds=60) as journal:
        entry = opened(journal)
        await entry.delta(TEXT, "m", "abc")
        await entry.settle()
        await entry.settle()
    assert store.text("a") == "abc"


async def test_a_model_faster_than_the_database_has_to_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(journal_module, "PENDING_MAX_CHARACTERS", 50)
    store = Store(locked={"a"})
    async with flushing(store) as journal:
        entry = opened(journal)
        await entry.delta(TEXT, "m", "x" * 60)
        more = asyncio.create_task(entry.delta(TEXT, "m", "y"))
        await asyncio.sleep(0.1)
        assert not more.done()
        assert entry.size <= 61
        store.locked.clear()
        await asyncio.wait_for(more, 2)


async def test_a_fence_frees_a_model_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "PENDING_MAX_CHARACTERS", 50)
    store = Store(locked={"a"})
    async with flushing(store) as journal:
        entry = opened(journal)
        await entry.delta(TEXT, "m", "x" * 60)
        more = asyncio.create_task(entry.delta(TEXT, "m", "y"))
        await asyncio.sleep(0.05)
        store.fenced.add("a")
        store.locked.clear()
        with pytest.raises(Fenced):
            await asyncio.wait_for(more, 2)


async def test_an_attempt_that_is_found_stale_drops_its_waiting_text() -> None:
    store = Store()
    journal = Journal(store, flush_seconds=60, flush_characters=100)
    # Its claim plays no part in how it ends.
    running = Running(claim=cast("Claim", None), deadline=0)
    running.entry = journal.open("stale", running.fence)
    await running.entry.delta(TEXT, "m", "late")
    running.fence()
    await journal.flush()
    assert store.groups == []
    with pytest.raises(Fenced):
        await running.entry.delta(TEXT, "m", "later")
