"""The durable step loop of one turn: look at the log, do the next thing, write it down, again.

Each round folds the log and does exactly one thing: run a call, ask the model, or end. A new
attempt after a lost worker enters the same loop with the same log, so going on and recovering
are one code path. Knows no Django and no provider package.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from engine.calls import (
    call_key,
    find_problem,
    question,
    run_tool,
    tidy_calls,
    tool_result,
    tool_use,
)
from engine.context import OpenCall, TurnState, fold
from engine.failures import describe
from engine.ports import (
    Asked,
    Clock,
    Completed,
    Effect,
    Fact,
    Failed,
    HandedOver,
    LogEvent,
    ModelChoice,
    ModelRequest,
    Outcome,
    ProviderError,
    Providers,
    Tool,
    ToolBox,
    ToolCall,
    ToolContext,
    ToolOutput,
    TurnLog,
    TurnTask,
    Waiting,
)
from engine.response import Response, ResponseBounds, read_response, seal

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Limits:
    """Times in seconds. A `Retry-After` beyond `retry_after_max` is not waited for."""

    tries: int = 6
    first_pause: float = 1.0
    max_pause: float = 60.0
    retry_after_max: float = 900.0
    steps: int = 500
    tool_event_max_bytes: int = 65_536
    response: ResponseBounds = field(default_factory=ResponseBounds)


class _Stopping(Exception):
    """The worker is stopping; what was under way has been ended."""


@dataclass(slots=True)
class TurnLoop:
    log: TurnLog
    providers: Providers
    tools: ToolBox
    clock: Clock
    limits: Limits = field(default_factory=Limits)
    _events: list[LogEvent] = field(default_factory=list)
    _read: int = 0  # how many of them were read; those behind are noted as they were written
    # Calls whose run this attempt itself announced in the log, and that it has not run yet; any
    # other such call without a result was begun by an attempt that is gone.
    _own_calls: set[str] = field(default_factory=set)

    async def run(self, task: TurnTask) -> Outcome:
        """The turn's end. Raises Fenced when the attempt is no longer the live one."""
        await self._read_on()
        while True:
            state = self._state(task)
            if state.is_answered:
                return Completed()
            if state.is_waiting:
                if await self._suspend(task):
                    return Waiting()
                continue
            call = state.runnable_call
            if task.stop.is_set() and not self._has_begun(call):
                return HandedOver()
            if call is not None:
                await self._settle_call(call, state, task)
            elif state.pending_calls:
                await self._begin_call(state.pending_calls[0], state)
            elif state.position.responses >= self.limits.steps:
                return Failed("too_many_steps", describe("too_many_steps"))
            else:
                try:
                    failed = await self._ask_model(state, task)
                except _Stopping:
                    return HandedOver()
                if failed:
                    return failed

    async def _read_on(self) -> None:
        """Reads what others wrote too. What this attempt noted itself stands among that, so it is
        read again.
        """
        read = self._events[: self._read]
        self._events = [*read, *await self.log.read(read[-1].seq if read else 0)]
        self._read = len(self._events)

    def _state(self, task: TurnTask) -> TurnState:
        return fold(self._events, turn_id=task.turn_id, provider_id="")[1]

    async def _suspend(self, task: TurnTask) -> bool:
        """False where all was decided while calls still ran: then the log tells how."""
        if await self.log.suspend():
            return True
        await self._read_on()
        if self._state(task).is_waiting:
            raise RuntimeError("A call waits, and nobody was asked about it.")
        return False

    # -------------------------------------------------------------------------- the model

    async def _ask_model(self, state: TurnState, task: TurnTask) -> Failed | None:
        model = await self.log.open_step(state.step)
        try:
            response = await _unless(task.stop.wait(), self._request(model, state, task))
        except ProviderError as error:
            return await self._pause_or_fail(error, state, task)
        facts = seal(response, model, state.step)
        if calls := self._tidy(response):
            facts.append(self._tool_use(calls[0], calls[1:], model, state.step, state))
        self._note(await self.log.record(facts))
        return None

    async def _request(self, model: ModelChoice, state: TurnState, task: TurnTask) -> Response:
        provider = await self.providers.connect(model)
        history, _ = fold(self._events, turn_id=task.turn_id, provider_id=model.provider_id)
        request = ModelRequest(
            model=model,
            instructions=task.instructions,
            history=history,
            tools=tuple(self.tools.offered(model)),
            position=state.position,
        )
        return await read_response(
            provider.stream(request), log=self.log, clock=self.clock, bounds=self.limits.response
        )

    async def _pause_or_fail(
        self, error: ProviderError, state: TurnState, task: TurnTask
    ) -> Failed | None:
        tries = state.position.recent_failures + 1
        pause = self._pause(error, tries)
        if not error.retryable or tries >= self.limits.tries or pause is None:
            return Failed(error.code, describe(error.code, error.reason))
        await self.log.mark_rescheduling(error.code, error.reason, pause)
        await _unless(task.stop.wait(), self.clock.sleep(pause))
        await self.log.mark_running()
        await self._read_on()
        return None

    def _pause(self, error: ProviderError, tries: int) -> float | None:
        """Seconds, growing and a little uneven; None if the provider asks for too much."""
        asked = error.retry_after or 0.0
        if asked > self.limits.retry_after_max:
            return None
        grown = min(self.limits.first_pause * 2.0 ** (tries - 1), self.limits.max_pause)
        return max(asked, grown * random.uniform(0.9, 1.1))  # noqa: S311 (no secret)

    # -------------------------------------------------------------------------- the calls

    def _tidy(self, response: Response) -> list[ToolCall]:
        return tidy_calls(response.calls, max_bytes=self.limits.tool_event_max_bytes)

    def _tool_use(
        self,
        call: ToolCall,
        following: Sequence[ToolCall],
        model: ModelChoice,
        step: int,
        state: TurnState,
    ) -> Fact:
        return tool_use(
            call,
            following,
            step=step,
            tool=self.tools.find(call.name, model),
            allowed_tools=state.allowed_tools,
            max_bytes=self.limits.tool_event_max_bytes,
        )

    async def _begin_call(self, call: ToolCall, state: TurnState) -> None:
        """Write the next call down. Its step is that of the response which asked for it."""
        model = state.asked_by or ModelChoice("", "")
        fact = self._tool_use(call, (), model, state.position.responses, state)
        self._note(await self.log.record([fact]))

    async def _settle_call(self, call: OpenCall, state: TurnState, task: TurnTask) -> None:
        """Give the call its result: by running it, or by saying that its outcome is unknown.

        A call that turns out to ask people, or to wait for children, has its result from them.
        """
        began = self.clock.monotonic()
        context = ToolContext(
            task.session_id,
            task.turn_id,
            call.call_id,
            call_key(task.turn_id, call),
            call.tool_use_id,
        )
        output = await self._run_call(call, state, context, task)
        self._own_calls.discard(call.tool_use_id)
        if isinstance(output, Effect):
            await self.log.apply(output, context, call.name)
            await self._read_on()
        elif isinstance(output, Asked):
            self._note(await self.log.record([question(call, output)]))
        else:
            fact = tool_result(
                call,
                output,
                duration_ms=round((self.clock.monotonic() - began) * 1000),
                max_bytes=self.limits.tool_event_max_bytes,
            )
            self._note(await self.log.record([fact]))

    async def _run_call(
        self, call: OpenCall, state: TurnState, context: ToolContext, task: TurnTask
    ) -> ToolOutput | Asked | Effect | None:
        """None: it may have run, and nobody knows how it ended."""
        model = state.asked_by or ModelChoice("", "")
        tool = self.tools.find(call.name, model)
        known = [spec.name for spec in self.tools.offered(model)]
        problem = find_problem(call, tool, known, state.allowed_tools)
        if problem is not None or tool is None:
            return ToolOutput(problem or "", is_error=True)
        return await _run(tool, call, context, task) if await self._may_run(call, tool) else None

    def _has_begun(self, call: OpenCall | None) -> bool:
        """It was written down by this attempt. Left to another one, nobody could tell that it has
        not run.
        """
        return call is not None and call.tool_use_id in self._own_calls

    async def _may_run(self, call: OpenCall, tool: Tool) -> bool:
        """Not if another attempt began it, unless that does no harm. An approved one is marked."""
        if call.is_asked and not call.is_started:
            started = Fact("agent.tool_started", {"tool_use_id": call.tool_use_id})
            self._note(await self.log.record([started]))
        return self._has_begun(call) or tool.spec.repeatable

    def _note(self, events: Sequence[LogEvent]) -> None:
        self._events.extend(events)
        for event in events:
            if event.type == "agent.tool_started":
                self._own_calls.add(str(event.body["tool_use_id"]))
            elif event.type == "agent.tool_use" and event.body["evaluated_permission"] != "ask":
                self._own_calls.add(str(event.body["id"]))


async def _run(
    tool: Tool, call: OpenCall, context: ToolContext, task: TurnTask
) -> ToolOutput | Asked | Effect | None:
    """None: nobody knows how it ended; also where it was cut because the turn may be another
    attempt's.
    """
    running = run_tool(tool, call, context)
    if tool.spec.repeatable:
        return await running
    try:
        await task.tenure.until_sure()
    except BaseException:
        running.close()
        raise
    try:
        return await _unless(task.tenure.until_doubted(), running)
    except _Stopping:
        return None


async def _unless(event: Coroutine[Any, Any, Any], work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, unless `event` comes first: then it is ended, and _Stopping raised."""
    task = asyncio.ensure_future(work)
    stopped = asyncio.ensure_future(event)
    try:
        await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise _Stopping
        return task.result()
    finally:
        for waiting in (task, stopped):
            waiting.cancel()
        # Waits for the end without taking over how it ended.
        await asyncio.wait({task, stopped})
        if not task.cancelled():
            task.exception()
