"""One worker process: claims turns, runs them side by side, keeps their leases alive.

Nothing here is remembered that the database does not know: a worker may die at any moment. Its
turns are then taken over by others when their leases run out.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from core.bus import RESYNC, listen
from core.ids import Prefix, encode_id
from engine.chores import Chores
from engine.clock import SystemClock
from engine.database import CONNECTION_ERRORS, Lane, Pauses, is_down
from engine.failures import describe
from engine.journal import Journal, JournalEntry
from engine.logs import get_logger
from engine.loop import Limits, TurnLoop
from engine.notice import keep_noticed
from engine.ports import Failed, Fenced, HandedOver, Outcome, Tenure, TurnTask
from engine.providers.registry import ProviderRegistry
from engine.tools.registry import ToolRegistry
from engine.turnlog import DurableTurnLog, ServiceStore, end_attempt
from sessions_app.services import attempts
from sessions_app.services.attempts import Claim, Lease

log = get_logger(__name__)

LEASE_CHECK_SECONDS = 0.2
CHORES_SECONDS = 1.0
# How long the end of a turn may wait for the database while the worker is stopping.
LAST_WORDS_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Times in seconds; see the settings of the same names."""

    concurrency: int
    lease_seconds: float
    heartbeat_seconds: float
    poll_seconds: float
    grace_seconds: float
    flush_seconds: float
    flush_characters: int
    # After an outage of the database: until every worker that lives has had its heartbeat.
    return_grace_seconds: float
    limits: Limits = field(default_factory=Limits)


@dataclass(slots=True, eq=False)
class Running:
    """A turn at work. `deadline`: until then the lease is surely ours (monotonic time)."""

    claim: Claim
    deadline: float
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    tenure: Tenure = field(default_factory=Tenure)
    is_fenced: bool = False
    entry: JournalEntry | None = None
    work: asyncio.Task[Outcome] | None = None

    @property
    def lease(self) -> Lease:
        return self.claim.lease

    def prolong(self, deadline: float) -> None:
        self.deadline = max(self.deadline, deadline)
        self.tenure.confirm()

    def fence(self) -> None:
        """The attempt is stale: it stops at once, and writes nothing more, nor what waits."""
        if self.is_fenced:
            return
        self.is_fenced = True
        if self.entry is not None:
            self.entry.fence()
        if self.work is not None:
            self.work.cancel()


class Worker:
    def __init__(self, settings: WorkerSettings, tools: ToolRegistry) -> None:
        self.name = f"{socket.gethostname()}:{os.getpid()}"
        self.token = uuid4()
        self._settings = settings
        self._tools = tools
        self._providers = ProviderRegistry()
        self._journal = Journal(
            ServiceStore(),
            flush_seconds=settings.flush_seconds,
            flush_characters=settings.flush_characters,
        )
        self._clock = SystemClock()
        self._control = Lane("control")
        self._chores = Lane("chores")
        self._common = Chores(settings.return_grace_seconds)
        self._running: dict[UUID, Running] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = asyncio.Event()
        self._claim_now = asyncio.Event()
        self._claiming = asyncio.Lock()
        self._beat_now = asyncio.Event()

    def stop(self) -> None:
        """Begin the orderly stop: no new turn, models interrupted, calls given their grace."""
        self._stopping.set()
        self._claim_now.set()
        for running in self._running.values():
            running.stop.set()

    async def run(self) -> None:
        """Work until `stop`. Raises only what no restart inside the process could mend."""
        log.info("worker_started", worker=self.name, token=str(self.token))
        duties = [
            asyncio.create_task(duty, name=name)
            for name, duty in (
                ("journal", self._journal.run()),
                ("heartbeat", self._beat()),
                ("leases", self._watch_leases()),
                ("chores", self._do_chores()),
                ("bus", self._listen()),
                ("notice", keep_noticed(lane=self._chores, token=self.token, name=self.name)),
            )
        ]
        claiming = asyncio.create_task(self._claim(), name="claim")
        try:
            await _first_end([claiming, *duties])
            await self._drain()
        finally:
            await _end_all([claiming, *duties])
            await self._providers.aclose()
            self._control.close()
            self._chores.close()
        log.info("worker_stopped", worker=self.name)

    # ----------------------------------------------------------------------- taking turns

    async def _claim(self) -> None:
        pauses = Pauses()
        in_doubt = False
        while not self._stopping.is_set():
            self._claim_now.clear()
            claim = None
            if len(self._running) < self._settings.concurrency:
                asked_at = self._clock.monotonic()
                try:
                    running = list(self._running) if in_doubt else None
                    async with self._claiming:
                        claim = await self._control.call(self._claim_one, running)
                except CONNECTION_ERRORS as error:
                    log.warning("claim_waits_for_database", error=type(error).__name__)
                    in_doubt = True
                    await pauses.wait()
                    continue
                in_doubt = False
            pauses = Pauses()
            if claim is not None:
                self._start(claim, asked_at + self._settings.lease_seconds)
                continue
            with suppress(TimeoutError):
                await asyncio.wait_for(self._claim_now.wait(), self._settings.poll_seconds)

    def _claim_one(self, running: list[UUID] | None) -> Claim | None:
        """`running`, after an outage: it may have hidden that a claim beyond those was granted."""
        if running is not None:
            granted = attempts.find_claim(token=self.token, known=running)
            if granted and attempts.heartbeat(leases=[granted.lease]).alive:
                return granted
        # Two such turns in one process: one that kills it would take the other along to its end.
        is_risking = any(running.claim.is_last_chance for running in self._running.copy().values())
        return attempts.claim_turn(worker=self.name, token=self.token, may_risk=not is_risking)

    def _start(self, claim: Claim, deadline: float) -> None:
        running = Running(claim, deadline)
        self._running[claim.lease.attempt_id] = running
        if self._stopping.is_set():
            running.stop.set()
        task = asyncio.create_task(self._tend(running))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _tend(self, running: Running) -> None:
        """Run one turn and bring it to its end, whatever happens to the work itself."""
        lease = running.lease
        entry = running.entry = self._journal.open(lease, running.fence)
        try:
            running.work = asyncio.create_task(self._work(running, entry))
            if running.is_fenced:
                entry.fence()
                running.work.cancel()
            await asyncio.wait({running.work})
            outcome = self._outcome(running, running.work)
            await self._end(running, entry, outcome)
        finally:
            self._journal.close(entry)
            self._running.pop(lease.attempt_id, None)
            self._claim_now.set()

    async def _work(self, running: Running, entry: JournalEntry) -> Outcome:
        claim = running.claim
        loop = TurnLoop(
            log=DurableTurnLog(claim, entry),
            providers=self._providers.for_organization(claim.organization_id),
            tools=self._tools.for_turn(claim.tools, within_default=claim.tools_within_default),
            clock=self._clock,
            limits=self._settings.limits,
        )
        task = TurnTask(
            session_id=encode_id(Prefix.SESSION, claim.lease.session_id),
            turn_id=encode_id(Prefix.TURN, claim.lease.turn_id),
            instructions=claim.instructions,
            stop=running.stop,
            tenure=running.tenure,
        )
        return await loop.run(task)

    def _outcome(self, running: Running, work: asyncio.Task[Outcome]) -> Outcome | None:
        """How the work ended; None if the attempt is fenced and has only to say it is quiet."""
        if running.is_fenced:
            if not work.cancelled():
                work.exception()
            return None
        if work.cancelled():
            return HandedOver()
        error = work.exception()
        if error is None:
            return work.result()
        if isinstance(error, Fenced):
            return None
        log.error("turn_broke", turn=str(running.lease.turn_id), exc_info=error)
        return Failed("internal_error", describe("internal_error"))

    async def _end(self, running: Running, entry: JournalEntry, outcome: Outcome | None) -> None:
        if not self._stopping.is_set():
            await end_attempt(running.lease, entry, outcome)
            return
        # A database that is gone must not keep a stopping worker: the lease runs out by itself.
        with suppress(TimeoutError):
            await asyncio.wait_for(self._say_last(running, entry, outcome), LAST_WORDS_SECONDS)

    async def _say_last(
        self, running: Running, entry: JournalEntry, outcome: Outcome | None
    ) -> None:
        """After a claim that was under way when the stop came: it might take up the very turn that
        is handed over here.
        """
        async with self._claiming:
            pass  # only to wait for it: once stopping, a worker claims nothing more
        await end_attempt(running.lease, entry, outcome)

    # ---------------------------------------------------------------------- keeping leases

    async def _beat(self) -> None:
        pauses = Pauses()
        while True:
            self._beat_now.clear()
            asked_at = self._clock.monotonic()
            try:
                await self._beat_once(asked_at)
            except CONNECTION_ERRORS as error:
                log.warning("heartbeat_waits_for_database", error=type(error).__name__)
                if is_down(error):
                    self._sit_out(asked_at)
                await pauses.wait()
                continue
            pauses = Pauses()
            # An answer that came late has prolonged the leases by less than they should be.
            late = self._clock.monotonic() - asked_at
            with suppress(TimeoutError):
                await asyncio.wait_for(
                    self._beat_now.wait(), max(0.0, self._settings.heartbeat_seconds - late)
                )

    async def _beat_once(self, asked_at: float) -> None:
        asked = list(self._running.values())
        if not asked:
            return
        beats = await self._control.call(
            attempts.heartbeat, leases=[running.lease for running in asked]
        )
        for running in asked:
            if running.lease.attempt_id in beats.alive:
                running.prolong(asked_at + self._settings.lease_seconds)
                if running.lease.attempt_id in beats.held:
                    self._hold(running)
            elif running.lease.attempt_id in beats.fenced and not running.is_fenced:
                log.info("attempt_fenced", attempt=str(running.lease.attempt_id))
                running.fence()

    def _sit_out(self, asked_at: float) -> None:
        """The server itself is down: nobody ends an attempt now, nor in its first seconds back."""
        for running in self._running.values():
            if running.tenure.is_sure:
                running.prolong(asked_at + self._settings.return_grace_seconds)

    def _hold(self, running: Running) -> None:
        """The session was paused: the model stops at once, a started call has its grace."""
        if running.stop.is_set():
            return
        running.stop.set()
        if running.work is not None:
            asyncio.get_running_loop().call_later(self._settings.grace_seconds, running.work.cancel)

    async def _watch_leases(self) -> None:
        """A lease that could not be prolonged in time may be another's by now: that is for the
        database to say. Until it has, nothing is done that could be done twice.
        """
        while True:
            await asyncio.sleep(LEASE_CHECK_SECONDS)
            now = self._clock.monotonic()
            for running in list(self._running.values()):
                if running.deadline < now and running.tenure.is_sure and not running.is_fenced:
                    log.warning("lease_in_doubt", attempt=str(running.lease.attempt_id))
                    running.tenure.doubt()
                    self._beat_now.set()

    async def _listen(self) -> None:
        """Hints spare waiting; a lost one costs a poll, or a heartbeat."""
        async with listen(("q", "c")) as hints:
            async for heard in hints:
                if heard is RESYNC:
                    self._claim_now.set()
                    self._beat_now.set()
                    continue
                if "q" in heard:
                    self._claim_now.set()
                ours = {f"c:{attempt.hex}" for attempt in self._running}
                if ours & heard:
                    self._beat_now.set()

    async def _do_chores(self) -> None:
        while True:
            try:
                await self._chores.call(self._common.do)
            except CONNECTION_ERRORS as error:
                log.warning("chores_wait_for_database", error=type(error).__name__)
            await asyncio.sleep(CHORES_SECONDS)

    # ---------------------------------------------------------------------------- stopping

    async def _drain(self) -> None:
        """Calls already started may still record their results; then the rest is handed over."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self._settings.grace_seconds)
        for running in self._running.values():
            if running.work is not None:
                running.work.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=2 * LAST_WORDS_SECONDS)


async def _first_end(tasks: Collection[asyncio.Task[None]]) -> None:
    """Wait for the first task to end; raises what it raised."""
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()


async def _end_all(tasks: Collection[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
